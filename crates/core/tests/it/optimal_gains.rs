//! Shows that the gains called optimal are: in closed form, by the slope of the objective, and within few steps.

use leukos::{
    Circuit, Error, Matrix, OptimalGains, Synapses, gap, gradient, least_squares_gains, membership,
    objective, optimal_gains, starts,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{self, coin, farthest, nested, random_covariance, square};
use crate::natural;
use crate::twin;

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// αI + W diag(g) Wᵀ.
fn inverse_whitening_matrix(w: &Matrix, gains: &[f64], leak: f64) -> Matrix {
    let circuit = Circuit::new(Synapses::tied(w.clone()).unwrap(), gains.to_vec(), leak).unwrap();
    circuit.inverse_whitening_matrix()
}

/// The largest |1 − Bᵢᵢ/‖wᵢ‖²|: how far the variance along a synapse vector is from 1.
fn farthest_variance(w: &Matrix, covariance: &Matrix, gains: &[f64], leak: f64) -> f64 {
    let slope = gradient(&inverse_whitening_matrix(w, gains, leak), covariance).unwrap();
    let along = |i: usize| {
        let column = w.column(i);
        let turned: Vec<f64> = (0..w.rows()).map(|j| dot(slope.column(j), column)).collect();
        (dot(column, &turned) / dot(column, column)).abs()
    };
    (0..w.columns()).map(along).fold(0.0, f64::max)
}

/// Q diag(spectrum) Qᵀ, and a random Q.
fn with_spectrum(spectrum: &[f64], rng: &mut Pcg64) -> (Matrix, Matrix) {
    let n = spectrum.len();
    let q = starts::orthogonal(n, n, rng);
    let entry = |i: usize, j: usize| (0..n).map(|l| q[(i, l)] * spectrum[l] * q[(j, l)]).sum::<f64>();
    (Matrix::from_fn(n, n, |i, j| entry(i.max(j), i.min(j))), q)
}

/// A problem whose covariance has condition 1e8: N up to 25, any K up to 2N, with and without leak.
struct Hard {
    w: Matrix,
    covariance: Matrix,
    leak: f64,
    name: String,
}

impl Hard {
    fn draw(rng: &mut Pcg64) -> Self {
        let n = [1, 2, 2, 3, 3, 5, 5, 8, 12, 25][rng.random_range(0..10)];
        let k = rng.random_range(1..=2 * n);
        let leak = if k < n || coin(rng) { 1.0 } else { 0.0 };
        let top = [1e-4, 1.0, 10.0, 1e4, 1e8][rng.random_range(0..5)];
        let shape = rng.random_range(0..3);
        let eigenvalue = |i: usize| match shape {
            0 => top * 10_f64.powf(-8.0 * i as f64 / (n - 1).max(1) as f64),
            1 => top * if i < n / 2 { 1.0 } else { 1e-8 },
            _ => top * if i == 0 { 1e-8 } else { 1.0 },
        };
        let (covariance, q) = with_spectrum(&(0..n).map(eigenvalue).collect::<Vec<_>>(), rng);
        let kind = rng.random_range(0..4);
        let w = synapses(kind, &q, k, rng);
        let name = format!("N {n}, K {k}, leak {leak}, top {top:e}, shape {shape}, kind {kind}");
        Self { w, covariance, leak, name }
    }
}

/// Random orthogonal synapses, random ones, or the basis `q`, exactly or with 3 % noise, and random ones besides.
fn synapses(kind: usize, q: &Matrix, k: usize, rng: &mut Pcg64) -> Matrix {
    let n = q.rows();
    let random = starts::on_sphere(n, k, rng);
    let noise = [0.0, 0.0, 0.0, 0.03][kind];
    match kind {
        0 => starts::orthogonal(n, k, rng),
        1 => random,
        _ => Matrix::from_fn(
            n,
            k,
            |i, j| if j < n { q[(i, j)] } else { 0.0 } + random[(i, j)] * if j < n { noise } else { 1.0 },
        ),
    }
}

#[test]
fn twenty_steps_are_enough_at_condition_1e8() {
    let rng = &mut Pcg64::seed_from_u64(1);
    let mut counts = [0; 21];
    for _ in 0..1000 {
        let Hard { w, covariance, leak, name } = Hard::draw(rng);
        let best = OptimalGains::new(&w, &covariance, leak).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(best.iterations <= 20, "{name}: {} steps", best.iterations);
        counts[best.iterations] += 1;
        // The last step changes M by ε^¼ = 1.2e-4 along its axes or less, and leaves less than that.
        let off = farthest_variance(&w, &covariance, &best.gains, leak);
        assert!(off < 1.2e-4, "{name}: {off:e} after {} steps", best.iterations);
    }
    println!("problems by number of steps: {counts:?}");
}

#[test]
fn three_steps_are_enough_for_natural_images() {
    let Some(contexts) = natural::covariances() else { return };
    let rng = &mut Pcg64::seed_from_u64(1);
    let mut basis = |k: usize| starts::mean_eigenbasis(&contexts, k, 1.0, rng).unwrap();
    let mut cases = vec![("mean eigenbasis", 1.0, basis(25)), ("mean eigenbasis", 0.0, basis(25))];
    cases.extend([10, 24, 30, 50].map(|k| ("mean eigenbasis", 1.0, basis(k))));
    for k in [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50] {
        cases.push(("random", 1.0, starts::on_sphere(25, k, rng)));
    }
    for k in [25, 50] {
        cases.push(("orthogonal", 1.0, starts::orthogonal(25, k, rng)));
        cases.push(("orthogonal", 0.0, starts::orthogonal(25, k, rng)));
    }
    cases.push(("random", 0.0, starts::on_sphere(25, 25, rng)));
    for (name, leak, w) in cases {
        let mut counts = [0; 10];
        for covariance in &contexts {
            let best = OptimalGains::new(&w, covariance, leak).unwrap();
            counts[best.iterations.min(9)] += 1;
            let off = farthest_variance(&w, covariance, &best.gains, leak);
            assert!(off < 1e-6, "{name}, K {}: {off:e}", w.columns());
        }
        println!("{name}, K {}, leak {leak}: contexts by number of steps {counts:?}", w.columns());
        assert!(counts[4..] == [0; 6], "{name}, K {}, leak {leak}: {counts:?}", w.columns());
    }
}

/// α + gw² = √c.
#[test]
fn one_neuron_has_a_closed_form() {
    for (w, c, leak) in [(1.0, 4.0, 1.0), (0.3, 1e-6, 1.0), (-2.0, 9e8, 0.0), (5.0, 1.0, 1.0_f64)] {
        let best = OptimalGains::new(&Matrix::diagonal(&[w]), &Matrix::diagonal(&[c]), leak).unwrap();
        let expected = (f64::sqrt(c) - leak) / (w * w);
        assert!(
            (best.gains[0] - expected).abs() <= 1e-12 * (expected.abs() + leak / (w * w)),
            "{w} {c} {leak}"
        );
        assert!((best.objective - 2.0 * f64::sqrt(c)).abs() <= 1e-12 * best.objective);
    }
}

/// With W orthogonal gᵢ = √(qᵢᵀCqᵢ) − α, whatever else is in C.
#[test]
fn orthogonal_synapses_have_a_closed_form() {
    let rng = &mut Pcg64::seed_from_u64(2);
    for (n, k, leak) in [(2, 2, 1.0), (2, 1, 0.5), (5, 5, 0.0), (6, 4, 2.0)] {
        let (c, q) = (random_covariance(n, rng), starts::orthogonal(n, k, rng));
        let variance = |i: usize| dot(q.column(i), &twin::matvec(&c, q.column(i)));
        let expected: Vec<f64> = (0..k).map(|i| variance(i).sqrt() - leak).collect();
        let gains = optimal_gains(&q, &square(&c), leak).unwrap();
        assert!(farthest(&gains, &expected) < 1e-12, "N {n}, K {k}: {gains:?} for {expected:?}");
    }
}

/// Without a leak and with K = N interneurons do not interact: gᵢ = √(W⁻¹CW⁻ᵀ)ᵢᵢ / ‖wᵢ‖.
#[test]
fn as_many_interneurons_as_neurons_without_a_leak_have_a_closed_form() {
    let rng = &mut Pcg64::seed_from_u64(3);
    for n in [1, 2, 3, 7] {
        let (c, w) = (random_covariance(n, rng), starts::on_sphere(n, n, rng));
        let inverse = twin::inverse(&nested(&w));
        let turned = twin::matmul(&inverse, &twin::matmul(&c, &twin::transpose(&inverse)));
        let gains = optimal_gains(&w, &square(&c), 0.0).unwrap();
        for i in 0..n {
            let expected = turned[i][i].sqrt();
            assert!(
                (gains[i] - expected).abs() < 1e-9 * (1.0 + expected),
                "N {n}: {} for {expected}",
                gains[i]
            );
        }
    }
}

/// Two neurons and one interneuron along the first: only its variance matters, M = diag(√c₁₁, α).
#[test]
fn a_covariance_that_cannot_be_whitened_is_whitened_along_the_synapses() {
    let w = Matrix::from_rows(&[[1.0], [0.0]]);
    let c = Matrix::from_rows(&[[4.0, 1.5], [1.5, 9.0]]);
    let best = OptimalGains::new(&w, &c, 2.0).unwrap();
    assert!(best.gains[0].abs() < 1e-12, "√4 is the leak already: {:?}", best.gains);
    assert!((best.objective - (2.0 + 2.0 + 2.0 + 4.5)).abs() < 1e-12, "{}", best.objective);
}

/// The objective is convex, so that no neighbour being lower shows a minimum.
#[test]
fn no_other_gains_are_better() {
    let rng = &mut Pcg64::seed_from_u64(4);
    for (n, k, leak) in [(3, 2, 1.0), (4, 4, 0.3), (3, 6, 0.0), (4, 8, 1.0), (2, 7, 0.5)] {
        let (c, w) = (square(&random_covariance(n, rng)), starts::on_sphere(n, k, rng));
        let best = OptimalGains::new(&w, &c, leak).unwrap();
        let value = |gains: &[f64]| objective(&inverse_whitening_matrix(&w, gains, leak), &c).unwrap();
        assert!((best.objective - value(&best.gains)).abs() < 1e-12 * best.objective);
        for _ in 0..50 {
            let other: Vec<f64> = best.gains.iter().map(|g| g + 1e-3 * bridge::normal(rng)).collect();
            assert!(value(&other) >= best.objective * (1.0 - 1e-14), "N {n}, K {k}");
        }
    }
}

/// gᵢ → gᵢ/s² for wᵢ → s wᵢ; and g → u g for C → u² C, α → u α.
#[test]
fn lengths_and_units_do_not_matter() {
    let rng = &mut Pcg64::seed_from_u64(5);
    for (n, k, leak) in [(3, 3, 1.0), (4, 7, 0.5), (3, 9, 1.0)] {
        let (c, w) = (square::<f64>(&random_covariance(n, rng)), starts::on_sphere(n, k, rng));
        let m = inverse_whitening_matrix(&w, &optimal_gains(&w, &c, leak).unwrap(), leak);
        let lengths: Vec<f64> = (0..k).map(|_| 10_f64.powi(rng.random_range(-4..4))).collect();
        let uneven = Matrix::from_fn(n, k, |i, j| w[(i, j)] * lengths[j]);
        let unit = 1e-7;
        let small = Matrix::from_fn(n, n, |i, j| unit * unit * c[(i, j)]);
        let other = inverse_whitening_matrix(&uneven, &optimal_gains(&uneven, &c, leak).unwrap(), leak);
        assert!(farthest(other.as_slice(), m.as_slice()) < 1e-7, "N {n}, K {k}: lengths");
        let gains = optimal_gains(&w, &small, unit * leak).unwrap();
        let other = inverse_whitening_matrix(&w, &gains, unit * leak);
        let scaled: Vec<f64> = other.as_slice().iter().map(|x| x / unit).collect();
        assert!(farthest(&scaled, m.as_slice()) < 1e-7, "N {n}, K {k}: units");
    }
}

/// Gains of least norm are a combination of the wᵢᵀSwᵢ for symmetric S: nothing of them leaves M as it is.
#[test]
fn gains_are_of_least_norm_where_they_are_not_unique() {
    let rng = &mut Pcg64::seed_from_u64(6);
    for (n, k) in [(2, 5), (3, 8), (3, 12)] {
        let mut w = starts::on_sphere(n, k, rng);
        w.column_mut(0).iter_mut().for_each(|x| *x *= 3.0);
        let c: Matrix = square(&random_covariance(n, rng));
        let features: twin::Matrix = (0..k)
            .map(|l| {
                let pairs = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
                pairs.map(|(i, j)| w[(i, l)] * w[(j, l)]).collect()
            })
            .collect();
        for gains in [optimal_gains(&w, &c, 1.0).unwrap(), least_squares_gains(&w, &c, 1.0).unwrap()] {
            let transposed = twin::transpose(&features);
            let normal = twin::matmul(&transposed, &features);
            let fitted = twin::matvec(&features, &twin::solve(&normal, &twin::matvec(&transposed, &gains)));
            assert!(farthest(&fitted, &gains) < 1e-9, "N {n}, K {k}");
            let m = inverse_whitening_matrix(&w, &gains, 1.0);
            assert!(gap(&m, &c).unwrap() < 1e-20, "these whiten any covariance");
        }
    }
}

#[test]
fn twins_share_their_gain_and_columns_without_length_have_none() {
    let w = Matrix::from_rows(&[[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]);
    let gains = optimal_gains(&w, &Matrix::diagonal(&[9.0, 4.0]), 1.0).unwrap();
    assert!(farthest(&gains, &[1.0, 1.0, 0.0, 1.0]) < 1e-12, "{gains:?}");
}

/// The gap is the difference f − 2 tr C^½, and keeps its digits where the difference has none.
#[test]
fn gap_is_the_distance_from_the_least_objective() {
    let rng = &mut Pcg64::seed_from_u64(7);
    for n in [1, 2, 5] {
        let (m, c) = (random_covariance(n, rng), random_covariance(n, rng));
        let least = 2.0 * twin::trace(&twin::square_root(&c));
        let difference = objective(&square(&m), &square(&c)).unwrap() - least;
        assert!((gap(&square(&m), &square(&c)).unwrap() - difference).abs() < 1e-12 * least);
    }
    // M = C^½ + δ diag(1, 0) for C = diag(4, 1): the gap is δ²/(2 + δ).
    for delta in [1e-3, 1e-6, 1e-9] {
        let m = Matrix::diagonal(&[2.0 + delta, 1.0]);
        let found = gap(&m, &Matrix::diagonal(&[4.0, 1.0])).unwrap();
        let expected = delta * delta / (2.0 + delta);
        assert!((found / expected - 1.0).abs() < 1e-6, "{found:e} for {expected:e}");
    }
    assert_eq!(gap(&Matrix::diagonal(&[1.0, -1.0]), &Matrix::identity(2)).unwrap(), f64::INFINITY);
}

#[test]
fn members_have_no_residual_and_others_do() {
    let rng = &mut Pcg64::seed_from_u64(8);
    for (n, k, leak) in [(2, 2, 1.0), (5, 5, 0.0), (5, 9, 0.5)] {
        let w = starts::on_sphere(n, k, rng);
        let lambda: Vec<f64> = (0..k).map(|_| rng.random_range(0.1..3.0)).collect();
        let m = nested(&inverse_whitening_matrix(&w, &lambda, leak));
        let member = membership(&w, &square(&twin::matmul(&m, &m)), leak).unwrap();
        assert!(member.holds(1e-13), "N {n}, K {k}: {member:?}");
        assert!(farthest(&member.gains, &lambda) < 1e-10, "the outer products are independent");
        let other = membership(&w, &square(&random_covariance(n, rng)), leak).unwrap();
        assert!(!other.holds(1e-3), "N {n}, K {k}: {other:?}");
        let root = |c: &twin::Matrix| twin::square_root(c);
        let c = random_covariance(n, rng);
        let fitted = membership(&w, &square(&c), leak).unwrap();
        let mut rest = root(&c);
        let scaled =
            |i: usize, j: usize| (0..k).map(|l| w[(i, l)] * fitted.gains[l] * w[(j, l)]).sum::<f64>();
        let size: f64 = rest.iter().flatten().map(|x| x * x).sum();
        (0..n)
            .for_each(|i| (0..n).for_each(|j| rest[i][j] -= scaled(i, j) + if i == j { leak } else { 0.0 }));
        let left: f64 = rest.iter().flatten().map(|x| x * x).sum();
        assert!((fitted.residual - (left / size).sqrt()).abs() < 1e-12);
    }
}

/// The matrix nearest to C^½ may be indefinite: it is not a member however near it is.
#[test]
fn members_are_definite() {
    let w = Matrix::from_rows(&[[1.0, 1.0], [0.0, 0.1]]);
    let found = membership(&w, &Matrix::from_rows(&[[1.0, 0.999], [0.999, 1.0]]), 0.1).unwrap();
    assert!(!found.definite && !found.holds(f64::INFINITY), "{found:?}");
    let best = OptimalGains::new(&w, &Matrix::from_rows(&[[1.0, 0.999], [0.999, 1.0]]), 0.1);
    assert!(best.is_ok(), "optimal gains stay on the cone: {best:?}");
}

#[test]
fn covariances_without_variance_have_no_optimum() {
    let w = Matrix::identity(2);
    for c in [[1.0, 0.0], [1.0, -1.0]] {
        let found = optimal_gains(&w, &Matrix::diagonal(&c), 1.0);
        assert!(matches!(found, Err(Error::NotPositiveDefinite { .. })), "{found:?}");
    }
}
