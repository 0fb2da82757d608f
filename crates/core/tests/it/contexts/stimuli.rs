//! Shows that stimuli have the mean, covariance, tails and memory they promise.

use leukos::Matrix;
use leukos::contexts::{Contexts, Drift, Law, Stimuli, Waypoint, stream};

use super::{assert_near, assert_refused, two_contexts};

const SAMPLES: usize = 400_000;

fn draw(law: Law, context: usize, samples: usize, seed: u64) -> Vec<f64> {
    let contexts = two_contexts();
    let mut drawn = vec![0.0; samples * contexts.neurons()];
    Stimuli::new(contexts, law, stream(seed, 0)).unwrap().fill(context, &mut drawn).unwrap();
    drawn
}

fn covariance(context: usize) -> Matrix {
    two_contexts().covariances()[context].clone()
}

/// The mean of x(t) y(t + lag) over stimuli of three neurons.
fn moment(drawn: &[f64], i: usize, j: usize, lag: usize) -> f64 {
    let (early, late) = (drawn.chunks_exact(3), drawn.chunks_exact(3).skip(lag));
    let products: Vec<f64> = early.zip(late).map(|(early, late)| early[i] * late[j]).collect();
    products.iter().sum::<f64>() / products.len() as f64
}

fn mean(drawn: &[f64], i: usize) -> f64 {
    drawn.chunks_exact(3).map(|stimulus| stimulus[i]).sum::<f64>() / (drawn.len() / 3) as f64
}

/// Asserts that independent stimuli have mean 0 and this covariance. `kurtosis` is E x⁴/3 at unit variance, 1 for the
/// normal law; E x²y² = kurtosis · (Var x Var y + 2 Cov² xy) gives the standard error.
#[track_caller]
fn assert_moments(drawn: &[f64], covariance: &Matrix, kurtosis: f64) {
    let samples = (drawn.len() / 3) as f64;
    for i in 0..3 {
        assert_near("mean", mean(drawn, i), 0.0, (covariance[(i, i)] / samples).sqrt());
        for j in 0..=i {
            let (c, both) = (covariance[(i, j)], covariance[(i, i)] * covariance[(j, j)]);
            let error = ((kurtosis * (both + 2.0 * c * c) - c * c) / samples).sqrt();
            assert_near("covariance", moment(drawn, i, j, 0), c, error);
        }
    }
}

/// E[xᵖ yᵠ] of two combinations of stimuli that are uncorrelated and of unit variance.
fn white_moment(drawn: &[f64], covariance: &Matrix, p: i32, q: i32) -> f64 {
    // x along neuron 0, y the part of neuron 1 that does not go along with it.
    let slope = covariance[(0, 1)] / covariance[(0, 0)];
    let (spread, rest) =
        (covariance[(0, 0)].sqrt(), (covariance[(1, 1)] - slope * covariance[(0, 1)]).sqrt());
    let one = |s: &[f64]| (s[0] / spread).powi(p) * ((s[1] - slope * s[0]) / rest).powi(q);
    drawn.chunks_exact(3).map(one).sum::<f64>() / (drawn.len() / 3) as f64
}

#[test]
fn gaussian_stimuli_have_the_covariance_of_their_context() {
    for context in [0, 1] {
        let drawn = draw(Law::Gaussian, context, SAMPLES, 1);
        let covariance = &covariance(context);
        assert_moments(&drawn, covariance, 1.0);
        // E x⁴ = 3, Var x⁴ = 105 − 9; E x²y² = 1, Var x²y² = 9 − 1; and no memory.
        let root = (SAMPLES as f64).sqrt();
        assert_near("kurtosis", white_moment(&drawn, covariance, 4, 0), 3.0, 96.0_f64.sqrt() / root);
        assert_near("joint kurtosis", white_moment(&drawn, covariance, 2, 2), 1.0, 8.0_f64.sqrt() / root);
        assert_near("lag 1", moment(&drawn, 0, 0, 1), 0.0, covariance[(0, 0)] / root);
    }
}

