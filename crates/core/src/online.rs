//! Runs a circuit on a stream of stimuli: Algorithms 1 and 3 and everything that learns from samples.

use crate::circuit::{Circuit, Parts, PartsMut, require_rows};
use crate::error::{Error, Result, Test, require_finite_within};
use crate::kernels::{self, dispatched};
use crate::learn::{Drive, Learner, step_parts};
use crate::linalg::{apply_pair, invert_pair};
use crate::observe::{Observer, Shown, Step};
use crate::real::Real;
use crate::responses::Solver;
use crate::rules::Rules;

/// A circuit that answers stimuli and learns from its responses: a run that can be advanced bit by bit.
///
/// ```
/// use leukos::{Circuit, Matrix, Online, Rules, Solver, Synapses, models};
///
/// let synapses = Synapses::tied(Matrix::identity(2))?;
/// let circuit = Circuit::new(synapses, vec![0.0, 0.0], 1.0)?;
/// let mut run = Online::new(circuit, models::multi_timescale(0.05, 1e-4).rules, &Solver::Direct)?;
///
/// let stimuli = [3.0, 0.1, -2.5, 0.2, 2.0, -0.1]; // three stimuli of two neurons
/// let mut responses = [0.0_f64; 6];
/// run.advance(&stimuli, &mut responses, &mut ())?;
/// assert!(responses[4].abs() < 2.0, "the first neuron has been turned down");
/// # Ok::<(), leukos::Error>(())
/// ```
pub struct Online<T: Real = f64> {
    learner: Learner<T>,
    solver: Solver<T>,
    /// Responses and interneuron inputs of the batch so far.
    responses: Vec<T>,
    inputs: Vec<T>,
    pending: usize,
}

impl<T: Real> Online<T> {
    /// Starts a run.
    ///
    /// # Errors
    /// When a rule or the solver has a parameter out of range, or the solver does not fit the circuit.
    pub fn new(circuit: Circuit<T>, rules: Rules<T>, solver: &Solver<T>) -> Result<Self> {
        let learner = Learner::new(circuit, rules, solver)?;
        let (n, k) = (learner.circuit.neurons(), learner.circuit.interneurons());
        let batch = learner.rules.batch;
        let (responses, inputs) = (vec![T::ZERO; n * batch], vec![T::ZERO; k * batch]);
        Ok(Self { learner, solver: *solver, responses, inputs, pending: 0 })
    }

    /// Answers `stimuli`, one of N numbers after another, and learns from each. The responses are what
    /// the circuit said before it learned from that sample. How many stimuli were answered is returned:
    /// fewer than given when the observer ended the run.
    ///
    /// However a stream is cut into calls, the results are the same to the last bit. A batch
    /// that a call leaves unfinished is learned from when a later call completes it.
    ///
    /// # Errors
    /// On sizes that do not match, on a stimulus that is not finite, and when the run diverges or does not
    /// settle. Stimuli before the failing one have been answered and learned from; the run keeps the last
    /// valid circuit.
    pub fn advance(
        &mut self,
        stimuli: &[T],
        responses: &mut [T],
        observer: &mut impl Observer<T>,
    ) -> Result<usize> {
        let n = self.learner.circuit.neurons();
        let rows = require_rows("stimuli", stimuli.len(), n)?;
        if responses.len() != stimuli.len() {
            let expected = format!("{} numbers, as many as stimuli", stimuli.len());
            return Err(Error::shape("responses", expected, format!("{} numbers", responses.len())));
        }
        if !observes(observer) && self.fits_pair() {
            return self.advance_pair(stimuli, responses);
        }
        for (row, (stimulus, response)) in
            stimuli.chunks_exact(n).zip(responses.chunks_exact_mut(n)).enumerate()
        {
            require_finite_within("stimuli", stimuli, row * n..(row + 1) * n)?;
            if self.step(stimulus, response, observer)? {
                return Ok(row + 1);
            }
        }
        Ok(rows)
    }

    /// One finite stimulus; whether the observer wants to stop.
    fn step(&mut self, stimulus: &[T], response: &mut [T], observer: &mut impl Observer<T>) -> Result<bool> {
        self.learner.respond(stimulus, response)?;
        let circuit = &self.learner.circuit;
        let shown = Shown::Stimulus { stimulus, response };
        let stop = observer.see(&Step { index: self.learner.steps, circuit, shown }).is_break();
        if self.learner.rules.learns() {
            self.learn(response)?;
        }
        self.learner.steps += 1;
        Ok(stop)
    }

    fn learn(&mut self, response: &[T]) -> Result<()> {
        let (n, k) = (response.len(), self.learner.circuit.interneurons());
        let inputs = &mut self.inputs[self.pending * k..(self.pending + 1) * k];
        kernels::project(self.learner.circuit.parts().listening(), response, inputs);
        if self.learner.rules.batch == 1 {
            return self.learner.learn(Drive::Sample { response, inputs });
        }
        self.responses[self.pending * n..(self.pending + 1) * n].copy_from_slice(response);
        self.pending += 1;
        if self.pending < self.learner.rules.batch {
            return Ok(());
        }
        self.pending = 0;
        self.learner.learn(Drive::Batch { responses: &self.responses, inputs: &self.inputs })
    }

