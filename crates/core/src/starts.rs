//! Draws starting weights.
//!
//! The random generator is always the caller's, and numbers are drawn in double precision column by column,
//! so that a seed gives the same weights whatever they are cast to.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::matrix::Matrix;

/// Columns of random orthogonal matrices (Haar measure): O(N) for K = N, as many blocks as K needs otherwise.
pub fn orthogonal(neurons: usize, interneurons: usize, rng: &mut (impl Rng + ?Sized)) -> Matrix {
    let mut weights = normal(neurons, interneurons, rng);
    for block in 0..interneurons.div_ceil(neurons.max(1)) {
        let first = block * neurons;
        for j in first..interneurons.min(first + neurons) {
            orthonormalise(&mut weights, first, j);
        }
    }
    weights
}

/// Columns uniform on the unit sphere (the unit circle for N = 2).
pub fn on_sphere(neurons: usize, interneurons: usize, rng: &mut (impl Rng + ?Sized)) -> Matrix {
    let mut weights = normal(neurons, interneurons, rng);
    for j in 0..interneurons {
        normalise(weights.column_mut(j));
    }
    weights
}

/// Columns uniform on the part of the unit sphere without negative entries.
pub fn non_negative(neurons: usize, interneurons: usize, rng: &mut (impl Rng + ?Sized)) -> Matrix {
    let mut weights = on_sphere(neurons, interneurons, rng);
    weights.as_mut_slice().iter_mut().for_each(|w| *w = w.abs());
    weights
}

/// max(I + noise · normal, 0): near enough to symmetric that Algorithm 3 starts safely.
pub fn noisy_identity(
    neurons: usize,
    interneurons: usize,
    noise: f64,
    rng: &mut (impl Rng + ?Sized),
) -> Matrix {
    let drawn = normal(neurons, interneurons, rng);
    Matrix::from_fn(neurons, interneurons, |i, j| {
        (f64::from(u8::from(i == j)) + noise * drawn[(i, j)]).max(0.0)
    })
}

fn normal(rows: usize, columns: usize, rng: &mut (impl Rng + ?Sized)) -> Matrix {
    Matrix::from_fn(rows, columns, |_, _| StandardNormal.sample(rng))
}

/// Makes column `j` orthogonal to the columns `first..j` and gives it unit length.
/// Gram and Schmidt's way keeps the diagonal of R positive, which is what makes Q Haar; twice is enough for rounding.
fn orthonormalise(weights: &mut Matrix, first: usize, j: usize) {
    let rows = weights.rows();
    let (earlier, rest) = weights.as_mut_slice().split_at_mut(j * rows);
    let column = &mut rest[..rows];
    for _ in 0..2 {
        for other in earlier[first * rows..].chunks_exact(rows) {
            let overlap: f64 = other.iter().zip(&*column).map(|(x, y)| x * y).sum();
            column.iter_mut().zip(other).for_each(|(x, y)| *x -= overlap * y);
        }
        normalise(column);
    }
}

fn normalise(column: &mut [f64]) {
    let length = column.iter().map(|x| x * x).sum::<f64>().sqrt();
    column.iter_mut().for_each(|x| *x /= length);
}
