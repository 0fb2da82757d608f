//! Describes the circuit: N primary neurons, K interneurons, and M = αI + W_nr diag(g) W_rn between them.

use std::fmt;
use std::ops::Range;

use crate::error::{Error, Result, Test, require_finite, require_length};
use crate::factor::{self, Factor};
use crate::gains::require_leak;
use crate::matrix::Matrix;
use crate::real::Real;
use crate::responses::{Equilibrium, Solver};
use crate::size::require_circuit;

/// The synapses between primary neurons and interneurons.
///
/// Interneuron i listens through its feedforward weights w_rn,i (row i of W_rn) and answers through its
/// feedback weights −w_nr,i (column i of W_nr). Tied synapses are one and the same vector wᵢ.
#[derive(Clone, Debug, PartialEq)]
pub struct Synapses<T = f64> {
    feedback: Matrix<T>,
    /// W_rn by rows, that is, its transpose by columns; `None` when tied.
    feedforward: Option<Matrix<T>>,
}

impl<T: Real> Synapses<T> {
    /// Symmetric synapses W (N × K): W_nr = W and W_rn = Wᵀ.
    ///
    /// # Errors
    /// When there is no neuron or a weight is not finite.
    pub fn tied(weights: Matrix<T>) -> Result<Self> {
        require_neurons(&weights)?;
        weights.require_finite("synapses")?;
        Ok(Self { feedback: weights, feedforward: None })
    }

    /// Separate synapses: `feedback` W_nr (N × K) and `feedforward` W_rn (K × N).
    ///
    /// # Errors
    /// When there is no neuron, the sizes do not match or a weight is not finite.
    pub fn untied(feedback: Matrix<T>, feedforward: &Matrix<T>) -> Result<Self> {
        require_neurons(&feedback)?;
        feedforward.require_shape("feedforward", feedback.columns(), feedback.rows())?;
        feedback.require_finite("synapses")?;
        feedforward.require_finite("feedforward")?;
        Ok(Self { feedback, feedforward: Some(feedforward.transpose()) })
    }

    /// The number of primary neurons N.
    pub fn neurons(&self) -> usize {
        self.feedback.rows()
    }

    /// The number of interneurons K.
    pub fn interneurons(&self) -> usize {
        self.feedback.columns()
    }

    /// Whether feedforward and feedback weights are the same.
    pub fn is_tied(&self) -> bool {
        self.feedforward.is_none()
    }

    /// The feedback weights W_nr (N × K); W itself when tied.
    pub fn feedback(&self) -> &Matrix<T> {
        &self.feedback
    }

    /// The feedforward weights W_rn transposed (N × K): column i is what interneuron i listens through.
    pub fn feedforward_transposed(&self) -> &Matrix<T> {
        self.feedforward.as_ref().unwrap_or(&self.feedback)
    }

    fn cast<U: Real>(&self) -> Synapses<U> {
        Synapses { feedback: self.feedback.cast(), feedforward: self.feedforward.as_ref().map(Matrix::cast) }
    }
}

fn require_neurons<T: Real>(feedback: &Matrix<T>) -> Result<()> {
    if feedback.rows() == 0 {
        return Err(Error::shape("synapses", "at least one row (a primary neuron)", "none"));
    }
    Ok(())
}

/// A circuit: synapses, gains and leak. A plain value; what learns is a run that owns one.
///
/// ```
/// use leukos::{Circuit, Matrix, Solver, Synapses};
///
/// let synapses = Synapses::tied(Matrix::from_rows(&[[1.0, 0.6], [0.0, 0.8]]))?;
/// let circuit = Circuit::new(synapses, vec![2.0_f64, 1.0], 1.0)?;
/// let responses = circuit.respond(&[1.0, 0.0, 0.0, 1.0], &Solver::Direct)?;
/// assert!((responses[0] - 0.3106).abs() < 1e-4);
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Circuit<T = f64> {
    synapses: Synapses<T>,
    gains: Vec<T>,
    multipliers: Vec<T>,
    leak: T,
}

impl<T: Real> Circuit<T> {
    /// Puts a circuit together and checks that its M can whiten: positive definite when tied, all
    /// eigenvalues with positive real part when untied. The multipliers start at 0.
    ///
    /// # Errors
    /// When there are not K gains, a number is not finite, the leak is negative, M is not valid, or the circuit is too
    /// large for the memory.
    pub fn new(synapses: Synapses<T>, gains: Vec<T>, leak: T) -> Result<Self> {
        require_circuit(synapses.neurons(), synapses.interneurons())?;
        let multipliers = vec![T::ZERO; synapses.interneurons()];
        let circuit = Self { synapses, gains, multipliers, leak };
        circuit.require_sound()?;
        Ok(circuit)
    }

