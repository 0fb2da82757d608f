//! Factorises general matrices, and tells whether their eigenvalues have positive real parts.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::lu::partial_pivoting as lu;
use faer::perm::PermRef;
use faer::{MatMut, MatRef, Par, Spec};

use crate::error::Test;
use crate::kernels::all_finite;
use crate::linalg::{cholesky, eigenvalues_of, square};
use crate::matrix::Matrix;
use crate::real::Real;

/// The LU factorisation of a general matrix, with its test of stability.
pub(crate) struct Lu<T: Real> {
    forward: Vec<usize>,
    backward: Vec<usize>,
    /// Room for the gᵢ wᵢ.
    pub scaled: Vec<T>,
    /// The symmetric part of M, then the real and imaginary parts of its eigenvalues.
    symmetric: Vec<T>,
    reciprocals: Vec<T>,
    stack: MemBuffer,
}

impl<T: Real> Lu<T> {
    /// Room for the factors of N × N matrices with K interneurons' weights.
    pub fn new(n: usize, k: usize) -> Self {
        let no = ComputeEigenvectors::No;
        let stack = StackReq::any_of(&[
            lu::factor::lu_in_place_scratch::<usize, T>(n, n, Par::Seq, Spec::default()),
            lu::solve::solve_in_place_scratch::<usize, T>(n, n, Par::Seq),
            evd::evd_scratch::<T>(n, no, no, Par::Seq, Spec::default()),
            llt::factor::cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default()),
        ]);
        Self {
            forward: vec![0; n],
            backward: vec![0; n],
            scaled: vec![T::ZERO; n * k],
            symmetric: vec![T::ZERO; n * n.max(2)],
            reciprocals: vec![T::ZERO; n],
            stack: MemBuffer::new(stack),
        }
    }

    /// Factorises a matrix in place if it is stable.
    pub fn factorise(&mut self, matrix: &mut [T]) -> Result<(), Test> {
        self.require_stable(matrix)?;
        self.eliminate(matrix);
        Ok(())
    }

    fn eliminate(&mut self, matrix: &mut [T]) {
        let n = self.forward.len();
        let stack = MemStack::new(&mut self.stack);
        let (forward, backward) = (&mut self.forward, &mut self.backward);
        lu::factor::lu_in_place(square(matrix, n), forward, backward, Par::Seq, stack, Spec::default());
    }

    /// Every eigenvalue has a positive real part.
    fn require_stable(&mut self, matrix: &[T]) -> Result<(), Test> {
        let n = self.forward.len();
        let half = T::from_f64(0.5);
        for j in 0..n {
            for i in 0..n {
                self.symmetric[j * n + i] = half * (matrix[j * n + i] + matrix[i * n + j]);
            }
        }
        if cholesky(&mut self.symmetric[..n * n], &mut self.reciprocals, &mut self.stack).is_ok() {
            return Ok(());
        }
        if !all_finite(matrix) {
            return Err(Test::Overflow);
        }
        let (real, imaginary) = self.symmetric.split_at_mut(n);
        let done = eigenvalues_of(matrix, real, &mut imaginary[..n], &mut self.stack);
        if done.is_some() && real.iter().all(|&x| x > T::ZERO) { Ok(()) } else { Err(Test::Eigenvalue) }
    }

    /// Solves in place, column after column.
    pub fn solve(&mut self, factors: &[T], x: &mut [T]) {
        let n = self.forward.len();
        let factors = MatRef::from_column_major_slice(factors, n, n);
        let columns = x.len() / n;
        lu::solve::solve_in_place(
            factors,
            factors,
            PermRef::new_checked(&self.forward, &self.backward, n),
            MatMut::from_column_major_slice_mut(x, n, columns),
            Par::Seq,
            MemStack::new(&mut self.stack),
        );
    }
}

/// The inverse of a general square matrix; `None` when it is singular to working precision.
pub(crate) fn inverse(matrix: &Matrix<f64>) -> Option<Matrix<f64>> {
    if !all_finite(matrix.as_slice()) {
        return None;
    }
    let n = matrix.rows();
    let mut factors = matrix.clone();
    let mut lu = Lu::new(n, 0);
    lu.eliminate(factors.as_mut_slice());
    let mut inverse = Matrix::identity(n);
    lu.solve(factors.as_slice(), inverse.as_mut_slice());
    all_finite(inverse.as_slice()).then_some(inverse)
}
