//! Moves synapses by the Hebbian rule, Eq. (8).

use crate::kernels::Arithmetic;
use crate::real::{Number, Real};

/// Eq. (8), Δwᵢ = η_w (r nᵢ − wᵢ gᵢ), as the pair (keep, take) of wᵢ ← keep · wᵢ + take · E\[r zᵢ\].
///
/// `emitted` is the gain in nᵢ = gᵢ zᵢ; `decay` is the gain, plus the multiplier where there is one.
#[inline(always)]
pub(crate) fn hebbian_step<V: Number, A: Arithmetic>(rate: V, emitted: V, decay: V) -> (V, V) {
    (A::mul_add(-rate, decay, V::splat(V::Scalar::ONE)), rate * emitted)
}
