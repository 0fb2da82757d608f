//! Finds the optimal gains of one context, and keeps what the derivatives by W need there.

use crate::error::{Error, Result, Test};
use crate::kernels::{add_scaled, inner};
use crate::linalg::{Cholesky, product};
use crate::matrix::Matrix;
use crate::outer_products::Semidefinite;

/// One context's term of Eq. (3) as a function of the gains, φ(g) = f_c(αI + W diag(g) Wᵀ) + (κ/2)‖g‖².
///
/// It is convex, and strictly so where κ > 0. Its parts are taken as valid.
#[derive(Clone, Copy)]
pub(crate) struct ContextObjective<'a> {
    pub synapses: &'a Matrix,
    pub covariance: &'a Matrix,
    pub leak: f64,
    /// κ.
    pub gain_cost: f64,
}

/// A context at its optimal gains, with M = αI + W diag(g) Wᵀ and C_rr = M⁻¹C_ss M⁻¹.
pub(crate) struct ContextOptimum {
    pub gains: Vec<f64>,
    /// φ(g).
    pub objective: f64,
    /// M⁻¹.
    pub whitening: Matrix,
    /// M⁻¹W.
    pub filtered: Matrix,
    /// C_rr.
    responses: Matrix,
    /// C_rr W, whose columns are E\[r zᵢ\].
    correlations: Matrix,
    /// W − C_rr W, which vanishes where responses are white.
    mismatch: Matrix,
    /// The Hessian of φ by the gains; singular where some change of the gains leaves M as it is.
    curvature: Semidefinite,
}

/// Newton's method takes 2 or 3 iterations from a good start.
const MOST_ITERATIONS: usize = 100;
/// Gains have settled when Newton's method promises less than this share of the objective.
const SETTLED: f64 = 1e-20;
/// Below this share Newton's method converges quadratically, unless rounding is all that is left.
const NEAR: f64 = 1e-9;
/// How far rounding may seem to raise the objective, as a share of it.
const ROUNDING: f64 = 1e-14;

impl ContextObjective<'_> {
    /// Newton's method with Armijo's rule from feasible gains.
    ///
    /// Unlike [`crate::OptimalGains`] it checks nothing twice, counts the cost of gains, and hands out
    /// all that it computed at the optimum.
    ///
    /// # Errors
    /// When the start is infeasible, or the method does not converge.
    pub fn settle(&self, start: Vec<f64>) -> Result<ContextOptimum> {
        let mut point = self.at(start).ok_or_else(infeasible)?;
        let mut promised = f64::INFINITY;
        for _ in 0..MOST_ITERATIONS {
            let slope = self.descent(&point);
            let mut step = slope.clone();
            point.curvature.solve(&mut step);
            let last = std::mem::replace(&mut promised, inner(&slope, &step) / point.objective);
            let only_rounding = promised <= NEAR && promised > 0.5 * last;
            if promised <= SETTLED || only_rounding {
                return Ok(point);
            }
            match self.line_search(&point, &step, promised) {
                Some(next) => point = next,
                // No step lowers the objective any more: this is the minimum to working precision.
                None => return Ok(point),
            }
        }
        Err(Error::NotConverged {
            what: "Newton's method for the optimal gains",
            iterations: MOST_ITERATIONS,
            change: promised,
            tolerance: SETTLED,
        })
    }

    /// The context at any gains; `None` off the cone.
    fn at(&self, gains: Vec<f64>) -> Option<ContextOptimum> {
        let w = self.synapses;
        let (trace, whitening) = self.whiten(&gains)?;
        let half = product(whitening.view(), self.covariance.view());
        let objective = trace + half.trace() + 0.5 * self.gain_cost * inner(&gains, &gains);
        let responses = product(half.view(), whitening.view());
        let filtered = product(whitening.view(), w.view());
        let correlations = product(responses.view(), w.view());
        let curvature = self.curvature(&filtered, &correlations)?;
        let mut mismatch = w.clone();
        add_scaled(mismatch.as_mut_slice(), -1.0, correlations.as_slice());
        objective.is_finite().then_some(ContextOptimum {
            gains,
            objective,
            whitening,
            filtered,
            responses,
            correlations,
            mismatch,
            curvature,
        })
    }

    /// Tr M and M⁻¹; `None` where M is not positive definite by more than rounding.
    fn whiten(&self, gains: &[f64]) -> Option<(f64, Matrix)> {
        let mut m = weighted_product(self.synapses, gains, self.synapses);
        for i in 0..m.rows() {
            m[(i, i)] += self.leak;
        }
        let trace = m.trace();
        let factor = Cholesky::new(m).ok()?;
        (factor.pivot_ratio() > f64::EPSILON).then(|| (trace, factor.inverse()))
    }

    /// ∂²φ/∂g² = 2 A∘B + κI with A = WᵀM⁻¹W and B = WᵀC_rr W.
    fn curvature(&self, filtered: &Matrix, correlations: &Matrix) -> Option<Semidefinite> {
        let w = self.synapses;
        let a = product(w.view().transposed(), filtered.view());
        let mut hessian = product(w.view().transposed(), correlations.view());
        for (b, a) in hessian.as_mut_slice().iter_mut().zip(a.as_slice()) {
            *b *= 2.0 * a;
        }
        for i in 0..w.columns() {
            hessian[(i, i)] += self.gain_cost;
        }
        Semidefinite::new(&hessian)
    }

    /// −∂φ/∂gᵢ = wᵢᵀC_rr wᵢ − ‖wᵢ‖² − κgᵢ.
    fn descent(&self, point: &ContextOptimum) -> Vec<f64> {
        let slope = |(i, gain): (usize, &f64)| {
            -inner(self.synapses.column(i), point.mismatch.column(i)) - self.gain_cost * gain
        };
        point.gains.iter().enumerate().map(slope).collect()
    }

    /// Armijo's rule: halve until the objective falls by a fair share of what the slope promises.
    fn line_search(&self, point: &ContextOptimum, step: &[f64], promised: f64) -> Option<ContextOptimum> {
        let mut size = 1.0;
        for _ in 0..60 {
            let mut gains = point.gains.clone();
            add_scaled(&mut gains, size, step);
            let enough = (1.0 + ROUNDING - 1e-4 * size * promised) * point.objective;
            match self.at(gains) {
                Some(next) if next.objective <= enough => return Some(next),
                _ => size *= 0.5,
            }
        }
        None
    }
}

