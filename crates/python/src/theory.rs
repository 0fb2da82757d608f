//! Binds the objective, the measures and the gains that are best.

use leukos::Matrix;
use pyo3::prelude::*;

use crate::arrays::{from_matrix, from_slice, matrix, refuse};
use crate::errors::with_symbols;

/// What the core calls by words.
const SYMBOLS: [(&str, &str); 5] = [
    ("inverse_whitening_matrix", "M"),
    ("covariance", "C"),
    ("synapses", "W"),
    ("columns", "A"),
    ("reference", "B"),
];

/// The objective f_C(M) = tr(M^-1 C + M) (Eq. 3), infinite where M is not positive definite.
///
/// Parameters
/// ----------
/// M : array of shape (N, N), symmetric
/// C : array of shape (N, N), a covariance
///
/// Its minimum 2 tr C^(1/2) is at M = C^(1/2).
#[pyfunction]
#[allow(non_snake_case)]
pub fn objective(py: Python<'_>, M: &Bound<'_, PyAny>, C: &Bound<'_, PyAny>) -> PyResult<f64> {
    let (m, c) = pair(M, C)?;
    py.detach(|| leukos::objective(&m, &c)).map_err(with_symbols(py, &SYMBOLS))
}

/// The gradient I - M^-1 C M^-1 of the objective, for symmetric M.
///
/// Parameters
/// ----------
/// M : array of shape (N, N), positive definite
/// C : array of shape (N, N), a covariance
#[pyfunction]
#[allow(non_snake_case)]
pub fn gradient<'py>(
    py: Python<'py>,
    M: &Bound<'py, PyAny>,
    C: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (m, c) = pair(M, C)?;
    let gradient = py.detach(|| leukos::gradient(&m, &c)).map_err(with_symbols(py, &SYMBOLS))?;
    from_matrix(py, &gradient)
}

/// The whitening error, the operator norm of M^-1 C M^-T - I (Eq. 9): 0 where responses are white.
///
/// Parameters
/// ----------
/// M : array of shape (N, N), the inverse whitening matrix
/// C : array of shape (N, N), a covariance
#[pyfunction]
#[allow(non_snake_case)]
pub fn whitening_error(py: Python<'_>, M: &Bound<'_, PyAny>, C: &Bound<'_, PyAny>) -> PyResult<f64> {
    let (m, c) = pair(M, C)?;
    py.detach(|| leukos::whitening_error(&m, &c)).map_err(with_symbols(py, &SYMBOLS))
}

/// A matrix with a row for each neuron, of which there is one at least.
fn of_neurons(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Matrix> {
    let matrix = matrix(argument, object)?;
    if matrix.rows() == 0 {
        return Err(refuse(argument, "at least one row (a primary neuron)", "none"));
    }
    Ok(matrix)
}

fn pair(m: &Bound<'_, PyAny>, c: &Bound<'_, PyAny>) -> PyResult<(Matrix, Matrix)> {
    Ok((of_neurons("M", m)?, of_neurons("C", c)?))
}

/// The columns of A, permuted and flipped so that they are nearest to those of B, and the distance that is left.
///
/// Parameters
/// ----------
/// A, B : arrays of shape (N, K)
///
/// Returns (A_aligned, distance). The alignment is exact (an assignment problem); the distance is the Frobenius norm
/// of A_aligned - B.
#[pyfunction]
#[allow(non_snake_case)]
pub fn align<'py>(
    py: Python<'py>,
    A: &Bound<'py, PyAny>,
    B: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, f64)> {
    let (a, b) = (matrix("A", A)?, matrix("B", B)?);
    let (aligned, distance) = py.detach(|| leukos::align(&a, &b)).map_err(with_symbols(py, &SYMBOLS))?;
    Ok((from_matrix(py, &aligned)?, distance))
}

/// The gains (K,) that minimise the objective f_C(leak I + W diag(g) W').
///
/// Parameters
/// ----------
/// W : array of shape (N, K)
/// C : array of shape (N, N), positive definite
/// leak : float
#[pyfunction]
#[pyo3(signature = (W, C, leak=1.0))]
#[allow(non_snake_case)]
pub fn optimal_gains<'py>(
    W: &Bound<'py, PyAny>,
    C: &Bound<'py, PyAny>,
    leak: f64,
) -> PyResult<Bound<'py, PyAny>> {
    gains(leukos::optimal_gains, W, C, leak)
}

/// The gains (K,) for which M = leak I + W diag(g) W' is nearest to C^(1/2) in the Frobenius norm.
///
/// Parameters
/// ----------
/// W : array of shape (N, K)
/// C : array of shape (N, N), a covariance
/// leak : float
///
/// M need not be positive definite there.
#[pyfunction]
#[pyo3(signature = (W, C, leak=1.0))]
#[allow(non_snake_case)]
pub fn least_squares_gains<'py>(
    W: &Bound<'py, PyAny>,
    C: &Bound<'py, PyAny>,
    leak: f64,
) -> PyResult<Bound<'py, PyAny>> {
    gains(leukos::least_squares_gains, W, C, leak)
}

/// The gains that `find` finds for synapses, a covariance and a leak.
fn gains<'py>(
    find: fn(&Matrix, &Matrix, f64) -> leukos::Result<Vec<f64>>,
    synapses: &Bound<'py, PyAny>,
    covariance: &Bound<'py, PyAny>,
    leak: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let py = synapses.py();
    let (w, c) = (of_neurons("W", synapses)?, of_neurons("C", covariance)?);
    let gains = py.detach(|| find(&w, &c, leak)).map_err(with_symbols(py, &SYMBOLS))?;
    from_slice(py, &gains)
}
