//! Measures how white a circuit makes its responses, and whether it is a valid one.

use std::borrow::Cow;

use crate::circuit::Synapses;
use crate::error::{Error, Result, Test};
use crate::linalg::{product, real_parts, symmetric_eigen, symmetric_eigenvalues};
use crate::lu::inverse;
use crate::matrix::Matrix;
use crate::real::Real;
use crate::size::require_memory;

/// Eq. (9): the operator norm ‖M⁻¹ C_ss M⁻ᵀ − I‖, how far the response ellipsoid is from the sphere.
///
/// A small error does not mean a valid circuit: an indefinite M can reach 0 (see [`definiteness`]), and silence is
/// exactly 1 (see [`log_whitening_error`]). [`crate::WhiteningMeter`] measures a circuit at every step.
///
/// # Errors
/// When the sizes do not match, a number is not finite, or M is singular.
pub fn whitening_error(inverse_whitening_matrix: &Matrix, covariance: &Matrix) -> Result<f64> {
    Ok(distance_from_one(&response_variances(inverse_whitening_matrix, covariance)?))
}

/// The largest |log λ| over the eigenvalues λ of the response covariance M⁻¹ C_ss M⁻ᵀ: how far from white in nats,
/// the same for a variance that is twice what it should be and for one that is half of it.
///
/// Unlike the whitening error it grows without bound as responses fall silent, and is infinite where a direction has
/// no variance at all.
///
/// # Errors
/// As for [`whitening_error`].
pub fn log_whitening_error(inverse_whitening_matrix: &Matrix, covariance: &Matrix) -> Result<f64> {
    Ok(distance_in_logarithm(&response_variances(inverse_whitening_matrix, covariance)?))
}

pub(crate) fn distance_from_one(values: &[f64]) -> f64 {
    largest(values.iter().map(|value| value - 1.0))
}

pub(crate) fn distance_in_logarithm(values: &[f64]) -> f64 {
    largest(values.iter().map(|value| value.max(0.0).ln()))
}

/// The eigenvalues of M⁻¹ C M⁻ᵀ: the variances of the responses along their principal axes.
fn response_variances(inverse_whitening_matrix: &Matrix, covariance: &Matrix) -> Result<Vec<f64>> {
    let n = inverse_whitening_matrix.rows();
    inverse_whitening_matrix.require_shape("inverse_whitening_matrix", n, n)?;
    inverse_whitening_matrix.require_finite("inverse_whitening_matrix")?;
    covariance.require_shape("covariance", n, n)?;
    require_symmetric("covariance", covariance)?;
    let singular = || Error::NotPositiveDefinite {
        argument: "inverse_whitening_matrix".into(),
        expected: "a matrix that can be inverted",
        test: Test::Singular,
    };
    let whitening = inverse(inverse_whitening_matrix).ok_or_else(singular)?;
    let half = product(whitening.view(), covariance.view());
    let responses = product(half.view(), whitening.view().transposed());
    symmetric_eigenvalues(&responses).ok_or_else(singular)
}

/// How far M is inside the set of valid ones: the smallest eigenvalue of a symmetric M, which must be positive
/// definite; the smallest real part of an eigenvalue otherwise, which must be positive for the recurrent dynamics,
/// Eq. (6), to settle. Without neurons it is infinite.
///
/// # Errors
/// When M is not square or a number is not finite.
pub fn definiteness(inverse_whitening_matrix: &Matrix) -> Result<f64> {
    let (name, m) = ("inverse_whitening_matrix", inverse_whitening_matrix);
    m.require_shape(name, m.rows(), m.rows())?;
    m.require_finite(name)?;
    let symmetric = (0..m.rows()).all(|i| (0..i).all(|j| m[(i, j)] == m[(j, i)]));
    let values = if symmetric { symmetric_eigenvalues(m) } else { real_parts(m) };
    let overflow =
        Error::NotPositiveDefinite { argument: name.into(), expected: "eigenvalues", test: Test::Overflow };
    Ok(values.ok_or(overflow)?.into_iter().fold(f64::INFINITY, f64::min))
}

/// ‖W_rn − W_nrᵀ‖ in the Frobenius norm: how far untied synapses are from tied ones, which have exactly 0.
pub fn asymmetry<T: Real>(synapses: &Synapses<T>) -> f64 {
    let pairs = synapses.feedforward_transposed().as_slice().iter().zip(synapses.feedback().as_slice());
    frobenius(pairs.map(|(forth, back)| forth.to_f64() - back.to_f64()))
}

