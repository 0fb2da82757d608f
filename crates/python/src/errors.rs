//! Turns the errors of the core into exceptions.

use leukos::{Diverged, Error};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::circuit::Circuit;

pyo3::create_exception!(
    leukos,
    DivergedError,
    PyRuntimeError,
    "A run lost definiteness. `step` is the step, counted from 0, whose update or response failed; `circuit` is the \
     last circuit known to be valid. Smaller rates may help."
);
pyo3::create_exception!(
    leukos,
    NotConvergedError,
    PyRuntimeError,
    "The recurrent dynamics did not settle, or an iteration ran out of steps."
);

/// The exception for an error.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Diverged(diverged) => self::diverged(py, text, *diverged).unwrap_or_else(|error| error),
        Error::NotConverged { .. } => NotConvergedError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

fn diverged(py: Python<'_>, text: String, diverged: Diverged) -> PyResult<PyErr> {
    let exception = DivergedError::new_err(text);
    let value = exception.value(py);
    value.setattr("step", diverged.step)?;
    value.setattr("circuit", Circuit::from(diverged.circuit))?;
    Ok(exception)
}

/// The core calls arguments by words, and some functions here by the symbols of the paper.
pub fn with_symbols(py: Python<'_>, symbols: &[(&str, &'static str)]) -> impl Fn(Error) -> PyErr {
    move |error| {
        let text = error.to_string();
        let renamed = symbols.iter().find_map(|(word, symbol)| {
            Some(format!("{symbol}:{}", text.strip_prefix(word)?.strip_prefix(':')?))
        });
        match renamed {
            Some(text) => PyValueError::new_err(text),
            None => exception(py, error),
        }
    }
}
