//! Runs many circuits of N = K = 2 side by side, one in each vector lane.
//!
//! A single circuit of this size waits most of the time for its own last step. Many at once keep the processor busy.
//! Each lane carries out the operations of the scalar run in the same order, so it gives the same bits.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::circuit::Circuit;
use crate::error::{Diverged, Error, Result, Test, require_finite};
use crate::kernels::dispatched;
use crate::learn::Drive;
use crate::pair::{Pair, PairFactor, factorise_pair};
use crate::real::{Number, Real};
use crate::responses::Solver;
use crate::rules::Rules;

/// The number of circuits that move together: enough vectors to fill the gaps that one leaves.
const WIDTH: usize = 16;

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
        for (index, group) in self.groups.iter_mut().enumerate() {
            let block = Block { count, first: index * WIDTH, before: self.steps };
            advance_group(group, &self.rules, block, stimuli, responses);
        }
        self.steps += (stimuli.len() / (2 * count.max(1))) as u64;
        Ok(())
    }

    /// Each circuit as it is now, or how it diverged.
    pub fn circuits(&self) -> Vec<Result<Circuit<T>>> {
        let current = |(i, circuit): (usize, &Circuit<T>)| {
            let (group, lane) = (&self.groups[i / WIDTH], i % WIDTH);
            let mut circuit = circuit.clone();
            let Some(fallen) = group.fallen.iter().find(|fallen| fallen.lane == lane) else {
                group.pair.lane(lane).store(&mut circuit);
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

/// [`WIDTH`] circuits, one in each lane.
struct Group<T> {
    pair: Pair<Lanes<T>>,
    factor: PairFactor<Lanes<T>>,
    fallen: Vec<Fallen<T>>,
}

/// The next state, its factor and the responses, without those that have just fallen.
type Survivors<T> = (Pair<Lanes<T>>, PairFactor<Lanes<T>>, [Lanes<T>; 2]);

/// A circuit that has diverged, and its last valid state.
struct Fallen<T> {
    lane: usize,
    step: u64,
    test: Test,
    pair: Pair<T>,
}

/// Where a group's circuits stand in the stimuli: `first` of `count`, `before` steps in.
#[derive(Clone, Copy)]
struct Block {
    count: usize,
    first: usize,
    before: u64,
}

impl Block {
    /// The positions of neuron `neuron` in sample `sample`.
    #[inline(always)]
    fn range(&self, sample: usize, neuron: usize) -> std::ops::Range<usize> {
        let row = (2 * sample + neuron) * self.count;
        row + self.first..row + self.count.min(self.first + WIDTH)
    }
}

impl<T: Real> Group<T> {
    fn of(circuits: &[Circuit<T>]) -> Self {
        let (mut pair, mut factors) = (Pair::splat(&Pair::idle()), [PairFactor::idle(); WIDTH]);
        for (lane, circuit) in circuits.iter().enumerate() {
            let state = Pair::of(circuit);
            pair.set_lane(lane, &state);
            // A circuit is valid by construction, so there is a factor.
            factors[lane] = factorise_pair(state.parts()).unwrap_or(PairFactor::idle());
        }
        Self { pair, factor: PairFactor::gather(&factors), fallen: Vec::new() }
    }

    /// Takes the circuits that `next` has made invalid out of the group. All by value, because references
    /// would keep the state of the hot loop out of registers.
    #[cold]
    #[inline(never)]
    fn without_invalid(
        &mut self,
        [state, mut next]: [Pair<Lanes<T>>; 2],
        mut response: [Lanes<T>; 2],
        step: u64,
    ) -> Survivors<T> {
        let mut factors = [PairFactor::idle(); WIDTH];
        for lane in 0..WIDTH {
            if self.fallen.iter().any(|fallen| fallen.lane == lane) {
                continue;
            }
            let (before, after) = (state.lane(lane), next.lane(lane));
            let unanswered = !response.iter().all(|r| r.0[lane].is_finite());
            let outcome = if unanswered { Err(Test::Overflow) } else { after.examined() };
            let test = match outcome {
                Ok(factor) => {
                    factors[lane] = factor;
                    continue;
                }
                Err(test) => test,
            };
            if unanswered {
                response.iter_mut().for_each(|r| r.0[lane] = T::from_f64(f64::NAN));
            }
            self.fallen.push(Fallen { lane, step, test, pair: before });
            next.set_lane(lane, &Pair::idle());
        }
        (next, PairFactor::gather(&factors), response)
    }

    /// Those who have fallen say nothing.
    #[cold]
    #[inline(never)]
    fn silenced(&self, mut response: [Lanes<T>; 2]) -> [Lanes<T>; 2] {
        for fallen in &self.fallen {
            response.iter_mut().for_each(|r| r.0[fallen.lane] = T::from_f64(f64::NAN));
        }
        response
    }
}

dispatched! {
    /// Answers and learns from every sample of a block.
    fn advance_group<T, A>(
        group: &mut Group<T>, rules: &Rules<T>, block: Block, stimuli: &[T], responses: &mut [T],
    ) {
        let rules = *rules;
        let mut state = group.pair;
        let mut factor = group.factor;
        for sample in 0..stimuli.len() / (2 * block.count) {
            let ranges = [block.range(sample, 0), block.range(sample, 1)];
            let stimulus = [Lanes::load(&stimuli[ranges[0].clone()]), Lanes::load(&stimuli[ranges[1].clone()])];
            let (mut response, inputs) = factor.respond::<A>(stimulus, state.weights);
            let scale = factor.reciprocal;
            let drive = Drive::Unscaled { response: &response, inputs: &inputs, scale };
            let mut next = state.stepped::<A>(&rules, drive);
            factor = PairFactor::of::<A>(next.parts());
            let valid = factor.all_valid() & all_finite(&response) & all_finite(&next.multipliers);
            if !group.fallen.is_empty() {
                response = group.silenced(response);
            }
            if !valid {
                let step = block.before + sample as u64;
                (next, factor, response) = group.without_invalid([state, next], response, step);
            }
            state = next;
            let [first, second] = ranges;
            response[0].store(&mut responses[first]);
            response[1].store(&mut responses[second]);
        }
        group.pair = state;
        group.factor = factor;
    }
}

impl<T: Real> Pair<T> {
    /// A circuit that stays as it is whatever it is shown: no weights, leak 1.
    fn idle() -> Self {
        Self { weights: [T::ZERO; 4], gains: [T::ZERO; 2], multipliers: [T::ZERO; 2], leak: T::ONE }
    }
}

impl<T: Real> Pair<Lanes<T>> {
    fn splat(pair: &Pair<T>) -> Self {
        Self {
            weights: pair.weights.map(Lanes::splat),
            gains: pair.gains.map(Lanes::splat),
            multipliers: pair.multipliers.map(Lanes::splat),
            leak: Lanes::splat(pair.leak),
        }
    }

    fn lane(&self, i: usize) -> Pair<T> {
        Pair {
            weights: self.weights.map(|lanes| lanes.0[i]),
            gains: self.gains.map(|lanes| lanes.0[i]),
            multipliers: self.multipliers.map(|lanes| lanes.0[i]),
            leak: self.leak.0[i],
        }
    }

    fn set_lane(&mut self, i: usize, pair: &Pair<T>) {
        let set = |lanes: &mut [Lanes<T>], values: &[T]| {
            lanes.iter_mut().zip(values).for_each(|(lanes, &value)| lanes.0[i] = value);
        };
        set(&mut self.weights, &pair.weights);
        set(&mut self.gains, &pair.gains);
        set(&mut self.multipliers, &pair.multipliers);
        self.leak.0[i] = pair.leak;
    }
}

/// The same number of [`WIDTH`] circuits.
#[derive(Clone, Copy)]
struct Lanes<T>([T; WIDTH]);

impl<T: Real> Lanes<T> {
    /// Lanes without a circuit are shown nothing.
    #[inline(always)]
    fn load(values: &[T]) -> Self {
        if let Ok(values) = values.try_into() {
            return Self(values);
        }
        let mut lanes = [T::ZERO; WIDTH];
        lanes[..values.len()].copy_from_slice(values);
        Self(lanes)
    }

    #[inline(always)]
    fn store(&self, out: &mut [T]) {
        if let Ok(out) = <&mut [T; WIDTH]>::try_from(&mut *out) {
            *out = self.0;
            return;
        }
        out.copy_from_slice(&self.0[..out.len()]);
    }

    /// Whether `test` holds for every pair of numbers, without leaving early: that would not vectorise.
    #[inline(always)]
    fn all_with(&self, other: &Self, test: impl Fn(T, T) -> bool) -> bool {
        self.0.iter().zip(&other.0).fold(true, |all, (&a, &b)| all & test(a, b))
    }

    #[inline(always)]
    fn all_finite(&self) -> bool {
        self.all_with(self, |x, _| x.abs() <= T::MAX)
    }
}

#[inline(always)]
fn all_finite<T: Real>([x, y]: &[Lanes<T>; 2]) -> bool {
    x.all_finite() & y.all_finite()
}

impl<T: Real> PairFactor<T> {
    /// The factor of [`Pair::idle`].
    fn idle() -> Self {
        Self { adjugate: [T::ONE, T::ZERO, T::ZERO, T::ONE], reciprocal: T::ONE, minors: [T::ONE; 2] }
    }
}

impl<T: Real> PairFactor<Lanes<T>> {
    fn gather(factors: &[PairFactor<T>; WIDTH]) -> Self {
        let lanes = |get: &dyn Fn(&PairFactor<T>) -> T| Lanes(std::array::from_fn(|i| get(&factors[i])));
        Self {
            adjugate: std::array::from_fn(|j| lanes(&|factor| factor.adjugate[j])),
            reciprocal: lanes(&|factor| factor.reciprocal),
            minors: std::array::from_fn(|j| lanes(&|factor| factor.minors[j])),
        }
    }

    #[inline(always)]
    fn all_valid(&self) -> bool {
        let [first, determinant] = &self.minors;
        first.all_with(determinant, |first, determinant| {
            (first > T::ZERO) & (determinant >= T::MIN_POSITIVE) & (determinant <= T::MAX)
        })
    }
}

impl<T: Real> Number for Lanes<T> {
    type Scalar = T;

    #[inline(always)]
    fn splat(value: T) -> Self {
        Self([value; WIDTH])
    }

    #[inline(always)]
    fn fused(self, factor: Self, term: Self) -> Self {
        let mut out = term;
        for i in 0..WIDTH {
            out.0[i] = self.0[i].fused(factor.0[i], term.0[i]);
        }
        out
    }

    #[inline(always)]
    fn map(mut self, f: impl Fn(T) -> T) -> Self {
        for x in &mut self.0 {
            *x = f(*x);
        }
        self
    }

    #[inline(always)]
    fn zip(mut self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        for i in 0..WIDTH {
            self.0[i] = f(self.0[i], other.0[i]);
        }
        self
    }

    #[inline(always)]
    fn any(self, f: impl Fn(T) -> bool) -> bool {
        self.0.iter().fold(false, |any, &x| any | f(x))
    }
}

macro_rules! lane_by_lane {
    ($($operator:ident $method:ident),*) => {$(
        impl<T: Real> $operator for Lanes<T> {
            type Output = Self;
            #[inline(always)]
            fn $method(mut self, other: Self) -> Self {
                for i in 0..WIDTH {
                    self.0[i] = self.0[i].$method(other.0[i]);
                }
                self
            }
        }
    )*};
}

lane_by_lane!(Add add, Sub sub, Mul mul, Div div);

impl<T: Real> Neg for Lanes<T> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.map(|x| -x)
    }
}
