//! Turns the errors of the core into exceptions.

use leukos::{Diverged, Error};
use pyo3::PyClass;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::False;

use crate::arrays::Number;

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
    exception_in::<f64>(py, error)
}

/// The same for a run in this precision, which the circuit of a divergence has too.
pub fn exception_in<T: Number>(py: Python<'_>, error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Diverged(diverged) => self::diverged::<T>(py, text, &diverged).unwrap_or_else(|error| error),
        Error::NotConverged { .. } => NotConvergedError::new_err(text),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

fn diverged<T: Number>(py: Python<'_>, text: String, diverged: &Diverged) -> PyResult<PyErr> {
    let exception = DivergedError::new_err(text);
    let value = exception.value(py);
    value.setattr("step", diverged.step)?;
    value.setattr("circuit", T::circuit(diverged.circuit.cast()))?;
    Ok(exception)
}

/// The core names arguments by words; some functions here use the symbols of the paper.
pub fn with_symbols(py: Python<'_>, symbols: &[(&str, &'static str)]) -> impl Fn(Error) -> PyErr {
    move |error| {
        let text = error.to_string();
        let renamed = symbols.iter().find_map(|(word, symbol)| {
            Some(format!("{symbol}:{}", text.strip_prefix(word)?.strip_prefix(':')?))
        });
        match (renamed, &error) {
            (Some(text), Error::OutOfMemory { .. }) => PyMemoryError::new_err(text),
            (Some(text), _) => PyValueError::new_err(text),
            (None, _) => exception(py, error),
        }
    }
}

/// Checks that there is memory for this many numbers before Rust allocates them: a failure there would end the process.
pub fn require_memory(argument: &str, numbers: usize) -> PyResult<()> {
    let room = leukos::size::require_memory(argument.to_owned(), numbers);
    room.map_err(|error| PyMemoryError::new_err(error.to_string()))
}

/// Exclusive access to an object that will be changed.
pub fn alone<'py, T: PyClass<Frozen = False>>(object: &Bound<'py, T>) -> PyResult<PyRefMut<'py, T>> {
    object.try_borrow_mut().map_err(|_| {
        let name =
            object.as_any().get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        let problem = "expected one thread at a time, got a call while another thread is still using it";
        PyRuntimeError::new_err(format!("{name}: {problem}"))
    })
}
