//! Shows that the slow twin reproduces every golden case, and checks against the paper what they
//! leave out.
//!
//! `cargo test twin_golden -- --nocapture` prints how far each array is from its golden one.

use std::slice::from_ref;

use crate::golden_cases::{
    BATCH, BIOLOGICAL, DYNAMICS, FROZEN, METRICS, OFFLINE, ONLINE, SIGN, UNIT_NORM, biological,
    biological_options, options, tied,
};
use crate::npz::Npz;
use crate::twin::{
    Circuit, Matrix, Options, UnitNorm, determinant, dynamics, gradient, inverse, is_positive_definite,
    least_squares_gains, matmul, objective, offline, online, operator_norm, sample_objective, square_root,
    transpose, whitening_error,
};

/// No case is chaotic, so that rounding stays far below this up to the last step.
const TOLERANCE: f64 = 1e-9;

// -------------------------------------------------------------------------------------------------
// The golden cases
// -------------------------------------------------------------------------------------------------

#[test]
fn every_golden_case_has_a_test() {
    let mut tested =
        [&ONLINE[..], &BATCH, &FROZEN, &UNIT_NORM, &SIGN, &BIOLOGICAL, &OFFLINE, &DYNAMICS, &METRICS]
            .concat();
    tested.sort_unstable();
    assert_eq!(Npz::golden_cases(), tested);
}

#[test]
fn online_cases() {
    ONLINE.into_iter().for_each(check_online);
}

#[test]
fn batch_cases() {
    BATCH.into_iter().for_each(check_online);
}

#[test]
fn frozen_cases() {
    FROZEN.into_iter().for_each(check_online);
}

#[test]
fn unit_norm_cases() {
    UNIT_NORM.into_iter().for_each(check_online);
}

#[test]
fn sign_cases() {
    SIGN.into_iter().for_each(check_online);
}

#[test]
fn biological_cases() {
    for case in BIOLOGICAL {
        let golden = Npz::golden(case);
        let (mut circuit, expected) = biological(&golden);
        let responses = online(&mut circuit, &golden.matrix("S"), &biological_options(&golden));
        assert_matrices(case, "R", &responses, &golden.matrix("R"));
        assert_circuits(case, &circuit, &expected);
    }
}

#[test]
fn offline_cases() {
    for case in OFFLINE {
        let golden = Npz::golden(case);
        let mut circuit = tied(&golden, "W0", "g0");
        let errors = offline(
            &mut circuit,
            &golden.stack("covs"),
            &golden.index("presented"),
            golden.index("J")[0],
            &options(&golden),
        );
        assert_matrices(case, "error", &errors, &golden.matrix("error"));
        assert_matrices(case, "W", &circuit.feedback, &golden.matrix("W"));
        assert_vectors(case, "g", &circuit.gains, &golden.vector("g"));
    }
}

#[test]
fn dynamics_cases() {
    for case in DYNAMICS {
        let golden = Npz::golden(case);
        let circuit = tied(&golden, "W", "g");
        let rate = golden.scalar("response_rate");
        let tolerance = golden.scalar("tolerance");
        let (responses, iterations): (Matrix, Vec<usize>) =
            golden.matrix("S").iter().map(|stimulus| dynamics(&circuit, stimulus, rate, tolerance)).unzip();
        assert_matrices(case, "R", &responses, &golden.matrix("R_dynamics"));
        assert_eq!(iterations, golden.index("iterations"), "{case}");
    }
}

#[test]
fn metrics_cases() {
    for case in METRICS {
        let golden = Npz::golden(case);
        let circuit = tied(&golden, "W", "g");
        let (w, c) = (&circuit.feedback, golden.matrix("C"));
        let m = circuit.inverse_whitening_matrix();
        let gains = least_squares_gains(w, &c, circuit.leak);
        assert_matrices(case, "M", &m, &golden.matrix("M"));
        assert_matrices(case, "gradient", &gradient(&m, &c), &golden.matrix("gradient"));
        assert_vectors(case, "gains", &gains, &golden.vector("least_squares_gains"));
        assert_scalars(case, "objective", objective(&m, &c), golden.scalar("objective"));
        assert_scalars(case, "error", whitening_error(&m, &c), golden.scalar("error"));
    }
}

/// Runs the online twin on a tied golden case and compares its responses and final state.
fn check_online(case: &str) {
    let golden = Npz::golden(case);
    let mut circuit = tied(&golden, "W0", "g0");
    let responses = online(&mut circuit, &golden.matrix("S"), &options(&golden));
    assert_matrices(case, "R", &responses, &golden.matrix("R"));
    assert_matrices(case, "W", &circuit.feedback, &golden.matrix("W"));
    assert_vectors(case, "g", &circuit.gains, &golden.vector("g"));
    if golden.has("m") {
        assert_vectors(case, "m", &circuit.multipliers, &golden.vector("m"));
    }
}

