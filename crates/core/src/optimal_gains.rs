//! Finds the gains that minimise the objective for a known covariance.
//!
//! In g the objective f_c(αI + W diag(g) Wᵀ) is convex, with gradient ‖wᵢ‖² − Bᵢᵢ and Hessian 2 A∘B, where
//! A = WᵀM⁻¹W and B = WᵀM⁻¹CM⁻¹W. Newton's method solves for ‖wᵢ‖/√Bᵢᵢ = 1 rather than for Bᵢᵢ = ‖wᵢ‖². The Jacobian
//! is that Hessian up to a factor for each row, but an interneuron that does not interact with others has
//! Bᵢᵢ = c/(a + gᵢ)², whose reciprocal root is linear in gᵢ: one step solves it, from any start. (Moré and Sorensen
//! solve the secular equation of trust regions in this way.)
//!
//! Where C is ill-conditioned, the optimum may lie so near to the edge of the cone of positive definite M that such a
//! step fails. Then M is first led along the middle of the cone ([`crate::central_path`]).

use std::borrow::Cow;

use crate::central_path::CentralPath;
use crate::error::{Error, Result, Test};
use crate::gains::{out_of_range, require_fit, require_leak};
use crate::kernels::inner;
use crate::linalg::{Cholesky, product, symmetric_eigen, weighted_gram};
use crate::matrix::Matrix;
use crate::metrics::{frobenius, require_symmetric};
use crate::outer_products::{OuterProducts, Semidefinite};

/// The gains that minimise the objective f_c(αI + W diag(g) Wᵀ) for a known covariance, the inner minimum of
/// Eq. (3); those of least norm where several do (K > N(N+1)/2, or parallel columns).
///
/// # Errors
/// When a size does not match, a number is not finite, `covariance` is not positive definite, or no gains make M
/// positive definite (no leak, and synapses that do not span all neurons).
pub fn optimal_gains(synapses: &Matrix, covariance: &Matrix, leak: f64) -> Result<Vec<f64>> {
    Ok(OptimalGains::new(synapses, covariance, leak)?.gains)
}

/// The gains of [`optimal_gains`], what they reach, and how many steps they took.
///
/// ```
/// use leukos::{Matrix, OptimalGains};
///
/// let covariance = Matrix::diagonal(&[9.0, 4.0]);
/// let best = OptimalGains::new(&Matrix::identity(2), &covariance, 1.0)?;
/// assert!((best.objective - 2.0 * (3.0 + 2.0)).abs() < 1e-12);
/// assert_eq!(best.iterations, 0, "the least-squares gains are already optimal here");
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OptimalGains {
    /// The gains g, one for each interneuron.
    pub gains: Vec<f64>,
    /// The objective f_c(αI + W diag(g) Wᵀ) there.
    pub objective: f64,
    /// The number of Newton iterations, each with one Hessian.
    pub iterations: usize,
}

impl OptimalGains {
    /// Finds them.
    ///
    /// # Errors
    /// As for [`optimal_gains`].
    pub fn new(synapses: &Matrix, covariance: &Matrix, leak: f64) -> Result<Self> {
        require_fit(synapses, covariance)?;
        require_leak(leak)?;
        require_symmetric("covariance", covariance)?;
        Problem::new(synapses, &Target::new("covariance", covariance)?, leak)?.minimise()
    }
}

