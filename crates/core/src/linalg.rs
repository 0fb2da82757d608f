//! Wraps the few dense routines that circuits and their theory need.
//!
//! This file, `factor` and `lu` are the only ones that call the linear-algebra crate. It is always told to stay on the
//! calling thread, so that results do not depend on the number of threads.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::{self, factor::LltRegularization};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par, Spec};

use crate::error::Test;
use crate::kernels::{self, all_finite};
use crate::matrix::Matrix;
use crate::real::Real;
use crate::tiles::{self, LARGE, SMALLEST_TILED, TILED};

/// A square matrix as the linear-algebra crate sees it.
pub(crate) fn square<T: Real>(matrix: &mut [T], n: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(matrix, n, n)
}

/// Factorises the lower triangle in place; the reciprocals of the factor's diagonal make solving quick.
pub(crate) fn cholesky<T: Real>(
    matrix: &mut [T],
    reciprocals: &mut [T],
    stack: &mut MemBuffer,
) -> Result<(), Test> {
    let n = reciprocals.len();
    if n < LARGE {
        let factorise = if n < SMALLEST_TILED { kernels::cholesky } else { tiles::cholesky_tiled };
        return factorise(matrix, reciprocals).map_err(|pivot| Test::Cholesky { pivot });
    }
    let stack = MemStack::new(stack);
    llt::factor::cholesky_in_place(
        square(matrix, n),
        LltRegularization::default(),
        Par::Seq,
        stack,
        Spec::default(),
    )
    .map_err(|llt::factor::LltError::NonPositivePivot { index }| Test::Cholesky { pivot: index })?;
    for (pivot, reciprocal) in reciprocals.iter_mut().enumerate() {
        *reciprocal = T::ONE / matrix[pivot * (n + 1)];
        if !(reciprocal.is_finite() && *reciprocal > T::ZERO) {
            return Err(Test::Cholesky { pivot });
        }
    }
    Ok(())
}

/// The memory that [`cholesky`] of a matrix of so many rows works in; a clone has its own.
pub(crate) struct Room {
    stack: MemBuffer,
    rows: usize,
}

impl Room {
    pub fn new(rows: usize) -> Self {
        let needed = llt::factor::cholesky_in_place_scratch::<f64>(rows, Par::Seq, Spec::default());
        Self { stack: MemBuffer::new(needed), rows }
    }

    /// Factorises the lower triangle in place; see [`cholesky`].
    pub fn cholesky(&mut self, matrix: &mut [f64], reciprocals: &mut [f64]) -> Result<(), Test> {
        cholesky(matrix, reciprocals, &mut self.stack)
    }
}

impl Clone for Room {
    fn clone(&self) -> Self {
        Self::new(self.rows)
    }
}

/// Copies the lower triangle to the upper one.
pub(crate) fn mirror_lower<T: Real>(matrix: &mut [T], n: usize) {
    for j in 0..n {
        for i in j + 1..n {
            matrix[i * n + j] = matrix[j * n + i];
        }
    }
}

/// The product of two matrices, or of their transposes, into `out`.
pub(crate) fn multiply<T: Real>(out: &mut [T], left: View<'_, T>, right: View<'_, T>) {
    T::multiply(out, left, right);
}

/// [`multiply`].
pub(crate) fn write_product<T: Real>(out: &mut [T], left: View<'_, T>, right: View<'_, T>) {
    let plain = !left.transposed && !right.transposed && !left.data.is_empty();
    if plain && TILED.contains(&left.rows) {
        return tiles::multiply_tiled(out, left.data, right.data, left.rows);
    }
    let (left, right) = (left.as_faer(), right.as_faer());
    let out = MatMut::from_column_major_slice_mut(out, left.nrows(), right.ncols());
    faer::linalg::matmul::matmul(out, Accum::Replace, left, right, T::ONE, Par::Seq);
}

/// The lower triangle of Σₚ xₚ xₚᵀ, where the vectors xₚ of n numbers follow one another; of the upper one nothing is said.
pub(crate) fn gram(out: &mut [f64], vectors: &[f64], n: usize) {
    match n {
        0 => {}
        1..SMALLEST_TILED => kernels::sum_outer_products(vectors, vectors, n, out),
        SMALLEST_TILED..LARGE => tiles::gram_tiled(out, vectors, n),
        _ => {
            let x = View::of(vectors, n).as_faer();
            let (lower, whole) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
            let out = square(out, n);
            triangular::matmul(out, lower, Accum::Replace, x, whole, x.transpose(), whole, 1.0, Par::Seq);
        }
    }
}

