//! Tests contexts, schedules and stimuli: their laws, their bits, and what they refuse.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

mod fields;
mod schedules;
mod stacks;
mod stimuli;
mod streams;
mod synthetic;

use leukos::contexts::Contexts;
use leukos::{Error, Matrix};

use crate::bridge::nested;
use crate::twin;

/// Eigenvalues in ascending order and eigenvectors as columns, by the twin's rotations.
fn eigen(matrix: &Matrix) -> (Vec<f64>, Matrix) {
    let (values, vectors) = twin::symmetric_eigen(&nested(matrix));
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let n = values.len();
    (order.iter().map(|&i| values[i]).collect(), Matrix::from_fn(n, n, |i, j| vectors[i][order[j]]))
}

/// The largest difference of two matrices' entries.
fn apart(a: &Matrix, b: &Matrix) -> f64 {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    crate::bridge::farthest(a.as_slice(), b.as_slice())
}

fn times(a: &Matrix, b: &Matrix) -> Matrix {
    crate::bridge::matrix(&twin::matmul(&nested(a), &nested(b)), b.columns())
}

/// Two contexts of three neurons that share neither eigenvectors nor scale.
fn two_contexts() -> Contexts {
    Contexts::new(vec![
        Matrix::from_rows(&[[4.0, 1.5, 0.0], [1.5, 2.0, -0.5], [0.0, -0.5, 1.0]]),
        Matrix::from_rows(&[[0.5, -0.2, 0.1], [-0.2, 3.0, 1.0], [0.1, 1.0, 6.0]]),
    ])
    .unwrap()
}

/// The name and the text of an error about an argument.
fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("this must be refused").to_string()
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, Error>, start: &str) {
    let text = refusal(result);
    assert!(text.starts_with(start), "expected an error about {start:?}, got {text:?}");
}

/// Asserts that an estimate lies within five standard errors of what it estimates.
#[track_caller]
fn assert_near(what: &str, estimate: f64, truth: f64, standard_error: f64) {
    let off = (estimate - truth) / standard_error;
    assert!(off.abs() < 5.0, "{what}: {estimate}, expected {truth}, {off:.1} standard errors off");
}
