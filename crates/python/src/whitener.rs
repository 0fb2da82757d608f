//! Binds the whitener, as the engine of `leukos.AdaptiveWhitener`.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leukos::contexts::stream;
use leukos::size::require_whitener;
use leukos::{GroupedWhitener, LearningProgress, Matrix, Model, Real};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{array, from_matrix, from_slice, is_single, refuse};
use crate::errors::{exception, require_memory};
use crate::fitting::{Fitting, settings};
use crate::interruption::aside;
use crate::moments::ContextMoments;
use crate::whitening::{Call, Way, map_rows};

/// A fitted whitener, in the precision of the rows that it saw last: the engine of `AdaptiveWhitener`.
///
/// Copies share their numbers until one of them learns. Those who read while another thread adapts see it as it was.
#[pyclass(frozen, module = "leukos._leukos")]
pub struct Whitener(Mutex<State>);

/// What a stream has made of a whitener.
#[derive(Clone)]
pub struct State {
    pub model: Precise,
    /// The context of the last row, if rows have labels.
    pub label: Option<String>,
}

/// A model in either precision. Whoever changes one that is shared makes a copy first.
#[derive(Clone)]
pub enum Precise {
    Single(Arc<Model<f32>>),
    Double(Arc<Model<f64>>),
}

/// Does the same with a model of either precision.
macro_rules! with_model {
    ($of:expr, $model:ident => $work:expr) => {
        match $of {
            Precise::Single($model) => $work,
            Precise::Double($model) => $work,
        }
    };
}

#[pymethods]
impl Whitener {
    /// Fits a whitener to the moments of contexts.
    #[staticmethod]
    fn fit(py: Python<'_>, moments: &ContextMoments, fitting: Fitting<'_>) -> PyResult<Self> {
        let explain = |error| exception(py, error);
        let settings = fitting.settings()?;
        settings.validate().map_err(explain)?;
        moments.require_room(py)?;
        let contexts = moments.core.clone().finish().map_err(explain)?;
        for (name, moments) in &contexts {
            moments.covariance().map_err(|error| refuse_context(name, &error))?;
        }
        let moments = contexts.into_iter().map(|(_, moments)| moments).collect();
        let (training, groups, seed) = (fitting.training(moments)?, fitting.groups, fitting.seed);
        let fitted = aside(py, move |stop| {
            let watch = |_: LearningProgress| {
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let mut rng = stream(seed, 0);
            match groups {
                None => training.fit::<f64>(settings, &mut rng, watch).map(GroupedWhitener::from),
                Some(groups) => training.fit_groups(&groups, &settings, &mut rng, watch),
            }
        })?;
        let mut model = Model::from(fitted.map_err(explain)?);
        model.channel_names = fitting.channel_names;
        Ok(Self::of(Precise::Double(Arc::new(model)), None))
    }

    /// Reads a model or a checkpoint.
    #[staticmethod]
    #[pyo3(signature = (bytes, label=None))]
    fn from_bytes(py: Python<'_>, bytes: &[u8], label: Option<String>) -> PyResult<Self> {
        let model = leukos::Precision::in_file(bytes).and_then(|precision| {
            Ok(match precision {
                leukos::Precision::Single => Precise::Single(Arc::new(Model::from_bytes(bytes)?)),
                leukos::Precision::Double => Precise::Double(Arc::new(Model::from_bytes(bytes)?)),
            })
        });
        Ok(Self::of(model.map_err(|error| exception(py, error))?, label))
    }

    /// The bytes of the model file: what was learned, and the settings.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.require_room(py)?;
        let bytes = with_model!(self.model(), model => model.to_bytes());
        Ok(PyBytes::new(py, &bytes.map_err(|error| exception(py, error))?))
    }

