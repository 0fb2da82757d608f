//! Takes numpy rows through a whitener: adapting in place or on a copy, or with everything frozen.

use std::sync::Arc;

use leukos::{BadSamples, Error, FrozenWhitener, GroupedWhitener, Model, Real, Result};
use numpy::PyArrayMethods;
use pyo3::prelude::*;

use crate::arrays::{Number, NumpyRows, array, is_single, room};
use crate::errors::exception;
use crate::interruption::in_stretches;
use crate::whitener::{Precise, State, Whitener};

/// Which way rows go.
#[derive(Clone, Copy, PartialEq)]
pub enum Way {
    Whiten,
    Unwhiten,
}

/// What to do with the rows of an adapting call.
pub struct Call {
    pub way: Way,
    /// Contexts begin before these rows, in their order.
    pub begins: Vec<usize>,
    /// That of the last row.
    pub label: Option<String>,
}

/// A call with less work than this is done at once, in about 20 ms, in which a copy of the whitener would not pay.
const SHORT: usize = 1 << 22;
/// The work of a row is the square of its channels, and so much in any case.
const OF_A_ROW: usize = 1 << 10;
/// The squares of values beyond this could overflow, and no whitener takes them.
const LARGEST: f64 = 1e150;
/// So many rows at a time are converted to the other precision.
const CONVERTED: usize = 256;

impl Call {
    /// Adapts along rows. A short call that cannot fail works in place; any other works on a copy that takes the place of
    /// the whitener in the end, so that an error or Ctrl-C leaves that as it was.
    pub fn run<'py, T: Precision>(
        self,
        whitener: &Whitener,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut model = T::of(rows.py(), whitener.model())?;
        let rows = NumpyRows::<T>::new("X", rows, model.whitener.channels())?;
        let short = self.way == Way::Whiten && is_short(&model.whitener, rows.count);
        if short && never_fails(&model.whitener, &rows)? {
            return self.run_in_place(whitener, model, &rows);
        }
        let own = Arc::make_mut(&mut model);
        let made = through(&rows, |first, from, to| self.take(&mut own.whitener, first, from, to))?;
        *whitener.lock() = State { model: T::precise(model), label: self.label };
        Ok(made)
    }

    fn run_in_place<'py, T: Precision>(
        self,
        whitener: &Whitener,
        model: Arc<Model<T>>,
        rows: &NumpyRows<'py, T>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let room = rows.room()?;
        let mut slots = room.try_readwrite()?;
        let slots = slots.as_slice_mut()?;
        let outcome = rows.with(0..rows.count, |from| {
            let mut state = whitener.lock();
            // With its own place it is shared no more, unless somebody reads it meanwhile.
            state.model = T::precise(model);
            let Some(model) = T::own(&mut state.model) else { return Ok(()) };
            self.take(&mut Arc::make_mut(model).whitener, 0, from, slots)?;
            state.label = self.label;
            Ok(())
        })?;
        outcome.map_err(|error| rows.in_place(error, 0))?;
        Ok(room.into_any())
    }

    /// Takes in rows that begin with this one.
    fn take<T: Real>(
        &self,
        whitener: &mut GroupedWhitener<T>,
        first: usize,
        from: &[T],
        to: &mut [T],
    ) -> Result<()> {
        let n = whitener.channels();
        let mut done = 0;
        let mut until = |whitener: &mut GroupedWhitener<T>, end: usize| {
            let (own, out) = (&from[done..end], &mut to[done..end]);
            let outcome = match self.way {
                Way::Whiten => whitener.whiten(own, out),
                Way::Unwhiten => whitener.unwhiten(own, out),
            };
            let before = done;
            done = end;
            outcome.map_err(|error| further(error, before))
        };
        let here = first..first + from.len() / n;
        for begin in self.begins.iter().filter(|begin| here.contains(begin)) {
            until(whitener, (begin - first) * n)?;
            whitener.begin_context();
        }
        until(whitener, from.len())
    }
}

/// Whether so many rows are little work.
fn is_short<T: Real>(whitener: &GroupedWhitener<T>, rows: usize) -> bool {
    let work = |channels: usize| channels.saturating_mul(channels).saturating_add(OF_A_ROW);
    let of_a_row = whitener.whiteners().fold(0, |sum: usize, own| sum.saturating_add(work(own.channels())));
    rows.saturating_mul(of_a_row) <= SHORT
}

/// An error about some numbers, where so many others come before them.
fn further(error: Error, before: usize) -> Error {
    match error {
        Error::BadSample { index, value } => Error::BadSample { index: before + index, value },
        other => other,
    }
}

/// Whether no row of these can be refused: bad ones have an answer, or there are none for sure.
fn never_fails<T: Number>(whitener: &GroupedWhitener<T>, rows: &NumpyRows<'_, T>) -> PyResult<bool> {
    if whitener.whiteners().all(|own| own.settings().bad_samples != BadSamples::Error) {
        return Ok(true);
    }
    // One that has not begun does not know yet what it can use.
    let limit = |own: &leukos::Whitener<T>| if own.scale() > 0.0 { own.largest() } else { 0.0 };
    let limit = whitener.whiteners().map(limit).fold(LARGEST, f64::min);
    rows.with(0..rows.count, |values| values.iter().all(|x| x.to_f64().abs() < limit))
}

