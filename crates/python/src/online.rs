//! Binds runs on streams of stimuli: Algorithms 1 and 3 and their variants.

use std::ops::ControlFlow;

use leukos::{Circuit as Core, Matrix, Observer, Online, Rules, Step, WhiteningMeter, models};
use numpy::PyArrayMethods;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Number, NumpyRows, indices, refuse, room, shaped, stack};
use crate::circuit::{Circuit, with_circuit};
use crate::errors::{exception, exception_in};
use crate::interruption::in_stretches;
use crate::trace::Trace;
use crate::words::{RuleWords, SolverWords, whole};

/// The result of `run_online` or `run_biological`.
///
/// Attributes
/// ----------
/// responses : array of shape (T, N)
///     The response to each stimulus, before the circuit learned from it.
/// circuit : Circuit
///     The circuit at the end.
/// errors : array of shape (ceil(T / every),), or None
///     The whitening error (operator norm) before the steps 0, every, 2 every, ...; None without covariances.
/// trace : dict
///     For each name in `record` an array whose first axis has the same steps.
#[pyclass(frozen, get_all, module = "leukos")]
pub struct OnlineRun {
    responses: Py<PyAny>,
    circuit: Py<Circuit>,
    errors: Option<Py<PyAny>>,
    trace: Py<PyDict>,
}

/// What a run is pickled as.
type Parts = (Py<PyAny>, Py<Circuit>, Option<Py<PyAny>>, Py<PyDict>);

#[pymethods]
impl OnlineRun {
    #[new]
    fn new(responses: Py<PyAny>, circuit: Py<Circuit>, errors: Option<Py<PyAny>>, trace: Py<PyDict>) -> Self {
        Self { responses, circuit, errors, trace }
    }

    /// So that it can be pickled and copied.
    fn __getnewargs__(&self, py: Python<'_>) -> Parts {
        let errors = self.errors.as_ref().map(|errors| errors.clone_ref(py));
        (self.responses.clone_ref(py), self.circuit.clone_ref(py), errors, self.trace.clone_ref(py))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let steps = self.responses.bind(py).len()?;
        Ok(format!("<leukos.OnlineRun: {steps} steps, {}>", self.circuit.get().describe()))
    }
}

/// What to measure and keep during the run.
struct Watched<'a, 'py> {
    covariances: Option<&'a Bound<'py, PyAny>>,
    presented: Option<&'a Bound<'py, PyAny>>,
    record: Vec<String>,
    every: i64,
}

/// Runs a circuit on stimuli and lets it learn from each (Algorithm 1 with its defaults).
///
/// Parameters
/// ----------
/// circuit : Circuit
///     Where to start, tied or untied; it is not changed.
/// S : array of shape (T, N)
///     Stimuli.
/// gain_rate, synapse_rate, multiplier_rate : float or None
///     The rates of gains (Eq. 7), synapses (Eq. 8) and multipliers. None freezes that part.
/// order : "sequential" or "concurrent"
///     Whether an update sees values that are new already, as in the pseudo-code, or the old ones, as in the text.
/// unit_norm : "free", "projected" or "multiplier"
///     How the length of an interneuron's weights is held at one.
/// sign : "free" or "nonnegative"
///     Whether gains, weights and multipliers are rectified.
/// batch : int
///     How many samples are answered before their mean update is made.
/// solver, response_rate, tolerance, max_iterations
///     How responses are found; see `Circuit.respond`.
/// covariances : array of shape (contexts, N, N), optional
///     Measures the whitening error against them. S consists of presentations of equal length, one for each
///     covariance, or one for each entry of `presented`.
/// presented : array of shape (presentations,), optional
///     Which of the covariances each presentation has.
/// record : sequence of "gains", "synapses", "feedforward" and "multipliers"
///     What to keep of the circuits on the way.
/// every : int
///     Keep and measure only before the steps 0, every, 2 every, ...
///
/// Returns an `OnlineRun`. Raises `DivergedError` when M stops being positive definite, and `NotConvergedError` when
/// the dynamics do not settle.
#[pyfunction]
#[pyo3(signature = (
    circuit, S, *, gain_rate, synapse_rate, order="sequential", unit_norm="free", sign="free", multiplier_rate=None,
    batch=1, solver="direct", response_rate=None, tolerance=None, max_iterations=None, covariances=None,
    presented=None, record=Vec::new(), every=1,
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // Python names its arguments.
pub fn run_online(
    circuit: &Circuit,
    S: &Bound<'_, PyAny>,
    gain_rate: Option<f64>,
    synapse_rate: Option<f64>,
    order: &str,
    unit_norm: &str,
    sign: &str,
    multiplier_rate: Option<f64>,
    batch: i64,
    solver: &str,
    response_rate: Option<f64>,
    tolerance: Option<f64>,
    max_iterations: Option<i64>,
    covariances: Option<&Bound<'_, PyAny>>,
    presented: Option<&Bound<'_, PyAny>>,
    record: Vec<String>,
    every: i64,
) -> PyResult<OnlineRun> {
    let rules = RuleWords { gain_rate, synapse_rate, multiplier_rate, unit_norm, sign, order, batch };
    let solver = SolverWords { solver, response_rate, tolerance, max_iterations };
    let watched = Watched { covariances, presented, record, every };
    circuit.require_room(S.py())?;
    with_circuit!(circuit, circuit => {
        let explain = |error| exception(S.py(), error);
        let run = Online::new(circuit.clone(), rules.rules()?, &solver.solver()?).map_err(explain)?;
        advance(run, S, &watched)
    })
}

