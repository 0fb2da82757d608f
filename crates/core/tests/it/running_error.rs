//! Shows what the running estimate of the whitening error knows, and what it cannot know.

use leukos::{Error, RunningError};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::bridge::{normal, normals, random_covariance};
use crate::twin;

/// The definition: weights (1 − 1/τ)^age, a covariance, its distance from the identity.
fn slow_estimate(responses: &[Vec<f64>], time_constant: f64) -> f64 {
    let (n, keep) = (responses[0].len(), 1.0 - 1.0 / time_constant);
    let mut covariance = vec![vec![0.0; n]; n];
    let mut total = 0.0;
    for (age, r) in responses.iter().rev().enumerate() {
        let weight = keep.powi(i32::try_from(age).unwrap());
        total += weight;
        (0..n).for_each(|i| (0..n).for_each(|j| covariance[i][j] += weight * r[i] * r[j]));
    }
    covariance.iter_mut().flatten().for_each(|x| *x /= total);
    twin::operator_norm(&twin::subtract(&covariance, &twin::identity(n)))
}

#[test]
fn estimate_is_the_error_of_the_weighted_covariance() {
    let rng = &mut Pcg64::seed_from_u64(1);
    for (n, samples, time_constant) in [(1, 1, 5.0), (2, 7, 1.0), (3, 50, 10.0), (6, 300, 40.0)] {
        let responses = normals(samples, n, rng);
        let mut running = RunningError::new(n, time_constant).unwrap();
        responses.iter().for_each(|r| running.update(r).unwrap());
        let (found, expected) = (running.error().unwrap(), slow_estimate(&responses, time_constant));
        assert!((found - expected).abs() < 1e-12 * (1.0 + expected), "N {n}: {found} for {expected}");
        let covariance = running.covariance();
        assert!((0..n).all(|i| (0..n).all(|j| covariance[(i, j)] == covariance[(j, i)])));
    }
}

/// With few samples for each neuron, white responses look far from white: the floor says about how far.
#[test]
fn white_responses_show_about_the_noise_floor() {
    for (n, time_constant, least) in [(1, 100_u16, 0.2), (2, 100, 0.5), (5, 200, 0.7), (25, 500, 0.85)] {
        let rng = &mut Pcg64::seed_from_u64(2);
        let (period, time_constant) = (time_constant, f64::from(time_constant));
        let (mut sum, mut count) = (0.0, 0.0);
        let mut running = RunningError::new(n, time_constant).unwrap();
        for sample in 0..200 * u32::from(period) {
            let response: Vec<f64> = (0..n).map(|_| normal(rng)).collect();
            running.update(&response).unwrap();
            if sample > 10 * u32::from(period) && sample.is_multiple_of(u32::from(period)) {
                sum += running.error().unwrap();
                count += 1.0;
            }
        }
        let (mean, floor) = (sum / count, running.noise_floor());
        let settled = n as f64 / (2.0 * time_constant - 1.0);
        assert!((floor - ((1.0 + settled.sqrt()).powi(2) - 1.0)).abs() < 1e-6, "{floor}");
        println!("N {n}, time constant {time_constant}: mean {mean:.3}, floor {floor:.3}");
        assert!((least..1.1).contains(&(mean / floor)), "N {n}: mean {mean}, floor {floor}");
    }
}

/// Responses of covariance C show ‖C − I‖ where that is far above the floor.
#[test]
fn large_errors_are_estimated() {
    let rng = &mut Pcg64::seed_from_u64(3);
    let c = random_covariance(3, rng);
    let root = twin::square_root(&c);
    let truth = twin::operator_norm(&twin::subtract(&c, &twin::identity(3)));
    let mut running = RunningError::new(3, 5000.0).unwrap();
    for _ in 0..30_000 {
        running.update(&twin::matvec(&root, &[normal(rng), normal(rng), normal(rng)])).unwrap();
    }
    // Standard error of a variance: 1.4/√n of it, with n about 10 000.
    let found = running.error().unwrap();
    assert!((found - truth).abs() < 5.0 * 0.014 * (1.0 + truth), "{found} for {truth}");
    assert!(truth > 5.0 * running.noise_floor(), "{truth}");
}

/// A context is forgotten after a few time constants: what is left of its error falls as e^(−t/τ).
#[test]
fn earlier_contexts_are_forgotten() {
    let mut running = RunningError::new(1, 20.0).unwrap();
    (0..400).for_each(|_| running.update(&[3.0]).unwrap());
    assert!((running.error().unwrap() - 8.0).abs() < 1e-9);
    (0..60).for_each(|_| running.update(&[1.0_f32]).unwrap());
    let left = running.error().unwrap() / 8.0;
    assert!((left - 0.95_f64.powi(60)).abs() < 1e-6, "{left}");
}

#[test]
fn what_cannot_be_estimated_is_refused() {
    for time_constant in [0.5, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = RunningError::new(2, time_constant);
        assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{time_constant}");
    }
    let mut running = RunningError::new(2, 10.0).unwrap();
    assert_eq!((running.error(), running.noise_floor()), (None, f64::INFINITY));
    running.update(&[1.0, 0.0]).unwrap();
    let before = running.error();
    assert!(matches!(running.update(&[1.0]), Err(Error::Shape { .. })));
    assert!(matches!(running.update(&[1.0, f64::NAN]), Err(Error::NotFinite { .. })));
    assert_eq!(running.error(), before, "a refused response is left out");
    running.update(&[1e200, 0.0]).unwrap();
    assert_eq!(running.error(), None, "squares overflow");
}
