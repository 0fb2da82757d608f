//! Aligns two sets of columns, whose order and signs mean nothing, and measures how far apart they are.

use crate::assignment::best_assignment;
use crate::error::{Error, Result};
use crate::kernels::inner;
use crate::linalg::product;
use crate::matrix::Matrix;
use crate::metrics::{frobenius, largest};
use crate::size::{require_matrix, require_memory};

/// The columns of `columns`, permuted and flipped so that they are nearest to those of `reference`, and the
/// distance in the Frobenius norm that is left.
///
/// The alignment is exact: of all signed permutations it is the one that maximises Σ |⟨a_π(i), bᵢ⟩|, found as an
/// assignment problem in O(K³). Lengths are left as they are; [`basis_distance`] compares directions alone.
///
/// ```
/// use leukos::{Matrix, align};
///
/// let b = Matrix::from_rows(&[[1.0, 0.0], [0.0, 2.0]]);
/// let a = Matrix::from_rows(&[[0.0, 1.0], [-2.0, 0.0]]);
/// assert_eq!(align(&a, &b)?, (b, 0.0));
/// # Ok::<(), leukos::Error>(())
/// ```
///
/// # Errors
/// When the two are not of one shape N × K, or a number is not finite.
pub fn align(columns: &Matrix, reference: &Matrix) -> Result<(Matrix, f64)> {
    require_comparable(columns, reference)?;
    Ok(align_checked(columns, reference))
}

/// The distance of [`align`] between the directions of two sets of columns: all are scaled to unit length first,
/// and columns of zeros, which have no direction, stay. Fig. 4F divides it by N.
///
/// # Errors
/// As for [`align`].
pub fn basis_distance(columns: &Matrix, reference: &Matrix) -> Result<f64> {
    require_comparable(columns, reference)?;
    Ok(align_checked(&unit_columns(columns), &unit_columns(reference)).1)
}

/// How well two sets of directions match: the mean |⟨aᵢ, b_π(i)⟩| of unit columns under the best assignment, 1 for
/// the same directions in any order.
///
/// One side may have more columns, as K synapses have beside a basis of N: the mean is over the pairs, as many as
/// the narrower side has columns.
///
/// # Errors
/// When the columns are not equally long, a side has none, or a number is not finite.
pub fn basis_match(columns: &Matrix, reference: &Matrix) -> Result<f64> {
    columns.require_shape("columns", reference.rows(), columns.columns())?;
    columns.require_finite("columns")?;
    reference.require_finite("reference")?;
    for (argument, side) in [("columns", columns), ("reference", reference)] {
        if side.columns() == 0 {
            return Err(Error::shape(argument, "at least one column", "none"));
        }
    }
    require_overlaps(columns, reference)?;
    let (fewer, more) =
        if columns.columns() <= reference.columns() { (columns, reference) } else { (reference, columns) };
    let overlaps = overlaps(&unit_columns(more), &unit_columns(fewer));
    let matched = best_assignment(&overlaps).into_iter().enumerate().map(|(i, j)| overlaps[(j, i)]);
    Ok(matched.sum::<f64>() / fewer.columns() as f64)
}

fn require_comparable(columns: &Matrix, reference: &Matrix) -> Result<()> {
    columns.require_shape("columns", reference.rows(), reference.columns())?;
    columns.require_finite("columns")?;
    reference.require_finite("reference")?;
    require_overlaps(columns, reference)
}

/// Checks that there is room for the products of all columns with all others.
fn require_overlaps(columns: &Matrix, reference: &Matrix) -> Result<()> {
    require_matrix("columns", columns.columns(), reference.columns())?;
    let overlaps = columns.columns() * reference.columns();
    let copies = columns.as_slice().len() + reference.as_slice().len();
    require_memory("columns", overlaps.saturating_mul(3).saturating_add(copies.saturating_mul(3)))
}

fn align_checked(columns: &Matrix, reference: &Matrix) -> (Matrix, f64) {
    // Neither side's scale changes the assignment, but it could make the products overflow.
    let (left, right) = (to_unit_scale(columns), to_unit_scale(reference));
    let mut aligned = Matrix::zeros(columns.rows(), columns.columns());
    for (i, partner) in best_assignment(&overlaps(&left, &right)).into_iter().enumerate() {
        let sign = if inner(left.column(partner), right.column(i)) < 0.0 { -1.0 } else { 1.0 };
        let pairs = aligned.column_mut(i).iter_mut().zip(columns.column(partner));
        pairs.for_each(|(out, x)| *out = sign * x);
    }
    let distance = frobenius(aligned.as_slice().iter().zip(reference.as_slice()).map(|(a, b)| a - b));
    (aligned, distance)
}

/// |⟨aⱼ, bᵢ⟩| at (j, i).
fn overlaps(columns: &Matrix, reference: &Matrix) -> Matrix {
    let mut overlaps = product(columns.view().transposed(), reference.view());
    overlaps.as_mut_slice().iter_mut().for_each(|x| *x = x.abs());
    overlaps
}

/// The matrix divided by its largest entry.
fn to_unit_scale(matrix: &Matrix) -> Matrix {
    let mut scaled = matrix.clone();
    divide(scaled.as_mut_slice(), largest(matrix.as_slice().iter().copied()));
    scaled
}

fn unit_columns(matrix: &Matrix) -> Matrix {
    let mut units = matrix.clone();
    for j in 0..units.columns() {
        let column = units.column_mut(j);
        divide(column, largest(column.iter().copied()));
        divide(column, frobenius(column.iter().copied()));
    }
    units
}

/// Divides numbers by their size, unless that is zero.
fn divide(values: &mut [f64], size: f64) {
    if size > 0.0 {
        values.iter_mut().for_each(|x| *x /= size);
    }
}