/// Algorithm 3: separate feedforward and feedback synapses, all numbers non-negative, unit norm by multipliers.
///
/// The preset of `run_online` with unit_norm="multiplier" and sign="nonnegative"; the circuit must be untied, and none of its
/// numbers negative. The other parameters are those of `run_online`.
#[pyfunction]
#[pyo3(signature = (
    circuit, S, *, gain_rate, synapse_rate, multiplier_rate, order="sequential", batch=1, solver="direct",
    response_rate=None, tolerance=None, max_iterations=None, covariances=None, presented=None, record=Vec::new(), every=1,
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // Python names its arguments.
pub fn run_biological(
    circuit: &Circuit,
    S: &Bound<'_, PyAny>,
    gain_rate: Option<f64>,
    synapse_rate: Option<f64>,
    multiplier_rate: Option<f64>,
    order: &str,
    batch: i64,
    solver: &str,
    response_rate: Option<f64>,
    tolerance: Option<f64>,
    max_iterations: Option<i64>,
    covariances: Option<&Bound<'_, PyAny>>,
    presented: Option<&Bound<'_, PyAny>>,
    record: Vec<String>,
    every: i64,
) -> PyResult<OnlineRun> {
    let (unit_norm, sign) = ("multiplier", "nonnegative");
    let rules = RuleWords { gain_rate, synapse_rate, multiplier_rate, unit_norm, sign, order, batch };
    let solver = SolverWords { solver, response_rate, tolerance, max_iterations };
    let watched = Watched { covariances, presented, record, every };
    circuit.require_room(S.py())?;
    with_circuit!(circuit, circuit => {
        let model = biological(rules.rules()?);
        let run = model.online(circuit.clone(), &solver.solver()?);
        advance(run.map_err(|error| exception(S.py(), error))?, S, &watched)
    })
}

/// The model of Algorithm 3 with these rates.
fn biological<T: Number>(rules: Rules<T>) -> models::Algorithm<T> {
    let mut model = models::biological(T::ONE, T::ONE, T::ONE);
    model.rules = rules;
    model
}

fn advance<T: Number>(
    mut run: Online<T>,
    stimuli: &Bound<'_, PyAny>,
    watched: &Watched<'_, '_>,
) -> PyResult<OnlineRun> {
    let py = stimuli.py();
    let rows = NumpyRows::<T>::new("S", stimuli, run.circuit().neurons())?;
    let mut watcher = Watcher::new(run.circuit(), rows.count, watched)?;
    let room = rows.room()?;
    let mut responses = room.try_readwrite()?;
    let (slots, n) = (responses.as_slice_mut()?, rows.width);
    in_stretches(py, &rows, |stretch, stimuli| {
        let responses = &mut slots[stretch.start * n..stretch.end * n];
        if watcher.is_idle() {
            run.advance(stimuli, responses, &mut ())?;
        } else {
            run.advance(stimuli, responses, &mut watcher)?;
        }
        Ok(())
    })?;
    drop(responses);
    let circuit = run.into_circuit().map_err(|error| exception_in::<T>(py, error))?;
    let (errors, trace) = watcher.finish(py)?;
    let circuit = Py::new(py, T::circuit(circuit))?;
    Ok(OnlineRun { responses: room.into_any().unbind(), circuit, errors, trace })
}

