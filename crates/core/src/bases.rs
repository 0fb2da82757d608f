//! Makes the bases that learned synapses are compared with: cosines and eigenvectors.

use std::f64::consts::PI;

use crate::error::{Error, Result, Test};
use crate::linalg::symmetric_eigen;
use crate::matrix::Matrix;
use crate::metrics::require_symmetric;

/// The orthonormal cosine basis of `n` samples (DCT-II), from low to high frequency:
/// column k is √(2/n) cos(πk(i + ½)/n), and √(1/n) for k = 0.
///
/// Eigenvectors of natural-image covariances come near it (Fig. 4).
pub fn cosine_basis(n: usize) -> Matrix {
    let scale = |k: usize| (if k == 0 { 1.0 } else { 2.0 } / n as f64).sqrt();
    // The cosine repeats after 4n of these angles; reducing them first keeps it exact for large n.
    let angle = |i: usize, k: usize| ((2 * i + 1) * k % (4 * n)) as f64 * PI / (2 * n) as f64;
    Matrix::from_fn(n, n, |i, k| scale(k) * angle(i, k).cos())
}

/// The orthonormal cosine basis of patches of `height` × `width` pixels, whose rows follow one another:
/// column p · width + q has p half waves from top to bottom and q from left to right.
pub fn cosine_basis_2d(height: usize, width: usize) -> Matrix {
    let (down, across) = (cosine_basis(height), cosine_basis(width));
    let pixels = height * width;
    Matrix::from_fn(pixels, pixels, |i, k| down[(i / width, k / width)] * across[(i % width, k % width)])
}

/// The eigenvectors of a covariance as columns, from the largest eigenvalue to the smallest.
///
/// Each points where its largest entry is positive.
///
/// # Errors
/// When `covariance` is not finite and symmetric.
pub fn eigenbasis(covariance: &Matrix) -> Result<Matrix> {
    require_symmetric("covariance", covariance)?;
    let (_, mut vectors) = symmetric_eigen(covariance).ok_or(Error::NotPositiveDefinite {
        argument: "covariance".into(),
        expected: "a matrix with eigenvectors",
        test: Test::Overflow,
    })?;
    let n = vectors.rows();
    (0..n).for_each(|j| point_forward(vectors.column_mut(j)));
    Ok(Matrix::from_fn(n, n, |i, j| vectors[(i, n - 1 - j)]))
}

fn point_forward(column: &mut [f64]) {
    let largest = column.iter().fold(0.0_f64, |most, &x| if x.abs() > most.abs() { x } else { most });
    if largest < 0.0 {
        column.iter_mut().for_each(|x| *x = -*x);
    }
}
