//! Evaluates what whitening minimises: f_c(M) of Eq. (2), its gradient, and its value for one sample.

use crate::circuit::Circuit;
use crate::error::{Error, Result, require_length};
use crate::kernels::add_scaled;
use crate::linalg::Cholesky;
use crate::matrix::Matrix;
use crate::metrics::{require_covariance, require_symmetric, square_root};

/// Eq. (2): f_c(M) = Tr(M⁻¹ C_ss + M), infinite where M is not positive definite.
///
/// # Errors
/// When `inverse_whitening_matrix` is not symmetric, or `covariance` not positive semidefinite or of another size.
pub fn objective(inverse_whitening_matrix: &Matrix, covariance: &Matrix) -> Result<f64> {
    require_pair(inverse_whitening_matrix, covariance)?;
    let Ok(factor) = Cholesky::new(inverse_whitening_matrix.clone()) else { return Ok(f64::INFINITY) };
    let mut solved = covariance.clone();
    factor.solve_columns(&mut solved);
    Ok(solved.trace() + inverse_whitening_matrix.trace())
}

/// The gap f_c(M) − 2 Tr C_ss^½ above the least value that the objective can have at all, infinite where M is not
/// positive definite.
///
/// Computed as Tr[(C_ss^½ − M) M⁻¹ (C_ss^½ − M)], which is never negative and keeps its precision where the difference
/// would cancel.
///
/// # Errors
/// As for [`objective`].
pub fn gap(inverse_whitening_matrix: &Matrix, covariance: &Matrix) -> Result<f64> {
    require_pair(inverse_whitening_matrix, covariance)?;
    let mut left = square_root("covariance", covariance)?;
    let Ok(factor) = Cholesky::new(inverse_whitening_matrix.clone()) else { return Ok(f64::INFINITY) };
    add_scaled(left.as_mut_slice(), -1.0, inverse_whitening_matrix.as_slice());
    factor.solve_triangle(&mut left);
    Ok(left.as_slice().iter().map(|x| x * x).sum())
}

/// Eq. (10): ∇f_c(M) = I − M⁻¹ C_ss M⁻¹.
///
/// # Errors
/// As for [`objective`], and when M is not positive definite.
pub fn gradient(inverse_whitening_matrix: &Matrix, covariance: &Matrix) -> Result<Matrix> {
    require_pair(inverse_whitening_matrix, covariance)?;
    let factor =
        Cholesky::new(inverse_whitening_matrix.clone()).map_err(|test| Error::NotPositiveDefinite {
            argument: "inverse_whitening_matrix".into(),
            expected: "a positive definite matrix",
            test,
        })?;
    let mut half = covariance.clone();
    factor.solve_columns(&mut half);
    let mut whole = half.transpose();
    factor.solve_columns(&mut whole);
    let n = whole.rows();
    // Averaging with the transpose removes the rounding that would leave it slightly asymmetric.
    Ok(Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)) - 0.5 * (whole[(i, j)] + whole[(j, i)])))
}

/// Eq. (5): ℓ(W, g, r, s) = 2 rᵀs − α‖r‖² − Σ gᵢ [(wᵢᵀr)² − ‖wᵢ‖²], which responses maximise and gains and
/// synapses minimise.
///
/// # Errors
/// When the circuit is untied or a size does not match.
pub fn sample_objective(circuit: &Circuit, response: &[f64], stimulus: &[f64]) -> Result<f64> {
    if !circuit.synapses().is_tied() {
        let reason = "the objective is that of tied synapses";
        return Err(Error::Incompatible { argument: "circuit".into(), reason });
    }
    require_length("response", response, circuit.neurons(), "one for each neuron")?;
    require_length("stimulus", stimulus, circuit.neurons(), "one for each neuron")?;
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let weights = circuit.synapses().feedback();
    let interneurons = circuit.gains().iter().enumerate().map(|(i, gain)| {
        let w = weights.column(i);
        gain * (dot(w, response).powi(2) - dot(w, w))
    });
    let drive = 2.0 * dot(response, stimulus) - circuit.leak() * dot(response, response);
    Ok(drive - interneurons.sum::<f64>())
}

fn require_pair(inverse_whitening_matrix: &Matrix, covariance: &Matrix) -> Result<()> {
    let n = inverse_whitening_matrix.rows();
    require_symmetric("inverse_whitening_matrix", inverse_whitening_matrix)?;
    covariance.require_shape("covariance", n, n)?;
    require_covariance("covariance", covariance)
}
