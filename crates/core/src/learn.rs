//! Takes one learning step: the only place that orders the updates.
//!
//! All algorithms of the paper are this step with a different [`Drive`]. The gain rule and the Hebbian
//! rule need, of whatever drives them, only the second moment E\[zᵢ²\] of each interneuron's input and the
//! correlation E\[r zᵢ\]: one sample supplies both, a batch their means, a covariance their expectations.

use crate::circuit::{Circuit, Parts, PartsMut};
use crate::constraints::{multiplier_step, rectify, to_unit_length};
use crate::error::{Diverged, Error, Result, Test};
use crate::gains::gain_base;
use crate::kernels::{Arithmetic, add_columns, column, dispatched, dot, four_dots, move_weights};
use crate::real::Real;
use crate::responses::{Certificate, Equilibrium, Solver, Unanswered};
use crate::rules::{GainRule, MultiplierRule, Order, Rules, Sign, SynapseRule, UnitNorm};
use crate::synapses::HebbianStep;

/// What drives a learning step.
#[derive(Clone, Copy)]
pub(crate) enum Drive<'a, T> {
    /// One response r and its interneuron inputs z.
    Sample { response: &'a [T], inputs: &'a [T] },
    /// The same with inputs that are still to be multiplied by `scale`: where a step waits for that number more
    /// than for anything else, what does not need it is computed first.
    Unscaled { response: &'a [T], inputs: &'a [T], scale: T },
    /// Several responses (one after another) and their inputs.
    Batch { responses: &'a [T], inputs: &'a [T] },
    /// E\[r zᵢ\] = C_rr w_rn,i for each interneuron, one after another.
    Expectation { correlations: &'a [T] },
}

impl<T: Real> Drive<'_, T> {
    /// `base` + `rate` · E\[zᵢ²\] for the interneuron i that listens through `weights`.
    #[inline(always)]
    fn add_square<A: Arithmetic>(&self, i: usize, weights: &[T], rate: T, base: T) -> T {
        match self {
            Self::Sample { inputs, .. } => A::mul_add(rate * inputs[i], inputs[i], base),
            Self::Unscaled { inputs, scale, .. } => {
                A::mul_add(rate * inputs[i] * *scale, inputs[i] * *scale, base)
            }
            Self::Batch { responses, inputs } => {
                let samples = responses.len() / weights.len();
                let mut squares = T::ZERO;
                for z in inputs.chunks_exact(inputs.len() / samples) {
                    squares = A::mul_add(z[i], z[i], squares);
                }
                A::mul_add(rate / T::from_f64(samples as f64), squares, base)
            }
            Self::Expectation { correlations } => {
                A::mul_add(rate, dot::<T, A>(weights, column(correlations, weights.len(), i)), base)
            }
        }
    }

    /// The gain with which the interneuron's output n = g z counts: a sample's was emitted with the old one.
    #[inline(always)]
    fn emitted(&self, old: T, ordered: T) -> T {
        match self {
            Self::Expectation { .. } => ordered,
            Self::Sample { .. } | Self::Unscaled { .. } | Self::Batch { .. } => old,
        }
    }

    /// Writes the weights of interneuron i after a Hebbian step.
    #[inline(always)]
    fn move_weights<A: Arithmetic>(&self, i: usize, out: &mut [T], step: HebbianStep<T>, weights: &[T]) {
        match self {
            Self::Sample { response, inputs } => {
                move_weights::<T, A>(out, step.scaled(inputs[i]), weights, response);
            }
            Self::Unscaled { response, inputs, scale } => {
                move_weights::<T, A>(out, step.scaled(inputs[i]).scaled(*scale), weights, response);
            }
            Self::Batch { responses, inputs } => {
                let samples = responses.len() / out.len();
                let interneurons = inputs.len() / samples;
                let kept = step.kept::<A>();
                for (out, &w) in out.iter_mut().zip(weights) {
                    *out = kept * w;
                }
                let share = step.growth / T::from_f64(samples as f64);
                for (r, z) in responses.chunks_exact(out.len()).zip(inputs.chunks_exact(interneurons)) {
                    add_columns::<T, A, 1>(out, [share * z[i]], [r]);
                }
            }
            Self::Expectation { correlations } => {
                move_weights::<T, A>(out, step, weights, column(correlations, weights.len(), i));
            }
        }
    }
}

