//! Takes one learning step: the only place that orders the updates.
//!
//! All algorithms of the paper are this step with a different [`Drive`]. The gain rule and the Hebbian
//! rule need, of whatever drives them, only the second moment E\[zᵢ²\] of each interneuron's input and the
//! correlation E\[r zᵢ\]: one sample supplies both, a batch their means, a covariance their expectations.

use std::ops::Range;

use crate::arithmetic::{Arithmetic, dispatched};
use crate::circuit::{Circuit, Parts, PartsMut};
use crate::constraints::{multiplier_step, rectify, to_unit_length};
use crate::error::{Diverged, Error, Result, Test};
use crate::gains::gain_base;
use crate::kernels::{add_columns, column_dots, move_weights};
use crate::real::Real;
use crate::responses::{Certificate, Equilibrium, Solver, Unanswered};
use crate::rules::{GainRule, MultiplierRule, Order, Rules, Sign, SynapseRule, UnitNorm};
use crate::small::Small;
use crate::synapses::HebbianStep;

/// What drives a learning step.
#[derive(Clone, Copy)]
pub(crate) enum Drive<'a, T> {
    /// One response r and its interneuron inputs z.
    Sample { response: &'a [T], inputs: &'a [T] },
    /// The same with inputs that are still to be multiplied by `scale`: where a step waits for that number more
    /// than for anything else, what does not need it is computed first.
    Unscaled { response: &'a [T], inputs: &'a [T], scale: T },
    /// Several responses (one after another) and their inputs, of which each sample has `interneurons` and the ones
    /// that count begin at `first`.
    Batch { responses: &'a [T], inputs: &'a [T], interneurons: usize, first: usize },
    /// E\[r zᵢ\] = C_rr w_rn,i for each interneuron, one after another.
    Expectation { correlations: &'a [T] },
}

impl<'a, T: Real> Drive<'a, T> {
    /// The same for some interneurons.
    #[inline(always)]
    fn of(self, some: Range<usize>, neurons: usize) -> Self {
        match self {
            Self::Sample { response, inputs } => Self::Sample { response, inputs: &inputs[some] },
            Self::Unscaled { response, inputs, scale } => {
                Self::Unscaled { response, inputs: &inputs[some], scale }
            }
            Self::Batch { responses, inputs, interneurons, first } => {
                Self::Batch { responses, inputs, interneurons, first: first + some.start }
            }
            Self::Expectation { correlations } => {
                Self::Expectation { correlations: &correlations[some.start * neurons..some.end * neurons] }
            }
        }
    }