// -------------------------------------------------------------------------------------------------
// What the golden cases leave out
// -------------------------------------------------------------------------------------------------

#[test]
fn objective_is_the_mean_sample_objective_at_equilibrium() {
    // Eq. (4) and Appendix B.2: f(M) = E[max over r of ℓ] + αN.
    let golden = Npz::golden("dynamics_n4_k6");
    let circuit = tied(&golden, "W", "g");
    let (stimuli, covariance) = stimuli_and_covariance(&golden);
    let responses = online(&mut circuit.clone(), &stimuli, &Options::default());
    let total: f64 = responses.iter().zip(&stimuli).map(|(r, s)| sample_objective(&circuit, r, s)).sum();
    let expected = total / count(&stimuli) + circuit.leak * 4.0;
    let m = circuit.inverse_whitening_matrix();
    assert_scalars("Eq. (4)", "objective", objective(&m, &covariance), expected);
}

#[test]
fn gradient_is_the_slope_of_the_objective() {
    let golden = Npz::golden("metrics_n5_k5");
    let (m, c) = (golden.matrix("M"), golden.matrix("C"));
    let slopes = gradient(&m, &c);
    for a in 0..m.len() {
        let nudged = |step: f64| {
            let mut nudged = m.clone();
            nudged[a][a] += step;
            objective(&nudged, &c)
        };
        let slope = (nudged(1e-5) - nudged(-1e-5)) / 2e-5;
        assert!((slope - slopes[a][a]).abs() < 1e-7, "entry {a}");
    }
}

#[test]
fn objective_is_infinite_off_the_cone() {
    let indefinite = vec![vec![1.0, 2.0], vec![2.0, 1.0]];
    let negative = vec![vec![-1.0, 0.0], vec![0.0, -1.0]];
    let identity = vec![vec![1.0, 0.0], vec![0.0, 1.0]];
    for m in [indefinite, negative] {
        assert!(objective(&m, &identity).is_infinite());
    }
    assert_scalars("cone", "f(I)", objective(&identity, &identity), 4.0);
}

#[test]
fn one_concurrent_offline_step_is_a_batch_of_all_samples() {
    // Appendix C: Algorithm 2 averages Eq. (7) and Eq. (8) over the context, here with every
    // constraint.
    let golden = Npz::golden("dynamics_n4_k6");
    let (stimuli, covariance) = stimuli_and_covariance(&golden);
    for unit_norm in [UnitNorm::Free, UnitNorm::Projected, UnitNorm::Multiplier] {
        for start in [tied_with_multipliers(&golden), untied(&golden)] {
            let options = Options {
                concurrent: true,
                unit_norm,
                nonnegative: unit_norm == UnitNorm::Multiplier,
                batch: stimuli.len(),
                ..everything_learns()
            };
            let (mut sampled, mut expected) = (start.clone(), start);
            online(&mut sampled, &stimuli, &options);
            offline(&mut expected, from_ref(&covariance), &[0], 1, &options);
            assert_circuits("offline step", &sampled, &expected);
        }
    }
}

#[test]
fn untied_synapses_that_start_equal_stay_tied() {
    let golden = Npz::golden("dynamics_n4_k6");
    let (stimuli, covariance) = stimuli_and_covariance(&golden);
    for unit_norm in [UnitNorm::Free, UnitNorm::Projected, UnitNorm::Multiplier] {
        let options = Options { unit_norm, ..everything_learns() };
        let mut tied = tied_with_multipliers(&golden);
        let mut untied = Circuit { feedforward: Some(transpose(&tied.feedback)), ..tied.clone() };
        online(&mut tied, &stimuli, &options);
        online(&mut untied, &stimuli, &options);
        offline(&mut tied, from_ref(&covariance), &[0], 3, &options);
        offline(&mut untied, from_ref(&covariance), &[0], 3, &options);
        let feedforward = untied.feedforward.take().unwrap();
        assert_matrices("stay tied", "W_rn", &transpose(&feedforward), &tied.feedback);
        assert_circuits("stay tied", &untied, &tied);
    }
}

