//! Binds sums of samples that can be merged, alone and by context.

use leukos::size::require_moments;
use leukos::{ContextMoments as CoreContexts, Moments as Core, RunningMoments, mark_unusable};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{
    Number, NumpyRows, array, from_matrix, from_slice, is_single, matrix, refuse, room, vector,
};
use crate::errors::{alone, exception};
use crate::interruption::{MOST_NUMBERS, in_stretches};
use crate::words::whole;

/// Count, mean and co-moments of samples, which can be summed up separately and merged.
///
/// Parameters
/// ----------
/// channels : int
///
/// Any split of the samples gives the same to rounding, and the same bits as long as it is the same split (Chan, Golub
/// and LeVeque 1983). Rows with a NaN or an infinity are counted in `bad` and left out, and so are wild ones: those more
/// than 30 times as far from the median of their block of 256 as is typical there.
#[pyclass(eq, from_py_object, module = "leukos")]
#[derive(Clone, PartialEq)]
pub struct Moments(pub Core);

#[pymethods]
impl Moments {
    #[new]
    fn new(py: Python<'_>, channels: i64) -> PyResult<Self> {
        let channels = whole("channels", channels, 1)?;
        require_moments(channels, 1).map_err(|error| exception(py, error))?;
        Ok(Self(Core::new(channels)))
    }

    /// Takes in rows of samples, an array of shape (T, channels).
    #[allow(non_snake_case)]
    fn update(slf: &Bound<'_, Self>, X: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut own = alone(slf)?;
        if is_single(&array("X", X)?) { own.take_in::<f32>(X) } else { own.take_in::<f64>(X) }
    }

    /// Adds the samples that another has summed up.
    fn merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        if slf.is(other) {
            let found = "the same object, whose samples would count twice (a copy.copy can be merged)";
            return Err(refuse("other", "other Moments than these", found));
        }
        let (mut own, other) = (alone(slf)?, other.try_borrow()?);
        own.0.merge(&other.0).map_err(|error| exception(slf.py(), error))
    }

    /// The covariance (channels, channels) about the mean, divided by the count.
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        require_moments(self.channels(), 1).map_err(|error| exception(py, error))?;
        let covariance = self.0.covariance().map_err(|error| exception(py, error))?;
        from_matrix(py, &covariance)
    }

    /// The number of channels.
    #[getter]
    fn channels(&self) -> usize {
        self.0.channels()
    }

    /// The number of samples summed up.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    /// The number of samples left out.
    #[getter]
    fn bad(&self) -> u64 {
        self.0.bad()
    }

    /// The mean (channels,).
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_slice(py, self.0.mean())
    }

    /// The sum of (s - mean)(s - mean)' (channels, channels).
    #[getter]
    fn comoments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_matrix(py, self.0.comoments())
    }

    fn __repr__(&self) -> String {
        let (count, channels, bad) = (self.0.count(), self.0.channels(), self.0.bad());
        format!("<leukos.Moments: {count} samples of {channels} channels, {bad} bad>")
    }

    fn __getnewargs__(&self) -> (usize,) {
        (self.channels(),)
    }

    fn __getstate__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(u64, u64, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        Ok((self.count(), self.bad(), self.mean(py)?, self.comoments(py)?))
    }

    fn __setstate__(
        &mut self,
        py: Python<'_>,
        state: (u64, u64, Bound<'_, PyAny>, Bound<'_, PyAny>),
    ) -> PyResult<()> {
        let (count, bad, mean, comoments) = state;
        let (mean, comoments) = (vector("mean", &mean)?, matrix("comoments", &comoments)?);
        self.0 = Core::from_parts(count, bad, mean, comoments).map_err(|error| exception(py, error))?;
        Ok(())
    }
}

impl Moments {
    fn take_in<T: Number>(&mut self, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, rows) = (rows.py(), NumpyRows::<T>::new("X", rows, self.0.channels())?);
        require_moments(self.0.channels(), 1).map_err(|error| exception(py, error))?;
        // A copy, so that an interrupted call has done nothing.
        let mut sum =
            RunningMoments::resume(self.0.clone(), Vec::new()).map_err(|error| exception(py, error))?;
        in_stretches(py, &rows, |_, rows| sum.update(rows))?;
        self.0 = sum.finish().map_err(|error| exception(py, error))?;
        Ok(())
    }
}