dispatched! {
    /// One learning step from one circuit to the next.
    fn step<T, A>(rules: &Rules<T>, drive: Drive<'_, T>, from: Parts<'_, T>, to: PartsMut<'_, T>) {
        step_parts::<T, A>(rules, drive, from, to);
    }
}

/// One learning step, interneuron by interneuron: none of them looks at another.
#[inline(always)]
pub(crate) fn step_parts<T: Real, A: Arithmetic>(
    rules: &Rules<T>,
    drive: Drive<'_, T>,
    from: Parts<'_, T>,
    mut to: PartsMut<'_, T>,
) {
    let (n, k) = (from.neurons, from.gains.len());
    let fours = k / 4 * 4;
    for first in (0..fours).step_by(4) {
        let overlaps = four_dots::<T, A>(from.feedback, from.listening(), n, first);
        for c in 0..4 {
            step_interneuron::<T, A>(rules, drive, from, &mut to, (first + c, overlaps[c]));
        }
    }
    for i in fours..k {
        let overlap = dot::<T, A>(column(from.feedback, n, i), column(from.listening(), n, i));
        step_interneuron::<T, A>(rules, drive, from, &mut to, (i, overlap));
    }
}

/// The step of interneuron i, whose weights overlap by ⟨w_nr,i , w_rn,i⟩ = ‖wᵢ‖² when tied.
#[inline(always)]
fn step_interneuron<T: Real, A: Arithmetic>(
    rules: &Rules<T>,
    drive: Drive<'_, T>,
    from: Parts<'_, T>,
    to: &mut PartsMut<'_, T>,
    (i, overlap): (usize, T),
) {
    let n = from.neurons;
    let (back, forth) = (column(from.feedback, n, i), column(from.listening(), n, i));
    let target = if let UnitNorm::Multiplier { .. } = rules.unit_norm { T::ONE } else { overlap };
    let old = from.gains[i];
    let new = if let GainRule::Gradient { rate } = rules.gains {
        let base = gain_base::<T, A>(old, rate, target);
        signed(rules.sign, drive.add_square::<A>(i, forth, rate, base))
    } else {
        old
    };
    to.gains[i] = new;

    let SynapseRule::Hebbian { rate } = rules.synapses else { return };
    let multiplier = new_multiplier::<T, A>(rules, from.multipliers[i], overlap);
    to.multipliers[i] = multiplier;
    let (gain, multiplier) = match rules.order {
        Order::Sequential => (new, multiplier),
        Order::Concurrent => (old, from.multipliers[i]),
    };
    let decay = if let UnitNorm::Multiplier { .. } = rules.unit_norm { gain + multiplier } else { gain };
    let step = HebbianStep { rate, decay, growth: rate * drive.emitted(old, gain) };
    let weights = &mut to.feedback[i * n..(i + 1) * n];
    drive.move_weights::<A>(i, weights, step, back);
    constrain::<T, A>(rules, weights);
    if let Some(feedforward) = &mut to.feedforward {
        let weights = &mut feedforward[i * n..(i + 1) * n];
        drive.move_weights::<A>(i, weights, step, forth);
        constrain::<T, A>(rules, weights);
    }
}

#[inline(always)]
fn new_multiplier<T: Real, A: Arithmetic>(rules: &Rules<T>, multiplier: T, overlap: T) -> T {
    let UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate } } = rules.unit_norm else {
        return multiplier;
    };
    signed(rules.sign, multiplier_step::<T, A>(multiplier, rate, overlap))
}

#[inline(always)]
fn signed<T: Real>(sign: Sign, x: T) -> T {
    match sign {
        Sign::Free => x,
        Sign::NonNegative => rectify(x),
    }
}

#[inline(always)]
fn constrain<T: Real, A: Arithmetic>(rules: &Rules<T>, weights: &mut [T]) {
    if rules.sign == Sign::NonNegative {
        for w in weights.iter_mut() {
            *w = rectify(*w);
        }
    }
    if let UnitNorm::Projected = rules.unit_norm {
        to_unit_length::<T, A>(weights);
    }
}

