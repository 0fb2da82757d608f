//! Runs many circuits of N = K = 2 side by side, one in each vector lane.
//!
//! A single circuit of this size waits most of the time for its own last step. Many at once keep the processor busy.
//! Each lane carries out the operations of the scalar run in the same order, so it gives the same bits.

use crate::arithmetic::{Arithmetic, dispatched};
use crate::circuit::Circuit;
use crate::error::{Diverged, Error, Result, Test, require_finite};
use crate::learn::{Drive, Ending};
use crate::pair::{Pair, PairFactor, advance_pair, factorise_pair};
use crate::real::Real;
use crate::responses::Solver;
use crate::rules::{Rules, with_known_rules};

/// The number of circuits in a group: enough for several vector registers, so that one computes while another waits.
const WIDTH: usize = 32;

/// The number of samples after which a group checks that all its circuits are valid.
const BLOCK: usize = 64;

/// Many circuits of two neurons and two interneurons, each with its own stimuli, under the same rules.
///
/// ```
/// use leukos::{Circuit, Ensemble, Matrix, Synapses, models};
///
/// let circuit = Circuit::new(Synapses::tied(Matrix::identity(2))?, vec![0.0_f64, 0.0], 1.0)?;
/// let rules = models::multi_timescale(0.05, 1e-4).rules;
/// let mut ensemble = Ensemble::new(&[circuit.clone(), circuit.clone(), circuit], rules)?;
/// // One sample: the first neuron's stimulus in all three circuits, then the second neuron's.
/// let stimuli = [3.0, 0.0, 1.0, 0.5, 2.0, 1.0];
/// let mut responses = [0.0; 6];
/// ensemble.advance(&stimuli, &mut responses)?;
/// assert_eq!(responses, stimuli, "gains of 0 and a leak of 1 pass everything on");
/// # Ok::<(), leukos::Error>(())
/// ```
pub struct Ensemble<T: Real = f64> {
    rules: Rules<T>,
    circuits: Vec<Circuit<T>>,
    groups: Vec<Group<T>>,
    steps: u64,
}

impl<T: Real> Ensemble<T> {
    /// Puts circuits side by side.
    ///
    /// # Errors
    /// When a circuit is not tied with N = K = 2, or a rule has a parameter out of range or a batch.
    pub fn new(circuits: &[Circuit<T>], rules: Rules<T>) -> Result<Self> {
        rules.validate()?;
        if circuits.iter().any(|circuit| !Pair::fits(circuit, &rules, &Solver::Direct)) {
            let reason =
                "an ensemble takes tied circuits of two neurons and two interneurons, and no batches";
            return Err(Error::Incompatible { argument: "circuits".into(), reason });
        }
        let groups = circuits.chunks(WIDTH).map(Group::of).collect();
        Ok(Self { rules, circuits: circuits.to_vec(), groups, steps: 0 })
    }

    /// Answers and learns. `stimuli` holds one sample after another, each first all circuits' first stimulus,
    /// then all circuits' second one; `responses` is laid out alike. A circuit that diverges keeps its last
    /// valid state and is left out from then on: its responses are NaN, and [`Self::circuits`] has its error.
    ///
    /// # Errors
    /// On sizes that do not match, or a stimulus that is not finite; then no circuit has moved.
    pub fn advance(&mut self, stimuli: &[T], responses: &mut [T]) -> Result<()> {
        let count = self.circuits.len();
        if responses.len() != stimuli.len() || !stimuli.len().is_multiple_of(2 * count.max(1)) {
            let expected = format!("a multiple of 2 x {count} numbers, and as many responses");
            let found = format!("{} stimuli and {} responses", stimuli.len(), responses.len());
            return Err(Error::shape("stimuli", expected, found));
        }
        require_finite("stimuli", stimuli)?;
        if count > 0 {
            T::advance_groups(&mut self.groups, &self.rules, self.steps, stimuli, responses);
            self.steps += (stimuli.len() / (2 * count)) as u64;
        }
        Ok(())
    }

    /// Each circuit as it is now, or how it diverged.
    pub fn circuits(&self) -> Vec<Result<Circuit<T>>> {
        let current = |(i, circuit): (usize, &Circuit<T>)| {
            let (group, lane) = (&self.groups[i / WIDTH], i % WIDTH);
            let mut circuit = circuit.clone();
            let Some(fallen) = group.fallen.iter().find(|fallen| fallen.lane == lane) else {
                group.lanes.pair(lane).store(&mut circuit);
                return Ok(circuit);
            };
            fallen.pair.store(&mut circuit);
            let Fallen { step, test, .. } = *fallen;
            Err(Box::new(Diverged { step, test, last_valid_step: step, circuit: circuit.cast() }).into())
        };
        self.circuits.iter().enumerate().map(current).collect()
    }