    /// The bytes of a checkpoint: the model and its running state, which continues to the last bit.
    fn to_checkpoint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.require_room(py)?;
        let bytes = with_model!(self.model(), model => model.to_checkpoint());
        Ok(PyBytes::new(py, &bytes.map_err(|error| exception(py, error))?))
    }

    /// Whitens rows and adapts on the way: all of them, or none after an error. Contexts begin before the rows at some
    /// positions, and the last row belongs to a context with this label.
    #[allow(non_snake_case)]
    #[pyo3(signature = (X, begins=Vec::new(), label=None))]
    fn adapt<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        begins: Vec<usize>,
        label: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.run(X, Call { way: Way::Whiten, begins, label })
    }

    /// Turns the responses of an adapting run back into its stimuli, by adapting in the same way.
    #[allow(non_snake_case)]
    fn adapt_inverse<'py>(&self, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.run(X, Call { way: Way::Unwhiten, begins: Vec::new(), label: self.label() })
    }

    /// Whitens rows without adapting.
    #[allow(non_snake_case)]
    fn transform<'py>(&self, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(X.py())?;
        map_rows(self.model(), X, Way::Whiten)
    }

    /// Turns responses back into stimuli without adapting.
    #[allow(non_snake_case)]
    fn inverse_transform<'py>(&self, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(X.py())?;
        map_rows(self.model(), X, Way::Unwhiten)
    }

    /// Says that a new context begins.
    fn begin_context(&self, py: Python<'_>) -> PyResult<()> {
        self.require_room(py)?;
        with_model!(&mut self.lock().model, model => Arc::make_mut(model).whitener.begin_context());
        Ok(())
    }

    /// Takes over what another of the same channels has learned, and goes on with its own stream.
    fn take_over(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        self.require_room(py)?;
        let outcome = with_model!(other.model(), other => {
            with_model!(&mut self.lock().model, model => Arc::make_mut(model).whitener.take_over(&other.whitener))
        });
        outcome.map_err(|_| refuse("groups", "those of the stream (or fit, which begins anew)", "others"))
    }

    #[getter]
    fn channels(&self) -> usize {
        with_model!(self.model(), model => model.whitener.channels())
    }

    /// The interneurons of all groups.
    #[getter]
    fn interneurons(&self) -> usize {
        self.sizes().map(|(_, interneurons)| interneurons).sum()
    }

    #[getter]
    fn channel_names(&self) -> Option<Vec<String>> {
        with_model!(self.model(), model => model.channel_names.clone())
    }

    /// The context of the last row, if rows have labels.
    #[getter]
    fn label(&self) -> Option<String> {
        self.lock().label.clone()
    }

    /// Rows taken in while adapting.
    #[getter]
    fn samples_seen(&self) -> u64 {
        with_model!(self.model(), model => model.whitener.whiteners().map(|own| own.samples().seen).max().unwrap_or(0))
    }

    /// How often the context was found to have changed, in the group where it was most often.
    #[getter]
    fn changes(&self) -> u64 {
        with_model!(self.model(), model => {
            model.whitener.whiteners().map(|own| own.samples().switches).max().unwrap_or(0)
        })
    }

    /// How many samples the covariance in force rests on, in the group where they are fewest.
    #[getter]
    fn rows_in_force(&self, py: Python<'_>) -> PyResult<f64> {
        self.require_room(py)?;
        Ok(with_model!(&mut self.lock().model, model => {
            let own = Arc::make_mut(model).whitener.whiteners_mut().map(|own| own.status().rows_in_force);
            own.fold(f64::INFINITY, f64::min)
        }))
    }

    /// The memories of each group: group, length, and the weights as it is, along its trend, and scaled by its gain.
    #[allow(clippy::type_complexity)] // As the documentation says.
    fn memories(&self, py: Python<'_>) -> PyResult<Vec<(usize, f64, f64, f64, f64)>> {
        self.require_room(py)?;
        let mut all = Vec::new();
        with_model!(&mut self.lock().model, model => {
            for (group, own) in Arc::make_mut(model).whitener.whiteners_mut().enumerate() {
                let memories = own.status().memories;
                all.extend(memories.iter().map(|own| (group, own.length, own.plain, own.trend, own.gain)));
            }
        });
        Ok(all)
    }

    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with_model!(self.model(), model => from_slice(py, &model.whitener.mean()))
    }

    /// The scale of each channel, that of its group.
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut scales = vec![0.0; self.channels()];
        with_model!(self.model(), model => {
            for (channels, whitener) in model.whitener.groups() {
                channels.iter().for_each(|&channel| scales[channel] = whitener.scale());
            }
        });
        from_slice(py, &scales)
    }

    /// The gains that are best for the covariance in force; they are computed.
    #[getter]
    fn gains<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(py)?;
        let gains = with_model!(self.model(), model => aside(py, move |_| {
            model.whitener.whiteners().map(leukos::Whitener::gains).collect::<leukos::Result<Vec<_>>>()
        }))?;
        from_slice(py, &gains.map_err(|error| exception(py, error))?.concat())
    }

    /// The synapses of all groups side by side, with zeros between groups.
    #[getter]
    fn synapses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let interneurons = self.interneurons();
        require_memory("synapses", self.channels().saturating_mul(interneurons))?;
        from_matrix(py, &with_model!(self.model(), model => synapses(&model.whitener, interneurons)))
    }

    /// Mean and covariance of the gains in the contexts of the fit, for a whitener of one group.
    #[getter]
    #[allow(clippy::type_complexity)] // Mean and covariance.
    fn prior<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        with_model!(self.model(), model => {
            let Some(prior) = model.whitener.single().and_then(|own| own.prior()) else { return Ok(None) };
            Ok(Some((from_slice(py, &prior.mean)?, from_matrix(py, &prior.covariance)?)))
        })
    }

    fn whitening_matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(py)?;
        let matrix = with_model!(self.model(), model => py.detach(|| model.whitener.whitening_matrix()));
        from_matrix(py, &matrix.map_err(|error| exception(py, error))?)
    }

    fn dewhitening_matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(py)?;
        let matrix = with_model!(self.model(), model => py.detach(|| model.whitener.dewhitening_matrix()));
        from_matrix(py, &matrix.map_err(|error| exception(py, error))?)
    }

    /// Its status in words.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        self.require_room(py)?;
        Ok(with_model!(&mut self.lock().model, model => Arc::make_mut(model).whitener.status()))
    }

    /// The settings of a loaded model, by the names of the parameters.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        with_model!(self.model(), model => settings(py, &model.whitener))
    }

    fn __copy__(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.__copy__()
    }

    #[allow(clippy::type_complexity)] // What pickle wants.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, Option<String>))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_checkpoint(py)?, self.label())))
    }
}