    /// The same circuit with these Lagrange multipliers m of the unit-norm constraint.
    ///
    /// # Errors
    /// When there are not K multipliers or one is not finite.
    pub fn with_multipliers(mut self, multipliers: Vec<T>) -> Result<Self> {
        require_length("multipliers", &multipliers, self.interneurons(), "one for each interneuron")?;
        require_finite("multipliers", &multipliers)?;
        self.multipliers = multipliers;
        Ok(self)
    }

    /// The same circuit with these gains.
    ///
    /// # Errors
    /// As for [`Circuit::new`].
    pub fn with_gains(mut self, gains: Vec<T>) -> Result<Self> {
        self.gains = gains;
        self.require_sound()?;
        Ok(self)
    }

    fn require_sound(&self) -> Result<()> {
        let (n, k) = (self.neurons(), self.interneurons());
        require_length("gains", &self.gains, k, "one for each interneuron")?;
        require_finite("gains", &self.gains)?;
        require_leak(self.leak)?;
        if self.leak == T::ZERO && k < n {
            return Err(Error::Singular { neurons: n, interneurons: k });
        }
        Factor::new(&self.synapses).update(self.parts()).map_err(|test| self.invalid(test))
    }

    pub(crate) fn invalid(&self, test: Test) -> Error {
        let expected = if self.synapses.is_tied() {
            "synapses, gains and leak that make M = leak I + W diag(gains) W' positive definite"
        } else {
            "synapses, gains and leak that give every eigenvalue of M a positive real part"
        };
        Error::NotPositiveDefinite { argument: "circuit".into(), expected, test }
    }

    /// The number of primary neurons N.
    pub fn neurons(&self) -> usize {
        self.synapses.neurons()
    }

    /// The number of interneurons K.
    pub fn interneurons(&self) -> usize {
        self.synapses.interneurons()
    }

    /// The synapses W_nr and W_rn.
    pub fn synapses(&self) -> &Synapses<T> {
        &self.synapses
    }

    /// The gains g, one for each interneuron.
    pub fn gains(&self) -> &[T] {
        &self.gains
    }

    /// The Lagrange multipliers m, one for each interneuron; they count only under [`crate::UnitNorm::Multiplier`].
    pub fn multipliers(&self) -> &[T] {
        &self.multipliers
    }

    /// The leak α.
    pub fn leak(&self) -> T {
        self.leak
    }

    /// M = αI + W_nr diag(g) W_rn, which turns responses back into stimuli.
    pub fn inverse_whitening_matrix(&self) -> Matrix<T> {
        factor::inverse_whitening_matrix(self.parts())
    }

    /// F = M⁻¹, which turns stimuli into responses.
    ///
    /// # Errors
    /// When M is not valid (which a run can only leave behind after an error), or so small that M⁻¹ overflows.
    pub fn whitening_matrix(&self) -> Result<Matrix<T>> {
        require_circuit(self.neurons(), self.interneurons())?;
        let mut factor = Factor::new(&self.synapses);
        factor.update(self.parts()).map_err(|test| self.invalid(test))?;
        let mut inverse = Matrix::zeros(self.neurons(), self.neurons());
        factor.invert_into(inverse.as_mut_slice());
        let finite = inverse.as_slice().iter().all(|x| x.is_finite());
        if finite { Ok(inverse) } else { Err(self.invalid(Test::Overflow)) }
    }

    /// The responses to `stimuli`, one stimulus of N numbers after another, with everything frozen.
    ///
    /// # Errors
    /// When `stimuli` is not a whole number of stimuli, a number is not finite, or the solver fails.
    pub fn respond(&self, stimuli: &[T], solver: &Solver<T>) -> Result<Vec<T>> {
        require_rows("stimuli", stimuli.len(), self.neurons())?;
        let mut responses = vec![T::ZERO; stimuli.len()];
        self.responder(solver)?.respond(stimuli, &mut responses)?;
        Ok(responses)
    }

