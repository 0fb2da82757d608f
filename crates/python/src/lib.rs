//! Binds the core to Python: numpy arrays in, the same objects in the middle, numpy arrays out.
//!
//! Files and names are those of the core. What is here checks and converts arguments, lets other Python threads run
//! meanwhile, checks for Ctrl-C, and turns errors into exceptions; all mathematics is in the core.

// Python hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod arrays;
mod circuit;
mod contexts;
mod errors;
mod fitting;
mod interruption;
mod moments;
mod offline;
mod online;
mod settings;
mod theory;
mod trace;
mod whitener;
mod whitening;
mod words;

use pyo3::prelude::*;

/// The compiled part of leukos.
#[pymodule]
mod _leukos {
    #[pymodule_export]
    use crate::circuit::Circuit;
    #[pymodule_export]
    use crate::contexts::{control_covariances, draw_stimuli, field_covariances, synthetic_covariances};
    #[pymodule_export]
    use crate::errors::{DivergedError, NotConvergedError};
    #[pymodule_export]
    use crate::moments::{ContextMoments, Moments};
    #[pymodule_export]
    use crate::offline::{OfflineRun, run_offline};
    #[pymodule_export]
    use crate::online::{OnlineRun, run_biological, run_online};
    #[pymodule_export]
    use crate::settings::{Setting, settings};
    #[pymodule_export]
    use crate::theory::{align, gradient, least_squares_gains, objective, optimal_gains, whitening_error};
    #[pymodule_export]
    use crate::whitener::Whitener;

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
