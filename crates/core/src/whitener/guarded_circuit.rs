//! Moves gains and synapses by steps that keep M positive definite whatever the input.
//!
//! The gain rule is Newton's with the diagonal of the Hessian alone. Interneuron i sees M through
//! Aᵢ = wᵢᵀM⁻¹wᵢ: raising gᵢ by (e^u − 1)/Aᵢ multiplies the standard deviation along wᵢ by e^u. So the step
//! uᵢ = (η/2)(zᵢ² − ‖wᵢ‖²) has no units, rests where Eq. (7) rests, and falls by η/2 a sample at most.
//! Aᵢ is followed as if interneurons did not interact, and computed exactly from time to time.

#[cfg(feature = "model-file")]
mod checkpoint;
mod general;
mod orthonormal;

use self::general::General;
use self::orthonormal::{Orthonormal, ROUNDING, is_orthonormal};
use super::answering::reach;
use crate::circuit::{Circuit, Synapses};
use crate::error::Result;
use crate::gains::least_squares_gains_for_root;
use crate::kernels::{column, inner, project_rows};
use crate::linalg::{Cholesky, weighted_gram};
use crate::matrix::Matrix;
use crate::real::Real;

/// A circuit with unit columns that learns only within the positive definite cone.
pub(super) struct GuardedCircuit<T: Real> {
    circuit: Circuit<T>,
    /// The gains in double precision whatever T is: small steps on a large gain must not be lost.
    gains: Vec<f64>,
    trial: Vec<f64>,
    /// Aᵢ.
    sensitivities: Vec<f64>,
    /// What excluded channels would contribute to E\[zᵢ²\] if they went on as before.
    absent: Vec<f64>,
    floor: f64,
    form: Form<T>,
}

enum Form<T: Real> {
    /// WᵀW = I: every interneuron owns an axis of M, and nothing has to be factorised.
    Orthonormal(Orthonormal<T>),
    General(Box<General<T>>),
}

/// What moves the gains: E\[zᵢ²\] over some samples, and how far to trust it.
#[derive(Clone, Copy)]
pub(super) struct GainDrive<'a> {
    pub squares: &'a [f64],
    /// η times the number of samples.
    pub pull: f64,
}

/// What moves the synapses: Σ c r zᵢ and Σ c over some samples, each counted by its own c.
#[derive(Clone, Copy)]
pub(super) struct SynapseDrive<'a, T> {
    pub correlations: &'a [T],
    pub weight: f64,
    pub rate: f64,
}

/// What the guard had to do about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// Nothing.
    Passed,
    /// It left the synapses where they were, or computed Aᵢ again.
    Corrected,
    /// It shortened the step.
    Shortened,
    /// It refused the step.
    Refused,
}

/// A gain may double the standard deviation along its axis in one step, not more.
const LARGEST_STEP: f64 = std::f64::consts::LN_2;
/// Aᵢ is computed exactly after this many updates at the latest.
const REFRESH_EVERY: u32 = 50;
/// More than this makes no difference to a step.
const MOST_ABSENT: f64 = 1e100;
/// How near to the floor, relative to it, M is watched by a factorisation of its own.
const NEAR_FLOOR: f64 = 100.0;

impl<T: Real> GuardedCircuit<T> {
    /// Starts from synapses whose columns are made unit vectors.
    ///
    /// # Errors
    /// As for [`Circuit::new`], or when a column has no direction.
    pub fn new(synapses: Matrix, gains: Vec<f64>, leak: f64, floor: f64) -> Result<Self> {
        let mut synapses = synapses;
        synapses.require_finite("synapses")?;
        crate::spheres::to_unit_columns(&mut synapses)?;
        let orthonormal = is_orthonormal::<T>(&synapses, ROUNDING);
        let cast = gains.iter().map(|&gain| T::from_f64(gain)).collect();
        let circuit = Circuit::new(Synapses::tied(synapses.cast())?, cast, T::from_f64(leak))?;
        let k = gains.len();
        let form = if orthonormal {
            Form::Orthonormal(Orthonormal::new(&circuit))
        } else {
            Form::General(Box::new(General::new(&circuit)))
        };
        let (trial, sensitivities, absent) = (gains.clone(), vec![1.0; k], vec![0.0; k]);
        let mut guarded = Self { circuit, gains, trial, sensitivities, absent, floor, form };
        guarded.settle();
        Ok(guarded)
    }

