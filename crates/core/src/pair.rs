//! Runs the smallest circuit, N = K = 2, in closed form and in registers.
//!
//! At this size a step is shorter than the calls around it. What is special here is only how M is inverted and how
//! long arrays are; the learning step is `learn::step_parts` as for all sizes. Many such circuits can run side by
//! side in vector lanes (`ensemble`).

use crate::arithmetic::{Arithmetic, dispatched};
use crate::circuit::{Circuit, Parts, PartsMut};
use crate::error::Test;
use crate::factor::why_invalid;
use crate::learn::{Drive, Ending, step_parts};
use crate::real::Real;
use crate::responses::Solver;
use crate::rules::{Rules, Sign, SynapseRule, UnitNorm, with_known_rules};

/// The M of a circuit with two neurons, solved in closed form: M⁻¹ = adjugate · reciprocal.
#[derive(Clone, Copy)]
pub(crate) struct PairFactor<T> {
    /// By columns, like every matrix.
    pub adjugate: [T; 4],
    /// One over the determinant.
    pub reciprocal: T,
    /// What must be positive for M to be valid.
    pub minors: [T; 2],
}

impl<T: Real> PairFactor<T> {
    /// A symmetric matrix is positive definite when its leading minors are positive; a general one has
    /// eigenvalues with positive real parts when its trace and its determinant are.
    #[inline(always)]
    pub fn of<A: Arithmetic>(parts: Parts<'_, T>) -> Self {
        let listening = parts.listening();
        let tied = parts.feedforward.is_none();
        let (mut a, mut b, mut c, mut d) = (parts.leak, T::ZERO, T::ZERO, parts.leak);
        for (i, &gain) in parts.gains.iter().enumerate() {
            let (x, y) = (gain * parts.feedback[2 * i], gain * parts.feedback[2 * i + 1]);
            a = A::mul_add(x, listening[2 * i], a);
            b = A::mul_add(y, listening[2 * i], b);
            c = if tied { b } else { A::mul_add(x, listening[2 * i + 1], c) };
            d = A::mul_add(y, listening[2 * i + 1], d);
        }
        let determinant = A::mul_add(a, d, -(b * c));
        let first = if tied { a } else { a + d };
        let reciprocal = T::ONE / determinant;
        Self { adjugate: [d, -b, -c, a], reciprocal, minors: [first, determinant] }
    }

    /// The response r = M⁻¹s, and the inputs zᵢ = wᵢᵀr of interneurons that listen through `weights`, which are
    /// still to be multiplied by the reciprocal of the determinant: that division is the longest part of a step.
    #[inline(always)]
    pub fn respond<A: Arithmetic>(&self, stimulus: [T; 2], weights: [T; 4]) -> ([T; 2], [T; 2]) {
        let [x, y] = apply_pair::<T, A>(self.adjugate, stimulus);
        let [a, b, c, d] = weights;
        let inputs = [A::mul_add(a, x, b * y), A::mul_add(c, x, d * y)];
        ([x * self.reciprocal, y * self.reciprocal], inputs)
    }

    /// C_rr w = M⁻¹ C M⁻¹ w, for a tied M.
    #[inline(always)]
    fn correlate<A: Arithmetic>(&self, covariance: [T; 4], weights: [T; 2]) -> [T; 2] {
        // Scaled at once: C times the adjugate would have the size of M³, which single precision soon cannot hold.
        let filtered = apply_pair::<T, A>(self.adjugate, weights).map(|x| x * self.reciprocal);
        let spread = apply_pair::<T, A>(covariance, filtered);
        apply_pair::<T, A>(self.adjugate, spread).map(|x| x * self.reciprocal)
    }

    /// Whether M is valid and its determinant in range. A NaN is neither.
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        let [first, determinant] = self.minors;
        (first > T::ZERO) & (determinant >= T::MIN_POSITIVE) & (determinant <= T::MAX)
    }

    /// The same M computed from M / c, where c is its larger diagonal entry: the determinant of a valid M that is
    /// far from 1 can be out of range although M⁻¹ is not.
    fn rescaled(&self) -> Self {
        let [d, b, c, a] = self.adjugate;
        let scale = a.abs().max(d.abs());
        let [a, b, c, d] = [a / scale, b / scale, c / scale, d / scale];
        let determinant = a * d - b * c;
        let reciprocal = T::ONE / determinant / scale;
        Self { adjugate: [d, b, c, a], reciprocal, minors: [self.minors[0], determinant] }
    }

    #[cold]
    fn failed_test(&self, parts: Parts<'_, T>) -> Test {
        let pivot = usize::from(self.minors[0] > T::ZERO);
        let tied = parts.feedforward.is_none();
        why_invalid(parts, if tied { Test::Cholesky { pivot } } else { Test::Eigenvalue })
    }
}