/// A precision that a model can have.
pub trait Precision: Number {
    /// The model in this precision.
    fn of(py: Python<'_>, model: Precise) -> PyResult<Arc<Model<Self>>>;
    /// A model in this precision.
    fn precise(model: Arc<Model<Self>>) -> Precise;
    /// The model, if it is in this precision.
    fn own(model: &mut Precise) -> Option<&mut Arc<Model<Self>>>;
}

impl Precision for f32 {
    fn of(py: Python<'_>, model: Precise) -> PyResult<Arc<Model<Self>>> {
        match model {
            Precise::Single(model) => Ok(model),
            Precise::Double(model) => cast(py, &model),
        }
    }

    fn precise(model: Arc<Model<Self>>) -> Precise {
        Precise::Single(model)
    }

    fn own(model: &mut Precise) -> Option<&mut Arc<Model<Self>>> {
        if let Precise::Single(model) = model { Some(model) } else { None }
    }
}

impl Precision for f64 {
    fn of(py: Python<'_>, model: Precise) -> PyResult<Arc<Model<Self>>> {
        match model {
            Precise::Double(model) => Ok(model),
            Precise::Single(model) => cast(py, &model),
        }
    }

    fn precise(model: Arc<Model<Self>>) -> Precise {
        Precise::Double(model)
    }

    fn own(model: &mut Precise) -> Option<&mut Arc<Model<Self>>> {
        if let Precise::Double(model) = model { Some(model) } else { None }
    }
}

/// The same model in the other precision, by way of its checkpoint, which either precision reads.
fn cast<T: Real, U: Real>(py: Python<'_>, model: &Model<T>) -> PyResult<Arc<Model<U>>> {
    let explain = |error| exception(py, error);
    Ok(Arc::new(Model::from_bytes(&model.to_checkpoint().map_err(explain)?).map_err(explain)?))
}

/// Takes rows through a model that does not adapt.
pub fn map_rows<'py>(model: Precise, rows: &Bound<'py, PyAny>, way: Way) -> PyResult<Bound<'py, PyAny>> {
    let py = rows.py();
    match (model, is_single(&array("X", rows)?)) {
        (Precise::Single(model), true) => map(frozen(py, &model, way)?, rows),
        (Precise::Double(model), false) => map(frozen(py, &model, way)?, rows),
        (Precise::Double(model), true) => map_single(frozen(py, &model, way)?, rows),
        (Precise::Single(model), false) => map(frozen(py, &*cast::<f32, f64>(py, &model)?, way)?, rows),
    }
}

fn frozen<T: Real>(py: Python<'_>, model: &Model<T>, way: Way) -> PyResult<(FrozenWhitener<T>, usize)> {
    let frozen = py.detach(|| match way {
        Way::Whiten => model.whitener.frozen(),
        Way::Unwhiten => model.whitener.frozen_inverse(),
    });
    Ok((frozen.map_err(|error| exception(py, error))?, model.whitener.channels()))
}

fn map<'py, T: Number>(
    (mut frozen, channels): (FrozenWhitener<T>, usize),
    rows: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    through(&NumpyRows::<T>::new("X", rows, channels)?, |_, from, to| frozen.map(from, to))
}

/// Rows in single precision through a model in double precision: a frozen one computes in double precision anyway.
fn map_single<'py>(
    (mut frozen, channels): (FrozenWhitener<f64>, usize),
    rows: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut wide: Vec<f64> = room("X", CONVERTED, channels)?;
    let mut answers: Vec<f64> = room("X", CONVERTED, channels)?;
    through(&NumpyRows::<f32>::new("X", rows, channels)?, |_, from, to| {
        let block = CONVERTED * channels;
        for (number, (from, to)) in from.chunks(block).zip(to.chunks_mut(block)).enumerate() {
            wide.clear();
            wide.extend(from.iter().map(|&x| f64::from(x)));
            answers.resize(from.len(), 0.0);
            frozen.map(&wide, &mut answers).map_err(|error| further(error, number * block))?;
            to.iter_mut().zip(&answers).for_each(|(to, &x)| *to = Real::from_f64(x));
        }
        Ok(())
    })
}

/// Maps rows into as many rows, a piece at a time; the map is told the number of the first row of each.
fn through<'py, T: Number>(
    rows: &NumpyRows<'py, T>,
    mut map: impl FnMut(usize, &[T], &mut [T]) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let room = rows.room()?;
    let mut slots = room.try_readwrite()?;
    let (slots, n) = (slots.as_slice_mut()?, rows.width);
    in_stretches(room.py(), rows, |stretch, from| {
        map(stretch.start, from, &mut slots[stretch.start * n..stretch.end * n])
    })?;
    Ok(room.into_any())
}