    /// Switches from the faster form for orthonormal synapses, which learning would break, to the general one.
    pub fn generalise(&mut self) {
        if let Form::Orthonormal(_) = self.form {
            self.form = Form::General(Box::new(General::new(&self.circuit)));
            self.settle();
        }
    }

    /// Makes room for answering so many rows at a time.
    pub fn reserve(&mut self, rows: usize) {
        let length = rows * self.gains.len();
        if let Form::Orthonormal(own) = &mut self.form
            && own.mixed.len() < length
        {
            own.mixed.resize(length, T::ZERO);
        }
    }

    pub fn circuit(&self) -> &Circuit<T> {
        &self.circuit
    }

    pub fn gains(&self) -> &[f64] {
        &self.gains
    }

    pub fn sensitivities(&self) -> &[f64] {
        &self.sensitivities
    }

    /// Whether M is as small along this interneuron as it may become.
    pub fn is_at_floor(&self, interneuron: usize) -> bool {
        1.0 / self.sensitivities[interneuron] <= 1.01 * self.floor
    }

    /// tr M / N.
    pub fn mean_axis(&self) -> f64 {
        self.circuit.leak().to_f64() + self.gains.iter().sum::<f64>() / self.circuit.neurons() as f64
    }

    /// The variance that channel j has if M whitens perfectly: (M²)ⱼⱼ.
    pub fn implied_variance(&self, channel: usize) -> f64 {
        let synapses = self.circuit.synapses().feedback();
        let leak = self.circuit.leak().to_f64();
        let mut variance = 0.0;
        for row in 0..synapses.rows() {
            let mut entry = if row == channel { leak } else { 0.0 };
            for (i, gain) in self.gains.iter().enumerate() {
                entry += gain * synapses[(channel, i)].to_f64() * synapses[(row, i)].to_f64();
            }
            variance += entry * entry;
        }
        variance
    }

    /// Responses r = M⁻¹x and interneuron inputs z = Wᵀr to rows of stimuli; how many there are changes no bit.
    pub fn respond(&mut self, x: &[T], r: &mut [T], z: &mut [T]) {
        let n = self.circuit.neurons();
        let weights = self.circuit.synapses().feedback().as_slice();
        match &mut self.form {
            Form::Orthonormal(own) => own.respond(weights, self.circuit.leak(), (x, r, z)),
            Form::General(own) => {
                r.copy_from_slice(x);
                r.chunks_exact_mut(n).for_each(|r| own.factor.solve(r));
                project_rows(weights, n, r, z);
            }
        }
    }

    /// Moves gains, and synapses if there is a drive for them.
    pub fn step(&mut self, gains: GainDrive<'_>, synapses: Option<SynapseDrive<'_, T>>) -> Guard {
        match &mut self.form {
            Form::Orthonormal(_) => {
                self.step_axes(gains);
                Guard::Passed
            }
            Form::General(_) => self.step_guarded(gains, synapses),
        }
    }

    /// Takes these gains if they make a valid M that amplifies nothing beyond the floor.
    pub fn set_gains(&mut self, gains: &[f64]) -> bool {
        self.take_gains(gains, Some(self.floor))
    }

    /// Takes gains that were in force before: steps keep M positive definite, and above the floor only where it is seen
    /// to come near.
    pub fn put_back(&mut self, gains: &[f64]) {
        self.take_gains(gains, None);
    }

