//! Reads the parameters of `AdaptiveWhitener`, and writes them from a model.

use leukos::{
    BadSamples, GroupedWhitener, Moments, Real, Span, TrainingSynapses, WhitenerSettings, WhitenerTraining,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::matrix;
use crate::errors::exception;
use crate::words::word;

const BAD_SAMPLES: [(&str, BadSamples); 4] = [
    ("error", BadSamples::Error),
    ("mark", BadSamples::Mark),
    ("hold", BadSamples::Hold),
    ("zero", BadSamples::Zero),
];

/// How a whitener is fitted, in words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Fitting<'py> {
    n_interneurons: Option<usize>,
    synapses: SynapseWords<'py>,
    pub groups: Option<Vec<Vec<usize>>>,
    pub seed: u64,
    time_constant: f64,
    synapse_time_constant: Option<f64>,
    mean_time_constant: Option<f64>,
    strength: f64,
    bad_samples: String,
    saturation: Option<f64>,
    update_every: usize,
    floor: f64,
    outlier_limit: f64,
    patience: Option<f64>,
    leak: f64,
    pub channel_names: Option<Vec<String>>,
}

#[derive(FromPyObject)]
enum SynapseWords<'py> {
    Word(String),
    Given(Bound<'py, PyAny>),
}

impl Fitting<'_> {
    /// How it adapts; the core checks the numbers.
    pub fn settings(&self) -> PyResult<WhitenerSettings> {
        Ok(WhitenerSettings {
            time_constant: Span::Samples(self.time_constant),
            synapse_time_constant: self.synapse_time_constant.map(Span::Samples),
            mean_time_constant: self.mean_time_constant.map(Span::Samples),
            strength: self.strength,
            bad_samples: word("bad_samples", &self.bad_samples, &BAD_SAMPLES)?,
            saturation: self.saturation,
            update_every: self.update_every,
            floor: self.floor,
            outlier_limit: self.outlier_limit,
            patience: self.patience.map(Span::Samples),
            leak: self.leak,
            ..WhitenerSettings::default()
        })
    }

    /// What it is fitted to, and from where.
    pub fn training(&self, moments: Vec<Moments>) -> PyResult<WhitenerTraining> {
        let synapses = match &self.synapses {
            SynapseWords::Given(synapses) => TrainingSynapses::Given(matrix("synapses", synapses)?),
            SynapseWords::Word(given) => {
                match word("synapses", given, &[("eigenbasis", 0), ("random", 1)])? {
                    0 => TrainingSynapses::Eigenbasis,
                    _ => TrainingSynapses::Random,
                }
            }
        };
        let interneurons = self.n_interneurons;
        Ok(WhitenerTraining { moments, interneurons, synapses, ..WhitenerTraining::default() })
    }
}

/// The groups of a loaded model are groups of the estimator, and the settings those of its first.
pub fn settings<'py, T: Real>(
    py: Python<'py>,
    whitener: &GroupedWhitener<T>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let Some((_, first)) = whitener.groups().next() else { return Ok(all) };
    let (own, pace) = (first.settings(), first.settings().time_constants());
    let pace = pace.map_err(|error| exception(py, error))?;
    all.set_item("time_constant", pace.gains)?;
    all.set_item("synapse_time_constant", pace.synapses)?;
    all.set_item("mean_time_constant", own.mean_time_constant.map(|_| pace.mean))?;
    all.set_item("strength", own.strength)?;
    let choice = BAD_SAMPLES.iter().find(|(_, choice)| *choice == own.bad_samples);
    all.set_item("bad_samples", choice.map(|(word, _)| word))?;
    all.set_item("saturation", own.saturation)?;
    all.set_item("update_every", own.update_every)?;
    all.set_item("floor", own.floor)?;
    all.set_item("outlier_limit", own.outlier_limit)?;
    all.set_item("patience", own.patience.map(|_| pace.patience))?;
    all.set_item("leak", own.leak)?;
    all.set_item("n_interneurons", first.gains().len())?;
    let groups: Option<Vec<Vec<usize>>> = match whitener.single() {
        Some(_) => None,
        None => Some(whitener.groups().map(|(channels, _)| channels.to_vec()).collect()),
    };
    all.set_item("groups", groups)?;
    Ok(all)
}
