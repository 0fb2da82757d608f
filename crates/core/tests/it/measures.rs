//! Shows that the measures are what they say: closed forms, the slow twin, and their symmetries.

use leukos::{
    Circuit, Error, Matrix, Synapses, WhiteningMeter, asymmetry, definiteness, log_whitening_error,
    whitening_error,
};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::bridge::{self, nested, random_circuit, random_covariance, square};
use crate::twin;

fn assert_near(ours: f64, expected: f64, what: &str) {
    assert!((ours - expected).abs() <= 1e-11 * (1.0 + expected.abs()), "{what}: {ours} for {expected}");
}

/// The largest |log λ| by the twin.
fn slow_log_error(m: &twin::Matrix, c: &twin::Matrix) -> f64 {
    let (values, _) = twin::symmetric_eigen(&twin::response_covariance(m, c));
    values.iter().map(|value| value.ln().abs()).fold(0.0, f64::max)
}

#[test]
fn meter_agrees_with_the_twin_at_every_size() {
    let rng = &mut Pcg64::seed_from_u64(1);
    for (n, k) in [(1, 1), (2, 0), (2, 1), (2, 2), (2, 5), (3, 4), (9, 9), (25, 30)] {
        for tied in [true, false] {
            let circuit: Circuit = bridge::circuit(&random_circuit(n, k, tied, rng)).unwrap();
            let c = random_covariance(n, rng);
            let (m, covariance) = (circuit.inverse_whitening_matrix(), square(&c));
            let what = format!("N {n}, K {k}, tied {tied}");
            let expected = twin::whitening_error(&nested(&m), &c);
            let logarithm = slow_log_error(&nested(&m), &c);
            let mut meter = WhiteningMeter::new(&circuit);
            assert_near(meter.error(&circuit, &covariance).unwrap(), expected, &what);
            assert_near(meter.log_error(&circuit, &covariance).unwrap(), logarithm, &what);
            assert_near(whitening_error(&m, &covariance).unwrap(), expected, &what);
            assert_near(log_whitening_error(&m, &covariance).unwrap(), logarithm, &what);
        }
    }
}

/// The measures of diag(m) and diag(c): variances c/m².
#[test]
fn diagonal_circuits_have_closed_forms() {
    let circuit = Circuit::new(Synapses::tied(Matrix::identity(2)).unwrap(), vec![1.0, 3.0], 1.0).unwrap();
    let mut meter = WhiteningMeter::new(&circuit);
    for (c, error, logarithm) in
        [([8.0, 16.0], 1.0, 2_f64.ln()), ([2.0, 16.0], 0.5, 2_f64.ln()), ([0.0, 16.0], 1.0, f64::INFINITY)]
    {
        let c = Matrix::diagonal(&c);
        let m = circuit.inverse_whitening_matrix();
        assert_eq!(meter.error(&circuit, &c).unwrap(), error);
        assert_eq!(meter.log_error(&circuit, &c).unwrap(), logarithm);
        assert_eq!(whitening_error(&m, &c).unwrap(), error);
        assert_eq!(log_whitening_error(&m, &c).unwrap(), logarithm);
    }
}

/// Silence has error 1 however silent, which the logarithm tells apart.
#[test]
fn logarithm_sees_silence() {
    let c = Matrix::identity(3);
    for volume in [1e2, 1e4, 1e8_f64] {
        let m = Matrix::diagonal(&[volume; 3]);
        assert_near(whitening_error(&m, &c).unwrap(), 1.0 - volume.powi(-2), "error");
        assert_near(log_whitening_error(&m, &c).unwrap(), 2.0 * volume.ln(), "logarithm");
    }
}

/// A pair whose determinant is out of range takes the general way and is measured all the same.
#[test]
fn pairs_of_every_size_are_measured() {
    for decade in [-160, -100, 0, 100, 150] {
        let gain = 10_f64.powi(decade);
        let circuit = Circuit::new(Synapses::tied(Matrix::identity(2)).unwrap(), vec![gain; 2], 0.0).unwrap();
        let c = Matrix::diagonal(&[gain * gain, 4.0 * gain * gain]);
        if c[(0, 0)] < f64::MIN_POSITIVE {
            continue;
        }
        let error = WhiteningMeter::new(&circuit).error(&circuit, &c).unwrap();
        assert!((error - 3.0).abs() < 1e-12, "1e{decade}: {error}");
    }
}

#[test]
fn meters_refuse_what_they_were_not_made_for() {
    let rng = &mut Pcg64::seed_from_u64(2);
    let mut circuit = |n, tied| bridge::circuit::<f64>(&random_circuit(n, 4, tied, rng)).unwrap();
    let (three, four, untied) = (circuit(3, true), circuit(4, true), circuit(3, false));
    let mut meter = WhiteningMeter::new(&three);
    let identity = Matrix::identity;
    assert!(meter.error(&three, &identity(3)).is_ok());
    assert!(matches!(meter.error(&four, &identity(4)), Err(Error::Shape { .. })));
    assert!(matches!(meter.error(&untied, &identity(3)), Err(Error::Shape { .. })));
    assert!(matches!(meter.error(&three, &identity(2)), Err(Error::Shape { .. })));
    let skewed = Matrix::from_fn(3, 3, |i, j| if i <= j { 1.0 } else { 0.0 });
    assert!(matches!(meter.error(&three, &skewed), Err(Error::NotSymmetric { .. })));
    let pair = circuit(2, true);
    let mut meter = WhiteningMeter::new(&pair);
    for bad in [[[1.0, 0.5], [0.0, 1.0]], [[f64::NAN, 0.0], [0.0, 1.0]], [[f64::INFINITY, 0.0], [0.0, 1.0]]] {
        assert!(meter.error(&pair, &Matrix::from_rows(&bad)).is_err(), "{bad:?}");
    }
}

#[test]
fn definiteness_is_the_smallest_eigenvalue_or_real_part() {
    assert_near(definiteness(&Matrix::diagonal(&[3.0, -0.5, 2.0])).unwrap(), -0.5, "indefinite");
    // Rotating at angular speed 5 while growing at rate 0.25: eigenvalues 0.25 ± 5i.
    let turning = Matrix::from_rows(&[[0.25, -5.0], [5.0, 0.25]]);
    assert_near(definiteness(&turning).unwrap(), 0.25, "untied");
    let rng = &mut Pcg64::seed_from_u64(4);
    let circuit = random_circuit(6, 8, true, rng);
    let m = circuit.inverse_whitening_matrix();
    let (values, _) = twin::symmetric_eigen(&m);
    let least = values.into_iter().fold(f64::INFINITY, f64::min);
    assert_near(definiteness(&square(&m)).unwrap(), least, "tied");
    assert!(definiteness(&Matrix::zeros(2, 3)).is_err());
    assert!(definiteness(&Matrix::diagonal(&[f64::NAN])).is_err());
}

#[test]
fn asymmetry_is_the_distance_between_the_two_weights() {
    let back = Matrix::from_rows(&[[1.0, 2.0, 0.0], [0.5, 0.0, 1.0]]);
    assert_eq!(asymmetry(&Synapses::tied(back.clone()).unwrap()), 0.0);
    let mut forth = back.transpose();
    forth[(1, 0)] += 3.0;
    forth[(2, 1)] -= 4.0;
    assert_near(asymmetry(&Synapses::untied(back, &forth).unwrap()), 5.0, "untied");
}
