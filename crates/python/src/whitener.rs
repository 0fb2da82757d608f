//! Binds the whitener, as the engine of `leukos.AdaptiveWhitener`.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use leukos::contexts::stream;
use leukos::size::require_whitener;
use leukos::{FrozenWhitener, GroupedWhitener, LearningProgress, Matrix, Model, Real};
use numpy::PyArrayMethods;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{Number, NumpyRows, array, from_matrix, from_slice, is_single, refuse};
use crate::errors::{alone, exception, require_memory};
use crate::fitting::{Fitting, settings};
use crate::interruption::{aside, in_stretches};
use crate::moments::ContextMoments;

/// A fitted whitener, in the precision of the rows that it saw last: the engine of `AdaptiveWhitener`.
#[pyclass(module = "leukos._leukos")]
pub struct Whitener(Precise);

#[derive(Clone)]
enum Precise {
    Single(Model<f32>),
    Double(Model<f64>),
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
        Ok(Self(Precise::Double(model)))
    }

    /// Reads a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let explain = |error| exception(py, error);
        Ok(Self(match leukos::Precision::in_file(bytes).map_err(explain)? {
            leukos::Precision::Single => Precise::Single(Model::from_bytes(bytes).map_err(explain)?),
            leukos::Precision::Double => Precise::Double(Model::from_bytes(bytes).map_err(explain)?),
        }))
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = with_model!(&self.0, model => model.to_bytes()).map_err(|error| exception(py, error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Whitens rows and adapts on the way.
    #[allow(non_snake_case)]
    fn adapt<'py>(slf: &Bound<'py, Self>, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        alone(slf)?.run(X, Way::Adapt)
    }

    /// Turns the responses of an adapting run back into its stimuli, by adapting in the same way.
    #[allow(non_snake_case)]
    fn adapt_inverse<'py>(slf: &Bound<'py, Self>, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        alone(slf)?.run(X, Way::AdaptInverse)
    }

    /// Whitens rows without adapting.
    #[allow(non_snake_case)]
    fn transform<'py>(&self, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.map(X, Way::Adapt)
    }

    /// Turns responses back into stimuli without adapting.
    #[allow(non_snake_case)]
    fn inverse_transform<'py>(&self, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.map(X, Way::AdaptInverse)
    }

    /// Says that a new context begins.
    fn begin_context(slf: &Bound<'_, Self>) -> PyResult<()> {
        with_model!(&mut alone(slf)?.0, model => model.whitener.begin_context());
        Ok(())
    }

    #[getter]
    fn channels(&self) -> usize {
        with_model!(&self.0, model => model.whitener.channels())
    }

    #[getter]
    fn channel_names(&self) -> Option<Vec<String>> {
        with_model!(&self.0, model => model.channel_names.clone())
    }

    /// Rows taken in while adapting.
    #[getter]
    fn samples_seen(&self) -> u64 {
        with_model!(&self.0, model => model.whitener.whiteners().map(|own| own.samples().seen).max().unwrap_or(0))
    }

    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with_model!(&self.0, model => from_slice(py, &model.whitener.mean()))
    }

    /// The scale of each channel, that of its group.
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut scales = vec![0.0; self.channels()];
        with_model!(&self.0, model => {
            for (channels, whitener) in model.whitener.groups() {
                channels.iter().for_each(|&channel| scales[channel] = whitener.scale());
            }
        });
        from_slice(py, &scales)
    }

    #[getter]
    fn gains<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let gains: Vec<f64> = with_model!(&self.0, model => {
            model.whitener.whiteners().flat_map(|whitener| whitener.gains().iter().copied()).collect()
        });
        from_slice(py, &gains)
    }

    /// The synapses of all groups side by side, with zeros between groups.
    #[getter]
    fn synapses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let interneurons = self.sizes().map(|(_, interneurons)| interneurons).sum::<usize>();
        require_memory("synapses", self.channels().saturating_mul(interneurons))?;
        from_matrix(py, &with_model!(&self.0, model => synapses(&model.whitener)))
    }

    /// Mean and covariance of the gains in the contexts of the fit, for a whitener of one group.
    #[getter]
    #[allow(clippy::type_complexity)] // Mean and covariance.
    fn prior<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let prior = with_model!(&self.0, model => model.whitener.single().and_then(|own| own.prior()));
        let Some(prior) = prior else { return Ok(None) };
        Ok(Some((from_slice(py, &prior.mean)?, from_matrix(py, &prior.covariance)?)))
    }

    fn whitening_matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(py)?;
        let matrix = with_model!(&self.0, model => model.whitener.whitening_matrix());
        from_matrix(py, &matrix.map_err(|error| exception(py, error))?)
    }

    fn dewhitening_matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.require_room(py)?;
        let matrix = with_model!(&self.0, model => model.whitener.dewhitening_matrix());
        from_matrix(py, &matrix.map_err(|error| exception(py, error))?)
    }

    /// Its status in words, computed from a copy, so that other threads can use it meanwhile.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        let mut copy = self.__copy__(py)?;
        Ok(with_model!(&mut copy.0, model => model.whitener.status()))
    }

    /// The settings of a loaded model, by the names of the parameters.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        with_model!(&self.0, model => settings(py, &model.whitener))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.require_room(py)?;
        Ok(Self(self.0.clone()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }
}

