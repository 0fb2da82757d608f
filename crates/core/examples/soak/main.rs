//! Leaves whiteners running on abused input: `cargo run --release -p leukos --example soak [SAMPLES [SEED]]`.
//!
//! The seed is new each time unless it is given, and printed, so that a failure can be seen again.

mod abuse;

use std::time::{SystemTime, UNIX_EPOCH};

use abuse::{Soak, Verdict, Victim};
use leukos::TrainingRule;

const VICTIMS: [Victim; 8] = [
    Victim { channels: 8, interneurons: 8, rule: TrainingRule::None, plastic: false },
    Victim { channels: 8, interneurons: 8, rule: TrainingRule::Optimal, plastic: false },
    Victim { channels: 8, interneurons: 8, rule: TrainingRule::Optimal, plastic: true },
    Victim { channels: 8, interneurons: 4, rule: TrainingRule::None, plastic: false },
    Victim { channels: 8, interneurons: 5, rule: TrainingRule::Optimal, plastic: true },
    Victim { channels: 2, interneurons: 2, rule: TrainingRule::Optimal, plastic: true },
    Victim { channels: 1, interneurons: 1, rule: TrainingRule::None, plastic: false },
    Victim { channels: 25, interneurons: 25, rule: TrainingRule::Optimal, plastic: false },
];

/// Not barred: more interneurons than neurons.
const OVERCOMPLETE: Victim =
    Victim { channels: 8, interneurons: 16, rule: TrainingRule::Optimal, plastic: false };

fn main() -> leukos::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let samples: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(clock);
    println!("{samples} samples, seed {seed}");
    for (index, victim) in VICTIMS.iter().chain([&OVERCOMPLETE]).enumerate() {
        let share = samples / VICTIMS.len() as u64;
        let verdict = if index % 2 == 0 {
            Soak::<f64>::new(*victim, seed + index as u64)?.run(share)?
        } else {
            Soak::<f32>::new(*victim, seed + index as u64)?.run(share)?
        };
        let number = if index % 2 == 0 { "f64" } else { "f32" };
        println!("{victim:?} {number}");
        report(&verdict);
    }
    Ok(())
}

fn report(verdict: &Verdict) {
    println!(
        "  {} samples, {} episodes; M indefinite {}, output not finite {}, largest output {:.1e}",
        verdict.samples, verdict.episodes, verdict.indefinite, verdict.not_finite, verdict.largest_output
    );
    let (errors, ratios) = (sorted(verdict.errors.clone()), sorted(verdict.ratios.clone()));
    println!(
        "  after ten time constants: error of the twin, median {:.3}; relative to it median {:.3}, 95 % {:.3}, most {:.3}",
        quantile(&errors, 0.5),
        quantile(&ratios, 0.5),
        quantile(&ratios, 0.95),
        quantile(&ratios, 1.0)
    );
    let times =
        sorted(verdict.recoveries.iter().filter_map(|(_, time)| time.map(|time| time as f64)).collect());
    println!(
        "  time constants until within 1.5 of the twin: median {}, 99 % {}, most {}; later than ten: {:?}",
        quantile(&times, 0.5),
        quantile(&times, 0.99),
        quantile(&times, 1.0),
        verdict.failures()
    );
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

#[allow(clippy::cast_sign_loss)]
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((q * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
}