/// A positive definite covariance and its root, ready for one set of synapses after another.
pub(crate) struct Target {
    covariance: Matrix,
    root: Matrix,
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

/// The last iteration is one whose step changes M along its axes by no more than ε^¼ of it, in the root mean square.
/// Quadratic convergence leaves √ε of that, in which the objective is flat to ε, and the second step with the same
/// Hessian leaves about ε^¾ of the gains.
const LAST_STEP: f64 = 1.22e-4;
/// A step this short is not worth another Hessian.
const NO_STEP: f64 = 1e-10;
/// Below this length the objective may tell that only rounding is left.
const SHORT_STEP: f64 = 0.1;
/// How far rounding may seem to raise the objective, as a share of it.
const ROUNDING: f64 = 1e-14;
/// Armijo's rule: the share of the slope's promise that the objective must keep.
const ARMIJO: f64 = 1e-4;
/// A step is worth taking if it leaves this share of the mismatch at most.
const MISMATCH_LEFT: f64 = 0.25;
/// M may lose this share along any axis in one step.
const LOSS: f64 = 0.9;
/// A start is near if no log variance ln(Bᵢᵢ/‖wᵢ‖²) is larger.
const NEAR: f64 = 2.0;
const MOST_ITERATIONS: usize = 100;

/// Which gains are asked for. Its parts are taken as valid.
pub(crate) struct Problem<'a> {
    pub synapses: &'a Matrix,
    target: &'a Target,
    leak: f64,
    products: OuterProducts<'a>,
    /// ‖wᵢ‖².
    lengths: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// # Errors
    /// When a number runs over.
    pub fn new(synapses: &'a Matrix, target: &'a Target, leak: f64) -> Result<Self> {
        let lengths =
            (0..synapses.columns()).map(|i| inner(synapses.column(i), synapses.column(i))).collect();
        Ok(Self { synapses, target, leak, products: OuterProducts::new(synapses)?, lengths })
    }

    /// # Errors
    /// When no gains make M positive definite, or a number runs over.
    pub fn minimise(&self) -> Result<OptimalGains> {
        let mut place = self.start()?;
        let mut path = CentralPath::new(place.objective / self.synapses.rows() as f64);
        let mut length = f64::INFINITY;
        for iterations in 0..MOST_ITERATIONS {
            let hessian = ScaledHessian::new(&place.hessian(0.0)).ok_or_else(out_of_range)?;
            let step = self.newton_step(&place, &hessian).ok_or_else(out_of_range)?;
            length = step.length;
            if length <= NO_STEP {
                return self.finish(self.correct(place, &hessian), iterations);
            }
            if step.is_last(&place) {
                let place = self.at(step.from(&place, 1.0)).unwrap_or(place);
                return self.finish(self.correct(place, &hessian), iterations + 1);
            }
            if let Some(next) = self.accept(&place, &step) {
                place = self.correct(next, &hessian);
                path.descend();
            } else if let Some(next) = path.follow(self, &place) {
                place = next;
            } else {
                // The path has been followed to its end: this is the minimum to working precision.
                return self.finish(place, iterations);
            }
        }
        Err(Error::NotConverged {
            what: "Newton's method for the optimal gains",
            iterations: MOST_ITERATIONS,
            change: length,
            tolerance: LAST_STEP,
        })
    }

    /// The least-squares gains where they are feasible and near, or else gains with which every interneuron has the
    /// same share in M.
    fn start(&self) -> Result<Place> {
        let fitted = self.products.fit(&self.target.root, self.leak);
        if let Some(place) = self.at(fitted).filter(Place::is_near) {
            return Ok(place);
        }
        let share = self.target.root.trace() / self.synapses.columns() as f64;
        let equal = self.products.reciprocals.iter().map(|reciprocal| share * reciprocal);
        self.at(equal.collect()).ok_or(Error::NotPositiveDefinite {
            argument: "synapses".into(),
            expected: "synapses and a leak for which some gains make M positive definite",
            test: Test::Singular,
        })
    }

    /// What there is to know at some gains; `None` off the cone.
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

    /// The step that solves for the reciprocal roots, where the objective falls along it; else the one for the
    /// objective itself, along which it always does. `None` when a number runs over.
    fn newton_step(&self, place: &Place, hessian: &ScaledHessian) -> Option<Step> {
        let change = hessian.solve(place.excess());
        if inner(&place.slope, &change) < 0.0 {
            return self.step(place, change);
        }
        self.step(place, hessian.solve(place.slope.iter().map(|slope| -slope).collect()))
    }