    fn take_gains(&mut self, gains: &[f64], floor: Option<f64>) -> bool {
        self.trial.copy_from_slice(gains);
        let admitted = match &mut self.form {
            Form::Orthonormal(_) => {
                let leak = self.circuit.leak().to_f64();
                let least = floor.unwrap_or(f64::MIN_POSITIVE);
                gains.iter().all(|gain| (least..=reach::<T>()).contains(&(leak + gain)))
            }
            Form::General(own) => {
                own.next.copy_from(&self.circuit);
                own.admits(&self.trial, floor)
            }
        };
        if admitted {
            self.adopt();
            self.settle();
        } else {
            self.retreat();
        }
        admitted
    }

    /// ln det M; infinite where M is not positive definite to working precision.
    pub fn log_determinant(&self) -> f64 {
        let inverse_whitening_matrix = self.circuit.inverse_whitening_matrix().cast();
        Cholesky::new(inverse_whitening_matrix).map_or(f64::INFINITY, |factor| factor.log_determinant())
    }

    /// Divides M by a factor, as nearly as the synapses allow. Fails where that is no valid M.
    pub fn rescale(&mut self, factor: f64) -> bool {
        let leak = self.circuit.leak().to_f64();
        if let Form::Orthonormal(_) = self.form {
            let gains: Vec<f64> =
                self.gains.iter().map(|gain| ((leak + gain) / factor).max(self.floor) - leak).collect();
            return self.set_gains(&gains);
        }
        let weights = self.circuit.synapses().feedback().cast();
        let mut target = weighted_gram(&weights, &self.gains, leak);
        target.as_mut_slice().iter_mut().for_each(|m| *m /= factor);
        let Ok(gains) = least_squares_gains_for_root(&weights, &target, leak) else { return false };
        self.set_gains(&gains)
    }

    /// What channels that are excluded, each with the variance it is thought to have, would add to E\[zᵢ²\].
    pub fn imagine(&mut self, variances: &[f64]) {
        let n = self.circuit.neurons();
        let synapses = self.circuit.synapses().feedback();
        if let Form::General(own) = &mut self.form {
            own.compute_images(&self.circuit);
        }
        for (i, absent) in self.absent.iter_mut().enumerate() {
            let scale = self.sensitivities[i];
            let image = |j: usize| match &self.form {
                Form::Orthonormal(_) => scale * synapses[(j, i)].to_f64(),
                Form::General(own) => own.images[i * n + j].to_f64(),
            };
            let imagined = |j: usize| if variances[j] > 0.0 { variances[j] * image(j).powi(2) } else { 0.0 };
            *absent = (0..n).map(imagined).sum::<f64>().min(MOST_ABSENT);
        }
    }

    /// uᵢ, the change of the log standard deviation along wᵢ.
    fn log_step(&self, drive: GainDrive<'_>, i: usize) -> f64 {
        let excess = drive.squares[i] + self.absent[i] - 1.0;
        (drive.pull.min(1.0) / 2.0 * excess).min(LARGEST_STEP)
    }

    /// A step where interneurons own the axes of M: mᵢ is multiplied by e^uᵢ.
    fn step_axes(&mut self, drive: GainDrive<'_>) {
        let leak = self.circuit.leak().to_f64();
        for i in 0..self.gains.len() {
            let (axis, u) = (leak + self.gains[i], self.log_step(drive, i));
            if u > 0.0 || axis > self.floor {
                let moved = (axis * u.exp()).min(reach::<T>()).max(self.floor);
                self.gains[i] = moved - leak;
                self.absent[i] *= (axis / moved).powi(2);
            }
        }
        self.settle_axes();
    }

    fn step_guarded(&mut self, drive: GainDrive<'_>, synapses: Option<SynapseDrive<'_, T>>) -> Guard {
        self.propose_synapses(synapses);
        if self.try_gains(drive, 1.0) {
            return Guard::Passed;
        }
        self.retreat();
        self.refresh();
        for (share, guard) in [(1.0, Guard::Corrected), (0.5, Guard::Shortened), (0.125, Guard::Shortened)] {
            self.propose_synapses(None);
            if self.try_gains(drive, share) {
                return guard;
            }
        }
        self.retreat();
        Guard::Refused
    }

