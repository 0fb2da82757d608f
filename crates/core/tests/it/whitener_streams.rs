//! Draws streams, good and bad, and carries them through whiteners.

use std::ops::ControlFlow;

use leukos::contexts::{Contexts, Law, Stimuli, stream};
use leukos::{Matrix, Moments, Real, Whitener, WhitenerSettings, WhitenerTraining, whitening_error};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::bridge;

pub fn covariance(n: usize, seed: u64) -> Matrix {
    bridge::square(&bridge::random_covariance(n, &mut stream(seed, 1)))
}

/// Rows of one context under a law.
pub fn drawn(covariance: &Matrix, law: Law, rows: usize, seed: u64) -> Vec<f64> {
    let contexts = Contexts::new(vec![covariance.clone()]).unwrap();
    let mut stimuli = vec![0.0; rows * covariance.rows()];
    Stimuli::new(contexts, law, stream(seed, 2)).unwrap().fill(0, &mut stimuli).unwrap();
    stimuli
}

pub fn gaussian(covariance: &Matrix, rows: usize, seed: u64) -> Vec<f64> {
    drawn(covariance, Law::Gaussian, rows, seed)
}

pub fn narrow<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&x| T::from_f64(x)).collect()
}

pub fn fit<T: Real>(training: &WhitenerTraining, settings: WhitenerSettings) -> Whitener<T> {
    training.fit(settings, &mut stream(0, 3), |_| ControlFlow::Continue(())).unwrap()
}

/// Trained on contexts that are known exactly.
pub fn trained_on<T: Real>(covariances: &[&Matrix], settings: WhitenerSettings) -> Whitener<T> {
    let moments = covariances.iter().map(|c| Moments::of_covariance(c, 1000).unwrap()).collect();
    fit(&WhitenerTraining { moments, ..Default::default() }, settings)
}

pub fn trained<T: Real>(covariance: &Matrix, settings: WhitenerSettings) -> Whitener<T> {
    trained_on(&[covariance], settings)
}

pub fn whitened<T: Real>(whitener: &mut Whitener<T>, stimuli: &[T]) -> Vec<T> {
    let mut responses = vec![T::ZERO; stimuli.len()];
    whitener.whiten(stimuli, &mut responses).unwrap();
    responses
}

pub fn frozen<T: Real>(whitener: &Whitener<T>, stimuli: &[T]) -> Vec<T> {
    let mut responses = vec![T::ZERO; stimuli.len()];
    whitener.whiten_frozen(stimuli, &mut responses).unwrap();
    responses
}

/// The whitening error ‖F C Fᵀ − I‖ of the map F that answers.
pub fn error<T: Real>(whitener: &Whitener<T>, covariance: &Matrix) -> f64 {
    whitening_error(&whitener.dewhitening_matrix().unwrap(), covariance).unwrap()
}

/// Everything that later output depends on and that can be seen, bit by bit.
pub fn visible<T: Real>(whitener: &Whitener<T>) -> Vec<u64> {
    let map = whitener.whitening_matrix().map_or_else(|_| Vec::new(), |map| map.as_slice().to_vec());
    let own = [map, whitener.mean(), vec![whitener.scale()], whitener.synapses().as_slice().to_vec()];
    own.iter().flat_map(|numbers| bridge::bits_of(numbers)).collect()
}

/// Σ s sᵀ / rows.
pub fn second_moment(rows: &[f64], n: usize) -> Matrix {
    let count = (rows.len() / n) as f64;
    Matrix::from_fn(n, n, |i, j| rows.chunks_exact(n).map(|row| row[i] * row[j]).sum::<f64>() / count)
}

pub fn distance_from_identity(matrix: &Matrix) -> f64 {
    let identity = Matrix::<f64>::identity(matrix.rows());
    bridge::farthest(matrix.as_slice(), identity.as_slice())
}

pub fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, x| if x.is_nan() { f64::INFINITY } else { x.abs().max(most) })
}

/// Changes one channel of every row; the change sees the row and its number.
pub fn with_channel(
    rows: &[f64],
    n: usize,
    channel: usize,
    change: impl Fn(usize, &[f64]) -> f64,
) -> Vec<f64> {
    let mut changed = rows.to_vec();
    for (index, row) in changed.chunks_exact_mut(n).enumerate() {
        row[channel] = change(index, row);
    }
    changed
}

pub fn scaled(rows: &[f64], factor: f64) -> Vec<f64> {
    rows.iter().map(|x| x * factor).collect()
}

/// Cholesky's test, written down once more: the whitener is not asked about itself.
pub fn is_positive_definite<T: Real>(matrix: &Matrix<T>) -> bool {
    let n = matrix.rows();
    let mut lower = Matrix::<f64>::zeros(n, n);
    for j in 0..n {
        let dot = |lower: &Matrix, i: usize| (0..j).map(|k| lower[(i, k)] * lower[(j, k)]).sum::<f64>();
        let pivot = matrix[(j, j)].to_f64() - dot(&lower, j);
        if !(pivot > 0.0 && pivot.is_finite()) {
            return false;
        }
        for i in j..n {
            lower[(i, j)] = (matrix[(i, j)].to_f64() - dot(&lower, i)) / pivot.sqrt();
        }
    }
    true
}

/// A stream with everything in it that recordings are known for, in stretches of random kinds and lengths.
pub fn mistreated(n: usize, rows: usize, rng: &mut Pcg64) -> Vec<f64> {
    let mut stream = Vec::with_capacity(rows * n);
    while stream.len() < rows * n {
        let (kind, length, channel) =
            (rng.random_range(0..8), rng.random_range(1..200), rng.random_range(0..n));
        for _ in 0..length {
            let mut row: Vec<f64> = (0..n).map(|j| (1.0 + j as f64) * bridge::normal(rng) + 3.0).collect();
            let rarely = rng.random_range(0..20) == 0;
            match kind {
                0 if rarely => row[channel] = f64::NAN,
                1 => row.fill(0.0),
                2 if rarely => row.iter_mut().for_each(|s| *s *= 1e6),
                3 => row[channel] = 3.0,
                4 => row.iter_mut().for_each(|s| *s *= 1e4),
                5 => row[channel] = f64::INFINITY,
                6 => row[channel] = row[0],
                _ => {}
            }
            stream.extend(row);
        }
    }
    stream.truncate(rows * n);
    stream
}
