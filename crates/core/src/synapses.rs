//! Moves synapses by the Hebbian rule, Eq. (8).

use crate::arithmetic::Arithmetic;
use crate::real::Real;

/// Eq. (8), Δwᵢ = η_w (E\[r nᵢ\] − wᵢ gᵢ), for one interneuron.
#[derive(Clone, Copy)]
pub(crate) struct HebbianStep<T> {
    /// η_w.
    pub rate: T,
    /// The gain, plus the multiplier where there is one.
    pub decay: T,
    /// η_w times the gain in nᵢ = gᵢ zᵢ: what the correlation E\[r zᵢ\] counts.
    pub growth: T,
}

impl<T: Real> HebbianStep<T> {
    /// The step that moves nothing.
    pub fn none() -> Self {
        Self { rate: T::ZERO, decay: T::ZERO, growth: T::ZERO }
    }

    /// The same for a correlation that is still to be multiplied by `factor`.
    #[inline(always)]
    pub fn scaled(self, factor: T) -> Self {
        Self { growth: self.growth * factor, ..self }
    }

    /// What is left of the weights: 1 − η_w gᵢ.
    #[inline(always)]
    pub fn kept<A: Arithmetic>(&self) -> T {
        A::mul_add(-self.rate, self.decay, T::ONE)
    }

    /// One weight after the step. The decay, which in a sequential step arrives last, is multiplied last.
    #[inline(always)]
    pub fn apply<A: Arithmetic>(&self, weight: T, correlation: T) -> T {
        A::mul_add(-self.rate * weight, self.decay, A::mul_add(self.growth, correlation, weight))
    }
}