    /// Eq. (8) divided by the mean axis of M, so that it has no units; `None` leaves the synapses where they are.
    fn propose_synapses(&mut self, drive: Option<SynapseDrive<'_, T>>) {
        let mean_axis = self.mean_axis();
        let Form::General(own) = &mut self.form else { return };
        own.next.copy_from(&self.circuit);
        if let Some(drive) = drive {
            own.move_synapses(&self.circuit, SynapseDrive { rate: drive.rate / mean_axis, ..drive });
        }
    }

    /// Tries a share of the gain step with the synapses that have been proposed.
    fn try_gains(&mut self, drive: GainDrive<'_>, share: f64) -> bool {
        for i in 0..self.gains.len() {
            let u = share * self.log_step(drive, i);
            let empty = 1.0 / self.sensitivities[i] <= self.floor;
            let step = if u < 0.0 && empty { 0.0 } else { (u.exp() - 1.0) / self.sensitivities[i] };
            self.trial[i] = self.gains[i] + step;
        }
        let near = self.sensitivities.iter().any(|a| a * self.floor * NEAR_FLOOR > 1.0);
        let Form::General(own) = &mut self.form else { return false };
        if !own.admits(&self.trial, near.then_some(self.floor)) {
            return false;
        }
        for i in 0..self.gains.len() {
            let shrink = 1.0 + (self.trial[i] - self.gains[i]) * self.sensitivities[i];
            self.sensitivities[i] /= shrink;
            self.absent[i] /= shrink * shrink;
        }
        own.age += 1;
        let due = own.age >= REFRESH_EVERY;
        self.adopt();
        if due {
            self.refresh();
        }
        true
    }

    fn adopt(&mut self) {
        self.gains.copy_from_slice(&self.trial);
        if let Form::General(own) = &mut self.form {
            std::mem::swap(&mut self.circuit, &mut own.next);
        }
    }

    /// Goes back to the factor of the present circuit, which was valid when it was adopted.
    fn retreat(&mut self) {
        if let Form::General(own) = &mut self.form {
            let _ = own.factor.update(self.circuit.parts());
        }
    }

    /// Brings everything that follows from the gains up to date.
    fn settle(&mut self) {
        match &mut self.form {
            Form::Orthonormal(_) => self.settle_axes(),
            Form::General(own) => {
                let _ = own.factor.update(self.circuit.parts());
                self.refresh();
            }
        }
    }

    fn settle_axes(&mut self) {
        let leak = self.circuit.leak().to_f64();
        let Form::Orthonormal(own) = &mut self.form else { return };
        let gains = self.circuit.parts_mut().gains;
        for (i, gain) in self.gains.iter().enumerate() {
            let reciprocal = 1.0 / (leak + gain);
            gains[i] = T::from_f64(*gain);
            own.reciprocals[i] = T::from_f64(reciprocal);
            own.excesses[i] = T::from_f64(reciprocal - 1.0 / leak);
            self.sensitivities[i] = reciprocal;
        }
    }

    /// Computes Aᵢ exactly.
    fn refresh(&mut self) {
        let n = self.circuit.neurons();
        let Form::General(own) = &mut self.form else { return };
        own.compute_images(&self.circuit);
        own.age = 0;
        let synapses = self.circuit.synapses().feedback();
        for (i, sensitivity) in self.sensitivities.iter_mut().enumerate() {
            *sensitivity = inner(synapses.column(i), column(&own.images, n, i)).to_f64();
        }
    }
}

/// The copy gives the same bits: the factor of M depends on M alone.
impl<T: Real> Clone for GuardedCircuit<T> {
    fn clone(&self) -> Self {
        let form = match &self.form {
            Form::Orthonormal(own) => Form::Orthonormal(own.clone()),
            Form::General(own) => {
                let mut copy = General::new(&self.circuit);
                copy.age = own.age;
                let _ = copy.factor.update(self.circuit.parts());
                Form::General(Box::new(copy))
            }
        };
        Self {
            circuit: self.circuit.clone(),
            gains: self.gains.clone(),
            trial: self.trial.clone(),
            sensitivities: self.sensitivities.clone(),
            absent: self.absent.clone(),
            floor: self.floor,
            form,
        }
    }
}
