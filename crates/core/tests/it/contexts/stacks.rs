//! Shows that a stack is checked, split and matched by controls as it says.

use leukos::Matrix;
use leukos::contexts::{Contexts, Waypoint, stream};

use super::{apart, assert_near, assert_refused, eigen, refusal, times, two_contexts};
use crate::bridge::{random_covariance, square};

/// Random covariances of `n` neurons.
fn random_contexts(count: usize, n: usize, seed: u64) -> Contexts {
    let rng = &mut stream(seed, 0);
    Contexts::new((0..count).map(|_| square(&random_covariance(n, rng))).collect()).unwrap()
}

#[test]
fn roots_are_symmetric_positive_and_square_to_the_covariances() {
    for n in [1, 2, 7, 20] {
        let contexts = random_contexts(3, n, 1);
        assert_eq!((contexts.len(), contexts.neurons()), (3, n));
        for (root, covariance) in contexts.roots().iter().zip(contexts.covariances()) {
            assert_eq!(*root, root.transpose());
            assert!(eigen(root).0[0] > 0.0);
            assert!(apart(&times(root, root), covariance) < 1e-12);
        }
    }
}

#[test]
fn the_mean_covariance_counts_each_context_once() {
    let mean = two_contexts().mean_covariance();
    let expected = Matrix::from_rows(&[[2.25, 0.65, 0.05], [0.65, 2.5, 0.25], [0.05, 0.25, 3.5]]);
    assert!(apart(&mean, &expected) < 1e-15);
}

#[test]
fn a_bad_covariance_is_named() {
    let good = || Matrix::diagonal(&[2.0, 1.0]);
    let with = |bad: Matrix| Contexts::new(vec![good(), bad]);
    assert_refused(Contexts::new(vec![]), "covariances: expected at least one N x N matrix");
    assert_refused(Contexts::new(vec![Matrix::zeros(0, 0)]), "covariances[0]: expected at least one row");
    assert_refused(Contexts::new(vec![Matrix::zeros(2, 3)]), "covariances[0]: expected 2 x 2, got 2 x 3");
    assert_refused(with(Matrix::identity(3)), "covariances[1]: expected 2 x 2, got 3 x 3");
    assert_refused(with(Matrix::diagonal(&[1.0, f64::NAN])), "covariances[1]: expected finite numbers");
    let lopsided = Matrix::from_rows(&[[2.0, 0.5], [0.4, 1.0]]);
    assert_refused(with(lopsided), "covariances[1]: expected a symmetric matrix");
    let indefinite = refusal(with(Matrix::from_rows(&[[1.0, 2.0], [2.0, 1.0]])));
    assert!(indefinite.contains("covariances[1]") && indefinite.contains("eigenvalue"), "{indefinite}");
    let singular = refusal(with(Matrix::from_rows(&[[1.0, 1.0], [1.0, 1.0]])));
    assert!(singular.contains("covariances[1]") && singular.contains("singular"), "{singular}");
    assert_refused(with(Matrix::zeros(2, 2)), "covariances[1]: expected a positive definite covariance");
    with(Matrix::diagonal(&[1e8, 1e-6])).expect("badly conditioned, but definite");
}

#[test]
fn a_split_parts_the_stack() {
    let contexts = random_contexts(56, 2, 2);
    let kept_back = [12, 26, 30, 33, 37, 45];
    let split = contexts.split(&kept_back).unwrap();
    assert_eq!((split.train.len(), split.test.len()), (50, 6));
    assert_eq!(split.test_indices, kept_back);
    for (i, c) in kept_back.into_iter().enumerate() {
        assert_eq!(split.test.covariances()[i], contexts.covariances()[c]);
        assert_eq!(split.test.roots()[i], contexts.roots()[c]);
        assert!(!split.train.covariances().contains(&contexts.covariances()[c]));
    }
    assert_eq!(split.train.covariances()[12], contexts.covariances()[13]);
}

