//! Shows the table of settings to Python.

use leukos::settings::{SETTINGS, Value, Values};
use pyo3::prelude::*;

/// A setting: a parameter of `AdaptiveWhitener`, and a flag of `leukos fit`.
#[pyclass(frozen, module = "leukos._leukos")]
pub struct Setting(&'static leukos::settings::Setting);

/// A default.
#[derive(IntoPyObject)]
pub enum Given {
    Word(&'static str),
    Number(f64),
    Whole(u32),
}

#[pymethods]
impl Setting {
    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    /// What it does, without a full stop.
    #[getter]
    fn about(&self) -> &'static str {
        self.0.about
    }

    /// The words that it takes, each with the rest of a sentence that begins with it.
    #[getter]
    fn words(&self) -> Vec<(&'static str, &'static str)> {
        self.0.words.to_vec()
    }

    /// What it takes besides words.
    #[getter]
    fn values(&self) -> &'static str {
        match self.0.values {
            Values::Words => "words",
            Values::Number(_) | Values::Positive => "number",
            Values::Time => "time",
            Values::Samples(_) => "samples",
            Values::Interneurons => "interneurons",
            Values::Seed => "seed",
            Values::Synapses => "synapses",
            Values::Groups => "groups",
        }
    }

    /// The least value where it takes whole numbers, else 0.
    #[getter]
    fn least(&self) -> usize {
        match &self.0.values {
            Values::Samples(range) => *range.start(),
            _ => 0,
        }
    }

    /// The default in Python.
    #[getter]
    fn default(&self) -> Option<Given> {
        match self.0.python_default() {
            Value::None(_) => None,
            Value::Word(word) => Some(Given::Word(word)),
            Value::Number(number) => Some(Given::Number(number)),
            Value::Whole(number) => Some(Given::Whole(number)),
        }
    }

    /// The default in words.
    #[getter]
    fn default_in_words(&self) -> String {
        self.0.python_default().to_string()
    }
}

/// All settings, in the order in which they are shown.
#[pyfunction]
pub fn settings() -> Vec<Setting> {
    SETTINGS.iter().map(Setting).collect()
}
