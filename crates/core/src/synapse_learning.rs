//! Learns the synapses that are best for known contexts: minimises Eq. (3) over W with unit columns.
//!
//! The method is a trust-region Newton method on the product of the columns' spheres (Absil, Baker and Gallivan
//! 2007), with the optimal gains of every context at every step. Second derivatives let it leave saddle points,
//! where methods that see only the gradient come to rest.

use crate::error::{Error, Result};
use crate::kernels::add_scaled;
use crate::matrix::Matrix;
use crate::nested_objective::{NestedObjective, NestedPoint};
use crate::size::Work;
use crate::spheres::{to_tangent, to_unit_columns};
use crate::trust_region::{End, ModelStep, Quadratic, norm};

/// Minimises E_c min_g f_c(αI + W diag(g) Wᵀ), Eq. (3), over W: a run that can be advanced incrementally.
///
/// What it minimises also counts a cost of gains, (κ/2) E_c‖g_c‖². With κ = 0 the least value of Eq. (3) may not be
/// attained by any W: columns then draw together while their gains grow without bound with opposite signs. That happens
/// on natural covariances when K > N, with few contexts even when K ≤ N, and on some photographs at K = N. A small cost
/// keeps the gains within bounds and, where the minimum is attained, moves W by a like amount; see [`Self::GAIN_COST`].
///
/// ```
/// use leukos::{LearningState, Matrix, SynapseLearner};
///
/// // M = I + V diag(λ) V' in each of three contexts, with V = [[1, .6], [0, .8]].
/// let contexts = [[2.0, 0.0], [0.0, 3.0], [1.0, 2.0]].map(|[a, b]: [f64; 2]| {
///     let (p, q, r) = (1.0 + a + 0.36 * b, 0.48 * b, 1.0 + 0.64 * b);
///     Matrix::from_rows(&[[p * p + q * q, q * (p + r)], [q * (p + r), q * q + r * r]])
/// });
/// let mut learner = SynapseLearner::new(Matrix::identity(2), contexts.to_vec(), 1.0, 0.0)?;
/// let progress = learner.advance(100);
/// assert_eq!(progress.state, LearningState::Converged);
/// assert!(progress.gap < 1e-9);
/// assert!((learner.synapses()[(1, 1)].abs() - 0.8).abs() < 1e-6);
/// # Ok::<(), leukos::Error>(())
/// ```
pub struct SynapseLearner {
    objective: NestedObjective,
    point: NestedPoint,
    radius: f64,
    iterations: u64,
    state: LearningState,
}

/// Whether learning has converged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningState {
    /// The next iteration may lower the objective.
    Learning,
    /// No step lowers the objective visibly, and no direction of negative curvature was found: a minimum, perhaps a
    /// local one.
    Converged,
    /// Steps that should lower the objective do not, because rounding hides it.
    Stalled,
}

/// How far a [`SynapseLearner`] has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningProgress {
    /// The number of iterations made, each with one step that was taken or refused.
    pub iterations: u64,
    /// What is minimised: E_c f_c(M) and the cost of gains. It never rises by more than rounding.
    pub objective: f64,
    /// How far E_c f_c(M) is above E_c 2 Tr C_ss^½, its value when every context is whitened perfectly.
    pub gap: f64,
    /// The length of the objective's gradient by W, tangent to the spheres.
    pub gradient_norm: f64,
    /// Whether learning has converged.
    pub state: LearningState,
}

/// How well the objective is known, as a share of it.
const ROUNDING: f64 = 1e-14;
/// A direction whose curvature is above this, relative to that of a typical one, does not lead down from a saddle.
const FLAT: f64 = -1e-8;
/// The least curvature that the preconditioner allows a column, relative to the scale of the covariances.
const FLOOR: f64 = 0.1;
/// The first radius, relative to all columns turning by a radian.
const FIRST_RADIUS: f64 = 0.25;

/// Checks that there is room to learn synapses across so many contexts.
pub(crate) fn require_learning(neurons: usize, interneurons: usize, contexts: usize) -> Result<()> {
    let of_each = |matrices: usize| contexts.saturating_mul(matrices);
    Work {
        squares: of_each(6).saturating_add(20),
        weights: of_each(8).saturating_add(24),
        gains: of_each(8).saturating_add(20),
        ..Work::of("neurons", neurons, interneurons)
    }
    .require()
}

impl SynapseLearner {
    /// A cost of gains that keeps them within bounds and hardly shows otherwise: on 50 natural covariances with
    /// N = 25 it changes the gap of K = 25 by 2e-6, and holds the gains of K = 50 below 5.
    pub const GAIN_COST: f64 = 1e-3;

    /// Starts from `synapses` (N × K, each column rescaled to unit length) in contexts that are equally frequent.
    ///
    /// `gain_cost` has no units: κ = `gain_cost` · s/(s² + α²), where s = E_c Tr C_ss^½ / N. Without a cost, 0, the
    /// objective is that of Eq. (3).
    ///
    /// # Errors
    /// When a size does not match, a number is not finite or out of range, a column has no length, a covariance
    /// is not positive definite, or no gains make M positive definite, as with leak 0 and K < N.
    pub fn new(mut synapses: Matrix, covariances: Vec<Matrix>, leak: f64, gain_cost: f64) -> Result<Self> {
        let (neurons, interneurons) = (synapses.rows(), synapses.columns());
        if neurons == 0 || interneurons == 0 {
            let found = format!("{neurons} x {interneurons}");
            return Err(Error::shape("synapses", "at least one neuron and one interneuron", found));
        }
        synapses.require_finite("synapses")?;
        require_learning(neurons, interneurons, covariances.len())?;
        to_unit_columns(&mut synapses)?;
        let objective = NestedObjective::new(covariances, neurons, leak, gain_cost)?;
        if leak == 0.0 && interneurons < neurons {
            return Err(Error::Singular { neurons, interneurons });
        }
        let point = objective.at(synapses)?;
        let radius = FIRST_RADIUS * (interneurons as f64 * objective.scale).sqrt();
        Ok(Self { objective, point, radius, iterations: 0, state: LearningState::Learning })
    }