#[test]
fn a_bad_split_is_refused() {
    let contexts = random_contexts(3, 2, 3);
    assert_refused(contexts.split(&[3]), "test_indices: expected contexts below 3, got 3");
    assert_refused(
        contexts.split(&[1, 1]),
        "test_indices: expected each context once at most, got context 1",
    );
    assert_refused(contexts.split(&[]), "test_indices: expected at least one of 3 contexts, but not all");
    assert_refused(
        contexts.split(&[0, 1, 2]),
        "test_indices: expected at least one of 3 contexts, but not all",
    );
    assert_refused(random_contexts(1, 2, 3).random_split(&mut stream(0, 0)), "test_indices");
    assert_refused(contexts.select(&[]), "indices: expected at least one context");
    assert_refused(contexts.select(&[0, 7]), "indices: expected contexts below 3, got 7");
}

#[test]
fn a_random_split_keeps_a_tenth_rounded_up_and_favours_none() {
    for (count, test) in [(2, 1), (10, 1), (11, 2), (56, 6), (60, 6), (61, 7)] {
        let split = random_contexts(count, 1, 4).random_split(&mut stream(9, 0)).unwrap();
        assert_eq!((split.test.len(), split.train.len()), (test, count - test));
        assert!(split.test_indices.is_sorted());
    }
    let (draws, contexts, rng) = (20_000, random_contexts(11, 1, 5), &mut stream(10, 0));
    let mut chosen = [0.0; 11];
    for _ in 0..draws {
        contexts.random_split(rng).unwrap().test_indices.iter().for_each(|&c| chosen[c] += 1.0);
    }
    let share = 2.0 / 11.0;
    let error = (share * (1.0 - share) / f64::from(draws)).sqrt();
    for (c, chosen) in chosen.iter().enumerate() {
        assert_near(&format!("share of context {c}"), chosen / f64::from(draws), share, error);
    }
}

#[test]
fn controls_have_the_spectra_and_eigenvectors_of_their_own() {
    let n = 6;
    let spectrum = [0.5, 1.0, 2.0, 3.0, 5.0, 10.0];
    let contexts = Contexts::new(vec![Matrix::diagonal(&spectrum); 400]).unwrap();
    let controls = contexts.controls(&mut stream(11, 0)).unwrap();
    assert_eq!((controls.len(), controls.neurons()), (400, n));
    let mut squares = Matrix::zeros(n, n);
    for covariance in controls.covariances() {
        let (values, vectors) = eigen(covariance);
        assert!(crate::bridge::farthest(&values, &spectrum) < 1e-12, "{values:?}");
        for (sum, q) in squares.as_mut_slice().iter_mut().zip(vectors.as_slice()) {
            *sum += q * q / 400.0;
        }
    }
    // An entry of a Haar matrix has E q² = 1/n and Var q² = 2 (n − 1) / (n² (n + 2)).
    let size = n as f64;
    let error = (2.0 * (size - 1.0) / (size * size * (size + 2.0)) / 400.0).sqrt();
    for &square in squares.as_slice() {
        assert_near("mean square of an eigenvector's entry", square, 1.0 / size, error);
    }
    let [first, second] = [0, 1].map(|c| eigen(&controls.covariances()[c]).1);
    let overlap = times(&first.transpose(), &second);
    let shared = (0..n).filter(|&i| overlap[(i, i)].abs() > 0.999).count();
    assert_eq!(shared, 0, "two controls share eigenvectors");
}

#[test]
fn a_waypoint_between_contexts_mixes_their_roots() {
    let contexts = two_contexts();
    let at = |from, to, fraction| contexts.covariance_at(Waypoint { from, to, fraction });
    for (fraction, context) in [(0.0, 0), (1.0, 1)] {
        assert!(apart(&at(0, 1, fraction).unwrap(), &contexts.covariances()[context]) < 1e-14);
    }
    let mix = |i, j| 0.75 * contexts.roots()[0][(i, j)] + 0.25 * contexts.roots()[1][(i, j)];
    let root = Matrix::from_fn(3, 3, mix);
    assert!(apart(&at(0, 1, 0.25).unwrap(), &times(&root, &root)) < 1e-14);
    assert_refused(at(2, 0, 0.5), "from: expected contexts below 2, got 2");
    assert_refused(at(0, 2, 0.5), "to: expected contexts below 2, got 2");
    assert_refused(at(0, 1, 1.5), "fraction: expected a number between 0 and 1, got 1.5");
    assert_refused(at(0, 1, f64::NAN), "fraction");
}
