//! Runs a circuit on a stream of stimuli: Algorithms 1 and 3 and everything that learns from samples.

use crate::circuit::{Circuit, PartsMut, require_rows};
use crate::error::{Error, Result, require_finite_within};
use crate::learn::{Drive, Ending, Learner};
use crate::observe::{Observer, Shown, Step, observes};
use crate::pair::Pair;
use crate::real::Real;
use crate::responses::Solver;
use crate::rules::Rules;
use crate::size::{require_circuit, require_memory};

/// A circuit that answers stimuli and learns from its responses: a run that can be advanced incrementally.
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
    /// Whether the circuit has the size that is run in registers.
    pair: bool,
    /// Responses and interneuron inputs of the batch so far.
    responses: Vec<T>,
    inputs: Vec<T>,
    pending: usize,
}

/// The numbers of a run's circuit that learning changes, so that a caller can change them too.
pub struct Adjustable<'a, T> {
    /// W_nr (W when tied), the weights of one interneuron after another.
    pub feedback: &'a mut [T],
    /// W_rn in the same order; `None` when tied.
    pub feedforward: Option<&'a mut [T]>,
    /// The gains g.
    pub gains: &'a mut [T],
    /// The multipliers m.
    pub multipliers: &'a mut [T],
}

impl<T: Real> Online<T> {
    /// Starts a run.
    ///
    /// # Errors
    /// When a rule or the solver has a parameter out of range, the solver does not fit the circuit, or the memory does
    /// not hold a batch.
    pub fn new(circuit: Circuit<T>, rules: Rules<T>, solver: &Solver<T>) -> Result<Self> {
        let (n, k) = (circuit.neurons(), circuit.interneurons());
        require_circuit(n, k)?;
        require_memory("batch", n.saturating_add(k).saturating_mul(rules.batch))?;
        let learner = Learner::new(circuit, rules, solver)?;
        let pair = Pair::fits(&learner.circuit, &rules, solver);
        let batch = learner.rules.batch;
        let (responses, inputs) = (vec![T::ZERO; n * batch], vec![T::ZERO; k * batch]);
        Ok(Self { learner, pair, responses, inputs, pending: 0 })
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
        if self.pair {
            return self.advance_pair(stimuli, responses, observer);
        }
        if let Some(outcome) = self.advance_small(stimuli, responses, observer) {
            return outcome.map(|()| rows);
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
        if let Err(error) = self.learner.respond(stimulus, response) {
            // The batch may hold responses of a circuit that was just discarded.
            self.pending = 0;
            return Err(error);
        }
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
        self.learner.equilibrium.inputs_into(&self.learner.circuit, response, inputs);
        if self.learner.rules.batch == 1 {
            return self.learner.learn(Drive::Sample { response, inputs });
        }
        self.responses[self.pending * n..(self.pending + 1) * n].copy_from_slice(response);
        self.pending += 1;
        if self.pending < self.learner.rules.batch {
            return Ok(());
        }
        self.pending = 0;
        let (responses, inputs) = (&self.responses, &self.inputs);
        self.learner.learn(Drive::Batch { responses, inputs, interneurons: k, first: 0 })
    }

    /// The same for a small circuit that learns from each sample and has no observer; `None` if it is not one.
    fn advance_small(
        &mut self,
        stimuli: &[T],
        responses: &mut [T],
        observer: &mut impl Observer<T>,
    ) -> Option<Result<()>> {
        if observes(observer) || self.learner.rules.batch > 1 || !self.learner.rules.learns() {
            return None;
        }
        let inputs = &mut self.inputs;
        let (answered, outcome) =
            self.learner.run_small(|small| T::advance_small(small, inputs, stimuli, responses))?;
        Some(self.ended(stimuli, answered, outcome))
    }

    /// The outcome of a loop over `stimuli` that learned from the first `answered` of them.
    fn ended(&mut self, stimuli: &[T], answered: usize, outcome: Ending) -> Result<()> {
        if let Ending::Unanswered = outcome {
            let n = self.learner.circuit.neurons();
            require_finite_within("stimuli", stimuli, n * answered..n * (answered + 1))?;
        }
        self.learner.ended(outcome)
    }

    /// The same for a tied circuit with N = K = 2, whose step is shorter than the calls around it.
    fn advance_pair(
        &mut self,
        stimuli: &[T],
        responses: &mut [T],
        observer: &mut impl Observer<T>,
    ) -> Result<usize> {
        // An observer sees the circuit before each update, so an observed run is advanced row by row.
        let rows = if observes(observer) { 1 } else { (stimuli.len() / 2).max(1) };
        let mut total = 0;
        for (block, responses) in stimuli.chunks(2 * rows).zip(responses.chunks_mut(2 * rows)) {
            let mut pair = Pair::of(&self.learner.circuit);
            let (answered, outcome) = T::advance_pair(&mut pair, &self.learner.rules, block, responses);
            let mut stop = false;
            if observes(observer) && !matches!(outcome, Ending::Unanswered) {
                let shown = Shown::Stimulus { stimulus: block, response: responses };
                let (index, circuit) = (self.learner.steps, &self.learner.circuit);
                stop = observer.see(&Step { index, circuit, shown }).is_break();
            }
            total += answered;
            self.learner.steps += answered as u64;
            self.learner.replace(|next| pair.store(next))?;
            self.ended(stimuli, total, outcome)?;
            if stop {
                break;
            }
        }
        Ok(total)
    }

    /// Changes the circuit by hand between two stimuli, as a machine of limited precision or a drug would; the run goes
    /// on from there, and its stimuli count on. A batch that is not finished keeps what it holds.
    ///
    /// ```
    /// use leukos::{Circuit, Matrix, Online, Solver, Synapses, models};
    ///
    /// let circuit = Circuit::new(Synapses::tied(Matrix::identity(2))?, vec![0.0, 0.0], 1.0)?;
    /// let mut run = Online::new(circuit, models::multi_timescale(0.05, 1e-4).rules, &Solver::Direct)?;
    /// for stimulus in [[3.0, 0.1], [-2.5, 0.2]] {
    ///     run.advance(&stimulus, &mut [0.0_f64; 2], &mut ())?;
    ///     run.adjust(|numbers| numbers.gains.iter_mut().for_each(|gain| *gain = (8.0 * *gain).round() / 8.0))?;
    /// }
    /// assert_eq!((run.circuit().gains(), run.steps()), (&[0.5, 0.0][..], 2));
    /// # Ok::<(), leukos::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the changed circuit is not valid: the run then keeps the circuit it had. Solvers that do not check every
    /// step find that out later.
    pub fn adjust(&mut self, change: impl FnOnce(Adjustable<'_, T>)) -> Result<()> {
        self.learner.replace(|next| {
            let PartsMut { feedback, feedforward, gains, multipliers } = next.parts_mut();
            change(Adjustable { feedback, feedforward, gains, multipliers });
        })
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