/// A matrix stored by columns, as it is or transposed.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    data: &'a [T],
    rows: usize,
    transposed: bool,
}

impl<'a, T: Real> View<'a, T> {
    pub fn of(data: &'a [T], rows: usize) -> Self {
        Self { data, rows, transposed: false }
    }

    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    fn as_faer(self) -> MatRef<'a, T> {
        let columns = self.data.len().checked_div(self.rows).unwrap_or(0);
        let plain = MatRef::from_column_major_slice(self.data, self.rows, columns);
        if self.transposed { plain.transpose() } else { plain }
    }
}

impl<T: Real> Matrix<T> {
    pub(crate) fn view(&self) -> View<'_, T> {
        View::of(self.as_slice(), self.rows())
    }
}

/// The product of two matrices, or of their transposes.
pub(crate) fn product<T: Real>(left: View<'_, T>, right: View<'_, T>) -> Matrix<T> {
    let mut out = Matrix::zeros(left.as_faer().nrows(), right.as_faer().ncols());
    if left.transposed && TILED.contains(&out.rows()) {
        // The copy costs less than a product that walks along rows.
        let copy = Matrix::from_fn(out.rows(), left.rows, |i, j| left.data[i * left.rows + j]);
        multiply(out.as_mut_slice(), copy.view(), right);
    } else {
        multiply(out.as_mut_slice(), left, right);
    }
    out
}

/// αI + W diag(g) Wᵀ.
pub(crate) fn weighted_gram(weights: &Matrix<f64>, gains: &[f64], leak: f64) -> Matrix<f64> {
    let mut scaled = weights.clone();
    for (j, gain) in gains.iter().enumerate() {
        scaled.column_mut(j).iter_mut().for_each(|w| *w *= gain);
    }
    let mut gram = product(scaled.view(), weights.view().transposed());
    (0..gram.rows()).for_each(|i| gram[(i, i)] += leak);
    gram
}

/// Eigenvalues in ascending order and eigenvectors as columns, of a symmetric matrix (its lower triangle is read).
/// `None` when the iteration fails, which it does only on numbers that are not finite.
pub(crate) fn symmetric_eigen(matrix: &Matrix<f64>) -> Option<(Vec<f64>, Matrix<f64>)> {
    let n = matrix.rows();
    let mut vectors = Matrix::zeros(n, n);
    let values = symmetric_evd(matrix, Some(vectors.as_mut_slice()))?;
    Some((values, vectors))
}

/// Eigenvalues and eigenvectors of symmetric matrices of one size, in memory that is used again; a clone has its own.
pub(crate) struct EigenRoom {
    stack: MemBuffer,
    /// In ascending order.
    pub values: Vec<f64>,
    /// As columns.
    pub vectors: Matrix<f64>,
}

impl EigenRoom {
    pub fn new(n: usize) -> Self {
        let needed =
            evd::self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default());
        Self { stack: MemBuffer::new(needed), values: vec![0.0; n], vectors: Matrix::zeros(n, n) }
    }

    /// Decomposes a symmetric matrix (its lower triangle is read). `None` when a number is not finite.
    pub fn decompose(&mut self, matrix: &Matrix<f64>) -> Option<()> {
        if !all_finite(matrix.as_slice()) {
            return None;
        }
        let n = self.values.len();
        evd::self_adjoint_evd(
            matrix.view().as_faer(),
            DiagMut::from_slice_mut(&mut self.values),
            Some(square(self.vectors.as_mut_slice(), n)),
            Par::Seq,
            MemStack::new(&mut self.stack),
            Spec::default(),
        )
        .ok()
    }
}

impl Clone for EigenRoom {
    fn clone(&self) -> Self {
        let mut clone = Self::new(self.values.len());
        clone.values.copy_from_slice(&self.values);
        clone.vectors.as_mut_slice().copy_from_slice(self.vectors.as_slice());
        clone
    }
}

/// Eigenvalues in ascending order of a symmetric matrix (its lower triangle is read).
pub(crate) fn symmetric_eigenvalues(matrix: &Matrix<f64>) -> Option<Vec<f64>> {
    symmetric_evd(matrix, None)
}

