//! Lists the golden cases and says which circuit and which options each one starts from.

use crate::npz::Npz;
use crate::twin::{Circuit, Options, UnitNorm};

pub const ONLINE: [&str; 5] = [
    "online_n1_k1",
    "online_n2_k2",
    "online_n3_k3_concurrent_unit",
    "online_n3_k5_alpha_half",
    "online_n5_k2",
];
pub const BATCH: [&str; 1] = ["batch8_n3_k4"];
pub const FROZEN: [&str; 2] = ["gain_modulation_n3_k6", "synaptic_plasticity_n3_k4"];
pub const UNIT_NORM: [&str; 1] = ["unit_norm_n3_k3"];
pub const SIGN: [&str; 1] = ["sign_n3_k3"];
pub const BIOLOGICAL: [&str; 2] = ["biological_n2_k2", "biological_n3_k4_clipped"];
pub const OFFLINE: [&str; 3] = ["offline_n5_k5", "offline_n5_k5_concurrent", "offline_n5_k5_unit"];
pub const DYNAMICS: [&str; 1] = ["dynamics_n4_k6"];
pub const METRICS: [&str; 2] = ["metrics_n4_k7", "metrics_n5_k5"];

/// The tied circuit of a case, from the arrays of these names.
pub fn tied(golden: &Npz, synapses: &str, gains: &str) -> Circuit {
    Circuit {
        feedback: golden.matrix(synapses),
        feedforward: None,
        gains: golden.vector(gains),
        multipliers: if golden.has("m0") { golden.vector("m0") } else { Vec::new() },
        leak: golden.scalar("alpha"),
    }
}

/// The options of a tied case; what a file does not name is off.
pub fn options(golden: &Npz) -> Options {
    Options {
        gain_rate: rate(golden, "eta_g"),
        synapse_rate: rate(golden, "eta_w"),
        multiplier_rate: rate(golden, "eta_m"),
        concurrent: golden.flag("concurrent"),
        unit_norm: match (golden.flag("normalize"), golden.has("m0")) {
            (true, _) => UnitNorm::Projected,
            (false, true) => UnitNorm::Multiplier,
            (false, false) => UnitNorm::Free,
        },
        nonnegative: golden.has("sign") && golden.flag("sign"),
        batch: if golden.has("batch") { golden.index("batch")[0] } else { 1 },
    }
}

/// A rate of a case; the cases write frozen as zero.
fn rate(golden: &Npz, name: &str) -> Option<f64> {
    golden.has(name).then(|| golden.scalar(name)).filter(|&rate| rate != 0.0)
}

/// The untied circuits that a biological case starts from and ends at.
pub fn biological(golden: &Npz) -> (Circuit, Circuit) {
    let circuit = |suffix: &str| Circuit {
        feedback: golden.matrix(&format!("W_nr{suffix}")),
        feedforward: Some(golden.matrix(&format!("W_rn{suffix}"))),
        gains: golden.vector(&format!("g{suffix}")),
        multipliers: golden.vector(&format!("m{suffix}")),
        leak: golden.scalar("alpha"),
    };
    (circuit("0"), circuit(""))
}

/// The options of Algorithm 3.
pub fn biological_options(golden: &Npz) -> Options {
    Options {
        gain_rate: rate(golden, "eta_g"),
        synapse_rate: rate(golden, "eta_w"),
        multiplier_rate: rate(golden, "eta_m"),
        unit_norm: UnitNorm::Multiplier,
        nonnegative: true,
        ..Options::default()
    }
}