    /// Makes so many iterations, or fewer when there is nothing left to learn. How they are divided between
    /// calls makes no difference.
    pub fn advance(&mut self, iterations: usize) -> LearningProgress {
        for _ in 0..iterations {
            if self.state != LearningState::Learning {
                break;
            }
            self.iterate();
            self.iterations += 1;
        }
        self.progress()
    }

    fn iterate(&mut self) {
        match self.newton_step() {
            Some(step) if step.promised > self.rounding() => self.try_step(&step),
            Some(step) => self.finish(&step),
            None => self.state = LearningState::Stalled,
        }
    }

    /// The more the gradient has shrunk, the more exactly the model is minimised, for quadratic convergence.
    fn newton_step(&self) -> Option<ModelStep> {
        let gradient = &self.point.gradient;
        let tolerance = (norm(gradient) / self.point.objective).sqrt().min(0.1);
        self.model_step(gradient, tolerance)
    }

    /// `None` when a number overflowed.
    fn model_step(&self, gradient: &Matrix, tolerance: f64) -> Option<ModelStep> {
        let point = &self.point;
        let curvatures = point.column_curvatures(FLOOR * self.objective.scale).ok()?;
        let precondition = |residual: &Matrix| {
            let mut v = residual.clone();
            for (j, curvature) in curvatures.iter().enumerate() {
                curvature.solve(v.column_mut(j));
            }
            to_tangent(&point.synapses, &mut v);
            v
        };
        let hessian = |v: &Matrix| point.hessian_product(v);
        Some(Quadratic { gradient, hessian, precondition }.minimise(self.radius, tolerance))
    }

    /// Takes the step if the objective keeps enough of what the model promised, and learns how far to trust it.
    fn try_step(&mut self, step: &ModelStep) {
        let rounding = self.rounding();
        let trial = self.trial(step).ok();
        let fall = trial.as_ref().map_or(f64::NEG_INFINITY, |trial| self.point.objective - trial.objective);
        let kept = (fall + rounding) / (step.promised + rounding);
        if kept < 0.25 {
            self.radius = 0.25 * step.length;
        } else if kept > 0.85 && step.end != End::Inside {
            self.radius *= 2.0;
        }
        if let Some(trial) = trial
            && kept > 0.1
            && fall >= -rounding
        {
            self.point = trial;
        }
    }

    /// Takes a step that promises less than the objective can show if it lowers the gradient.
    fn finish(&mut self, step: &ModelStep) {
        let better = |trial: &NestedPoint| {
            norm(&trial.gradient) < norm(&self.point.gradient)
                && trial.objective <= self.point.objective + self.rounding()
        };
        let trial = self.trial(step).ok().filter(better);
        let lower = trial.is_some();
        if let Some(trial) = trial {
            self.point = trial;
        }
        match step.end {
            End::Inside | End::Falling { .. } => self.leave_or_rest(),
            End::Surface if lower => self.radius *= 2.0,
            End::Surface => self.state = LearningState::Stalled,
        }
    }

    /// Leaves the point if it is a saddle: where the gradient has vanished, an arbitrary one in its place finds
    /// a direction of negative curvature.
    fn leave_or_rest(&mut self) {
        let mut gradient = self.point.gradient.clone();
        let size = self.rounding();
        for (i, x) in gradient.as_mut_slice().iter_mut().enumerate() {
            *x += size * (((i * i) as f64 * std::f64::consts::SQRT_2).fract() - 0.5);
        }
        to_tangent(&self.point.synapses, &mut gradient);
        match self.model_step(&gradient, 1e-3) {
            Some(step) if !falls(&step) => self.state = LearningState::Converged,
            Some(step) if step.promised > self.rounding() => self.try_step(&step),
            _ => self.state = LearningState::Stalled,
        }
    }

    /// How well the objective is known.
    fn rounding(&self) -> f64 {
        ROUNDING * self.point.objective
    }

    fn trial(&self, step: &ModelStep) -> Result<NestedPoint> {
        let mut synapses = self.point.synapses.clone();
        add_scaled(synapses.as_mut_slice(), 1.0, step.v.as_slice());
        to_unit_columns(&mut synapses)?;
        self.objective.near(&self.point, synapses)
    }

    /// How far learning has come.
    pub fn progress(&self) -> LearningProgress {
        LearningProgress {
            iterations: self.iterations,
            objective: self.point.objective,
            gap: self.objective.gap(&self.point),
            gradient_norm: norm(&self.point.gradient),
            state: self.state,
        }
    }

    /// The synapses W, with unit columns.
    pub fn synapses(&self) -> &Matrix {
        &self.point.synapses
    }

    /// The optimal gains (K × C), a column for each context in the order given.
    pub fn gains(&self) -> Matrix {
        let contexts = &self.point.contexts;
        Matrix::from_fn(self.point.synapses.columns(), contexts.len(), |i, c| contexts[c].gains[i])
    }

    /// The gradient of the objective by W (N × K): 2 E_c[(I − M⁻¹C_ss M⁻¹) W diag(g_c)], tangent to the spheres.
    pub fn gradient(&self) -> &Matrix {
        &self.point.gradient
    }
}

/// Whether a step goes down from a saddle point.
fn falls(step: &ModelStep) -> bool {
    matches!(step.end, End::Falling { curvature } if curvature < FLAT)
}