/// A 2 × 2 matrix, by columns, times a vector.
#[inline(always)]
fn apply_pair<T: Real, A: Arithmetic>(matrix: [T; 4], vector: [T; 2]) -> [T; 2] {
    let ([a, b, c, d], [x, y]) = (matrix, vector);
    [A::mul_add(a, x, c * y), A::mul_add(b, x, d * y)]
}

dispatched! {
    /// The factor of a valid M.
    pub(crate) fn factorise_pair<T, A>(parts: Parts<'_, T>) -> Result<PairFactor<T>, Test> {
        let factor = PairFactor::of::<A>(parts);
        if factor.is_valid() {
            return Ok(factor);
        }
        let rescaled = factor.rescaled();
        let valid = rescaled.is_valid() && rescaled.reciprocal.is_finite();
        if valid { Ok(rescaled) } else { Err(factor.failed_test(parts)) }
    }
}

dispatched! {
    /// Solves M x = b in place.
    pub(crate) fn solve_pair<T, A>(factor: &PairFactor<T>, x: &mut [T]) {
        let solved = apply_pair::<T, A>(factor.adjugate, [x[0], x[1]]);
        x.copy_from_slice(&solved.map(|x| x * factor.reciprocal));
    }
}

/// The state of a tied circuit with N = K = 2 in registers.
#[derive(Clone, Copy)]
pub(crate) struct Pair<T> {
    pub weights: [T; 4],
    pub gains: [T; 2],
    pub multipliers: [T; 2],
    pub leak: T,
}

impl<T: Real> Pair<T> {
    pub fn fits(circuit: &Circuit<T>, rules: &Rules<T>, solver: &Solver<T>) -> bool {
        (circuit.neurons(), circuit.interneurons()) == (2, 2)
            && circuit.synapses().is_tied()
            && *solver == Solver::Direct
            && rules.batch == 1
    }

    pub fn of(circuit: &Circuit<T>) -> Self {
        let parts = circuit.parts();
        Self {
            weights: std::array::from_fn(|i| parts.feedback[i]),
            gains: std::array::from_fn(|i| parts.gains[i]),
            multipliers: std::array::from_fn(|i| parts.multipliers[i]),
            leak: parts.leak,
        }
    }

    pub fn store(&self, circuit: &mut Circuit<T>) {
        let parts = circuit.parts_mut();
        parts.feedback.copy_from_slice(&self.weights);
        parts.gains.copy_from_slice(&self.gains);
        parts.multipliers.copy_from_slice(&self.multipliers);
    }
}

impl<T: Real> Pair<T> {
    /// The state after one learning step.
    #[inline(always)]
    pub fn stepped<A: Arithmetic>(&self, rules: &Rules<T>, drive: Drive<'_, T>) -> Self {
        let mut next = *self;
        step_parts::<T, A>(rules, drive, self.parts(), next.parts_mut());
        next
    }

    #[inline(always)]
    pub fn parts(&self) -> Parts<'_, T> {
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
    pub fn parts_mut(&mut self) -> PartsMut<'_, T> {
        PartsMut {
            feedback: &mut self.weights,
            feedforward: None,
            gains: &mut self.gains,
            multipliers: &mut self.multipliers,
        }
    }
}

impl<T: Real> Pair<T> {
    /// Whether all is finite that this state's M cannot show: a response that moved no weight, or one that may have
    /// been rectified away, and multipliers.
    #[inline(always)]
    pub fn is_in_range(&self, rules: &Rules<T>, response: [T; 2]) -> bool {
        let shows_response = rules.synapses != SynapseRule::Frozen && rules.sign == Sign::Free;
        let has_multipliers = matches!(rules.unit_norm, UnitNorm::Multiplier { .. });
        (shows_response || finite(response)) & (!has_multipliers || finite(self.multipliers))
    }

    /// The factor of a state, if it is valid.
    #[inline(always)]
    fn certified<A: Arithmetic>(&self) -> Result<PairFactor<T>, Test> {
        let factor = PairFactor::of::<A>(self.parts());
        if factor.is_valid() & finite(self.multipliers) { Ok(factor) } else { self.examined() }
    }