#[test]
fn untied_synapses_approach_each_other_as_the_appendix_says() {
    // Appendix E.2: each step multiplies W_rnᵀ − W_nr by 1 − η_w (g + m), here with g and m frozen.
    let golden = Npz::golden("dynamics_n4_k6");
    let options = Options {
        gain_rate: None,
        multiplier_rate: None,
        unit_norm: UnitNorm::Multiplier,
        ..everything_learns()
    };
    let start = untied(&golden);
    let mut circuit = start.clone();
    let steps = 20;
    online(&mut circuit, &golden.matrix("S")[..steps].to_vec(), &options);
    let gap = |circuit: &Circuit, a: usize, i: usize| {
        circuit.feedforward.as_ref().unwrap()[i][a] - circuit.feedback[a][i]
    };
    for i in 0..start.gains.len() {
        let factor = 1.0 - options.synapse_rate.unwrap() * (start.gains[i] + start.multipliers[i]);
        for a in 0..start.feedback.len() {
            let expected = gap(&start, a, i) * (0..steps).fold(1.0, |product, _| product * factor);
            assert!((gap(&circuit, a, i) - expected).abs() < 1e-12);
        }
    }
}

#[test]
#[expect(clippy::many_single_char_names, reason = "the paper's symbols")]
fn a_concurrent_decay_reads_the_old_gains_and_multipliers() {
    // One neuron and one interneuron, so that each rule is a line of arithmetic.
    let (w, g, m, s) = (0.5, 2.0, 0.25, 3.0);
    let r = s / (1.0 + w * g * w);
    let (z, n) = (w * r, g * w * r);
    let new_m = m + 0.1 * (w * w - 1.0);
    let new_g = g + 0.1 * (z * z - 1.0);
    for (concurrent, decay) in [(true, g + m), (false, new_g + new_m)] {
        let mut circuit = Circuit {
            feedback: vec![vec![w]],
            feedforward: None,
            gains: vec![g],
            multipliers: vec![m],
            leak: 1.0,
        };
        let options = Options {
            gain_rate: Some(0.1),
            synapse_rate: Some(0.1),
            multiplier_rate: Some(0.1),
            unit_norm: UnitNorm::Multiplier,
            concurrent,
            ..Options::default()
        };
        let responses = online(&mut circuit, &vec![vec![s]], &options);
        let expected = Circuit {
            feedback: vec![vec![w + 0.1 * (r * n - w * decay)]],
            gains: vec![new_g],
            multipliers: vec![new_m],
            ..circuit.clone()
        };
        assert_scalars("by hand", "r", responses[0][0], r);
        assert_circuits("by hand", &circuit, &expected);
    }
}

#[test]
fn frozen_parts_keep_every_bit() {
    let golden = Npz::golden("dynamics_n4_k6");
    let (stimuli, _) = stimuli_and_covariance(&golden);
    for unit_norm in [UnitNorm::Free, UnitNorm::Projected, UnitNorm::Multiplier] {
        let options = Options { unit_norm, synapse_rate: None, ..everything_learns() };
        let start = untied(&golden);
        let mut circuit = start.clone();
        online(&mut circuit, &stimuli, &options);
        assert_ne!(circuit.gains, start.gains);
        circuit.gains.clone_from(&start.gains);
        assert_eq!(circuit, start, "synapses and multipliers rest together");

        let options = Options { unit_norm, gain_rate: None, multiplier_rate: None, ..everything_learns() };
        online(&mut circuit, &stimuli, &options);
        assert_ne!(circuit.feedback, start.feedback);
        assert_eq!(circuit.gains, start.gains);
        assert_eq!(circuit.multipliers, start.multipliers);
    }
}

#[test]
fn a_rest_too_small_for_a_batch_is_answered_only() {
    let golden = Npz::golden("dynamics_n4_k6");
    let (stimuli, _) = stimuli_and_covariance(&golden);
    let options = Options { batch: 20, ..everything_learns() };
    let (mut all, mut whole_batches) = (untied(&golden), untied(&golden));
    let responses = online(&mut all, &stimuli, &options);
    online(&mut whole_batches, &stimuli[..40].to_vec(), &options);
    assert_eq!(all, whole_batches);
    assert_eq!(responses.len(), stimuli.len());
    let last = dynamics(&all, &stimuli[49], 0.1, 1e-13).0;
    assert_vectors("rest", "r", &responses[49], &last);
}

#[test]
fn a_zero_column_stays_zero_when_projected() {
    let mut circuit = Circuit {
        feedback: vec![vec![0.0, 2.0], vec![0.0, 0.0]],
        feedforward: None,
        gains: vec![0.5, 0.5],
        multipliers: Vec::new(),
        leak: 1.0,
    };
    let options = Options { synapse_rate: Some(0.01), unit_norm: UnitNorm::Projected, ..Options::default() };
    online(&mut circuit, &vec![vec![1.0, 0.0]], &options);
    assert_eq!(circuit.feedback, [[0.0, 1.0], [0.0, 0.0]]);
}

