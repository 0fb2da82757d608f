//! Moves on the product of unit spheres that unit columns live on.

use crate::error::{Error, Result};
use crate::kernels::{add_scaled, inner};
use crate::matrix::Matrix;

/// Rescales every column to unit length: the way back to the spheres.
///
/// # Errors
/// When a column has no direction, or is too long for its precision.
pub(crate) fn to_unit_columns(weights: &mut Matrix) -> Result<()> {
    for j in 0..weights.columns() {
        let length = inner(weights.column(j), weights.column(j)).sqrt();
        if !(length.is_finite() && length > 0.0) {
            let expected = "columns of finite length above 0";
            return Err(Error::out_of_range("synapses", expected, length));
        }
        for w in weights.column_mut(j) {
            *w /= length;
        }
    }
    Ok(())
}

/// ⟨wⱼ, vⱼ⟩ for every column.
pub(crate) fn lengths_along(weights: &Matrix, v: &Matrix) -> Vec<f64> {
    (0..weights.columns()).map(|j| inner(weights.column(j), v.column(j))).collect()
}

/// Removes from every vⱼ what points along the unit column wⱼ: what is left is tangent to the spheres.
pub(crate) fn to_tangent(weights: &Matrix, v: &mut Matrix) {
    for (j, along) in lengths_along(weights, v).into_iter().enumerate() {
        add_scaled(v.column_mut(j), -along, weights.column(j));
    }
}