fn symmetric_evd(matrix: &Matrix<f64>, vectors: Option<&mut [f64]>) -> Option<Vec<f64>> {
    if !all_finite(matrix.as_slice()) {
        return None;
    }
    let n = matrix.rows();
    let wanted = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut stack =
        MemBuffer::new(evd::self_adjoint_evd_scratch::<f64>(n, wanted, Par::Seq, Spec::default()));
    let mut values = vec![0.0; n];
    evd::self_adjoint_evd(
        matrix.view().as_faer(),
        DiagMut::from_slice_mut(&mut values),
        vectors.map(|vectors| square(vectors, n)),
        Par::Seq,
        MemStack::new(&mut stack),
        Spec::default(),
    )
    .ok()?;
    Some(values)
}

/// The real parts of the eigenvalues of a general square matrix, in no order; `None` when a number is not finite.
pub(crate) fn real_parts(matrix: &Matrix<f64>) -> Option<Vec<f64>> {
    if !all_finite(matrix.as_slice()) {
        return None;
    }
    let (n, no) = (matrix.rows(), ComputeEigenvectors::No);
    let mut stack = MemBuffer::new(evd::evd_scratch::<f64>(n, no, no, Par::Seq, Spec::default()));
    let (mut real, mut imaginary) = (vec![0.0; n], vec![0.0; n]);
    eigenvalues_of(matrix.as_slice(), &mut real, &mut imaginary, &mut stack)?;
    Some(real)
}

pub(crate) fn eigenvalues_of<T: Real>(
    matrix: &[T],
    real: &mut [T],
    imaginary: &mut [T],
    stack: &mut MemBuffer,
) -> Option<()> {
    let n = real.len();
    evd::evd_real(
        MatRef::from_column_major_slice(matrix, n, n),
        DiagMut::from_slice_mut(real),
        DiagMut::from_slice_mut(imaginary),
        None,
        None,
        Par::Seq,
        MemStack::new(stack),
        Spec::default(),
    )
    .ok()
}

/// The Cholesky factorisation of a symmetric matrix, for the theory's solves.
pub(crate) struct Cholesky {
    lower: Matrix<f64>,
    reciprocals: Vec<f64>,
}

impl Cholesky {
    /// Fails when the matrix (its lower triangle is read) is not positive definite.
    pub fn new(matrix: Matrix<f64>) -> Result<Self, Test> {
        let n = matrix.rows();
        let mut lower = matrix;
        let mut reciprocals = vec![0.0; n];
        Room::new(n).cholesky(lower.as_mut_slice(), &mut reciprocals)?;
        Ok(Self { lower, reciprocals })
    }

    /// The smallest pivot over the largest: near zero when the matrix is all but singular.
    pub fn pivot_ratio(&self) -> f64 {
        let (least, most) =
            self.reciprocals.iter().fold((f64::INFINITY, 0.0), |(least, most), &reciprocal| {
                (f64::min(least, reciprocal), f64::max(most, reciprocal))
            });
        (least / most).powi(2)
    }

    /// The inverse of the matrix.
    pub fn inverse(&self) -> Matrix<f64> {
        let n = self.lower.rows();
        let mut inverse = Matrix::identity(n);
        if n < LARGE {
            self.solve_columns(&mut inverse);
            return inverse;
        }
        let mut stack = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(n, Par::Seq));
        let lower = self.lower.view().as_faer();
        llt::inverse::inverse(square(inverse.as_mut_slice(), n), lower, Par::Seq, MemStack::new(&mut stack));
        mirror_lower(inverse.as_mut_slice(), n);
        inverse
    }

    /// Solves with each column of `x` in place.
    pub fn solve_columns(&self, x: &mut Matrix<f64>) {
        for j in 0..x.columns() {
            self.solve(x.column_mut(j));
        }
    }

    /// L⁻¹ X L⁻ᵀ for a symmetric X: X in coordinates in which the factorised matrix is the identity.
    pub fn relative(&self, x: &Matrix<f64>) -> Matrix<f64> {
        let mut half = x.clone();
        self.solve_triangle(&mut half);
        let mut whole = half.transpose();
        self.solve_triangle(&mut whole);
        whole
    }

    /// L⁻¹ X in place.
    pub fn solve_triangle(&self, x: &mut Matrix<f64>) {
        for j in 0..x.columns() {
            kernels::solve_triangle(self.lower.as_slice(), &self.reciprocals, x.column_mut(j));
        }
    }

    /// Solves in place.
    pub fn solve(&self, x: &mut [f64]) {
        kernels::solve_cholesky(self.lower.as_slice(), &self.reciprocals, x);
    }
}
