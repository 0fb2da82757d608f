//! Makes the synapses that learned ones are compared with: cosines, eigenvectors, and a frame of neighbours.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

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

/// The local frame of patches of `height` × `width` pixels, whose rows follow one another: each column reads one
/// pixel, or the sum of two neighbours.
///
/// Gains rest where the variance along every column is 1, so that this frame gives each pixel unit variance and leaves
/// no correlation between neighbours: the "local" whitening with O(N) hand-crafted interneurons of Sec. 3.2. Neighbours
/// share a side or a corner, which makes 5hw − 3h − 3w + 2 columns in all. They come in a fixed order, so that
/// the first K are a frame of their own for any K: the pixels; then, pixel by pixel, its sum with the one on the right
/// and with the one below; then those with the two below at its corners.
///
/// Differences of neighbours would add nothing, as (a − b)(a − b)ᵀ = 2aaᵀ + 2bbᵀ − (a + b)(a + b)ᵀ.
///
/// ```
/// let frame = leukos::local_frame(5, 5);
/// assert_eq!((frame.rows(), frame.columns()), (25, 97));
/// ```
pub fn local_frame(height: usize, width: usize) -> Matrix {
    let pixels = height * width;
    let sides = neighbours(height, width, [(0, 1), (1, 0)]);
    let corners = neighbours(height, width, [(1, 1), (1, -1)]);
    let pairs: Vec<_> = sides.chain(corners).collect();
    let mut frame = Matrix::zeros(pixels, pixels + pairs.len());
    for pixel in 0..pixels {
        frame[(pixel, pixel)] = 1.0;
    }
    for (column, (one, other)) in (pixels..).zip(pairs) {
        (frame[(one, column)], frame[(other, column)]) = (FRAC_1_SQRT_2, FRAC_1_SQRT_2);
    }
    frame
}

/// Each pixel with those at these offsets down and to the right, where the patch has them.
fn neighbours(
    height: usize,
    width: usize,
    offsets: [(usize, isize); 2],
) -> impl Iterator<Item = (usize, usize)> {
    (0..height * width).flat_map(move |pixel| {
        offsets.into_iter().filter_map(move |(down, right)| {
            let row = pixel / width + down;
            let column = (pixel % width).checked_add_signed(right)?;
            (row < height && column < width).then_some((pixel, row * width + column))
        })
    })
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