    pub fn step(&self, place: &Place, change: Vec<f64>) -> Option<Step> {
        let relative = place.factor.relative(&weighted_gram(self.synapses, &change, 0.0));
        let length = frobenius(relative.as_slice().iter().copied());
        length.is_finite().then_some(Step { change, relative, length })
    }

    /// The place that a full step leads to, if it stays well inside the cone and is much better.
    fn accept(&self, place: &Place, step: &Step) -> Option<Place> {
        let next = self.at(step.from(place, 1.0))?;
        let falls = next.objective <= place.objective + ARMIJO * inner(&place.slope, &step.change);
        let solves = next.mismatch_norm() <= MISMATCH_LEFT * place.mismatch_norm();
        // M(g + Δg/κ) ≻ 0 says that M(g + Δg) ≻ (1 − κ) M(g).
        let inside = || step.length <= LOSS || self.is_feasible(&step.from(place, 1.0 / LOSS));
        (falls && solves && inside()).then_some(next)
    }

    /// A second step with the Hessian of the first (Shamanskii's method) where it pays: it costs half as much.
    fn correct(&self, place: Place, hessian: &ScaledHessian) -> Place {
        let left = place.mismatch_norm();
        let gains = place.gains.iter().zip(hessian.solve(place.excess())).map(|(gain, change)| gain + change);
        let better = |next: &Place| {
            next.mismatch_norm() <= MISMATCH_LEFT * left
                && next.objective <= (1.0 + ROUNDING) * place.objective
        };
        self.at(gains.collect()).filter(better).unwrap_or(place)
    }

    fn is_feasible(&self, gains: &[f64]) -> bool {
        Cholesky::new(weighted_gram(self.synapses, gains, self.leak)).is_ok()
    }

    /// The covariance in coordinates in which M is the identity.
    pub fn relative_covariance(&self, place: &Place) -> Matrix {
        place.factor.relative(&self.target.covariance)
    }

    fn finish(&self, place: Place, iterations: usize) -> Result<OptimalGains> {
        let gains = self.products.least_norm(place.gains);
        if !gains.iter().all(|gain| gain.is_finite()) {
            return Err(out_of_range());
        }
        Ok(OptimalGains { gains, objective: place.objective, iterations })
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
    mismatch: Vec<f64>,
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
    fn excess(&self) -> Vec<f64> {
        let excess = |(i, mismatch)| -2.0 * self.b[(i, i)] * mismatch / (1.0 + mismatch);
        self.mismatch.iter().copied().enumerate().map(excess).collect()
    }

    /// Whether Newton's method may be trusted to converge from here.
    fn is_near(&self) -> bool {
        self.mismatch.iter().all(|mismatch| 2.0 * mismatch.ln_1p().abs() <= NEAR)
    }

    fn mismatch_norm(&self) -> f64 {
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
    fn is_last(&self, place: &Place) -> bool {
        let only_rounding = || -inner(&place.slope, &self.change) <= f64::EPSILON * place.objective;
        let axes = self.relative.rows() as f64;
        self.length <= LAST_STEP * axes.sqrt() || self.length <= SHORT_STEP && only_rounding()
    }

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
    use crate::matrix::Matrix;
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

    /// One interneuron alone is solved by one step from anywhere, without a search.
    #[test]
    fn an_interneuron_alone_takes_one_step() {
        let (w, covariance) = (Matrix::diagonal(&[1.0]), Matrix::diagonal(&[4.0]));
        let target = Target::new("covariance", &covariance).unwrap();
        let problem = Problem::new(&w, &target, 1.0).unwrap();
        for start in [-0.9999, 0.0, 1e6] {
            let place = problem.at(vec![start]).unwrap();
            let hessian = super::ScaledHessian::new(&place.hessian(0.0)).unwrap();
            let step = problem.newton_step(&place, &hessian).unwrap();
            assert_near(step.from(&place, 1.0)[0], 1.0);
        }
    }
}
