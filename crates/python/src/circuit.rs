//! Binds the circuit: M = αI + W_nr diag(g) W_rn.

use leukos::{Circuit as Core, Synapses};
use numpy::{PyArrayMethods, PyUntypedArray};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{Number, NumpyRows, array, from_matrix, from_slice, is_single, matrix, vector};
use crate::errors::exception;
use crate::interruption::in_stretches;
use crate::words::SolverWords;

/// A circuit of N primary neurons and K interneurons, M = leak I + W diag(g) W' (Eq. 2).
///
/// Parameters
/// ----------
/// synapses : array of shape (N, K)
///     W; the feedback weights W_nr where `feedforward` is given. Their dtype, float32 or float64, is the circuit's.
/// gains : array of shape (K,)
///     g, one for each interneuron.
/// leak : float
///     The leak, alpha in the paper; 0 or more.
/// feedforward : array of shape (K, N), optional
///     W_rn, which makes the circuit untied.
/// multipliers : array of shape (K,), optional
///     The Lagrange multipliers of the unit-norm constraint; 0 unless given.
///
/// Raises ValueError when shapes do not fit, a number is not finite, or M is not positive definite (untied: an
/// eigenvalue of M has a real part that is not positive).
///
/// A circuit never changes: a run starts from it and hands out a new one.
#[pyclass(frozen, eq, module = "leukos")]
#[derive(Clone, PartialEq)]
pub struct Circuit(pub Precise);

/// A circuit in either precision.
#[derive(Clone, PartialEq)]
pub enum Precise {
    Single(Core<f32>),
    Double(Core<f64>),
}

/// Does the same with a circuit of either precision.
macro_rules! with_circuit {
    ($of:expr, $circuit:ident => $work:expr) => {
        match &$of.0 {
            $crate::circuit::Precise::Single($circuit) => $work,
            $crate::circuit::Precise::Double($circuit) => $work,
        }
    };
}
pub(crate) use with_circuit;

/// What a circuit is made of.
struct Parts<'a, 'py> {
    synapses: &'a Bound<'py, PyUntypedArray>,
    gains: &'a Bound<'py, PyAny>,
    leak: f64,
    feedforward: Option<&'a Bound<'py, PyAny>>,
    multipliers: Option<&'a Bound<'py, PyAny>>,
}

impl Parts<'_, '_> {
    fn assemble<T: Number>(&self) -> PyResult<Core<T>> {
        let explain = |error| exception(self.synapses.py(), error);
        let feedback = matrix("synapses", self.synapses)?;
        let synapses = match self.feedforward {
            None => Synapses::tied(feedback),
            Some(feedforward) => Synapses::untied(feedback, &matrix("feedforward", feedforward)?),
        };
        let gains = vector("gains", self.gains)?;
        let circuit =
            Core::new(synapses.map_err(explain)?, gains, T::from_f64(self.leak)).map_err(explain)?;
        match self.multipliers {
            None => Ok(circuit),
            Some(multipliers) => {
                circuit.with_multipliers(vector("multipliers", multipliers)?).map_err(explain)
            }
        }
    }
}

#[pymethods]
impl Circuit {
    #[new]
    #[pyo3(signature = (synapses, gains, leak=1.0, *, feedforward=None, multipliers=None))]
    fn new(
        synapses: &Bound<'_, PyAny>,
        gains: &Bound<'_, PyAny>,
        leak: f64,
        feedforward: Option<&Bound<'_, PyAny>>,
        multipliers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let synapses = &array("synapses", synapses)?;
        let parts = Parts { synapses, gains, leak, feedforward, multipliers };
        if is_single(synapses) {
            parts.assemble().map(f32::circuit)
        } else {
            parts.assemble().map(f64::circuit)
        }
    }