#[test]
fn without_interneurons_only_the_leak_is_left() {
    let mut circuit = Circuit {
        feedback: vec![Vec::new(); 2],
        feedforward: None,
        gains: Vec::new(),
        multipliers: Vec::new(),
        leak: 2.0,
    };
    let covariance = vec![vec![8.0, 0.0], vec![0.0, 4.0]];
    let options = everything_learns();
    let responses = online(&mut circuit, &vec![vec![1.0, -4.0]], &options);
    let errors = offline(&mut circuit, &[covariance], &[0], 1, &options);
    assert_eq!(responses, [[0.5, -2.0]]);
    assert_eq!(errors, [[1.0]]);
}

#[test]
fn linear_algebra_undoes_itself() {
    let golden = Npz::golden("metrics_n5_k5");
    let c = golden.matrix("C");
    let root = square_root(&c);
    assert_matrices("algebra", "root", &matmul(&root, &root), &c);
    let product = matmul(&inverse(&c), &matmul(&c, &root));
    assert_matrices("algebra", "inverse", &product, &root);
    assert!(is_positive_definite(&c));

    // A permutation of odd sign, which elimination cannot do without exchanging rows.
    let swap = vec![vec![0.0, 3.0], vec![3.0, 0.0]];
    assert_scalars("algebra", "determinant", determinant(&swap), -9.0);
    assert_scalars("algebra", "norm", operator_norm(&swap), 3.0);
    assert!(operator_norm(&vec![vec![f64::NAN]]).is_nan());
}

/// Options under which every part moves by a visible amount.
fn everything_learns() -> Options {
    Options {
        gain_rate: Some(0.02),
        synapse_rate: Some(0.01),
        multiplier_rate: Some(0.05),
        ..Options::default()
    }
}

/// The circuit of a case with some multipliers.
fn tied_with_multipliers(golden: &Npz) -> Circuit {
    let circuit = tied(golden, "W", "g");
    Circuit { multipliers: vec![0.1; circuit.gains.len()], ..circuit }
}

/// The same circuit with feedforward synapses of their own, a tenth away from the feedback ones.
fn untied(golden: &Npz) -> Circuit {
    let circuit = tied_with_multipliers(golden);
    let mut feedforward = transpose(&circuit.feedback);
    for (i, row) in feedforward.iter_mut().enumerate() {
        for (a, weight) in row.iter_mut().enumerate() {
            *weight += if (i + a) % 2 == 0 { 0.1 } else { -0.1 };
        }
    }
    Circuit { feedforward: Some(feedforward), ..circuit }
}

/// The stimuli of a case and their second moment SᵀS/T.
fn stimuli_and_covariance(golden: &Npz) -> (Matrix, Matrix) {
    let stimuli = golden.matrix("S");
    let covariance = matmul(&transpose(&stimuli), &stimuli)
        .iter()
        .map(|row| row.iter().map(|sum| sum / count(&stimuli)).collect())
        .collect();
    (stimuli, covariance)
}

/// The number of rows as a float.
fn count(rows: &Matrix) -> f64 {
    rows.iter().map(|_| 1.0).sum()
}

// -------------------------------------------------------------------------------------------------
// Comparison
// -------------------------------------------------------------------------------------------------

fn assert_circuits(case: &str, ours: &Circuit, golden: &Circuit) {
    assert_matrices(case, "W_nr", &ours.feedback, &golden.feedback);
    assert_eq!(ours.feedforward.is_some(), golden.feedforward.is_some());
    if let (Some(ours), Some(golden)) = (&ours.feedforward, &golden.feedforward) {
        assert_matrices(case, "W_rn", ours, golden);
    }
    assert_vectors(case, "g", &ours.gains, &golden.gains);
    assert_vectors(case, "m", &ours.multipliers, &golden.multipliers);
}

fn assert_matrices(case: &str, name: &str, ours: &Matrix, golden: &Matrix) {
    let lengths = |rows: &Matrix| rows.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths(ours), lengths(golden), "{case}: shape of {name}");
    assert_vectors(case, name, &ours.concat(), &golden.concat());
}

fn assert_scalars(case: &str, name: &str, ours: f64, golden: f64) {
    assert_vectors(case, name, &[ours], &[golden]);
}

fn assert_vectors(case: &str, name: &str, ours: &[f64], golden: &[f64]) {
    assert_eq!(ours.len(), golden.len(), "{case}: length of {name}");
    // `f64::max` would skip a NaN, and a broken run would pass for a perfect one.
    let worst = ours
        .iter()
        .zip(golden)
        .map(|(x, y)| (x - y).abs())
        .fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst });
    println!("{case}: {name} is {worst:.1e} away");
    assert!(worst <= TOLERANCE, "{case}: {name} is {worst:e} away");
}
