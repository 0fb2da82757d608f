//! Runs the smallest circuit, N = K = 2, in closed form and in registers.
//!
//! At this size a step is shorter than the calls around it. What is special here is only how M is inverted and how
//! long arrays are; the learning step is `learn::step_parts` like everyone's. All of it is generic over
//! [`Number`], so that many such circuits can run side by side in vector lanes (`ensemble`).

use crate::circuit::{Circuit, Parts, PartsMut};
use crate::error::Test;
use crate::kernels::{Arithmetic, dispatched};
use crate::learn::{Drive, step_parts};
use crate::linalg::why_invalid;
use crate::real::{Number, Real};
use crate::responses::Solver;
use crate::rules::Rules;

/// The M of a circuit with two neurons, solved in closed form: M⁻¹ = adjugate · reciprocal.
#[derive(Clone, Copy)]
pub(crate) struct PairFactor<V> {
    /// By columns, like every matrix.
    pub adjugate: [V; 4],
    /// One over the determinant.
    pub reciprocal: V,
    /// What must be positive for M to be valid.
    pub minors: [V; 2],
}

impl<V: Number> PairFactor<V> {
    /// A symmetric matrix is positive definite when its leading minors are positive; a general one has
    /// eigenvalues with positive real parts when its trace and its determinant are.
    #[inline(always)]
    pub fn of<A: Arithmetic>(parts: Parts<'_, V>) -> Self {
        let listening = parts.listening();
        let zero = V::splat(V::Scalar::ZERO);
        let (mut a, mut b, mut c, mut d) = (parts.leak, zero, zero, parts.leak);
        for (i, &gain) in parts.gains.iter().enumerate() {
            let (x, y) = (gain * parts.feedback[2 * i], gain * parts.feedback[2 * i + 1]);
            a = A::mul_add(x, listening[2 * i], a);
            b = A::mul_add(y, listening[2 * i], b);
            c = A::mul_add(x, listening[2 * i + 1], c);
            d = A::mul_add(y, listening[2 * i + 1], d);
        }
        let determinant = A::mul_add(a, d, -(b * c));
        let first = if parts.feedforward.is_none() { a } else { a + d };
        let reciprocal = V::splat(V::Scalar::ONE) / determinant;
        Self { adjugate: [d, -b, -c, a], reciprocal, minors: [first, determinant] }
    }

    /// The response r = M⁻¹s and the inputs zᵢ = wᵢᵀr of interneurons that listen through `weights`.
    ///
    /// Both are divided by the determinant last, which hides the latency of that division: it is most of a step.
    #[inline(always)]
    pub fn respond<A: Arithmetic>(&self, stimulus: [V; 2], weights: [V; 4]) -> ([V; 2], [V; 2]) {
        let [x, y] = apply_pair::<V, A>(self.adjugate, stimulus);
        let [a, b, c, d] = weights;
        let inputs = [A::mul_add(a, x, b * y), A::mul_add(c, x, d * y)];
        let scale = self.reciprocal;
        ([x * scale, y * scale], [inputs[0] * scale, inputs[1] * scale])
    }
}

impl<T: Real> PairFactor<T> {
    /// Whether M is valid and its determinant in range. A NaN is neither.
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        let [first, determinant] = self.minors;
        first > T::ZERO && determinant >= T::MIN_POSITIVE && determinant <= T::MAX
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
fn apply_pair<V: Number, A: Arithmetic>(matrix: [V; 4], vector: [V; 2]) -> [V; 2] {
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
pub(crate) struct Pair<V> {
    pub weights: [V; 4],
    pub gains: [V; 2],
    pub multipliers: [V; 2],
    pub leak: V,
}

/// Why [`advance_pair`] ended.
pub(crate) enum PairOutcome {
    Done,
    /// The update after the last response fails this test; the state is the one before it.
    Invalid(Test),
    /// The next stimulus or its response is not finite.
    Unanswered,
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

impl<V: Number> Pair<V> {
    /// The state after one learning step.
    #[inline(always)]
    pub fn stepped<A: Arithmetic>(
        &self,
        rules: &Rules<V::Scalar>,
        response: &[V; 2],
        inputs: &[V; 2],
    ) -> Self {
        let mut next = *self;
        step_parts::<V, A>(rules, Drive::Sample { response, inputs }, self.parts(), next.parts_mut());
        next
    }

    #[inline(always)]
    pub fn parts(&self) -> Parts<'_, V> {
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
    pub fn parts_mut(&mut self) -> PartsMut<'_, V> {
        PartsMut {
            feedback: &mut self.weights,
            feedforward: None,
            gains: &mut self.gains,
            multipliers: &mut self.multipliers,
        }
    }
}

impl<T: Real> Pair<T> {
    /// The factor of a state that has failed a quick look, or the test that it fails.
    /// By value, because a reference would keep the state of the hot loop out of registers.
    #[cold]
    #[inline(never)]
    pub fn examined(self) -> Result<PairFactor<T>, Test> {
        // M shows everything that runs over but the multipliers, which it does not contain.
        if finite(self.multipliers) { factorise_pair(self.parts()) } else { Err(Test::Overflow) }
    }
}

#[inline(always)]
fn finite<T: Real>([x, y]: [T; 2]) -> bool {
    x.is_finite() & y.is_finite()
}

dispatched! {
    /// Answers and learns from each stimulus; how many were learned from, and why it ended.
    pub(crate) fn advance_pair<T, A>(
        pair: &mut Pair<T>, rules: &Rules<T>, stimuli: &[T], responses: &mut [T],
    ) -> (usize, PairOutcome) {
        let mut factor = match factorise_pair(pair.parts()) {
            Ok(factor) => factor,
            Err(test) => return (0, PairOutcome::Invalid(test)),
        };
        // Copies: a reference that is handed on would keep the state of this loop out of registers.
        let (rules, mut state) = (*rules, *pair);
        let mut outcome = PairOutcome::Done;
        let mut answered = 0;
        for (&stimulus, out) in stimuli.as_chunks::<2>().0.iter().zip(responses.as_chunks_mut::<2>().0) {
            let (response, inputs) = factor.respond::<A>(stimulus, state.weights);
            if !(finite(stimulus) & finite(response)) {
                outcome = PairOutcome::Unanswered;
                break;
            }
            *out = response;
            let next = state.stepped::<A>(&rules, &response, &inputs);
            factor = PairFactor::of::<A>(next.parts());
            if !(factor.is_valid() & finite(next.multipliers)) {
                match next.examined() {
                    Ok(examined) => factor = examined,
                    Err(test) => {
                        outcome = PairOutcome::Invalid(test);
                        break;
                    }
                }
            }
            state = next;
            answered += 1;
        }
        *pair = state;
        (answered, outcome)
    }
}