impl Whitener {
    fn of(model: Precise, label: Option<String>) -> Self {
        Self(Mutex::new(State { model, label }))
    }

    /// Exclusive access. It is held for a moment only, and never while Python can run: another thread would wait for it
    /// with the interpreter in its hands.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model as it is now.
    pub fn model(&self) -> Precise {
        self.lock().model.clone()
    }

    /// The channels and interneurons of each group.
    fn sizes(&self) -> impl Iterator<Item = (usize, usize)> {
        let sizes: Vec<_> = with_model!(self.model(), model => {
            model.whitener.whiteners().map(|own| (own.channels(), own.interneurons())).collect()
        });
        sizes.into_iter()
    }

    /// Checks that there is memory to copy it and to run it.
    fn require_room(&self, py: Python<'_>) -> PyResult<()> {
        for (channels, interneurons) in self.sizes() {
            require_whitener(channels, interneurons).map_err(|error| exception(py, error))?;
            // The covariance of the prior, if there is one.
            require_memory("interneurons", interneurons.saturating_mul(interneurons))?;
        }
        require_memory("channels", self.channels().saturating_mul(self.channels()))
    }

    /// Adapts along rows, in their precision.
    fn run<'py>(&self, rows: &Bound<'py, PyAny>, call: Call) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(rows.py())?;
        if is_single(&array("X", rows)?) { call.run::<f32>(self, rows) } else { call.run::<f64>(self, rows) }
    }
}

fn refuse_context(name: &str, error: &leukos::Error) -> PyErr {
    let problem = error.to_string();
    if name.is_empty() {
        return pyo3::exceptions::PyValueError::new_err(problem.replacen("samples", "X", 1));
    }
    refuse("contexts", "usable samples of each", format!("none of {name:?} ({problem})"))
}

fn synapses<T: Real>(whitener: &GroupedWhitener<T>, interneurons: usize) -> Matrix {
    let (mut all, mut first) = (Matrix::zeros(whitener.channels(), interneurons), 0);
    for (channels, own) in whitener.groups() {
        let weights = own.synapses();
        for k in 0..weights.columns() {
            channels.iter().enumerate().for_each(|(i, &channel)| all[(channel, first + k)] = weights[(i, k)]);
        }
        first += weights.columns();
    }
    all
}
