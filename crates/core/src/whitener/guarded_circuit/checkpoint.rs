//! Saves a guarded circuit and restores it, exactly, if it is valid.

use super::{Form, General, GuardedCircuit, Orthonormal, REFRESH_EVERY, ROUNDING, is_orthonormal};
use crate::archive::{Archive, require, require_all};
use crate::circuit::{Circuit, Synapses};
use crate::error::Result;
use crate::kernels::inner;
use crate::matrix::Matrix;
use crate::real::Real;
use crate::whitener::answering::reach;

impl<T: Real> GuardedCircuit<T> {
    /// Room for a circuit of this size, to be read.
    pub fn blank((n, k): (usize, usize), leak: f64, floor: f64) -> Result<Self> {
        let synapses = Synapses::tied(Matrix::zeros(n, k))?;
        let circuit = Circuit::unchecked(synapses, vec![T::ZERO; k], T::from_f64(leak));
        let form = Form::Orthonormal(Orthonormal::new(&circuit));
        let zeros = || vec![0.0; k];
        Ok(Self {
            circuit,
            gains: zeros(),
            trial: zeros(),
            sensitivities: zeros(),
            absent: zeros(),
            floor,
            form,
        })
    }

    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let Self { circuit, gains, trial: _, sensitivities, absent, floor: _, form } = self;
        let (n, k) = (circuit.neurons(), circuit.interneurons());
        let mut synapses = circuit.synapses().feedback().as_slice().to_vec();
        let (mut orthonormal, mut age) = match form {
            Form::Orthonormal(_) => (true, 0),
            Form::General(own) => (false, own.age),
        };
        archive.matrix("synapses", (n, k), &mut synapses)?;
        archive.vector("gains", k, gains)?;
        archive.vector("sensitivities", k, sensitivities)?;
        archive.vector("absent", k, absent)?;
        archive.value("circuit.orthonormal", &mut orthonormal)?;
        archive.value("circuit.age", &mut age)?;
        if !A::READS {
            return Ok(());
        }
        circuit.parts_mut().feedback.copy_from_slice(&synapses);
        require("circuit.age", age < REFRESH_EVERY, "less than 50 updates", age)?;
        self.rebuild(orthonormal, age)
    }

    /// Makes what follows from synapses and gains that have been read, if they are sound.
    fn rebuild(&mut self, orthonormal: bool, age: u32) -> Result<()> {
        self.require_sound()?;
        let synapses = self.circuit.synapses().feedback().cast();
        // Rounding to T may have taken a little from what was orthonormal when it was made. In a wider precision than
        // before it may no longer be.
        if orthonormal && is_orthonormal::<T>(&synapses, 2.0 * ROUNDING) {
            self.form = Form::Orthonormal(Orthonormal::new(&self.circuit));
            self.settle_axes();
        } else {
            let mut own = General::new(&self.circuit);
            own.age = age;
            let gains = self.circuit.parts_mut().gains;
            gains.iter_mut().zip(&self.gains).for_each(|(own, gain)| *own = T::from_f64(*gain));
            own.factor.update(self.circuit.parts()).map_err(|test| self.circuit.invalid(test))?;
            self.form = Form::General(Box::new(own));
        }
        self.require_tame()
    }

    fn require_sound(&self) -> Result<()> {
        let most = reach::<T>();
        require_all("gains", &self.gains, "numbers that responses can cope with", |gain| gain.abs() <= most)?;
        require_all("absent", &self.absent, "numbers that are not negative", |absent| absent >= 0.0)?;
        let synapses = self.circuit.synapses().feedback();
        for i in 0..synapses.columns() {
            let length = inner(synapses.column(i), synapses.column(i)).to_f64().sqrt();
            let name = format!("length of column {i} of synapses");
            require(&name, (length - 1.0).abs() < 1e-4, "1", length)?;
        }
        Ok(())
    }

    /// M must be positive definite, and M⁻¹ so small that no response overflows.
    fn require_tame(&mut self) -> Result<()> {
        let leak = self.circuit.leak().to_f64();
        let (n, k) = (self.circuit.neurons(), self.gains.len());
        let most = reach::<T>();
        let largest = match &mut self.form {
            Form::Orthonormal(_) => {
                let axes = self.gains.iter().map(|gain| leak + gain);
                let least = axes.chain((k < n).then_some(leak)).fold(f64::INFINITY, f64::min);
                if least > 0.0 { 1.0 / least } else { f64::INFINITY }
            }
            Form::General(own) => {
                let mut inverse = vec![T::ZERO; n * n];
                own.factor.invert_into(&mut inverse);
                inverse.iter().map(|x| x.to_f64().abs()).fold(0.0, |a, b| if a >= b { a } else { b })
            }
        };
        require("inverse of M", largest <= most, "a positive definite M whose inverse is moderate", largest)
    }
}