/// A circuit that learns: rules, the circuit they move, and its equilibrium.
///
/// Each step is written into a second circuit, which takes the first one's place once its M has been found
/// valid. So the last good circuit is always at hand, and costs no copy.
pub(crate) struct Learner<T: Real> {
    pub rules: Rules<T>,
    pub circuit: Circuit<T>,
    next: Circuit<T>,
    /// The last certified circuit and its step, where the solver does not certify every step.
    certified: Option<(Circuit<T>, u64)>,
    pub equilibrium: Equilibrium<T>,
    /// Steps made: samples answered online, updates offline.
    pub steps: u64,
}

impl<T: Real> Learner<T> {
    pub fn new(circuit: Circuit<T>, rules: Rules<T>, solver: &Solver<T>) -> Result<Self> {
        rules.validate()?;
        let equilibrium = Equilibrium::new(&circuit, solver)?;
        let certified = (*solver != Solver::Direct).then(|| (circuit.clone(), 0));
        Ok(Self { rules, next: circuit.clone(), circuit, certified, equilibrium, steps: 0 })
    }

    /// The response to a finite stimulus.
    pub fn respond(&mut self, stimulus: &[T], response: &mut [T]) -> Result<()> {
        match self.equilibrium.answer(&self.circuit, stimulus, response) {
            Ok(()) => Ok(()),
            Err(Unanswered::Invalid(test)) => {
                let error = self.diverged(test);
                self.retreat();
                Err(error)
            }
            Err(Unanswered::Unsettled { iterations, change, tolerance }) => {
                Err(Error::NotConverged { what: "the recurrent dynamics", iterations, change, tolerance })
            }
        }
    }

    /// Moves the circuit by one step. On failure it stays where it was.
    pub fn learn(&mut self, drive: Drive<'_, T>) -> Result<()> {
        step(&self.rules, drive, self.circuit.parts(), self.next.parts_mut());
        self.adopt_next()
    }

    /// Lets `change` write the next circuit, certifies it and puts it in place.
    pub fn replace(&mut self, change: impl FnOnce(&mut Circuit<T>)) -> Result<()> {
        self.next.copy_from(&self.circuit);
        change(&mut self.next);
        self.adopt_next()
    }

    fn adopt_next(&mut self) -> Result<()> {
        let certificate = match self.follow_next() {
            Ok(certificate) => certificate,
            Err(test) => {
                let error = self.diverged(test);
                self.retreat();
                return Err(error);
            }
        };
        std::mem::swap(&mut self.circuit, &mut self.next);
        if let (Certificate::Fresh, Some((certified, step))) = (certificate, &mut self.certified) {
            certified.copy_from(&self.circuit);
            *step = self.steps + 1;
        }
        Ok(())
    }

    /// M shows everything that runs over but the multipliers, which it does not contain.
    fn follow_next(&mut self) -> Result<Certificate, Test> {
        if self.next.multipliers().iter().any(|m| !m.is_finite()) {
            return Err(Test::Overflow);
        }
        self.equilibrium.follow(&self.next)
    }

    /// Goes back to the last valid circuit, so that the run remains usable after an error.
    fn retreat(&mut self) {
        if let Some((certified, _)) = &self.certified {
            self.circuit.copy_from(certified);
        }
        // It was valid when it was last factorised, so it is now.
        let _ = self.equilibrium.certify(&self.circuit);
        self.next.copy_from(&self.circuit);
    }

    /// Checks the present circuit, which only some solvers have done at every step.
    pub fn certify(&mut self) -> Result<()> {
        if self.certified.is_none() {
            return Ok(());
        }
        let mut fresh = crate::linalg::Factor::new(self.circuit.synapses());
        fresh.update(self.circuit.parts()).map_err(|test| self.diverged(test))
    }

    pub fn diverged(&self, test: Test) -> Error {
        let (circuit, last_valid_step) = match &self.certified {
            Some((certified, step)) => (certified.cast(), *step),
            None => (self.circuit.cast(), self.steps),
        };
        Box::new(Diverged { step: self.steps, test, last_valid_step, circuit }).into()
    }
}
