//! Runs circuits of a few neurons, whose number the compiler knows.
//!
//! At this size a step is shorter than the calls it is otherwise made of, so it is one function here, with its loops
//! over neurons unrolled. What is special is only how M is factorised and how long arrays are; the learning step is
//! `learn::step_parts` as for all sizes. The smallest circuits, N = K = 2, have a closed form instead (`pair`).

use crate::arithmetic::{Arithmetic, dispatched};
use crate::circuit::{Parts, PartsMut};
use crate::error::Test;
use crate::factor::why_invalid;
use crate::kernels::dot;
use crate::learn::{Drive, Ending, step_parts};
use crate::real::Real;
use crate::rules::{Rules, UnitNorm};

/// The largest number of neurons that the compiler knows; larger matrices are worked on in tiles.
pub(crate) const LARGEST_SMALL: usize = 7;

/// Evaluates an expression in a copy of its own for each number of neurons up to [`LARGEST_SMALL`].
macro_rules! with_known_size {
    ($neurons:expr, $N:ident => $run:expr) => {
        with_known_size!(@match $neurons, $N => $run; 1 2 3 4 5 6)
    };
    // The same with one copy more for as many interneurons as neurons, the usual case.
    ($small:expr, $N:ident, $SQUARE:ident => $run:expr) => {
        with_known_size!($small.neurons, $N => if $small.current.gains.len() == $N {
            const $SQUARE: bool = true;
            $run
        } else {
            const $SQUARE: bool = false;
            $run
        })
    };
    (@match $neurons:expr, $N:ident => $run:expr; $($size:literal)*) => {
        match $neurons {
            $($size => { const $N: usize = $size; $run })*
            _ => { const $N: usize = LARGEST_SMALL; $run }
        }
    };
}

/// The M of a small circuit as U D Uᵀ, with U unit lower triangular: no roots, and one division a pivot.
pub(crate) struct SmallFactor<'a, T> {
    /// U by columns; only the entries below its diagonal are used.
    pub lower: &'a mut [T],
    /// One over the pivots in D.
    pub reciprocals: &'a mut [T],
}

dispatched! {
    /// Assembles M and factorises it; the error is the pivot that failed.
    pub(crate) fn factorise_small<T, A>(factor: SmallFactor<'_, T>, parts: Parts<'_, T>) -> Result<(), usize> {
        let SmallFactor { lower, reciprocals } = factor;
        with_known_size!(parts.neurons, N => factorise::<T, A, N>(parts, lower, reciprocals))
    }
}

#[inline(always)]
fn factorise<T: Real, A: Arithmetic, const N: usize>(
    parts: Parts<'_, T>,
    lower: &mut [T],
    reciprocals: &mut [T],
) -> Result<(), usize> {
    let mut m = [[T::ZERO; N]; N];
    for c in 0..N {
        m[c][c] = parts.leak;
    }
    for (w, &gain) in parts.feedback.as_chunks::<N>().0.iter().zip(parts.gains) {
        for j in 0..N {
            let scaled = gain * w[j];
            for i in j..N {
                m[j][i] = A::mul_add(scaled, w[i], m[j][i]);
            }
        }
    }
    let (lower, reciprocals) = (lower.as_chunks_mut::<N>().0, &mut reciprocals[..N]);
    for c in 0..N {
        let pivot = m[c][c];
        let reciprocal = T::ONE / pivot;
        // A pivot that has lost digits is refused with those that are not positive or not finite.
        if !((pivot >= T::MIN_POSITIVE) & (pivot <= T::MAX)) {
            return Err(c);
        }
        reciprocals[c] = reciprocal;
        for j in c + 1..N {
            let u = m[c][j] * reciprocal;
            lower[c][j] = u;
            for i in j..N {
                m[j][i] = A::mul_add(-u, m[c][i], m[j][i]);
            }
        }
    }
    Ok(())
}

dispatched! {
    /// Solves M x = b in place.
    pub(crate) fn solve_small<T, A>(lower: &[T], reciprocals: &[T], x: &mut [T]) {
        with_known_size!(reciprocals.len(), N => {
            if let Some(x) = x.first_chunk_mut::<N>() {
                *x = solve::<T, A, N>(lower, reciprocals, *x);
            }
        });
    }
}

#[inline(always)]
fn solve<T: Real, A: Arithmetic, const N: usize>(lower: &[T], reciprocals: &[T], mut x: [T; N]) -> [T; N] {
    let (lower, reciprocals) = (lower.as_chunks::<N>().0, &reciprocals[..N]);
    for c in 0..N {
        for i in c + 1..N {
            x[i] = A::mul_add(-lower[c][i], x[c], x[i]);
        }
    }
    for c in (0..N).rev() {
        x[c] *= reciprocals[c];
        // What was solved last comes last.
        for i in (c + 1..N).rev() {
            x[c] = A::mul_add(-lower[c][i], x[i], x[c]);
        }
    }
    x
}

/// A small tied circuit that learns: its numbers, room for the next ones, and the factor of its M.
pub(crate) struct Small<'a, T> {
    pub rules: &'a Rules<T>,
    pub neurons: usize,
    pub leak: T,
    pub current: PartsMut<'a, T>,
    pub next: PartsMut<'a, T>,
    pub factor: SmallFactor<'a, T>,
    /// Whether `current` and `next` have changed places an odd number of times.
    pub swapped: bool,
}