/// The largest absolute value.
pub(crate) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most, x| f64::max(most, x.abs()))
}

/// The root of the sum of squares, where the squares may be out of range but it is not.
pub(crate) fn frobenius(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = largest(values.clone());
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    largest * values.map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

/// How far from symmetric a matrix may be, relative to its largest entry, before it is refused.
const ASYMMETRY: f64 = 1e-9;
/// How many matrices of its size it takes, at most, to factorise a symmetric matrix and to work with the factors.
const SYMMETRIC_COPIES: usize = 10;
/// How far below zero an eigenvalue may be, relative to the largest, and still count as rounding.
const NEGATIVITY: f64 = 1e-10;

/// Also checks that there is memory to factorise the matrix, which callers do next.
pub(crate) fn require_symmetric(argument: impl Into<Cow<'static, str>>, matrix: &Matrix) -> Result<()> {
    let argument = argument.into();
    require_copies(argument.clone(), matrix)?;
    require_symmetric_within(argument, matrix, ASYMMETRY)
}

/// The same for callers that already have their memory.
pub(crate) fn require_symmetric_in_place(
    argument: impl Into<Cow<'static, str>>,
    matrix: &Matrix,
) -> Result<()> {
    require_symmetric_within(argument.into(), matrix, ASYMMETRY)
}

fn require_copies(argument: Cow<'static, str>, matrix: &Matrix) -> Result<()> {
    require_memory(argument, matrix.as_slice().len().saturating_mul(SYMMETRIC_COPIES))
}

fn require_symmetric_within(argument: Cow<'static, str>, matrix: &Matrix, tolerance: f64) -> Result<()> {
    let n = matrix.rows();
    matrix.require_shape(argument.clone(), n, n)?;
    matrix.require_finite(argument.clone())?;
    let scale = largest(matrix.as_slice().iter().copied());
    for column in 0..n {
        for row in column + 1..n {
            let difference = (matrix[(row, column)] - matrix[(column, row)]).abs();
            if difference > tolerance * scale {
                return Err(Error::NotSymmetric { argument, row, column, difference });
            }
        }
    }
    Ok(())
}

/// A covariance is symmetric and has no negative eigenvalue.
pub(crate) fn require_covariance(argument: impl Into<Cow<'static, str>>, matrix: &Matrix) -> Result<()> {
    require_covariance_in::<f64>(argument, matrix)
}

/// The same for a matrix that was rounded to the precision of `T`.
pub(crate) fn require_covariance_in<T: Real>(
    argument: impl Into<Cow<'static, str>>,
    matrix: &Matrix,
) -> Result<()> {
    let argument = argument.into();
    require_copies(argument.clone(), matrix)?;
    let rounding = matrix.rows() as f64 * T::EPSILON.to_f64();
    require_symmetric_within(argument.clone(), matrix, ASYMMETRY.max(rounding))?;
    let values = symmetric_eigenvalues(matrix).ok_or_else(|| not_semidefinite(argument.clone()))?;
    require_no_negative(argument, &values, NEGATIVITY.max(rounding))
}

/// C^½, the symmetric positive semidefinite root of a covariance.
pub(crate) fn square_root(argument: impl Into<Cow<'static, str>>, matrix: &Matrix) -> Result<Matrix> {
    let argument = argument.into();
    require_symmetric(argument.clone(), matrix)?;
    let (values, vectors) = symmetric_eigen(matrix).ok_or_else(|| not_semidefinite(argument.clone()))?;
    require_no_negative(argument, &values, NEGATIVITY)?;
    let roots: Vec<f64> = values.iter().map(|value| value.max(0.0).sqrt()).collect();
    let scaled = Matrix::from_fn(vectors.rows(), vectors.columns(), |i, j| vectors[(i, j)] * roots[j]);
    Ok(product(scaled.view(), vectors.view().transposed()))
}

fn require_no_negative(argument: Cow<'static, str>, ascending: &[f64], tolerance: f64) -> Result<()> {
    match (ascending.first(), ascending.last()) {
        (Some(&least), Some(&most)) if least < -tolerance * most.abs() => Err(not_semidefinite(argument)),
        _ => Ok(()),
    }
}

fn not_semidefinite(argument: Cow<'static, str>) -> Error {
    let expected = "a covariance, which has no negative eigenvalue";
    Error::NotPositiveDefinite { argument, expected, test: Test::Eigenvalue }
}