/// Moments of each context of a stream; the engine of `AdaptiveWhitener.fit`.
#[pyclass(module = "leukos._leukos")]
#[derive(Clone)]
pub struct ContextMoments {
    pub core: CoreContexts,
    channels: usize,
    /// Values this large count as bad.
    saturation: Option<f64>,
    #[pyo3(get)]
    rows: u64,
    #[pyo3(get)]
    bad: u64,
}

#[pymethods]
impl ContextMoments {
    #[new]
    fn new(channels: usize, saturation: Option<f64>) -> Self {
        let core = CoreContexts::new(channels);
        Self { core, channels, saturation, rows: 0, bad: 0 }
    }

    /// Takes in rows of one context.
    #[allow(non_snake_case)]
    fn update(slf: &Bound<'_, Self>, context: &str, X: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut own = alone(slf)?;
        if is_single(&array("X", X)?) {
            own.take_in::<f32>(context, X)
        } else {
            own.take_in::<f64>(context, X)
        }
    }

    /// Of contexts that were summed up elsewhere, by name; further rows can be taken in.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        channels: usize,
        saturation: Option<f64>,
        contexts: Vec<(String, Bound<'_, Moments>)>,
    ) -> PyResult<Self> {
        let explain = |error| exception(py, error);
        require_moments(channels, contexts.len()).map_err(explain)?;
        let (mut rows, mut bad) = (0, 0);
        let resume = |(name, moments): (String, Bound<'_, Moments>)| {
            let moments = moments.try_borrow()?.0.clone();
            rows += moments.count() + moments.bad();
            bad += moments.bad();
            RunningMoments::resume(moments, Vec::new()).map(|running| (name, running)).map_err(explain)
        };
        let contexts = contexts.into_iter().map(resume).collect::<PyResult<_>>()?;
        let core = CoreContexts::resume(channels, contexts).map_err(explain)?;
        Ok(Self { core, channels, saturation, rows, bad })
    }

    /// How many contexts there are.
    fn __len__(&self) -> usize {
        self.core.contexts().len()
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.require_room(py)?;
        Ok(self.clone())
    }

    fn __getnewargs__(&self) -> (usize, Option<f64>) {
        (self.channels, self.saturation)
    }

    /// Everything, so that a pickled estimator sums up further to the same bits.
    fn __getstate__<'py>(&self, py: Python<'py>) -> PyResult<(u64, u64, Bound<'py, PyList>)> {
        self.require_room(py)?;
        let contexts = self.core.contexts().map(|(name, running)| {
            let (moments, waiting) = running.parts();
            Ok((name, Moments(moments.clone()), from_slice(py, waiting)?))
        });
        Ok((self.rows, self.bad, PyList::new(py, contexts.collect::<PyResult<Vec<_>>>()?)?))
    }

    #[allow(clippy::type_complexity)] // The mirror of what is above.
    fn __setstate__(
        &mut self,
        py: Python<'_>,
        state: (u64, u64, Vec<(String, Moments, PyReadonlyArray1<'_, f64>)>),
    ) -> PyResult<()> {
        let explain = |error| exception(py, error);
        let resume = |(name, moments, waiting): (String, Moments, PyReadonlyArray1<'_, f64>)| {
            let waiting = waiting.as_slice()?.to_vec();
            Ok((name, RunningMoments::resume(moments.0, waiting).map_err(explain)?))
        };
        let contexts = state.2.into_iter().map(resume).collect::<PyResult<_>>()?;
        self.core = CoreContexts::resume(self.channels, contexts).map_err(explain)?;
        (self.rows, self.bad) = (state.0, state.1);
        Ok(())
    }
}

impl ContextMoments {
    /// Checks that there is memory for a copy.
    pub fn require_room(&self, py: Python<'_>) -> PyResult<()> {
        require_moments(self.channels, self.core.contexts().len()).map_err(|error| exception(py, error))
    }

    fn take_in<T: Number>(&mut self, context: &str, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, rows) = (rows.py(), NumpyRows::<T>::new("X", rows, self.channels)?);
        let mut usable = room("X", rows.count.min(MOST_NUMBERS / rows.width.max(1) + 1), rows.width)?;
        in_stretches(py, &rows, |_, rows| {
            usable.clear();
            usable.extend(rows.iter().map(|x| x.to_f64()));
            self.rows += (usable.len() / self.channels) as u64;
            self.bad += mark_unusable(&mut usable, self.channels, self.saturation);
            self.core.update(context, &usable)
        })
    }
}
