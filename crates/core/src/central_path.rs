//! Moves M along the middle of the cone of positive definite matrices, where Newton's method alone would make tiny steps
//! along its edge.
//!
//! The central path is where f_c − μ log det M is least, for one weight μ of the barrier after another. Steps are
//! Newton's, with Hessian A∘(2B + μA), and as long as is best: along a step the function is known exactly.

use crate::gain_problem::{Place, Problem, ScaledHessian, Step};
use crate::kernels::inner;
use crate::linalg::{product, symmetric_eigen};

/// A point on the central path.
pub(crate) struct CentralPath {
    /// μ.
    barrier: f64,
    /// Weights below this do not show in the objective.
    end: f64,
}

/// The weight of the first barrier, relative to the objective for each neuron.
const FIRST_BARRIER: f64 = 0.1;
/// By how much it falls each time.
const FALL: f64 = 10.0;
/// M is where a barrier wants it when the step for it is shorter than this.
const CENTRED: f64 = 0.5;
/// How much of the way to the edge of the cone one step may go.
const TOWARDS_EDGE: f64 = 0.95;

impl CentralPath {
    /// The path for an objective of this size for each neuron.
    pub fn new(objective: f64) -> Self {
        Self { barrier: FIRST_BARRIER * objective, end: f64::EPSILON.powi(2) * objective }
    }

    /// Lowers the barrier.
    pub fn descend(&mut self) {
        self.barrier /= FALL;
    }

    /// The next place: nearer to the path, or farther along it where the place is near already.
    /// `None` where nothing lowers the function.
    pub fn follow(&mut self, problem: &Problem<'_>, place: &Place) -> Option<Place> {
        let mut step = self.step(problem, place)?;
        while step.length <= CENTRED && self.barrier > self.end {
            self.descend();
            step = self.step(problem, place)?;
        }
        let next = self.descend_along(problem, place, &step)?;
        (self.barrier > self.end || next.objective < place.objective).then_some(next)
    }

    /// Newton's step for f_c − μ log det M.
    fn step(&self, problem: &Problem<'_>, place: &Place) -> Option<Step> {
        let slopes = place.slope.iter().enumerate();
        let descent = slopes.map(|(i, slope)| self.barrier * place.a[(i, i)] - slope).collect();
        problem.step(place, ScaledHessian::new(&place.hessian(self.barrier))?.solve(descent))
    }

    fn descend_along(&self, problem: &Problem<'_>, place: &Place, step: &Step) -> Option<Place> {
        let size = Ray::new(problem, place, step, self.barrier)?.least();
        // Rounding can put the best place off the cone.
        (0..8).find_map(|halvings| problem.at(step.from(place, size * 0.5_f64.powi(halvings))))
    }
}

/// The function along a step, exactly.
///
/// In coordinates in which M is the identity and ΔM diagonal with entries λ, and where c is the diagonal of C,
/// f_c(M + tΔM) − μ log det(M + tΔM) = t tr ΔM + Σ c/(1 + tλ) − μ Σ log(1 + tλ) + constants.
struct Ray {
    trace: f64,
    barrier: f64,
    /// λ in ascending order, and c.
    rates: Vec<f64>,
    spread: Vec<f64>,
}

impl Ray {
    fn new(problem: &Problem<'_>, place: &Place, step: &Step, barrier: f64) -> Option<Self> {
        let w = problem.synapses;
        let trace =
            step.change.iter().enumerate().map(|(i, change)| change * inner(w.column(i), w.column(i)));
        let (rates, axes) = symmetric_eigen(&step.relative)?;
        let turned = product(problem.relative_covariance(place).view(), axes.view());
        let spread = (0..rates.len()).map(|j| inner(axes.column(j), turned.column(j))).collect();
        Some(Self { trace: trace.sum(), barrier, rates, spread })
    }

    fn derivative(&self, size: f64) -> f64 {
        let curved = self.rates.iter().zip(&self.spread).map(|(&rate, &spread)| {
            let room = 1.0 + size * rate;
            rate / room * (spread / room + self.barrier)
        });
        self.trace - curved.sum::<f64>()
    }

    /// Where the derivative, which grows along the ray, is zero; or near the edge of the cone if that comes first.
    fn least(&self) -> f64 {
        let lowest = self.rates.first().copied().unwrap_or(0.0);
        let farthest = if lowest < 0.0 { -TOWARDS_EDGE / lowest } else { f64::MAX };
        let mut high = 1.0;
        while high < farthest && self.derivative(high) < 0.0 {
            high *= 2.0;
        }
        let (mut low, mut high) = (0.0, f64::min(high, farthest));
        for _ in 0..30 {
            let middle = 0.5 * (low + high);
            *(if self.derivative(middle) < 0.0 { &mut low } else { &mut high }) = middle;
        }
        high
    }
}