    /// The inputs of some interneurons to the samples of a batch, one sample's after another's.
    #[inline(always)]
    fn batch(inputs: &'a [T], interneurons: usize, first: usize) -> impl Iterator<Item = &'a [T]> {
        inputs.chunks_exact(interneurons).map(move |z| &z[first..])
    }

    /// The sums behind E\[zᵢ²\], if the drive does not have them yet, for interneurons that listen through `weights`.
    #[inline(always)]
    fn sum_squares<A: Arithmetic>(&self, weights: &[T], neurons: usize, squares: &mut [T]) {
        match self {
            Self::Sample { .. } | Self::Unscaled { .. } => {}
            Self::Batch { inputs, interneurons, first, .. } => {
                for z in Self::batch(inputs, *interneurons, *first) {
                    for (square, &z) in squares.iter_mut().zip(z) {
                        *square = A::mul_add(z, z, *square);
                    }
                }
            }
            Self::Expectation { correlations } => {
                column_dots::<T, A>(weights, correlations, neurons, squares);
            }
        }
    }

    /// `base` + `rate` · E\[zᵢ²\].
    #[inline(always)]
    fn add_square<A: Arithmetic>(&self, i: usize, squares: &[T], rate: T, base: T) -> T {
        match self {
            Self::Sample { inputs, .. } => A::mul_add(rate * inputs[i], inputs[i], base),
            Self::Unscaled { inputs, scale, .. } => {
                A::mul_add(rate * inputs[i] * *scale, inputs[i] * *scale, base)
            }
            Self::Batch { inputs, interneurons, .. } => {
                let samples = inputs.len() / interneurons;
                A::mul_add(rate / T::from_f64(samples as f64), squares[i], base)
            }
            Self::Expectation { .. } => A::mul_add(rate, squares[i], base),
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

    /// Writes all weights after their Hebbian steps.
    #[inline(always)]
    fn move_weights<A: Arithmetic>(
        &self,
        out: &mut [T],
        steps: &[HebbianStep<T>],
        weights: &[T],
        neurons: usize,
    ) {
        let columns = out.chunks_exact_mut(neurons).zip(weights.chunks_exact(neurons)).zip(steps);
        match self {
            Self::Sample { response, inputs } => {
                for (((out, weights), step), &z) in columns.zip(*inputs) {
                    move_weights::<T, A>(out, step.scaled(z), weights, response);
                }
            }
            Self::Unscaled { response, inputs, scale } => {
                for (((out, weights), step), &z) in columns.zip(*inputs) {
                    move_weights::<T, A>(out, step.scaled(z).scaled(*scale), weights, response);
                }
            }
            Self::Batch { responses, inputs, interneurons, first } => {
                let samples = responses.len() / neurons;
                for (i, ((out, weights), step)) in columns.enumerate() {
                    let kept = step.kept::<A>();
                    for (out, &w) in out.iter_mut().zip(weights) {
                        *out = kept * w;
                    }
                    let share = step.growth / T::from_f64(samples as f64);
                    let inputs = Self::batch(inputs, *interneurons, *first);
                    for (r, z) in responses.chunks_exact(neurons).zip(inputs) {
                        add_columns::<T, A, 1>(out, [share * z[i]], [r]);
                    }
                }
            }
            Self::Expectation { correlations } => {
                for (((out, weights), step), own) in columns.zip(correlations.chunks_exact(neurons)) {
                    move_weights::<T, A>(out, *step, weights, own);
                }
            }
        }
    }
}

/// Why a loop that makes many steps in one call ended.
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    Done,
    /// The update after the last response fails this test; the state is the one before it.
    Invalid(Test),
    /// The next stimulus or its response is not finite.
    Unanswered,
}

dispatched! {
    /// One learning step from one circuit to the next.
    pub(crate) fn step<T, A>(
        rules: &Rules<T>, drive: Drive<'_, T>, from: Parts<'_, T>, to: PartsMut<'_, T>,
    ) {
        step_parts::<T, A>(rules, drive, from, to);
    }
}

/// The number of interneurons that are worked on together: enough for loops to run well, few enough for their weights
/// to be still at hand when they move.
const TOGETHER: usize = 16;

/// One learning step. No interneuron looks at another.
#[inline(always)]
pub(crate) fn step_parts<T: Real, A: Arithmetic>(
    rules: &Rules<T>,
    drive: Drive<'_, T>,
    from: Parts<'_, T>,
    mut to: PartsMut<'_, T>,
) {
    let k = from.gains.len();
    for first in (0..k).step_by(TOGETHER) {
        let some = first..k.min(first + TOGETHER);
        let (drive, from) = (drive.of(some.clone(), from.neurons), from.of(some.clone()));
        step_some::<T, A>(rules, drive, from, to.of(some, from.neurons));
    }
}

/// The step of up to [`TOGETHER`] interneurons: how long their synapses are, then each one's gain and multiplier, then
/// all weights.
#[inline(always)]
fn step_some<T: Real, A: Arithmetic>(
    rules: &Rules<T>,
    drive: Drive<'_, T>,
    from: Parts<'_, T>,
    mut to: PartsMut<'_, T>,
) {
    let (n, k) = (from.neurons, from.gains.len());
    let (mut overlaps, mut squares) = ([T::ZERO; TOGETHER], [T::ZERO; TOGETHER]);
    let mut steps = [HebbianStep::none(); TOGETHER];
    let (overlaps, squares, steps) = (&mut overlaps[..k], &mut squares[..k], &mut steps[..k]);
    column_dots::<T, A>(from.feedback, from.listening(), n, overlaps);
    drive.sum_squares::<A>(from.listening(), n, squares);
    for i in 0..k {
        steps[i] = step_interneuron::<T, A>(rules, drive, from, &mut to, (i, overlaps[i], squares));
    }
    if rules.synapses == SynapseRule::Frozen {
        return;
    }
    drive.move_weights::<A>(to.feedback, steps, from.feedback, n);
    constrain::<T, A>(rules, to.feedback, n);
    if let (Some(to), Some(from)) = (to.feedforward, from.feedforward) {
        drive.move_weights::<A>(to, steps, from, n);
        constrain::<T, A>(rules, to, n);
    }
}

/// The gain and the multiplier of interneuron i, and how its weights, which overlap by ⟨w_nr,i , w_rn,i⟩ (‖wᵢ‖² when
/// tied), are to move.
#[inline(always)]
fn step_interneuron<T: Real, A: Arithmetic>(
    rules: &Rules<T>,
    drive: Drive<'_, T>,
    from: Parts<'_, T>,
    to: &mut PartsMut<'_, T>,
    (i, overlap, squares): (usize, T, &[T]),
) -> HebbianStep<T> {
    let target = if let UnitNorm::Multiplier { .. } = rules.unit_norm { T::ONE } else { overlap };
    let old = from.gains[i];
    let new = if let GainRule::Gradient { rate } = rules.gains {
        let base = gain_base::<T, A>(old, rate, target);
        signed(rules.sign, drive.add_square::<A>(i, squares, rate, base))
    } else {
        old
    };
    to.gains[i] = new;

    let SynapseRule::Hebbian { rate } = rules.synapses else { return HebbianStep::none() };
    let multiplier = new_multiplier::<T, A>(rules, from.multipliers[i], overlap);
    to.multipliers[i] = multiplier;
    let (gain, multiplier) = match rules.order {
        Order::Sequential => (new, multiplier),
        Order::Concurrent => (old, from.multipliers[i]),
    };
    let decay = if let UnitNorm::Multiplier { .. } = rules.unit_norm { gain + multiplier } else { gain };
    HebbianStep { rate, decay, growth: rate * drive.emitted(old, gain) }
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
fn constrain<T: Real, A: Arithmetic>(rules: &Rules<T>, weights: &mut [T], neurons: usize) {
    if rules.sign == Sign::NonNegative {
        for w in weights.iter_mut() {
            *w = rectify(*w);
        }
    }
    if let UnitNorm::Projected = rules.unit_norm {
        for column in weights.chunks_exact_mut(neurons) {
            to_unit_length::<T, A>(column);
        }
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
            Err(Unanswered::Invalid(test)) => Err(self.fail(test)),
            Err(Unanswered::Unsettled { iterations, change, tolerance }) => {
                Err(Error::NotConverged { what: "the recurrent dynamics", iterations, change, tolerance })
            }
        }
    }

    /// Moves the circuit by one step. On failure it stays where it was.
    pub fn learn(&mut self, drive: Drive<'_, T>) -> Result<()> {
        T::step(&self.rules, drive, self.circuit.parts(), self.next.parts_mut());
        self.adopt_next()
    }

    /// The circuit and all that a step of it needs, if it is small enough for loops of its own.
    fn small(&mut self) -> Option<Small<'_, T>> {
        let (neurons, leak) = (self.circuit.neurons(), self.circuit.leak());
        Some(Small {
            rules: &self.rules,
            neurons,
            leak,
            current: self.circuit.parts_mut(),
            next: self.next.parts_mut(),
            factor: self.equilibrium.small_factor()?,
            swapped: false,
        })
    }

    /// Lets a small circuit run in a loop of its own, which says how many steps it made and why it ended; nothing is
    /// run and `None` returned where the circuit is not small.
    pub fn run_small(
        &mut self,
        run: impl FnOnce(&mut Small<'_, T>) -> (usize, Ending),
    ) -> Option<(usize, Ending)> {
        let mut small = self.small()?;
        let (steps, outcome) = run(&mut small);
        if small.swapped {
            std::mem::swap(&mut self.circuit, &mut self.next);
        }
        self.steps += steps as u64;
        Some((steps, outcome))
    }

    /// The outcome of a loop of many steps.
    pub fn ended(&mut self, outcome: Ending) -> Result<()> {
        match outcome {
            Ending::Done => Ok(()),
            Ending::Invalid(test) => Err(self.fail(test)),
            Ending::Unanswered => Err(self.fail(Test::Overflow)),
        }
    }

    /// Goes back to the last valid circuit and says why.
    fn fail(&mut self, test: Test) -> Error {
        let error = self.diverged(test);
        self.retreat();
        error
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
            Err(test) => return Err(self.fail(test)),
        };
        std::mem::swap(&mut self.circuit, &mut self.next);
        if let (Certificate::Fresh, Some((certified, step))) = (certificate, &mut self.certified) {
            certified.copy_from(&self.circuit);
            *step = self.steps + 1;
        }
        Ok(())
    }

    /// M shows everything that overflows but the multipliers, which it does not contain.
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
        let mut fresh = crate::factor::Factor::new(self.circuit.synapses());
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