    /// The number of samples that each circuit has been shown.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Up to [`WIDTH`] circuits, one in each lane; lanes without one are idle.
pub(crate) struct Group<T> {
    circuits: usize,
    lanes: Lanes<T>,
    /// The lanes at the start of the block of samples, and whether all have been valid since.
    start: Lanes<T>,
    valid: bool,
    fallen: Vec<Fallen<T>>,
}

/// A circuit that has diverged, and its last valid state.
struct Fallen<T> {
    lane: usize,
    step: u64,
    /// The number of responses it has given.
    answered: u64,
    test: Test,
    pair: Pair<T>,
}

/// The state of [`WIDTH`] circuits, number by number, and the inverse of their M.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes<T> {
    weights: [[T; WIDTH]; 4],
    gains: [[T; WIDTH]; 2],
    multipliers: [[T; WIDTH]; 2],
    leak: [T; WIDTH],
    /// Without the second corner, which equals the first.
    adjugate: [[T; WIDTH]; 3],
    reciprocal: [T; WIDTH],
}

impl<T: Real> Lanes<T> {
    fn idle() -> Self {
        let (none, one) = ([T::ZERO; WIDTH], [T::ONE; WIDTH]);
        Self {
            weights: [none; 4],
            gains: [none; 2],
            multipliers: [none; 2],
            leak: one,
            adjugate: [one, none, one],
            reciprocal: one,
        }
    }

    #[inline(always)]
    fn pair(&self, i: usize) -> Pair<T> {
        let Self { weights: [a, b, c, d], gains: [g, h], multipliers: [m, n], leak, .. } = self;
        Pair {
            weights: [a[i], b[i], c[i], d[i]],
            gains: [g[i], h[i]],
            multipliers: [m[i], n[i]],
            leak: leak[i],
        }
    }

    #[inline(always)]
    fn factor(&self, i: usize) -> PairFactor<T> {
        let [a, b, c] = &self.adjugate;
        // A factor that is kept has passed its test.
        PairFactor { adjugate: [a[i], b[i], b[i], c[i]], reciprocal: self.reciprocal[i], minors: [T::ONE; 2] }
    }

    #[inline(always)]
    fn set_pair(&mut self, i: usize, pair: &Pair<T>) {
        for j in 0..4 {
            self.weights[j][i] = pair.weights[j];
        }
        for j in 0..2 {
            self.gains[j][i] = pair.gains[j];
            self.multipliers[j][i] = pair.multipliers[j];
        }
        self.leak[i] = pair.leak;
    }

    #[inline(always)]
    fn set_factor(&mut self, i: usize, factor: &PairFactor<T>) {
        let [a, b, _, c] = factor.adjugate;
        (self.adjugate[0][i], self.adjugate[1][i], self.adjugate[2][i]) = (a, b, c);
        self.reciprocal[i] = factor.reciprocal;
    }

    /// One step of every lane, which turns stimuli into responses; returns whether all have passed a quick test.
    ///
    /// Two loops, because the end of a step depends on its beginning: a processor that looks a few hundred instructions
    /// ahead seems to find more independent work when each loop is short. One loop is a tenth slower.
    #[inline(always)]
    fn step<A: Arithmetic>(&mut self, rules: &Rules<T>, [first, second]: &mut [[T; WIDTH]; 2]) -> bool {
        let mut valid = true;
        for i in 0..WIDTH {
            let (pair, factor) = (self.pair(i), self.factor(i));
            let (response, inputs) = factor.respond::<A>([first[i], second[i]], pair.weights);
            let drive = Drive::Unscaled { response: &response, inputs: &inputs, scale: factor.reciprocal };
            let next = pair.stepped::<A>(rules, drive);
            valid &= next.is_in_range(rules, response);
            self.set_pair(i, &next);
            (first[i], second[i]) = (response[0], response[1]);
        }
        for i in 0..WIDTH {
            let factor = PairFactor::of::<A>(self.pair(i).parts());
            valid &= factor.is_valid();
            self.set_factor(i, &factor);
        }
        valid
    }
}

impl<T: Real> Group<T> {
    fn of(circuits: &[Circuit<T>]) -> Self {
        let (lanes, start) = (Lanes::idle(), Lanes::idle());
        let mut group = Self { circuits: circuits.len(), lanes, start, valid: true, fallen: Vec::new() };
        for (lane, circuit) in circuits.iter().enumerate() {
            group.put(lane, &Pair::of(circuit));
        }
        group
    }

    /// Puts a valid circuit into a lane.
    fn put(&mut self, lane: usize, pair: &Pair<T>) {
        if let Ok(factor) = factorise_pair(pair.parts()) {
            self.lanes.set_pair(lane, pair);
            self.lanes.set_factor(lane, &factor);
        }
    }

    /// One sample. A group that is not full is shown zeros beside its stimuli.
    #[inline(always)]
    fn step<A: Arithmetic>(&mut self, rules: &Rules<T>, stimulus: [&[T]; 2], response: [&mut [T]; 2]) {
        // Arrays of its own, so that the compiler sees that nothing overlaps.
        let mut shown = Aligned(stimulus.map(whole_row));
        self.valid &= self.lanes.step::<A>(rules, &mut shown.0);
        for (row, response) in shown.0.iter().zip(response) {
            match <&mut [T; WIDTH]>::try_from(&mut *response) {
                Ok(response) => *response = *row,
                Err(_) => response.copy_from_slice(&row[..response.len()]),
            }
        }
    }