impl<T: Real> Small<'_, T> {
    /// One learning step. On failure the circuit stays as it was, and the factor means nothing.
    #[inline(always)]
    fn learn<A: Arithmetic, const N: usize, const SQUARE: bool>(
        &mut self,
        drive: Drive<'_, T>,
    ) -> Result<(), Test> {
        let k = self.interneurons::<N, SQUARE>();
        let Self { rules, leak, current, next, factor, .. } = self;
        let from = tied::<T, N>(current, *leak, k);
        let to = PartsMut {
            feedback: &mut next.feedback[..k * N],
            feedforward: None,
            gains: &mut next.gains[..k],
            multipliers: &mut next.multipliers[..k],
        };
        step_parts::<T, A>(rules, drive, from, to);
        let parts = tied::<T, N>(next, *leak, k);
        // M shows everything that overflows but the multipliers, which it does not contain.
        let has_multipliers = matches!(rules.unit_norm, UnitNorm::Multiplier { .. });
        if has_multipliers && !parts.multipliers.iter().all(|m| m.is_finite()) {
            return Err(Test::Overflow);
        }
        factorise::<T, A, N>(parts, factor.lower, factor.reciprocals)
            .map_err(|pivot| why_invalid(parts, Test::Cholesky { pivot }))?;
        std::mem::swap(current, next);
        self.swapped = !self.swapped;
        Ok(())
    }

    /// K, which the compiler knows where there are as many interneurons as neurons.
    #[inline(always)]
    fn interneurons<const N: usize, const SQUARE: bool>(&self) -> usize {
        if SQUARE { N } else { self.current.gains.len() }
    }

    #[inline(always)]
    fn solve<A: Arithmetic, const N: usize>(&self, x: [T; N]) -> [T; N] {
        solve::<T, A, N>(self.factor.lower, self.factor.reciprocals, x)
    }
}

#[inline(always)]
fn tied<'a, T: Real, const N: usize>(parts: &'a PartsMut<'_, T>, leak: T, k: usize) -> Parts<'a, T> {
    Parts {
        neurons: N,
        feedback: &parts.feedback[..k * N],
        feedforward: None,
        gains: &parts.gains[..k],
        multipliers: &parts.multipliers[..k],
        leak,
    }
}

dispatched! {
    /// Answers and learns from each stimulus; how many were learned from, and why it ended. `inputs` is room for z.
    pub(crate) fn advance_small<T, A>(
        small: &mut Small<'_, T>, inputs: &mut [T], stimuli: &[T], responses: &mut [T],
    ) -> (usize, Ending) {
        with_known_size!(small, N, SQUARE => run_samples::<T, A, N, SQUARE>(small, inputs, stimuli, responses))
    }
}

#[inline(always)]
fn run_samples<T: Real, A: Arithmetic, const N: usize, const SQUARE: bool>(
    small: &mut Small<'_, T>,
    inputs: &mut [T],
    stimuli: &[T],
    responses: &mut [T],
) -> (usize, Ending) {
    let inputs = &mut inputs[..small.interneurons::<N, SQUARE>()];
    let rows = stimuli.as_chunks::<N>().0.iter().zip(responses.as_chunks_mut::<N>().0);
    let mut answered = 0;
    for (stimulus, out) in rows {
        let response = small.solve::<A, N>(*stimulus);
        if !(finite(stimulus) & finite(&response)) {
            return (answered, Ending::Unanswered);
        }
        *out = response;
        for (z, w) in inputs.iter_mut().zip(small.current.feedback.as_chunks::<N>().0) {
            *z = dot::<T, A>(w, &response);
        }
        if let Err(test) = small.learn::<A, N, SQUARE>(Drive::Sample { response: &response, inputs }) {
            return (answered, Ending::Invalid(test));
        }
        answered += 1;
    }
    (answered, Ending::Done)
}

dispatched! {
    /// Learns from a covariance so many times; how many times it did, and why it ended. `correlations` is room for
    /// E\[r zᵢ\].
    pub(crate) fn expect_small<T, A>(
        small: &mut Small<'_, T>, correlations: &mut [T], covariance: &[T], steps: usize,
    ) -> (usize, Ending) {
        with_known_size!(small, N, SQUARE => {
            run_expectations::<T, A, N, SQUARE>(small, correlations, covariance, steps)
        })
    }
}

#[inline(always)]
fn run_expectations<T: Real, A: Arithmetic, const N: usize, const SQUARE: bool>(
    small: &mut Small<'_, T>,
    correlations: &mut [T],
    covariance: &[T],
    steps: usize,
) -> (usize, Ending) {
    let covariance = covariance.as_chunks::<N>().0;
    let correlations = &mut correlations[..N * small.interneurons::<N, SQUARE>()];
    for step in 0..steps {
        let columns = correlations.as_chunks_mut::<N>().0.iter_mut();
        for (correlation, &w) in columns.zip(small.current.feedback.as_chunks::<N>().0) {
            // C_rr wᵢ = M⁻¹ C M⁻¹ wᵢ.
            let filtered = small.solve::<A, N>(w);
            let mut spread = [T::ZERO; N];
            for (c, &x) in covariance.iter().zip(&filtered) {
                for i in 0..N {
                    spread[i] = A::mul_add(c[i], x, spread[i]);
                }
            }
            *correlation = small.solve::<A, N>(spread);
        }
        if let Err(test) = small.learn::<A, N, SQUARE>(Drive::Expectation { correlations }) {
            return (step, Ending::Invalid(test));
        }
    }
    (steps, Ending::Done)
}

#[inline(always)]
fn finite<T: Real, const N: usize>(x: &[T; N]) -> bool {
    x.iter().fold(true, |finite, x| finite & x.is_finite())
}
