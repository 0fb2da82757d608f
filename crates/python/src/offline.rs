//! Binds runs on the covariances of contexts: Algorithm 2.

use std::ops::ControlFlow;

use leukos::{Observer, Offline, Shown, Step, WhiteningMeter};
use pyo3::prelude::*;

use crate::arrays::{Number, indices, room, shaped, stack};
use crate::circuit::{Circuit, with_circuit};
use crate::errors::{exception, exception_in};
use crate::interruption::Listener;
use crate::words::{RuleWords, offline_gains, whole};

/// The result of `run_offline`.
///
/// Attributes
/// ----------
/// errors : array of shape (presentations, steps), or None
///     The whitening error (operator norm) before each step; None if it was not measured.
/// circuit : Circuit
///     The circuit at the end.
#[pyclass(frozen, module = "leukos")]
pub struct OfflineRun {
    errors: Option<Py<PyAny>>,
    circuit: Py<Circuit>,
    presentations: usize,
}

#[pymethods]
impl OfflineRun {
    #[new]
    fn new(errors: Option<Py<PyAny>>, circuit: Py<Circuit>, presentations: usize) -> Self {
        Self { errors, circuit, presentations }
    }

    /// So that it can be pickled and copied.
    fn __getnewargs__(&self, py: Python<'_>) -> (Option<Py<PyAny>>, Py<Circuit>, usize) {
        (self.errors(py), self.circuit(py), self.presentations)
    }

    #[getter]
    fn errors(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.errors.as_ref().map(|errors| errors.clone_ref(py))
    }

    #[getter]
    fn circuit(&self, py: Python<'_>) -> Py<Circuit> {
        self.circuit.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        format!(
            "<leukos.OfflineRun: {} presentations, {}>",
            self.presentations,
            self.circuit.get().describe()
        )
    }
}

/// Runs a circuit on the covariances of contexts (Algorithm 2).
///
/// Parameters
/// ----------
/// circuit : Circuit
///     Where to start; it is not changed.
/// covariances : array of shape (contexts, N, N)
///     C_ss of each context.
/// presented : array of shape (presentations,)
///     Which context each presentation shows, by number from 0.
/// steps : int
///     Updates in each presentation, J in the paper.
/// gain_rate, synapse_rate, multiplier_rate : float or None
///     The rates of gains (Eq. 7), synapses (Eq. 8) and multipliers. None freezes that part.
/// order : "concurrent" or "sequential"
///     As in the paper's text and the authors' code, or as in the pseudo-code, which diverges on natural images.
/// unit_norm, sign
///     As for `run_online`.
/// gains : "rule", "least_squares" or "optimal"
///     Whether gains are stepped by their rule, or set before each step: so that M is nearest to C^(1/2), or to the
///     minimum of the objective.
/// errors : bool
///     Whether the whitening error is measured before each step, which takes longer than the step itself.
///
/// Returns an `OfflineRun`. Raises `DivergedError` when M stops being positive definite.
#[pyfunction]
#[pyo3(signature = (
    circuit, covariances, presented, *, steps, gain_rate, synapse_rate, order="concurrent", unit_norm="free", sign="free",
    multiplier_rate=None, gains="rule", errors=true,
))]
#[allow(clippy::too_many_arguments)] // Python names its arguments.
pub fn run_offline(
    circuit: &Circuit,
    covariances: &Bound<'_, PyAny>,
    presented: &Bound<'_, PyAny>,
    steps: i64,
    gain_rate: Option<f64>,
    synapse_rate: Option<f64>,
    order: &str,
    unit_norm: &str,
    sign: &str,
    multiplier_rate: Option<f64>,
    gains: &str,
    errors: bool,
) -> PyResult<OfflineRun> {
    let rules = RuleWords { gain_rate, synapse_rate, multiplier_rate, unit_norm, sign, order, batch: 1 };
    let (gains, steps) = (offline_gains(gains)?, whole("steps", steps, 1)?);
    let py = covariances.py();
    circuit.require_room(py)?;
    with_circuit!(circuit, circuit => {
        let covariances = stack("covariances", covariances)?;
        let presented = indices("presented", presented, covariances.len())?;
        let run = Offline::new(circuit.clone(), rules.rules()?, covariances, gains);
        advance(py, run.map_err(|error| exception(py, error))?, &presented, steps, errors)
    })
}

fn advance<T: Number>(
    py: Python<'_>,
    mut run: Offline<T>,
    presented: &[usize],
    steps: usize,
    measured: bool,
) -> PyResult<OfflineRun> {
    let meter = measured.then(|| WhiteningMeter::new(&run.circuit().cast()));
    let errors = if measured { room("steps", presented.len(), steps)? } else { Vec::new() };
    let mut watcher = Watcher { meter, errors, listener: Listener::new() };
    py.detach(|| run.advance(presented, steps, &mut watcher))
        .map_err(|error| exception_in::<T>(py, error))?;
    watcher.listener.heard()?;
    let presentations = presented.len();
    let errors = measured.then(|| shaped(py, watcher.errors, [presentations, steps]).into_any().unbind());
    let circuit = Py::new(py, T::circuit(run.into_circuit()))?;
    Ok(OfflineRun { errors, circuit, presentations })
}

/// Measures each step if asked to, and checks for Ctrl-C.
struct Watcher {
    meter: Option<WhiteningMeter>,
    errors: Vec<f64>,
    listener: Listener,
}

impl<T: Number> Observer<T> for Watcher {
    fn see(&mut self, step: &Step<'_, T>) -> ControlFlow<()> {
        if let (Shown::Covariance { covariance, .. }, Some(meter)) = (step.shown, &mut self.meter) {
            let error = meter.error(&step.circuit.cast(), &covariance.cast());
            // Every circuit of an offline run is valid.
            self.errors.push(error.unwrap_or(f64::INFINITY));
        }
        self.listener.listen()
    }
}