    /// Takes the same samples again, circuit by circuit in the scalar run, which knows what to do with an M that
    /// is out of range or not valid.
    #[cold]
    #[inline(never)]
    fn advance_apart(&mut self, rules: &Rules<T>, before: u64, stretch: &mut Stretch<'_, T>) {
        self.lanes = self.start;
        for lane in 0..self.circuits {
            if self.fallen.iter().any(|fallen| fallen.lane == lane) {
                continue;
            }
            let mut pair = self.lanes.pair(lane);
            let stimuli = stretch.stimuli_of(lane);
            let mut responses = vec![T::ZERO; stimuli.len()];
            let (learned, outcome) = advance_pair(&mut pair, rules, &stimuli, &mut responses);
            stretch.set_responses_of(lane, &responses);
            let (test, answered) = match outcome {
                Ending::Done => {
                    self.put(lane, &pair);
                    continue;
                }
                Ending::Invalid(test) => (test, 1),
                Ending::Unanswered => (Test::Overflow, 0),
            };
            let step = before + learned as u64;
            self.fallen.push(Fallen { lane, step, answered: step + answered, test, pair });
            self.put(lane, &Pair::idle());
        }
    }

    /// Circuits that have diverged give no response.
    #[cold]
    #[inline(never)]
    fn silence(&self, before: u64, stretch: &mut Stretch<'_, T>) {
        for fallen in &self.fallen {
            let silent = 2 * fallen.answered.saturating_sub(before) as usize;
            let rows = stretch.responses.chunks_exact_mut(stretch.count).skip(silent);
            rows.for_each(|row| row[stretch.first + fallen.lane] = T::from_f64(f64::NAN));
        }
    }
}

/// Some samples of `count` circuits, and where a group's begin among them: one row for each sample and neuron.
struct Stretch<'a, T> {
    count: usize,
    first: usize,
    stimuli: &'a [T],
    responses: &'a mut [T],
}

impl<T: Real> Stretch<'_, T> {
    fn stimuli_of(&self, lane: usize) -> Vec<T> {
        self.stimuli.chunks_exact(self.count).map(|row| row[self.first + lane]).collect()
    }

    fn set_responses_of(&mut self, lane: usize, responses: &[T]) {
        for (row, &response) in self.responses.chunks_exact_mut(self.count).zip(responses) {
            row[self.first + lane] = response;
        }
    }
}

dispatched! {
    /// Answers and learns from every sample.
    widest pub(crate) fn advance_groups<T, A>(
        groups: &mut [Group<T>], rules: &Rules<T>, before: u64, stimuli: &[T], responses: &mut [T],
    ) {
        let rules = *rules;
        with_known_rules!(rules => run_groups::<T, A>(groups, rules, before, stimuli, responses));
    }
}

#[inline(always)]
fn run_groups<T: Real, A: Arithmetic>(
    groups: &mut [Group<T>],
    rules: Rules<T>,
    before: u64,
    stimuli: &[T],
    responses: &mut [T],
) {
    let count = groups.iter().map(|group| group.circuits).sum::<usize>();
    let blocks = stimuli.chunks(2 * count * BLOCK).zip(responses.chunks_mut(2 * count * BLOCK));
    for (step, (stimuli, responses)) in (before..).step_by(BLOCK).zip(blocks) {
        for group in &mut *groups {
            (group.start, group.valid) = (group.lanes, true);
        }
        for (s, r) in stimuli.chunks_exact(2 * count).zip(responses.chunks_exact_mut(2 * count)) {
            let (s, r) = (s.split_at(count), r.split_at_mut(count));
            let stimuli = s.0.chunks(WIDTH).zip(s.1.chunks(WIDTH));
            let responses = r.0.chunks_mut(WIDTH).zip(r.1.chunks_mut(WIDTH));
            for ((group, s), r) in groups.iter_mut().zip(stimuli).zip(responses) {
                group.step::<A>(&rules, [s.0, s.1], [r.0, r.1]);
            }
        }
        for (index, group) in groups.iter_mut().enumerate() {
            let first = index * WIDTH;
            if !group.valid {
                group.advance_apart(&rules, step, &mut Stretch { count, first, stimuli, responses });
            }
            if !group.fallen.is_empty() {
                group.silence(step, &mut Stretch { count, first, stimuli, responses });
            }
        }
    }
}

/// Rows that begin where a vector register's worth of memory does: one that crosses a boundary is stored in two parts.
#[repr(align(64))]
struct Aligned<T>(T);

/// A row, most often a whole one, whose length the compiler then knows; zeros where it ends early.
#[inline(always)]
fn whole_row<T: Real>(row: &[T]) -> [T; WIDTH] {
    row.try_into().unwrap_or_else(|_| {
        let mut whole = [T::ZERO; WIDTH];
        whole[..row.len()].copy_from_slice(row);
        whole
    })
}

impl<T: Real> Pair<T> {
    /// A circuit that stays as it is whatever it is shown: no weights, leak 1.
    fn idle() -> Self {
        Self { weights: [T::ZERO; 4], gains: [T::ZERO; 2], multipliers: [T::ZERO; 2], leak: T::ONE }
    }
}
