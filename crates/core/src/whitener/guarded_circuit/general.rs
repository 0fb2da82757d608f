//! Holds the factor of M for synapses of any kind, and the circuit that a step would lead to.

use super::SynapseDrive;
use crate::arithmetic::dispatched;
use crate::circuit::{Circuit, Parts};
use crate::constraints::to_unit_length;
use crate::factor::Factor;
use crate::kernels::{column, move_weights};
use crate::real::Real;
use crate::synapses::HebbianStep;
use crate::whitener::answering::reach;

/// The factor of M, and room for the next M.
pub(super) struct General<T: Real> {
    pub factor: Factor<T>,
    /// Shows by factorising M − floor · I that no direction is amplified beyond the floor.
    margin: Factor<T>,
    pub next: Circuit<T>,
    /// M⁻¹W.
    pub images: Vec<T>,
    /// Updates since Aᵢ was computed exactly.
    pub age: u32,
}

impl<T: Real> General<T> {
    pub fn new(circuit: &Circuit<T>) -> Self {
        let factor = || Factor::new(circuit.synapses());
        let images = circuit.synapses().feedback().as_slice().to_vec();
        Self { factor: factor(), margin: factor(), next: circuit.clone(), images, age: 0 }
    }

    /// Whether the next circuit is valid with these gains and, where a floor is given, M above it.
    pub fn admits(&mut self, gains: &[f64], floor: Option<f64>) -> bool {
        for (own, gain) in self.next.parts_mut().gains.iter_mut().zip(gains) {
            *own = T::from_f64(*gain);
        }
        let parts = self.next.parts();
        let above = |floor: f64| Parts { leak: parts.leak - T::from_f64(floor), ..parts };
        gains.iter().all(|gain| gain.abs() <= reach::<T>())
            && self.factor.update(parts).is_ok()
            && floor.is_none_or(|floor| self.margin.update(above(floor)).is_ok())
    }

    pub fn compute_images(&mut self, circuit: &Circuit<T>) {
        self.images.copy_from_slice(circuit.synapses().feedback().as_slice());
        let factor = &mut self.factor;
        self.images.chunks_exact_mut(circuit.neurons()).for_each(|image| factor.solve(image));
    }

    /// Moves the next circuit's synapses from the present ones, by Eq. (8) and back to unit length.
    pub fn move_synapses(&mut self, from: &Circuit<T>, drive: SynapseDrive<'_, T>) {
        let n = from.neurons();
        let to = self.next.parts_mut();
        for (i, out) in to.feedback.chunks_exact_mut(n).enumerate() {
            let (rate, gain) = (T::from_f64(drive.rate), from.gains()[i]);
            let step =
                HebbianStep { rate: rate * T::from_f64(drive.weight), decay: gain, growth: rate * gain };
            move_synapse(out, step, from.synapses().feedback().column(i), column(drive.correlations, n, i));
        }
    }
}

dispatched! {
    fn move_synapse<T, A>(out: &mut [T], step: HebbianStep<T>, weights: &[T], correlation: &[T]) {
        move_weights::<T, A>(out, step, weights, correlation);
        to_unit_length::<T, A>(out);
    }
}