impl ContextOptimum {
    /// Adds `share` times ∂φ/∂W = 2 (W − C_rr W) diag(g).
    pub fn add_gradient(&self, share: f64, out: &mut Matrix) {
        for (j, gain) in self.gains.iter().enumerate() {
            add_scaled(out.column_mut(j), 2.0 * share * gain, self.mismatch.column(j));
        }
    }

    /// Adds `share` times how that gradient changes when W moves by V and the gains follow:
    /// 2 (V − dC_rr W − C_rr V) diag(g) + 2 (W − C_rr W) diag(dg), with −dC_rr = M⁻¹ dM C_rr + C_rr dM M⁻¹.
    pub fn add_hessian_product(&self, w: &Matrix, v: &Matrix, share: f64, out: &mut Matrix) {
        let (change, following) = self.follow(w, v);
        let half = product(product(self.whitening.view(), change.view()).view(), self.responses.view());
        let by_responses = product(plus_transpose(&half).view(), w.view());
        let by_synapses = product(self.responses.view(), v.view());
        for (j, (gain, following)) in self.gains.iter().zip(&following).enumerate() {
            let (gain, out) = (2.0 * share * gain, out.column_mut(j));
            add_scaled(out, gain, v.column(j));
            add_scaled(out, gain, by_responses.column(j));
            add_scaled(out, -gain, by_synapses.column(j));
            add_scaled(out, 2.0 * share * following, self.mismatch.column(j));
        }
    }

    /// How M and the optimal gains follow W: dM = V diag(g) Wᵀ + W diag(g) Vᵀ + W diag(dg) Wᵀ, and
    /// dg = −(∂²φ/∂g²)⁻¹ ∂²φ/∂g∂W `[V]`.
    fn follow(&self, w: &Matrix, v: &Matrix) -> (Matrix, Vec<f64>) {
        let mut change = plus_transpose(&weighted_product(v, &self.gains, w));
        let moved = product(change.view(), self.correlations.view());
        let slope = |i| {
            let direct = inner(v.column(i), self.mismatch.column(i));
            -2.0 * (direct + inner(self.filtered.column(i), moved.column(i)))
        };
        let mut following: Vec<f64> = (0..w.columns()).map(slope).collect();
        self.curvature.solve(&mut following);
        let by_gains = weighted_product(w, &following, w);
        add_scaled(change.as_mut_slice(), 1.0, by_gains.as_slice());
        (change, following)
    }
}

/// A diag(x) Bᵀ.
fn weighted_product(a: &Matrix, weights: &[f64], b: &Matrix) -> Matrix {
    let mut weighted = a.clone();
    for (j, weight) in weights.iter().enumerate() {
        weighted.column_mut(j).iter_mut().for_each(|x| *x *= weight);
    }
    product(weighted.view(), b.view().transposed())
}

/// A + Aᵀ.
fn plus_transpose(matrix: &Matrix) -> Matrix {
    let mut sum = matrix.transpose();
    add_scaled(sum.as_mut_slice(), 1.0, matrix.as_slice());
    sum
}

fn infeasible() -> Error {
    let expected = "gains that make M positive definite";
    Error::NotPositiveDefinite { argument: "gains".into(), expected, test: Test::Singular }
}