#[test]
fn student_stimuli_have_the_covariance_and_heavy_tails() {
    let degrees = 12.0;
    let drawn = draw(Law::StudentT { degrees }, 0, SAMPLES, 2);
    let covariance = &covariance(0);
    // Moments of the common scale w = (ν − 2)/χ²: E w² = (ν − 2)/(ν − 4), E w⁴ = (ν − 2)³/((ν − 4)(ν − 6)(ν − 8)).
    let second = (degrees - 2.0) / (degrees - 4.0);
    let fourth = second * (degrees - 2.0).powi(2) / ((degrees - 6.0) * (degrees - 8.0));
    assert_moments(&drawn, covariance, second);
    let error = |power: f64, squared: f64| ((power - squared * squared) / SAMPLES as f64).sqrt();
    let kurtosis = 3.0 + 6.0 / (degrees - 4.0);
    let tails = white_moment(&drawn, covariance, 4, 0);
    assert_near("kurtosis", tails, kurtosis, error(105.0 * fourth, kurtosis));
    // The scale is common to all neurons: x² and y² go together although x and y do not.
    let joint = white_moment(&drawn, covariance, 2, 2);
    assert_near("joint kurtosis", joint, second, error(9.0 * fourth, second));
}

#[test]
fn autocorrelated_stimuli_have_the_covariance_and_their_memory() {
    for coefficient in [0.6, -0.4] {
        let drawn = draw(Law::Autocorrelated { coefficient }, 1, SAMPLES, 3);
        let covariance = &covariance(1);
        let samples = SAMPLES as f64;
        // Bartlett: the memory multiplies variances by Σ ρ^|2k| at most, and that of the mean by Σ ρ^|k|.
        let memory = (1.0 + coefficient * coefficient) / (1.0 - coefficient * coefficient);
        let slow = (1.0 + coefficient) / (1.0 - coefficient);
        for i in 0..3 {
            assert_near("mean", mean(&drawn, i), 0.0, (covariance[(i, i)] * slow / samples).sqrt());
            for (j, lag) in (0..3).flat_map(|j| (0..4_u8).map(move |lag| (j, lag))) {
                let (c, both) = (covariance[(i, j)], covariance[(i, i)] * covariance[(j, j)]);
                let error = ((both + c * c) * memory / samples).sqrt();
                let expected = coefficient.powi(lag.into()) * c;
                assert_near("autocovariance", moment(&drawn, i, j, lag.into()), expected, error);
            }
        }
    }
}

#[test]
fn memory_starts_stationary_and_takes_on_a_new_context_at_once() {
    let law = Law::Autocorrelated { coefficient: 0.9 };
    let (mut firsts, mut switched) = (Vec::new(), Vec::new());
    for index in 0..40_000 {
        let mut stimuli = Stimuli::new(two_contexts(), law, stream(4, index)).unwrap();
        let mut stimulus = [0.0; 3];
        stimuli.fill(0, &mut stimulus).unwrap();
        firsts.extend(stimulus);
        stimuli.fill(1, &mut stimulus).unwrap();
        switched.extend(stimulus);
    }
    assert_moments(&firsts, &covariance(0), 1.0);
    assert_moments(&switched, &covariance(1), 1.0);
}

#[test]
fn drifting_stimuli_have_the_covariance_of_each_point() {
    let start = Drift::new(vec![0, 1], 2).unwrap();
    let mut stimuli = Stimuli::gaussian(two_contexts(), stream(5, 0));
    let mut at = [const { Vec::new() }; 4];
    for _ in 0..50_000 {
        let mut path = [0.0; 12];
        stimuli.fill_drifting(&mut start.clone(), &mut path).unwrap();
        at.iter_mut().zip(path.chunks_exact(3)).for_each(|(at, stimulus)| at.extend_from_slice(stimulus));
    }
    let contexts = two_contexts();
    for (drawn, fraction) in at.iter().zip([0.0, 0.5, 1.0, 1.0]) {
        let covariance = contexts.covariance_at(Waypoint { from: 0, to: 1, fraction }).unwrap();
        assert_moments(drawn, &covariance, 1.0);
    }
}