    /// Gets ready to answer stimuli incrementally, with everything frozen.
    ///
    /// # Errors
    /// When the solver has a parameter out of range or does not fit the circuit.
    pub fn responder(&self, solver: &Solver<T>) -> Result<Responder<'_, T>> {
        require_circuit(self.neurons(), self.interneurons())?;
        Ok(Responder { circuit: self, equilibrium: Equilibrium::new(self, solver)? })
    }

    /// The same circuit in the other precision (`f32` to `f64` is exact).
    pub fn cast<U: Real>(&self) -> Circuit<U> {
        let cast = |values: &[T]| values.iter().map(|x| U::from_f64(x.to_f64())).collect();
        Circuit {
            synapses: self.synapses.cast(),
            gains: cast(&self.gains),
            multipliers: cast(&self.multipliers),
            leak: U::from_f64(self.leak.to_f64()),
        }
    }

    pub(crate) fn parts(&self) -> Parts<'_, T> {
        Parts {
            neurons: self.neurons(),
            feedback: self.synapses.feedback.as_slice(),
            feedforward: self.synapses.feedforward.as_ref().map(Matrix::as_slice),
            gains: &self.gains,
            multipliers: &self.multipliers,
            leak: self.leak,
        }
    }

    pub(crate) fn parts_mut(&mut self) -> PartsMut<'_, T> {
        PartsMut {
            feedback: self.synapses.feedback.as_mut_slice(),
            feedforward: self.synapses.feedforward.as_mut().map(Matrix::as_mut_slice),
            gains: &mut self.gains,
            multipliers: &mut self.multipliers,
        }
    }

    /// Takes over the numbers of a circuit of the same size without allocating.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        let to = self.parts_mut();
        let from = other.parts();
        to.feedback.copy_from_slice(from.feedback);
        if let (Some(to), Some(from)) = (to.feedforward, from.feedforward) {
            to.copy_from_slice(from);
        }
        to.gains.copy_from_slice(from.gains);
        to.multipliers.copy_from_slice(from.multipliers);
    }
}

/// A circuit with everything frozen, ready to answer stimuli incrementally.
pub struct Responder<'a, T: Real = f64> {
    circuit: &'a Circuit<T>,
    equilibrium: Equilibrium<T>,
}

impl<T: Real> Responder<'_, T> {
    /// Writes the responses to `stimuli`, one stimulus of N numbers after another.
    ///
    /// # Errors
    /// When the sizes do not fit, a number is not finite, or the solver fails.
    pub fn respond(&mut self, stimuli: &[T], responses: &mut [T]) -> Result<()> {
        let n = self.circuit.neurons();
        require_rows("stimuli", stimuli.len(), n)?;
        require_length("responses", responses, stimuli.len(), "one for each of the stimuli")?;
        require_finite("stimuli", stimuli)?;
        for (stimulus, response) in stimuli.chunks_exact(n).zip(responses.chunks_exact_mut(n)) {
            self.equilibrium.respond(self.circuit, stimulus, response)?;
        }
        Ok(())
    }
}

impl<T: fmt::Debug> fmt::Debug for Circuit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let k = self.gains.len();
        let n = self.synapses.feedback.rows();
        let tied = if self.synapses.feedforward.is_none() { "tied" } else { "untied" };
        write!(f, "Circuit({n} neurons, {k} interneurons, {tied}, leak {:?})", self.leak)
    }
}

/// A circuit's numbers as the kernels see them: weights of one interneuron after another.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a, T> {
    pub neurons: usize,
    pub feedback: &'a [T],
    pub feedforward: Option<&'a [T]>,
    pub gains: &'a [T],
    pub multipliers: &'a [T],
    pub leak: T,
}

impl<'a, T> Parts<'a, T> {
    /// The weights that interneurons listen through: W_rn, or W when tied.
    #[inline(always)]
    pub fn listening(&self) -> &'a [T] {
        self.feedforward.unwrap_or(self.feedback)
    }

    /// The parts that belong to some interneurons.
    #[inline(always)]
    pub fn of(self, some: Range<usize>) -> Self
    where
        T: Copy,
    {
        let weights = some.start * self.neurons..some.end * self.neurons;
        Self {
            feedback: &self.feedback[weights.clone()],
            feedforward: self.feedforward.map(|feedforward| &feedforward[weights]),
            gains: &self.gains[some.clone()],
            multipliers: &self.multipliers[some],
            ..self
        }
    }
}

/// The numbers of a circuit that learning writes.
pub(crate) struct PartsMut<'a, T> {
    pub feedback: &'a mut [T],
    pub feedforward: Option<&'a mut [T]>,
    pub gains: &'a mut [T],
    pub multipliers: &'a mut [T],
}

impl<T> PartsMut<'_, T> {
    /// The parts that belong to some interneurons.
    #[inline(always)]
    pub fn of(&mut self, some: Range<usize>, neurons: usize) -> PartsMut<'_, T> {
        let weights = some.start * neurons..some.end * neurons;
        PartsMut {
            feedback: &mut self.feedback[weights.clone()],
            feedforward: self.feedforward.as_deref_mut().map(|feedforward| &mut feedforward[weights]),
            gains: &mut self.gains[some.clone()],
            multipliers: &mut self.multipliers[some],
        }
    }
}

/// The number of rows of `neurons` numbers in a block of `length` numbers.
pub(crate) fn require_rows(argument: &'static str, length: usize, neurons: usize) -> Result<usize> {
    if length.is_multiple_of(neurons) {
        return Ok(length / neurons);
    }
    let expected = format!("a multiple of {neurons} numbers (one for each neuron)");
    Err(Error::shape(argument, expected, format!("{length} numbers")))
}