    /// W (N, K), or the feedback weights W_nr of an untied circuit; a copy.
    #[getter]
    fn synapses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with_circuit!(self, circuit => from_matrix(py, circuit.synapses().feedback()))
    }

    /// The feedforward weights W_rn (K, N) of an untied circuit, else None; a copy.
    #[getter]
    fn feedforward<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.require_room(py)?;
        with_circuit!(self, circuit => {
            let synapses = circuit.synapses();
            let untied = (!synapses.is_tied()).then(|| synapses.feedforward_transposed().transpose());
            untied.map(|weights| from_matrix(py, &weights)).transpose()
        })
    }

    /// g (K,); a copy.
    #[getter]
    fn gains<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with_circuit!(self, circuit => from_slice(py, circuit.gains()))
    }

    /// The Lagrange multipliers m (K,); a copy.
    #[getter]
    fn multipliers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with_circuit!(self, circuit => from_slice(py, circuit.multipliers()))
    }

    /// The leak.
    #[getter]
    fn leak(&self) -> f64 {
        with_circuit!(self, circuit => leukos::Real::to_f64(circuit.leak()))
    }

    /// M = leak I + W_nr diag(g) W_rn (N, N), which turns responses back into stimuli.
    fn inverse_whitening_matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(py)?;
        with_circuit!(self, circuit => from_matrix(py, &circuit.inverse_whitening_matrix()))
    }

    /// F = M^-1 (N, N), which turns stimuli into responses.
    fn whitening_matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with_circuit!(self, circuit => match circuit.whitening_matrix() {
            Ok(matrix) => from_matrix(py, &matrix),
            Err(error) => Err(exception(py, error)),
        })
    }

    /// The responses r = M^-1 s (Eq. 6) to stimuli, with everything frozen.
    ///
    /// Parameters
    /// ----------
    /// S : array of shape (T, N), or (N,) for one stimulus
    /// solver : "direct", "iterative", "dynamics" or "loop"
    ///     A factorisation, conjugate gradients, the recurrent dynamics of Algorithms 1 and 3 until they settle, or the
    ///     same dynamics cut short: exactly `max_iterations` steps from r = 0, settled or not.
    /// response_rate, max_iterations
    ///     Of "dynamics" and "loop". A response rate of None is chosen from a bound on the eigenvalues of M.
    /// tolerance
    ///     Of "dynamics" and "iterative".
    ///
    /// Returns an array of the shape of S and the dtype of the circuit.
    #[pyo3(signature = (S, solver="direct", *, response_rate=None, tolerance=None, max_iterations=None))]
    #[allow(non_snake_case)]
    fn respond<'py>(
        &self,
        S: &Bound<'py, PyAny>,
        solver: &str,
        response_rate: Option<f64>,
        tolerance: Option<f64>,
        max_iterations: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let solver = SolverWords { solver, response_rate, tolerance, max_iterations };
        with_circuit!(self, circuit => respond(circuit, S, &solver))
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("feedforward", self.feedforward(py)?)?;
        options.set_item("multipliers", self.multipliers(py)?)?;
        Ok(((self.synapses(py)?, self.gains(py)?, self.leak()).into_pyobject(py)?, options))
    }

    fn __repr__(&self) -> String {
        format!("<leukos.Circuit: {}>", self.describe())
    }
}

impl Circuit {
    /// Checks that there is memory to copy it and to run it.
    pub fn require_room(&self, py: Python<'_>) -> PyResult<()> {
        let [n, k] = with_circuit!(self, circuit => [circuit.neurons(), circuit.interneurons()]);
        leukos::size::require_circuit(n, k).map_err(|error| exception(py, error))
    }

    /// What it is, in a few words.
    pub fn describe(&self) -> String {
        let dtype = if matches!(self.0, Precise::Single(_)) { "float32" } else { "float64" };
        with_circuit!(self, circuit => {
            let tied = if circuit.synapses().is_tied() { "" } else { ", untied" };
            let (n, k, leak) = (circuit.neurons(), circuit.interneurons(), circuit.leak());
            format!("{n} neurons, {k} interneurons, leak {leak}{tied}, {dtype}")
        })
    }
}

fn respond<'py, T: Number>(
    circuit: &Core<T>,
    stimuli: &Bound<'py, PyAny>,
    solver: &SolverWords<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let (rows, solver) = (NumpyRows::<T>::or_one("S", stimuli, circuit.neurons())?, solver.solver()?);
    let room = rows.room()?;
    let mut responses = room.try_readwrite()?;
    let (responses, n) = (responses.as_slice_mut()?, rows.width);
    let mut responder = circuit.responder(&solver).map_err(|error| exception(stimuli.py(), error))?;
    in_stretches(stimuli.py(), &rows, |stretch, stimuli| {
        responder.respond(stimuli, &mut responses[stretch.start * n..stretch.end * n])
    })?;
    Ok(room.into_any())
}
