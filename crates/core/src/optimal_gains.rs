//! Finds the gains that minimise the objective for a known covariance.
//!
//! Newton's method (on `gain_problem`) solves for ‖wᵢ‖/√Bᵢᵢ = 1 rather than for Bᵢᵢ = ‖wᵢ‖². The Jacobian is
//! the Hessian up to a factor for each row, but an interneuron that does not interact with others has
//! Bᵢᵢ = c/(a + gᵢ)², whose reciprocal root is linear in gᵢ: one step solves it, from any start. (Moré and Sorensen
//! solve the secular equation of trust regions in this way.)
//!
//! Where C is ill-conditioned, the optimum may lie so near to the edge of the cone of positive definite M that such a
//! step fails. Then M is first led along the middle of the cone (`central_path`).

use crate::central_path::CentralPath;
use crate::error::{Error, Result, Test};
use crate::gain_problem::{Place, Problem, ScaledHessian, Step, Target};
use crate::gains::{out_of_range, require_fit, require_gains, require_leak};
use crate::kernels::inner;
use crate::matrix::Matrix;
use crate::metrics::require_symmetric;

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
        require_gains(synapses)?;
        Problem::new(synapses, &Target::new("covariance", covariance)?, leak)?.minimise()
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

/// Newton's method.
impl Problem<'_> {
    /// # Errors
    /// When no gains make M positive definite, or a number overflows.
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

    /// The step that solves for the reciprocal roots, where the objective falls along it; else the one for the
    /// objective itself, along which it always does. `None` when a number overflows.
    fn newton_step(&self, place: &Place, hessian: &ScaledHessian) -> Option<Step> {
        let change = hessian.solve(place.excess());
        if inner(&place.slope, &change) < 0.0 {
            return self.step(place, change);
        }
        self.step(place, hessian.solve(place.slope.iter().map(|slope| -slope).collect()))
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

    fn finish(&self, place: Place, iterations: usize) -> Result<OptimalGains> {
        let gains = self.products.least_norm(place.gains);
        if !gains.iter().all(|gain| gain.is_finite()) {
            return Err(out_of_range());
        }
        Ok(OptimalGains { gains, objective: place.objective, iterations })
    }
}

impl Place {
    /// Whether Newton's method may be trusted to converge from here.
    fn is_near(&self) -> bool {
        self.mismatch.iter().all(|mismatch| 2.0 * mismatch.ln_1p().abs() <= NEAR)
    }
}

impl Step {
    fn is_last(&self, place: &Place) -> bool {
        let only_rounding = || -inner(&place.slope, &self.change) <= f64::EPSILON * place.objective;
        let axes = self.relative.rows() as f64;
        self.length <= LAST_STEP * axes.sqrt() || self.length <= SHORT_STEP && only_rounding()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::gain_problem::{Problem, ScaledHessian, Target};
    use crate::matrix::Matrix;

    /// One interneuron alone is solved by one step from anywhere, without a search.
    #[test]
    fn an_interneuron_alone_takes_one_step() {
        let (w, covariance) = (Matrix::diagonal(&[1.0]), Matrix::diagonal(&[4.0]));
        let target = Target::new("covariance", &covariance).unwrap();
        let problem = Problem::new(&w, &target, 1.0).unwrap();
        for start in [-0.9999, 0.0, 1e6] {
            let place = problem.at(vec![start]).unwrap();
            let hessian = ScaledHessian::new(&place.hessian(0.0)).unwrap();
            let step = problem.newton_step(&place, &hessian).unwrap();
            let found = step.from(&place, 1.0)[0];
            assert!((found - 1.0).abs() < 1e-9, "{found}");
        }
    }
}