    fn fits_pair(&self) -> bool {
        let circuit = &self.learner.circuit;
        circuit.neurons() == 2
            && circuit.interneurons() == 2
            && circuit.synapses().is_tied()
            && self.solver == Solver::Direct
            && self.learner.rules.batch == 1
            && self.learner.rules.learns()
    }

    fn advance_pair(&mut self, stimuli: &[T], responses: &mut [T]) -> Result<usize> {
        let mut pair = Pair::of(&self.learner.circuit);
        let (answered, outcome) = advance_pair(&mut pair, &self.learner.rules, stimuli, responses);
        self.learner.steps += answered as u64;
        self.learner.replace(|_, next| pair.store(next))?;
        match outcome {
            PairOutcome::Done => Ok(answered),
            PairOutcome::Invalid(test) => Err(self.learner.diverged(test)),
            PairOutcome::NotFinite => {
                require_finite_within("stimuli", stimuli, 2 * answered..2 * answered + 2)?;
                Err(self.learner.diverged(Test::Overflow))
            }
        }
    }

    /// The circuit as it is now. With the direct solver it is valid; with the others it was at the last check.
    pub fn circuit(&self) -> &Circuit<T> {
        &self.learner.circuit
    }

    /// The number of stimuli answered.
    pub fn steps(&self) -> u64 {
        self.learner.steps
    }

    /// Ends the run and hands out its circuit.
    ///
    /// # Errors
    /// When the solver does not check every step and the last circuit turns out not to be valid.
    pub fn into_circuit(mut self) -> Result<Circuit<T>> {
        self.learner.certify()?;
        Ok(self.learner.circuit)
    }
}

fn observes<T, O: Observer<T>>(_: &O) -> bool {
    O::WATCHES
}

/// The state of a tied circuit with N = K = 2 in registers.
///
/// At this size a step is shorter than the calls around it, so it is run in a loop of its own: the same
/// `step_parts` on arrays of known length.
#[derive(Clone, Copy)]
struct Pair<T> {
    weights: [T; 4],
    gains: [T; 2],
    multipliers: [T; 2],
    leak: T,
}

enum PairOutcome {
    Done,
    Invalid(Test),
    NotFinite,
}

impl<T: Real> Pair<T> {
    fn of(circuit: &Circuit<T>) -> Self {
        let parts = circuit.parts();
        Self {
            weights: std::array::from_fn(|i| parts.feedback[i]),
            gains: std::array::from_fn(|i| parts.gains[i]),
            multipliers: std::array::from_fn(|i| parts.multipliers[i]),
            leak: parts.leak,
        }
    }

    fn store(&self, circuit: &mut Circuit<T>) {
        let parts = circuit.parts_mut();
        parts.feedback.copy_from_slice(&self.weights);
        parts.gains.copy_from_slice(&self.gains);
        parts.multipliers.copy_from_slice(&self.multipliers);
    }

    #[inline(always)]
    fn parts(&self) -> Parts<'_, T> {
        Parts {
            neurons: 2,
            feedback: &self.weights,
            feedforward: None,
            gains: &self.gains,
            multipliers: &self.multipliers,
            leak: self.leak,
        }
    }

    #[inline(always)]
    fn parts_mut(&mut self) -> PartsMut<'_, T> {
        PartsMut {
            feedback: &mut self.weights,
            feedforward: None,
            gains: &mut self.gains,
            multipliers: &mut self.multipliers,
        }
    }
}

dispatched! {
    /// Answers and learns; how many stimuli were answered and why it ended.
    fn advance_pair<T, A>(pair: &mut Pair<T>, rules: &Rules<T>, stimuli: &[T], responses: &mut [T]) -> (usize, PairOutcome) {
        let rules = *rules;
        let mut state = *pair;
        let mut inverse = match invert_pair::<T, A>(state.parts()) {
            Ok(inverse) => inverse,
            Err(test) => return (0, PairOutcome::Invalid(test)),
        };
        let rows = stimuli.as_chunks::<2>().0.iter().zip(responses.as_chunks_mut::<2>().0);
        let mut answered = 0;
        let mut outcome = PairOutcome::Done;
        for (&stimulus, out) in rows {
            let response = apply_pair::<T, A>(inverse, stimulus);
            if !(stimulus[0].is_finite() && stimulus[1].is_finite() && response[0].is_finite() && response[1].is_finite()) {
                outcome = PairOutcome::NotFinite;
                break;
            }
            *out = response;
            let [a, b, c, d] = state.weights;
            let inputs = [A::mul_add(b, response[1], A::mul_add(a, response[0], T::ZERO)), A::mul_add(d, response[1], A::mul_add(c, response[0], T::ZERO))];
            let mut next = state;
            step_parts::<T, A>(&rules, Drive::Sample { response: &response, inputs: &inputs }, state.parts(), next.parts_mut());
            match invert_pair::<T, A>(next.parts()) {
                Ok(_) if next.multipliers.iter().any(|m| !m.is_finite()) => {
                    outcome = PairOutcome::Invalid(Test::Overflow);
                    break;
                }
                Ok(valid) => inverse = valid,
                Err(test) => {
                    outcome = PairOutcome::Invalid(test);
                    break;
                }
            }
            state = next;
            answered += 1;
        }
        *pair = state;
        (answered, outcome)
    }
}
