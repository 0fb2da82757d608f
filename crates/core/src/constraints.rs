//! Holds weights at unit length and everything at its sign: the appendix's changes for biological realism.

use crate::arithmetic::Arithmetic;
use crate::kernels::{dot, out_of_range};
use crate::real::Real;

/// Δmᵢ = η_m (⟨w_rn,i , w_nr,i⟩ − 1), the multiplier of the unit-norm constraint.
#[inline(always)]
pub(crate) fn multiplier_step<T: Real, A: Arithmetic>(multiplier: T, rate: T, overlap: T) -> T {
    A::mul_add(rate, overlap - T::ONE, multiplier)
}

/// `[x]₊`, the rectification of the sign-constraint appendix. A NaN stays one, so that it is not hidden.
#[inline(always)]
pub(crate) fn rectify<T: Real>(x: T) -> T {
    if x < T::ZERO { T::ZERO } else { x }
}

/// Rescales weights to unit length. Weights that are all zero have no direction and stay.
#[inline(always)]
pub(crate) fn to_unit_length<T: Real, A: Arithmetic>(weights: &mut [T]) {
    let mut square = dot::<T, A>(weights, weights);
    if out_of_range(square) {
        to_order_one(weights);
        square = dot::<T, A>(weights, weights);
    }
    let scale = if out_of_range(square) { T::ONE } else { T::ONE / square.sqrt() };
    for w in weights {
        *w *= scale;
    }
}

/// Divides weights by the largest of them, so that their squares are in range.
#[cold]
#[inline(never)]
fn to_order_one<T: Real>(weights: &mut [T]) {
    let largest = weights.iter().fold(T::ZERO, |most, w| if w.abs() <= most { most } else { w.abs() });
    if largest > T::ZERO && largest.is_finite() {
        for w in weights {
            *w /= largest;
        }
    }
}
