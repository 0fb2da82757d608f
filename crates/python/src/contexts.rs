//! Binds the contexts and stimuli of the paper's experiments for `leukos.datasets`.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use leukos::contexts::{Axes, Blank, Contexts, Fields, Law, Patch, Stimuli, Synthetic, stream};
use numpy::{Ix2, PyArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::arrays::{Number, from_matrix, from_stack, indices, matrix, stack, zeros};
use crate::errors::exception;
use crate::interruption::{aside, in_pieces};
use crate::words::{whole, word};

/// The law of the axes: a word, or the axes themselves.
#[derive(FromPyObject)]
pub enum AxesWords<'py> {
    Word(String),
    Given(Bound<'py, PyAny>),
}

impl AxesWords<'_> {
    fn axes(&self, [least, most]: [f64; 2]) -> PyResult<Axes> {
        const WORDS: [(&str, u8); 4] = [("sphere", 0), ("angles", 1), ("nonnegative", 2), ("orthogonal", 3)];
        match self {
            Self::Given(axes) => Ok(Axes::Given(matrix("axes", axes)?)),
            Self::Word(given) => Ok(match word("axes", given, &WORDS)? {
                0 => Axes::Sphere,
                1 => Axes::Angles { least, most },
                2 => Axes::NonNegative,
                _ => Axes::Orthogonal,
            }),
        }
    }
}

/// The paper's synthetic family: covariances, axes V and strengths of each context.
#[pyfunction]
#[pyo3(signature = (
    n_contexts, n_neurons, n_interneurons, *, axes, angles, sparsity, strengths, blank, leak, seed
))]
#[allow(clippy::too_many_arguments)] // Python names its arguments.
pub fn synthetic_covariances<'py>(
    py: Python<'py>,
    n_contexts: i64,
    n_neurons: i64,
    n_interneurons: i64,
    axes: AxesWords<'py>,
    angles: [f64; 2],
    sparsity: f64,
    strengths: [f64; 2],
    blank: &str,
    leak: f64,
    seed: i64,
) -> PyResult<[Bound<'py, PyAny>; 3]> {
    let family = Synthetic {
        neurons: whole("n_neurons", n_neurons, 1)?,
        interneurons: whole("n_interneurons", n_interneurons, 0)?,
        contexts: whole("n_contexts", n_contexts, 1)?,
        axes: axes.axes(angles)?,
        sparsity,
        strengths,
        blank: word("blank", blank, &[("kept", Blank::Kept), ("redrawn", Blank::Redrawn)])?,
        leak,
    };
    let mut rng = stream(seed_of(seed)?, 0);
    let drawn = drawn(py, move |stop| family.draw_watched(&mut rng, || unless(stop)))?;
    let strengths = from_matrix(py, &drawn.strengths.transpose())?;
    Ok([from_stack(py, drawn.contexts.covariances())?, from_matrix(py, &drawn.axes)?, strengths])
}

/// Covariances of patches of 1/f^a fields.
#[pyfunction]
#[pyo3(signature = (
    n_contexts, shape, *, spacing, exponents, log_stretch, upright, noise, condition, norm, seed
))]
#[allow(clippy::too_many_arguments)] // Python names its arguments.
pub fn field_covariances(
    py: Python<'_>,
    n_contexts: i64,
    shape: [i64; 2],
    spacing: i64,
    exponents: [f64; 2],
    log_stretch: f64,
    upright: f64,
    noise: [f64; 2],
    condition: f64,
    norm: f64,
    seed: i64,
) -> PyResult<Bound<'_, PyAny>> {
    let [height, width] = [whole("shape", shape[0], 1)?, whole("shape", shape[1], 1)?];
    let patch = Patch { height, width, spacing: whole("spacing", spacing, 1)? };
    let n_contexts = whole("n_contexts", n_contexts, 1)?;
    let fields =
        Fields { contexts: n_contexts, patch, exponents, log_stretch, upright, noise, condition, norm };
    let mut rng = stream(seed_of(seed)?, 0);
    let drawn = drawn(py, move |stop| fields.draw_watched(&mut rng, || unless(stop)))?;
    from_stack(py, drawn.contexts.covariances())
}