#[test]
fn a_drift_carries_on_from_buffer_to_buffer() {
    let drift = Drift::new(vec![0, 1, 0], 5).unwrap();
    let source = Stimuli::gaussian(two_contexts(), stream(6, 0));
    let mut whole = [0.0; 3 * 14];
    source.clone().fill_drifting(&mut drift.clone(), &mut whole).unwrap();
    let (mut source, mut drift, mut parts) = (source, drift, [0.0; 3 * 14]);
    let (first, second) = parts.split_at_mut(3 * 4);
    source.fill_drifting(&mut drift, first).unwrap();
    source.fill_drifting(&mut drift, second).unwrap();
    assert_eq!(parts, whole);
    assert_eq!(drift.next(), Some(Waypoint { from: 0, to: 0, fraction: 1.0 }));
}

#[test]
fn neither_buffers_nor_precision_change_what_is_drawn() {
    for law in [Law::Gaussian, Law::StudentT { degrees: 4.0 }, Law::Autocorrelated { coefficient: 0.7 }] {
        let mut source = Stimuli::new(two_contexts(), law, stream(7, 0)).unwrap();
        let (mut single, mut again) = ([0.0_f32; 60], source.clone());
        let whole = draw(law, 0, 20, 7);
        again.fill(0, &mut single).unwrap();
        assert!(whole.iter().zip(single).all(|(&double, single)| double as f32 == single));
        let mut parts = [0.0; 60];
        let (first, second) = parts.split_at_mut(3 * 7);
        source.fill(0, first).unwrap();
        source.clone().fill(0, second).unwrap();
        assert_eq!(whole, parts);
    }
}

#[test]
fn a_bad_law_or_buffer_is_refused_before_anything_is_drawn() {
    let new = |law| Stimuli::new(two_contexts(), law, stream(8, 0));
    for degrees in [2.0, -1.0, f64::INFINITY, f64::NAN] {
        assert_refused(new(Law::StudentT { degrees }), "degrees: expected a finite number above 2");
    }
    for coefficient in [1.0, -1.0, 3.0, f64::NAN] {
        assert_refused(new(Law::Autocorrelated { coefficient }), "coefficient: expected a number between -1");
    }
    let mut stimuli = new(Law::Gaussian).unwrap();
    let before = stimuli.clone();
    assert_refused(stimuli.fill(2, &mut [0.0; 3]), "context: expected contexts below 2, got 2");
    assert_refused(stimuli.fill(0, &mut [0.0; 4]), "stimuli: expected a multiple of 3 numbers");
    let mut astray = Drift::new(vec![9], 1).unwrap();
    assert_refused(
        stimuli.fill_drifting(&mut astray, &mut [0.0; 3]),
        "from: expected contexts below 2, got 9",
    );
    assert_refused(stimuli.fill_drifting(&mut astray, &mut [0.0; 5]), "stimuli: expected a multiple of 3");
    assert_eq!(stimuli, before);
    stimuli.fill::<f64>(0, &mut []).unwrap();
    assert_eq!(stimuli, before);
}

#[test]
fn one_neuron_is_enough() {
    let contexts = Contexts::new(vec![Matrix::diagonal(&[9.0])]).unwrap();
    let mut drawn = vec![0.0; 10_000];
    Stimuli::gaussian(contexts, stream(9, 0)).fill(0, &mut drawn).unwrap();
    let variance = drawn.iter().map(|s| s * s).sum::<f64>() / 1e4;
    assert_near("variance", variance, 9.0, 9.0 * (2.0_f64 / 1e4).sqrt());
}
