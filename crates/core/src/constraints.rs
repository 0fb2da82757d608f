//! Holds weights at unit length and everything at its sign: the appendix's changes for biological realism.

use crate::kernels::{Arithmetic, dot};
use crate::real::{Number, Real};

/// Δmᵢ = η_m (⟨w_rn,i , w_nr,i⟩ − 1), the multiplier of the unit-norm constraint.
#[inline(always)]
pub(crate) fn multiplier_step<V: Number, A: Arithmetic>(multiplier: V, rate: V, overlap: V) -> V {
    A::mul_add(rate, overlap - V::splat(V::Scalar::ONE), multiplier)
}

/// `[x]₊`, the rectification of the sign-constraint appendix. A NaN stays one, so that it is not hidden.
#[inline(always)]
pub(crate) fn rectify<V: Number>(x: V) -> V {
    x.map(|x| if x < V::Scalar::ZERO { V::Scalar::ZERO } else { x })
}

/// Rescales weights to unit length. Weights that are all zero have no direction and stay.
#[inline(always)]
pub(crate) fn to_unit_length<V: Number, A: Arithmetic>(weights: &mut [V]) {
    let one = V::Scalar::ONE;
    let square = dot::<V, A>(weights, weights);
    let scale = square.map(|square| if square == V::Scalar::ZERO { one } else { one / square.sqrt() });
    for w in weights {
        *w = *w * scale;
    }
}
