//! Holds weights at unit length and everything at its sign: the appendix's changes for biological realism.

use crate::kernels::{Arithmetic, dot};
use crate::real::Real;

/// Δmᵢ = η_m (⟨w_rn,i , w_nr,i⟩ − 1), the multiplier of the unit-norm constraint.
#[inline(always)]
pub(crate) fn multiplier_step<T: Real>(multiplier: T, rate: T, overlap: T) -> T {
    multiplier + rate * (overlap - T::ONE)
}

/// `[x]₊`, the rectification of the sign-constraint appendix. A NaN stays one, so that it is not hidden.
#[inline(always)]
pub(crate) fn rectify<T: Real>(x: T) -> T {
    if x < T::ZERO { T::ZERO } else { x }
}

/// Rescales weights to unit length. Weights that are all zero have no direction and stay.
#[inline(always)]
pub(crate) fn to_unit_length<T: Real, A: Arithmetic>(weights: &mut [T]) {
    let square = dot::<T, A>(weights, weights);
    if square == T::ZERO {
        return;
    }
    let scale = T::ONE / square.sqrt();
    for w in weights {
        *w *= scale;
    }
}
