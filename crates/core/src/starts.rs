//! Draws starting weights.
//!
//! The random generator is always the caller's, and numbers are drawn in double precision column by column,
//! so that a seed gives the same weights whatever they are cast to.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::error::{Error, Result};
use crate::kernels::add_scaled;
use crate::linalg::{product, symmetric_eigen};
use crate::matrix::Matrix;
use crate::metrics::square_root;

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
/// Gram–Schmidt keeps the diagonal of R positive, which makes Q Haar distributed; two passes remove rounding errors.
pub(crate) fn orthonormalise(weights: &mut Matrix, first: usize, j: usize) {
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

/// The eigenvectors of the contexts' mean covariance: a good start for [`crate::SynapseLearner`].
///
/// Of K < N those are taken along which M must differ most from the leak, E_c (qᵢᵀC^½qᵢ − α)². With K > N come sums
/// of two, (qᵢ + qⱼ)/√2, for the pairs that the contexts mix most, E_c (qᵢᵀC^½qⱼ)²; and when the pairs are used up,
/// columns uniform on the unit sphere.
///
/// # Errors
/// When there is no context, a size does not match, a number is not finite, or a covariance is not one.
pub fn mean_eigenbasis(
    covariances: &[Matrix],
    interneurons: usize,
    leak: f64,
    rng: &mut (impl Rng + ?Sized),
) -> Result<Matrix> {
    let neurons = covariances.first().map_or(0, Matrix::rows);
    if neurons == 0 {
        return Err(Error::shape("covariances", "at least one context with one neuron", "none"));
    }
    let (basis, mixing) = mean_basis_and_mixing(covariances, neurons, leak)?;
    let singles = ranked((0..neurons).map(|i| (i, i)), &mixing);
    let pairs = ranked((0..neurons).flat_map(|i| (0..i).map(move |j| (i, j))), &mixing);
    let mut weights = on_sphere(neurons, interneurons, rng);
    for (column, (i, j)) in singles.into_iter().chain(pairs).take(interneurons).enumerate() {
        let sum = basis.column(i).iter().zip(basis.column(j)).map(|(x, y)| x + y);
        weights.column_mut(column).iter_mut().zip(sum).for_each(|(w, sum)| *w = sum);
        normalise(weights.column_mut(column));
    }
    Ok(weights)
}

/// The eigenvectors Q of the mean covariance, and the mean squares of the entries of Qᵀ(C^½ − αI)Q.
fn mean_basis_and_mixing(covariances: &[Matrix], neurons: usize, leak: f64) -> Result<(Matrix, Matrix)> {
    let mut mean = Matrix::zeros(neurons, neurons);
    let mut roots = Vec::with_capacity(covariances.len());
    for (index, covariance) in covariances.iter().enumerate() {
        let argument = format!("covariances[{index}]");
        covariance.require_shape(argument.clone(), neurons, neurons)?;
        roots.push(square_root(argument, covariance)?);
        add_scaled(mean.as_mut_slice(), 1.0 / covariances.len() as f64, covariance.as_slice());
    }
    let overflow = || Error::NotFinite { argument: "covariances".into(), index: 0, value: f64::INFINITY };
    let (_, basis) = symmetric_eigen(&mean).ok_or_else(overflow)?;
    let mut mixing = Matrix::zeros(neurons, neurons);
    for root in &roots {
        let turned = product(basis.view().transposed(), product(root.view(), basis.view()).view());
        for j in 0..neurons {
            for i in 0..neurons {
                let excess = if i == j { turned[(i, j)] - leak } else { turned[(i, j)] };
                mixing[(i, j)] += excess * excess / roots.len() as f64;
            }
        }
    }
    Ok((basis, mixing))
}

/// The places with the largest entries first.
fn ranked(places: impl Iterator<Item = (usize, usize)>, matrix: &Matrix) -> Vec<(usize, usize)> {
    let mut places: Vec<_> = places.collect();
    places.sort_by(|&a, &b| matrix[b].total_cmp(&matrix[a]));
    places
}
