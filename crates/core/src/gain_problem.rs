//! Describes the objective as a function of the gains, around some of them to second order.
//!
//! In g the objective f_c(αI + W diag(g) Wᵀ) is convex, with gradient ‖wᵢ‖² − Bᵢᵢ and Hessian 2 A∘B, where
//! A = WᵀM⁻¹W and B = WᵀM⁻¹CM⁻¹W.

use std::borrow::Cow;

use crate::error::{Error, Result, Test};
use crate::kernels::inner;
use crate::linalg::{Cholesky, product, symmetric_eigen, weighted_gram};
use crate::matrix::Matrix;
use crate::metrics::frobenius;
use crate::outer_products::{OuterProducts, Semidefinite};

/// A positive definite covariance and its root, ready for one set of synapses after another.
pub(crate) struct Target {
    covariance: Matrix,
    pub root: Matrix,
}

impl Target {
    /// Takes a covariance that is known to be symmetric.
    pub fn new(argument: impl Into<Cow<'static, str>>, covariance: &Matrix) -> Result<Self> {
        let eigen = symmetric_eigen(covariance).filter(|(values, _)| values.iter().all(|&value| value > 0.0));
        let (values, vectors) = eigen.ok_or_else(|| Error::NotPositiveDefinite {
            argument: argument.into(),
            expected: "a positive definite matrix",
            test: Test::Eigenvalue,
        })?;
        let roots: Vec<f64> = values.iter().map(|value| value.sqrt()).collect();
        Ok(Self { covariance: covariance.clone(), root: weighted_gram(&vectors, &roots, 0.0) })
    }
}

/// Which gains are asked for. Its parts are taken as valid.
pub(crate) struct Problem<'a> {
    pub synapses: &'a Matrix,
    pub target: &'a Target,
    pub leak: f64,
    pub products: OuterProducts<'a>,
    /// ‖wᵢ‖².
    lengths: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// # Errors
    /// When a number overflows.
    pub fn new(synapses: &'a Matrix, target: &'a Target, leak: f64) -> Result<Self> {
        let lengths =
            (0..synapses.columns()).map(|i| inner(synapses.column(i), synapses.column(i))).collect();
        Ok(Self { synapses, target, leak, products: OuterProducts::new(synapses)?, lengths })
    }

    /// The objective and its derivatives at some gains; `None` if M is not positive definite.
    pub fn at(&self, gains: Vec<f64>) -> Option<Place> {
        let (w, c) = (self.synapses, &self.target.covariance);
        let m = weighted_gram(w, &gains, self.leak);
        let trace = m.trace();
        let factor = Cholesky::new(m).ok()?;
        let mut filtered = w.clone();
        factor.solve_columns(&mut filtered);
        let mut solved = c.clone();
        factor.solve_columns(&mut solved);
        let objective = trace + solved.trace();
        let a = product(w.view().transposed(), filtered.view());
        let b = product(filtered.view().transposed(), product(c.view(), filtered.view()).view());
        let slope = (0..gains.len()).map(|i| self.lengths[i] - b[(i, i)]).collect();
        let mismatch = (0..gains.len()).map(|i| mismatch(self.lengths[i], b[(i, i)])).collect();
        let place = Place { gains, objective, factor, slope, mismatch, a, b };
        (objective.is_finite() && place.mismatch_norm().is_finite()).then_some(place)
    }

    /// What a change of the gains does to M; `None` when a number overflows.
    pub fn step(&self, place: &Place, change: Vec<f64>) -> Option<Step> {
        let relative = place.factor.relative(&weighted_gram(self.synapses, &change, 0.0));
        let length = frobenius(relative.as_slice().iter().copied());
        length.is_finite().then_some(Step { change, relative, length })
    }

    pub fn is_feasible(&self, gains: &[f64]) -> bool {
        Cholesky::new(weighted_gram(self.synapses, gains, self.leak)).is_ok()
    }

    /// The covariance in coordinates in which M is the identity.
    pub fn relative_covariance(&self, place: &Place) -> Matrix {
        place.factor.relative(&self.target.covariance)
    }
}

/// ‖w‖/√B − 1; nothing for a column of zeros.
fn mismatch(length: f64, b: f64) -> f64 {
    if length > 0.0 { (length / b).sqrt() - 1.0 } else { 0.0 }
}

/// Feasible gains, the factor of their M, and the objective around them to second order.
pub(crate) struct Place {
    pub gains: Vec<f64>,
    pub objective: f64,
    pub factor: Cholesky,
    /// ‖wᵢ‖² − Bᵢᵢ.
    pub slope: Vec<f64>,
    /// ‖wᵢ‖/√Bᵢᵢ − 1.
    pub mismatch: Vec<f64>,
    /// A = WᵀM⁻¹W.
    pub a: Matrix,
    /// B = WᵀM⁻¹CM⁻¹W.
    b: Matrix,
}

