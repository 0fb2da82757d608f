//! Fits gains to a matrix: the least-squares problem on the outer products wᵢwᵢᵀ of the synapses.

use crate::error::Result;
use crate::gains::out_of_range;
use crate::kernels::inner;
use crate::linalg::{Cholesky, product, symmetric_eigen};
use crate::matrix::Matrix;
use crate::metrics::largest;
use crate::starts::orthonormalise;

/// The outer products of some synapses, of whatever lengths, and what they span.
pub(crate) struct OuterProducts<'a> {
    synapses: &'a Matrix,
    /// 1/‖wᵢ‖², and 0 for a column of zeros, whose gain does nothing.
    pub reciprocals: Vec<f64>,
    /// The squared cosines between columns: the Gram matrix of the outer products of unit columns.
    cosines: Semidefinite,
}

impl<'a> OuterProducts<'a> {
    /// # Errors
    /// When a number overflows.
    pub fn new(synapses: &'a Matrix) -> Result<Self> {
        let k = synapses.columns();
        let mut gram = product(synapses.view().transposed(), synapses.view());
        let finite = gram.trace().is_finite();
        let reciprocals: Vec<f64> = (0..k).map(|i| reciprocal(gram[(i, i)])).collect();
        // Column by column in place: this is done at every presentation of a least-squares run.
        for (j, &own) in reciprocals.iter().enumerate() {
            let entries = gram.column_mut(j).iter_mut().zip(&reciprocals);
            entries.for_each(|(entry, &other)| *entry = (*entry * other) * (*entry * own));
            gram[(j, j)] = 1.0;
        }
        let cosines = Semidefinite::new(&gram).filter(|_| finite);
        Ok(Self { synapses, reciprocals, cosines: cosines.ok_or_else(out_of_range)? })
    }

    /// The gains whose αI + W diag(g) Wᵀ is nearest to a symmetric matrix, of least norm where several are.
    pub fn fit(&self, matrix: &Matrix, leak: f64) -> Vec<f64> {
        let spread = product(matrix.view(), self.synapses.view());
        let excess = |(i, reciprocal)| {
            let w = self.synapses.column(i);
            (inner(w, spread.column(i)) - leak * inner(w, w)) * reciprocal
        };
        let mut gains: Vec<f64> = self.reciprocals.iter().enumerate().map(excess).collect();
        self.cosines.solve(&mut gains);
        gains.iter_mut().zip(&self.reciprocals).for_each(|(gain, reciprocal)| *gain *= reciprocal);
        self.least_norm(gains)
    }

    /// The gains of least norm that make the same M.
    pub fn least_norm(&self, mut gains: Vec<f64>) -> Vec<f64> {
        let Semidefinite::Singular { vectors, nullity, .. } = &self.cosines else { return gains };
        let mut null = Matrix::from_fn(gains.len(), *nullity, |i, j| self.reciprocals[i] * vectors[(i, j)]);
        for j in 0..*nullity {
            let size = largest(null.column(j).iter().copied());
            null.column_mut(j).iter_mut().for_each(|z| *z /= size);
            orthonormalise(&mut null, 0, j);
            let share = inner(null.column(j), &gains);
            gains.iter_mut().zip(null.column(j)).for_each(|(gain, z)| *gain -= share * z);
        }
        gains
    }
}

fn reciprocal(length: f64) -> f64 {
    if length > 0.0 { length.recip() } else { 0.0 }
}

/// A positive semidefinite matrix, ready to be solved with.
pub(crate) enum Semidefinite {
    Definite(Cholesky),
    /// Eigenvalues in ascending order with their vectors, and how many of them are zero.
    Singular {
        values: Vec<f64>,
        vectors: Matrix,
        nullity: usize,
    },
}

/// How small an eigenvalue counts as zero, relative to the largest.
const NULL: f64 = 1e-13;

impl Semidefinite {
    /// `None` when a number is not finite.
    pub fn new(matrix: &Matrix) -> Option<Self> {
        if let Ok(factor) = Cholesky::new(matrix.clone())
            && factor.pivot_ratio() > NULL.sqrt()
        {
            return Some(Self::Definite(factor));
        }
        let (values, vectors) = symmetric_eigen(matrix)?;
        let largest = values.last().copied().unwrap_or(0.0);
        let nullity = values.iter().filter(|&&value| value <= NULL * largest).count();
        Some(Self::Singular { values, vectors, nullity })
    }

    /// Solves in place, leaving out what the matrix cannot reach: the solution of least norm.
    pub fn solve(&self, x: &mut [f64]) {
        match self {
            Self::Definite(factor) => factor.solve(x),
            Self::Singular { values, vectors, nullity } => {
                let right = x.to_vec();
                x.fill(0.0);
                for j in *nullity..values.len() {
                    let share = inner(vectors.column(j), &right) / values[j];
                    x.iter_mut().zip(vectors.column(j)).for_each(|(x, v)| *x += share * v);
                }
            }
        }
    }
}
