//! Answers where WᵀW = I: every interneuron owns an axis of M, and nothing has to be factorised.

use crate::circuit::Circuit;
use crate::kernels::{inner, project_rows};
use crate::matrix::Matrix;
use crate::real::Real;

/// M⁻¹ along the axes.
#[derive(Clone)]
pub(super) struct Orthonormal<T> {
    /// W by rows.
    rows: Vec<T>,
    /// 1/mᵢ, where mᵢ = α + gᵢ is M along wᵢ.
    pub reciprocals: Vec<T>,
    /// 1/mᵢ − 1/α: what M⁻¹ along wᵢ has more than elsewhere.
    pub excesses: Vec<T>,
    pub mixed: Vec<T>,
}

/// Synapses are orthonormal if they are so to this many roundings for each neuron.
pub(super) const ROUNDING: f64 = 8.0;

impl<T: Real> Orthonormal<T> {
    pub fn new(circuit: &Circuit<T>) -> Self {
        let zeros = || vec![T::ZERO; circuit.interneurons()];
        let rows = circuit.synapses().feedback().transpose().as_slice().to_vec();
        Self { rows, reciprocals: zeros(), excesses: zeros(), mixed: Vec::new() }
    }

    /// z = diag(1/m) Wᵀx, and r = W z + (x − W Wᵀx)/α: outside of what the interneurons span M is α.
    pub fn respond(&mut self, weights: &[T], leak: T, (x, r, z): (&[T], &mut [T], &mut [T])) {
        let k = self.reciprocals.len();
        let n = weights.len().checked_div(k).unwrap_or(0);
        if k == 0 {
            r.iter_mut().zip(x).for_each(|(r, &x)| *r = x / leak);
            return;
        }
        project_rows(weights, n, x, z);
        if k == n {
            scale_rows(z, &self.reciprocals);
            project_rows(&self.rows, k, z, r);
            return;
        }
        let mixed = &mut self.mixed[..z.len()];
        mixed.copy_from_slice(z);
        scale_rows(mixed, &self.excesses);
        project_rows(&self.rows, k, mixed, r);
        r.iter_mut().zip(x).for_each(|(r, &x)| *r += x / leak);
        scale_rows(z, &self.reciprocals);
    }
}

/// Whether columns of unit length are orthogonal, to so many times the rounding of T.
pub(super) fn is_orthonormal<T: Real>(synapses: &Matrix, slack: f64) -> bool {
    let (n, k) = (synapses.rows(), synapses.columns());
    let tolerance = slack * n as f64 * T::EPSILON.to_f64();
    let orthogonal = |i: usize, j: usize| inner(synapses.column(i), synapses.column(j)).abs() <= tolerance;
    k <= n && (0..k).all(|i| (0..i).all(|j| orthogonal(i, j)))
}

fn scale_rows<T: Real>(rows: &mut [T], factors: &[T]) {
    for row in rows.chunks_exact_mut(factors.len()) {
        row.iter_mut().zip(factors).for_each(|(x, &factor)| *x *= factor);
    }
}