impl Place {
    /// The Hessian A∘(2B + μA) of f_c − μ log det M.
    pub fn hessian(&self, barrier: f64) -> Matrix {
        let (k, a, b) = (self.slope.len(), &self.a, &self.b);
        Matrix::from_fn(k, k, |i, j| a[(i, j)] * (2.0 * b[(i, j)] + barrier * a[(i, j)]))
    }

    /// Minus the mismatch as the Hessian 2 A∘B counts it, 2 Bᵢᵢ (√Bᵢᵢ/‖wᵢ‖ − 1).
    pub fn excess(&self) -> Vec<f64> {
        let excess = |(i, mismatch)| -2.0 * self.b[(i, i)] * mismatch / (1.0 + mismatch);
        self.mismatch.iter().copied().enumerate().map(excess).collect()
    }

    pub fn mismatch_norm(&self) -> f64 {
        frobenius(self.mismatch.iter().copied())
    }
}

/// A change of the gains.
pub(crate) struct Step {
    pub change: Vec<f64>,
    /// L⁻¹ ΔM L⁻ᵀ: the relative change of M.
    pub relative: Matrix,
    /// Its Frobenius norm.
    pub length: f64,
}

impl Step {
    pub fn from(&self, place: &Place, size: f64) -> Vec<f64> {
        place.gains.iter().zip(&self.change).map(|(gain, change)| gain + size * change).collect()
    }
}

/// A positive semidefinite Hessian scaled to unit diagonal, so that columns of all lengths count alike.
pub(crate) struct ScaledHessian {
    scales: Vec<f64>,
    scaled: Semidefinite,
}

impl ScaledHessian {
    /// `None` when a number is not finite.
    pub fn new(h: &Matrix) -> Option<Self> {
        let scale = |diagonal: f64| if diagonal > 0.0 { diagonal.sqrt().recip() } else { 0.0 };
        let scales: Vec<f64> = (0..h.rows()).map(|i| scale(h[(i, i)])).collect();
        let scaled = Matrix::from_fn(h.rows(), h.rows(), |i, j| scales[i] * h[(i, j)] * scales[j]);
        Some(Self { scaled: Semidefinite::new(&scaled)?, scales })
    }

    pub fn solve(&self, mut x: Vec<f64>) -> Vec<f64> {
        x.iter_mut().zip(&self.scales).for_each(|(x, scale)| *x *= scale);
        self.scaled.solve(&mut x);
        x.iter_mut().zip(&self.scales).for_each(|(x, scale)| *x *= scale);
        x
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    use super::{Problem, Target};
    use crate::linalg::weighted_gram;
    use crate::starts::on_sphere;

    const STEP: f64 = 1e-5;

    fn assert_near(found: f64, expected: f64) {
        // Central differences are off by the square of the step and by rounding over it.
        assert!((found - expected).abs() < 1e-8 * (1.0 + expected.abs()), "{found} for {expected}");
    }

    /// The slope is that of the objective, the Hessian that of the slope, the barrier's that of −log det M.
    #[test]
    fn derivatives_agree_with_differences() {
        let rng = &mut Pcg64::seed_from_u64(9);
        for (interneurons, leak) in [(2, 1.0), (3, 0.4), (5, 1.0)] {
            let w = on_sphere(3, interneurons, rng);
            let covariance = weighted_gram(&on_sphere(3, 5, rng), &[1.0; 5], 0.2);
            let target = Target::new("covariance", &covariance).unwrap();
            let problem = Problem::new(&w, &target, leak).unwrap();
            let gains: Vec<f64> = (0..interneurons).map(|i| 0.3 + 0.2 * i as f64).collect();
            let place = problem.at(gains.clone()).unwrap();
            let (plain, barrier) = (place.hessian(0.0), place.hessian(1.0));
            for i in 0..interneurons {
                let moved = |size: f64| {
                    let mut gains = gains.clone();
                    gains[i] += size;
                    problem.at(gains).unwrap()
                };
                let (up, down) = (moved(STEP), moved(-STEP));
                assert_near(place.slope[i], (up.objective - down.objective) / (2.0 * STEP));
                for j in 0..interneurons {
                    assert_near(plain[(i, j)], (up.slope[j] - down.slope[j]) / (2.0 * STEP));
                    // The slope of −log det M is −Aⱼⱼ.
                    let of_barrier = -(up.a[(j, j)] - down.a[(j, j)]) / (2.0 * STEP);
                    assert_near(barrier[(i, j)] - plain[(i, j)], of_barrier);
                }
            }
        }
    }
}
