//! Holds a dense matrix by columns, so that each interneuron's weights lie side by side.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Index, IndexMut};

use crate::error::{Error, Result};
use crate::real::Real;

/// A dense matrix stored by columns.
///
/// ```
/// use leukos::Matrix;
///
/// let w = Matrix::from_rows(&[[1.0, 0.5], [0.0, 2.0]]);
/// assert_eq!(w.column(1), [0.5, 2.0]);
/// assert_eq!(w[(0, 1)], 0.5);
/// ```
#[derive(Clone, PartialEq)]
pub struct Matrix<T = f64> {
    rows: usize,
    columns: usize,
    data: Vec<T>,
}

impl<T: Real> Matrix<T> {
    /// Takes `data` as the matrix's columns, one after another.
    ///
    /// # Errors
    /// [`Error::Shape`] when `data` does not hold `rows * columns` numbers.
    pub fn from_columns(rows: usize, columns: usize, data: Vec<T>) -> Result<Self> {
        if Some(data.len()) != rows.checked_mul(columns) {
            return Err(Error::shape(
                "matrix",
                format!("{rows} x {columns} numbers"),
                format!("{} numbers", data.len()),
            ));
        }
        Ok(Self { rows, columns, data })
    }

    /// Copies a matrix written down row by row.
    pub fn from_rows<const COLUMNS: usize>(rows: &[[T; COLUMNS]]) -> Self {
        Self::from_fn(rows.len(), COLUMNS, |i, j| rows[i][j])
    }

    /// Fills a matrix with `entry(row, column)`.
    pub fn from_fn(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> T) -> Self {
        let mut data = Vec::with_capacity(rows * columns);
        for j in 0..columns {
            data.extend((0..rows).map(|i| entry(i, j)));
        }
        Self { rows, columns, data }
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, data: vec![T::ZERO; rows * columns] }
    }

    /// The identity.
    pub fn identity(size: usize) -> Self {
        Self::diagonal(&vec![T::ONE; size])
    }

    /// The square matrix with this diagonal and zeros elsewhere.
    pub fn diagonal(diagonal: &[T]) -> Self {
        let n = diagonal.len();
        let mut matrix = Self::zeros(n, n);
        for (i, &d) in diagonal.iter().enumerate() {
            matrix[(i, i)] = d;
        }
        matrix
    }

    /// Column `j`.
    ///
    /// # Panics
    /// When there is no such column, as indexing a slice does.
    pub fn column(&self, j: usize) -> &[T] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// Column `j`, to be written to.
    ///
    /// # Panics
    /// When there is no such column, as indexing a slice does.
    pub fn column_mut(&mut self, j: usize) -> &mut [T] {
        &mut self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// All entries, column after column.
    pub fn as_slice(&self) -> &[T] {
        &self.data
    }

    /// All entries, column after column, to be written to.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// The transpose.
    #[must_use]
    pub fn transpose(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self[(j, i)])
    }

    /// The same matrix in the other precision (`f32` to `f64` is exact).
    pub fn cast<U: Real>(&self) -> Matrix<U> {
        Matrix {
            rows: self.rows,
            columns: self.columns,
            data: self.data.iter().map(|x| U::from_f64(x.to_f64())).collect(),
        }
    }

    /// The sum of the diagonal.
    pub fn trace(&self) -> T {
        (0..self.rows.min(self.columns)).map(|i| self[(i, i)]).sum()
    }

    pub(crate) fn require_shape(
        &self,
        argument: impl Into<Cow<'static, str>>,
        rows: usize,
        columns: usize,
    ) -> Result<()> {
        if (self.rows, self.columns) == (rows, columns) {
            return Ok(());
        }
        Err(Error::shape(
            argument,
            format!("{rows} x {columns}"),
            format!("{} x {}", self.rows, self.columns),
        ))
    }

    pub(crate) fn require_finite(&self, argument: impl Into<Cow<'static, str>>) -> Result<()> {
        crate::error::require_finite(argument, &self.data)
    }
}

impl<T> Matrix<T> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;
    fn index(&self, (i, j): (usize, usize)) -> &T {
        debug_assert!(i < self.rows, "row {i} of {}", self.rows);
        &self.data[j * self.rows + i]
    }
}

impl<T> IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut T {
        debug_assert!(i < self.rows, "row {i} of {}", self.rows);
        &mut self.data[j * self.rows + i]
    }
}

/// Small matrices by rows, large ones by their size: an error message must stay readable.
impl<T: fmt::Debug> fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.data.len() > 36 {
            return write!(f, "Matrix({} x {})", self.rows, self.columns);
        }
        let row = |i| (0..self.columns).map(|j| &self[(i, j)]).collect::<Vec<_>>();
        f.debug_list().entries((0..self.rows).map(row)).finish()
    }
}