/// Draws on a thread of its own. After Ctrl-C the thread is told to stop, and the caller does not wait for it.
fn drawn<R: Send + 'static>(
    py: Python<'_>,
    draw: impl FnOnce(&AtomicBool) -> leukos::Result<Option<R>> + Send + 'static,
) -> PyResult<R> {
    let drawn = aside(py, draw)?.map_err(|error| exception(py, error))?;
    drawn.ok_or_else(|| PyRuntimeError::new_err("contexts: the drawing was stopped"))
}

/// Whether to go on.
fn unless(stop: &AtomicBool) -> ControlFlow<()> {
    if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The same spectra with random eigenvectors.
#[pyfunction]
pub fn control_covariances<'py>(covariances: &Bound<'py, PyAny>, seed: i64) -> PyResult<Bound<'py, PyAny>> {
    let (py, covariances) = (covariances.py(), stack("covariances", covariances)?);
    let mut rng = stream(seed_of(seed)?, 0);
    let controls =
        aside(py, move |_| Contexts::new(covariances).and_then(|contexts| contexts.controls(&mut rng)))?;
    from_stack(py, controls.map_err(|error| exception(py, error))?.covariances())
}

/// Stimuli of presentations of equal length.
#[pyfunction]
#[pyo3(signature = (covariances, presented, samples, *, degrees_of_freedom, autocorrelation, single, seed))]
#[allow(clippy::too_many_arguments)] // Python names its arguments.
pub fn draw_stimuli<'py>(
    covariances: &Bound<'py, PyAny>,
    presented: &Bound<'py, PyAny>,
    samples: i64,
    degrees_of_freedom: Option<f64>,
    autocorrelation: Option<f64>,
    single: bool,
    seed: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let py = covariances.py();
    let covariances = stack("covariances", covariances)?;
    let contexts = aside(py, move |_| Contexts::new(covariances))?.map_err(|error| exception(py, error))?;
    let presented = indices("presented", presented, contexts.len())?;
    let samples = whole("samples", samples, 1)?;
    let law = match (degrees_of_freedom, autocorrelation) {
        (None, None) => Law::Gaussian,
        (Some(degrees), None) => Law::StudentT { degrees },
        (None, Some(coefficient)) => Law::Autocorrelated { coefficient },
        (Some(_), Some(_)) => {
            return Err(crate::arrays::refuse("autocorrelation", "None with degrees_of_freedom", "a number"));
        }
    };
    let stimuli =
        Stimuli::new(contexts, law, stream(seed_of(seed)?, 0)).map_err(|error| exception(py, error))?;
    if single {
        fill::<f32>(py, stimuli, &presented, samples)
    } else {
        fill::<f64>(py, stimuli, &presented, samples)
    }
}

fn fill<'py, T: Number>(
    py: Python<'py>,
    mut stimuli: Stimuli,
    presented: &[usize],
    samples: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let n = stimuli.contexts().neurons();
    let room = zeros::<T, Ix2>(py, "samples", &[presented.len().saturating_mul(samples), n])?;
    let mut slots = room.try_readwrite()?;
    let slots = slots.as_slice_mut()?;
    // How presentations are cut changes no number.
    in_pieces(py, (presented.len() * samples, n), |rows| {
        let outcome = py.detach(|| {
            let mut from = rows.start;
            while from < rows.end {
                let to = rows.end.min((from / samples + 1) * samples);
                stimuli.fill(presented[from / samples], &mut slots[from * n..to * n])?;
                from = to;
            }
            Ok(())
        });
        outcome.map_err(|error| exception(py, error))
    })?;
    Ok(room.into_any())
}

/// `random_state` of Python.
fn seed_of(given: i64) -> PyResult<u64> {
    whole("random_state", given, 0).map(|seed| seed as u64)
}
