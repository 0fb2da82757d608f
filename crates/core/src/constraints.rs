//! Holds weights at unit length and everything at its sign: the appendix's changes for biological realism.

use crate::kernels::{Arithmetic, dot, out_of_range};
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
    let mut square = dot::<V, A>(weights, weights);
    if square.any(out_of_range) {
        to_order_one(weights, square);
        square = dot::<V, A>(weights, weights);
    }
    let one = V::Scalar::ONE;
    let scale = square.map(|square| if out_of_range(square) { one } else { one / square.sqrt() });
    for w in weights {
        *w = *w * scale;
    }
}

/// Divides weights by the largest of them where their squares are out of range, so that they are in range then.
#[cold]
#[inline(never)]
fn to_order_one<V: Number>(weights: &mut [V], square: V) {
    let mut largest = V::splat(V::Scalar::ZERO);
    for &w in weights.iter() {
        largest = largest.zip(w, |most, w| if w.abs() <= most { most } else { w.abs() });
    }
    let divisor = square.zip(largest, |square, largest| {
        let has_direction = largest > V::Scalar::ZERO && largest.is_finite();
        if out_of_range(square) && has_direction { largest } else { V::Scalar::ONE }
    });
    for w in weights {
        *w = *w / divisor;
    }
}