    /// The factor of a state that has failed a quick look, or the test that it fails.
    /// By value, because a reference would keep the state of the hot loop out of registers.
    #[cold]
    #[inline(never)]
    pub fn examined(self) -> Result<PairFactor<T>, Test> {
        // M shows everything that overflows but the multipliers, which it does not contain.
        if finite(self.multipliers) { factorise_pair(self.parts()) } else { Err(Test::Overflow) }
    }
}

#[inline(always)]
pub(crate) fn finite<T: Real>([x, y]: [T; 2]) -> bool {
    x.is_finite() & y.is_finite()
}

dispatched! {
    /// Answers and learns from each stimulus; how many were learned from, and why it ended.
    pub(crate) fn advance_pair<T, A>(
        pair: &mut Pair<T>, rules: &Rules<T>, stimuli: &[T], responses: &mut [T],
    ) -> (usize, Ending) {
        let rules = *rules;
        with_known_rules!(rules => run_pair::<T, A>(pair, rules, stimuli, responses))
    }
}

dispatched! {
    /// Learns from a covariance so many times; how many times it did, and why it ended.
    pub(crate) fn expect_pair<T, A>(
        pair: &mut Pair<T>, rules: &Rules<T>, covariance: &[T], steps: usize,
    ) -> (usize, Ending) {
        let rules = *rules;
        let covariance = std::array::from_fn(|i| covariance[i]);
        with_known_rules!(rules => run_expected_pair::<T, A>(pair, rules, covariance, steps))
    }
}

/// A circuit of two neurons while it learns, with the factor of its M.
///
/// A value that a step replaces: a reference that is handed on would keep the state of a loop out of registers.
#[derive(Clone, Copy)]
struct Running<T> {
    state: Pair<T>,
    factor: PairFactor<T>,
}

impl<T: Real> Running<T> {
    /// The same after one learning step.
    #[inline(always)]
    fn stepped<A: Arithmetic>(self, rules: &Rules<T>, drive: Drive<'_, T>) -> Result<Self, Test> {
        let state = self.state.stepped::<A>(rules, drive);
        state.certified::<A>().map(|factor| Self { state, factor })
    }
}

#[inline(always)]
fn run_pair<T: Real, A: Arithmetic>(
    pair: &mut Pair<T>,
    rules: Rules<T>,
    stimuli: &[T],
    responses: &mut [T],
) -> (usize, Ending) {
    let mut run = match factorise_pair(pair.parts()) {
        Ok(factor) => Running { state: *pair, factor },
        Err(test) => return (0, Ending::Invalid(test)),
    };
    let mut outcome = Ending::Done;
    let mut answered = 0;
    for (&stimulus, out) in stimuli.as_chunks::<2>().0.iter().zip(responses.as_chunks_mut::<2>().0) {
        let (response, inputs) = run.factor.respond::<A>(stimulus, run.state.weights);
        if !(finite(stimulus) & finite(response)) {
            outcome = Ending::Unanswered;
            break;
        }
        *out = response;
        let drive = Drive::Unscaled { response: &response, inputs: &inputs, scale: run.factor.reciprocal };
        match run.stepped::<A>(&rules, drive) {
            Ok(next) => run = next,
            Err(test) => {
                outcome = Ending::Invalid(test);
                break;
            }
        }
        answered += 1;
    }
    *pair = run.state;
    (answered, outcome)
}

#[inline(always)]
fn run_expected_pair<T: Real, A: Arithmetic>(
    pair: &mut Pair<T>,
    rules: Rules<T>,
    covariance: [T; 4],
    steps: usize,
) -> (usize, Ending) {
    let mut run = match factorise_pair(pair.parts()) {
        Ok(factor) => Running { state: *pair, factor },
        Err(test) => return (0, Ending::Invalid(test)),
    };
    let mut outcome = Ending::Done;
    let mut made = 0;
    while made < steps {
        let [a, b, c, d] = run.state.weights;
        let [a, b] = run.factor.correlate::<A>(covariance, [a, b]);
        let [c, d] = run.factor.correlate::<A>(covariance, [c, d]);
        match run.stepped::<A>(&rules, Drive::Expectation { correlations: &[a, b, c, d] }) {
            Ok(next) => run = next,
            Err(test) => {
                outcome = Ending::Invalid(test);
                break;
            }
        }
        made += 1;
    }
    *pair = run.state;
    (made, outcome)
}