/// Measures and keeps what was asked for.
struct Watcher<T: Number> {
    every: u64,
    meter: Option<Meter>,
    trace: Trace<T>,
}

/// Measures the whitening error of each step against the covariance of its presentation.
struct Meter {
    covariances: Vec<Matrix>,
    presented: Vec<usize>,
    /// Samples of a presentation.
    length: usize,
    instrument: WhiteningMeter,
    errors: Vec<f64>,
}

impl<T: Number> Watcher<T> {
    fn new(circuit: &Core<T>, steps: usize, watched: &Watched<'_, '_>) -> PyResult<Self> {
        let every = whole("every", watched.every, 1)?;
        let kept = steps.div_ceil(every);
        let meter = match watched.covariances {
            Some(covariances) => {
                let mut meter = Meter::new(&circuit.cast(), covariances, watched.presented, steps)?;
                meter.errors = room("covariances", kept, 1)?;
                Some(meter)
            }
            None if watched.presented.is_some() => {
                return Err(refuse("presented", "None without covariances", "an array"));
            }
            None => None,
        };
        let trace = Trace::new(circuit, &watched.record, kept)?;
        Ok(Self { every: every as u64, meter, trace })
    }

    fn is_idle(&self) -> bool {
        self.meter.is_none() && self.trace.is_empty()
    }

    fn finish(self, py: Python<'_>) -> PyResult<(Option<Py<PyAny>>, Py<PyDict>)> {
        let errors = self.meter.map(|meter| {
            let steps = meter.errors.len();
            shaped(py, meter.errors, [steps]).into_any().unbind()
        });
        Ok((errors, self.trace.finish(py)?))
    }
}

impl<T: Number> Observer<T> for Watcher<T> {
    fn see(&mut self, step: &Step<'_, T>) -> ControlFlow<()> {
        if step.index.is_multiple_of(self.every) {
            if let Some(meter) = &mut self.meter {
                meter.measure(&step.circuit.cast(), step.index as usize);
            }
            self.trace.keep(step.circuit);
        }
        ControlFlow::Continue(())
    }
}

impl Meter {
    fn new(
        circuit: &Core,
        covariances: &Bound<'_, PyAny>,
        presented: Option<&Bound<'_, PyAny>>,
        steps: usize,
    ) -> PyResult<Self> {
        let covariances = stack::<f64>("covariances", covariances)?;
        let presented = match presented {
            Some(presented) => indices("presented", presented, covariances.len())?,
            None => (0..covariances.len()).collect(),
        };
        if presented.is_empty() || !steps.is_multiple_of(presented.len()) {
            let expected = format!("presentations of equal length in the {steps} stimuli of S");
            let argument = if presented.len() == covariances.len() { "covariances" } else { "presented" };
            return Err(refuse(argument, expected, format!("{} presentations", presented.len())));
        }
        let mut instrument = WhiteningMeter::new(circuit);
        for (c, covariance) in covariances.iter().enumerate() {
            let place = |error: leukos::Error| {
                let text = error.to_string().replacen("covariance", &format!("covariances[{c}]"), 1);
                pyo3::exceptions::PyValueError::new_err(text)
            };
            instrument.error(circuit, covariance).map_err(place)?;
        }
        let length = steps / presented.len();
        Ok(Self { covariances, presented, length, instrument, errors: Vec::new() })
    }

    /// The circuits of a run are valid; where a solver that does not check each of them lets one through, the error is
    /// infinite.
    fn measure(&mut self, circuit: &Core, step: usize) {
        let covariance = &self.covariances[self.presented[step / self.length]];
        self.errors.push(self.instrument.error(circuit, covariance).unwrap_or(f64::INFINITY));
    }
}