/// Which way rows go.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Adapt,
    AdaptInverse,
}

impl Whitener {
    /// The channels and interneurons of each group.
    fn sizes(&self) -> impl Iterator<Item = (usize, usize)> {
        let sizes: Vec<_> = with_model!(&self.0, model => {
            model.whitener.whiteners().map(|own| (own.channels(), own.gains().len())).collect()
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
    fn run<'py>(&mut self, rows: &Bound<'py, PyAny>, way: Way) -> PyResult<Bound<'py, PyAny>> {
        let py = rows.py();
        self.require_room(py)?;
        match (&self.0, is_single(&array("X", rows)?)) {
            (Precise::Double(model), true) => self.0 = Precise::Single(cast(py, model)?),
            (Precise::Single(model), false) => self.0 = Precise::Double(cast(py, model)?),
            _ => {}
        }
        with_model!(&mut self.0, model => run(&mut model.whitener, rows, way))
    }

    fn map<'py>(&self, rows: &Bound<'py, PyAny>, way: Way) -> PyResult<Bound<'py, PyAny>> {
        let py = rows.py();
        self.require_room(py)?;
        match (&self.0, is_single(&array("X", rows)?)) {
            (Precise::Double(model), true) => map(&cast::<f64, f32>(py, model)?.whitener, rows, way),
            (Precise::Single(model), false) => map(&cast::<f32, f64>(py, model)?.whitener, rows, way),
            (Precise::Double(model), false) => map(&model.whitener, rows, way),
            (Precise::Single(model), true) => map(&model.whitener, rows, way),
        }
    }
}

/// The same model in the other precision, by way of its file, which either precision reads.
fn cast<T: Real, U: Real>(py: Python<'_>, model: &Model<T>) -> PyResult<Model<U>> {
    let explain = |error| exception(py, error);
    Model::from_bytes(&model.to_bytes().map_err(explain)?).map_err(explain)
}

fn run<'py, T: Number>(
    whitener: &mut GroupedWhitener<T>,
    rows: &Bound<'py, PyAny>,
    way: Way,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = NumpyRows::<T>::new("X", rows, whitener.channels())?;
    through(&rows, |from, to| match way {
        Way::Adapt => whitener.whiten(from, to),
        Way::AdaptInverse => whitener.unwhiten(from, to),
    })
}

fn map<'py, T: Number>(
    whitener: &GroupedWhitener<T>,
    rows: &Bound<'py, PyAny>,
    way: Way,
) -> PyResult<Bound<'py, PyAny>> {
    let frozen = match way {
        Way::Adapt => whitener.frozen(),
        Way::AdaptInverse => whitener.frozen_inverse(),
    };
    let mut frozen: FrozenWhitener<T> = frozen.map_err(|error| exception(rows.py(), error))?;
    through(&NumpyRows::<T>::new("X", rows, whitener.channels())?, |from, to| frozen.map(from, to))
}

/// Maps rows into as many rows.
fn through<'py, T: Number>(
    rows: &NumpyRows<'py, T>,
    mut map: impl FnMut(&[T], &mut [T]) -> leukos::Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let room = rows.room()?;
    let mut slots = room.try_readwrite()?;
    let (slots, n) = (slots.as_slice_mut()?, rows.width);
    in_stretches(room.py(), rows, |stretch, from| map(from, &mut slots[stretch.start * n..stretch.end * n]))?;
    Ok(room.into_any())
}

fn refuse_context(name: &str, error: &leukos::Error) -> PyErr {
    let problem = error.to_string();
    if name.is_empty() {
        return pyo3::exceptions::PyValueError::new_err(problem.replacen("samples", "X", 1));
    }
    refuse("contexts", "usable samples of each", format!("none of {name:?} ({problem})"))
}

fn synapses<T: Real>(whitener: &GroupedWhitener<T>) -> Matrix {
    let interneurons = whitener.whiteners().map(|own| own.gains().len()).sum();
    let (mut all, mut first) = (Matrix::zeros(whitener.channels(), interneurons), 0);
    for (channels, own) in whitener.groups() {
        let weights = own.circuit().synapses().feedback();
        for k in 0..weights.columns() {
            channels.iter().enumerate().for_each(|(i, &channel)| {
                all[(channel, first + k)] = weights[(i, k)].to_f64();
            });
        }
        first += weights.columns();
    }
    all
}
