//! Reads the parameters of `AdaptiveWhitener`, and writes them from a model.

use leukos::settings::{BAD_SAMPLES, FOLLOW, SYNAPSES, Setting, TIME_CONSTANT};
use leukos::{GroupedWhitener, Moments, Real, Span, TrainingSynapses, WhitenerSettings, WhitenerTraining};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::matrix;
use crate::errors::exception;
use crate::words::unknown_word;

/// How a whitener is fitted, in words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Fitting<'py> {
    n_interneurons: Option<usize>,
    synapses: SynapseWords<'py>,
    pub groups: Option<Vec<Vec<usize>>>,
    #[pyo3(item("random_state"))]
    pub seed: u64,
    /// None is "auto".
    time_constant: Option<f64>,
    synapse_time_constant: Option<f64>,
    strength: f64,
    bad_samples: String,
    follow: String,
    saturation: Option<f64>,
    floor: f64,
    update_every: Option<usize>,
    exclude_above: Option<f64>,
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
            sample_rate: None,
            time_constant: self.time_constant.map(Span::Samples),
            synapse_time_constant: self.synapse_time_constant.map(Span::Samples),
            strength: self.strength,
            bad_samples: known(&BAD_SAMPLES, &self.bad_samples, BAD_SAMPLES.meaning(&self.bad_samples))?,
            follow: known(&FOLLOW, &self.follow, FOLLOW.meaning(&self.follow))?,
            saturation: self.saturation,
            floor: self.floor,
            update_every: self.update_every,
            exclude_above: self.exclude_above,
        })
    }

    /// What it is fitted to, and from where.
    pub fn training(&self, moments: Vec<Moments>) -> PyResult<WhitenerTraining> {
        let synapses = match &self.synapses {
            SynapseWords::Given(synapses) => TrainingSynapses::Given(matrix("synapses", synapses)?),
            SynapseWords::Word(given) => {
                let meaning = match given.as_str() {
                    "eigenbasis" => Some(TrainingSynapses::Eigenbasis),
                    "random" => Some(TrainingSynapses::Random),
                    _ => None,
                };
                known(&SYNAPSES, given, meaning)?
            }
        };
        let interneurons = self.n_interneurons;
        Ok(WhitenerTraining { moments, interneurons, synapses, ..WhitenerTraining::default() })
    }
}

/// The meaning of a word, where it has one.
fn known<M>(setting: &Setting, given: &str, meaning: Option<M>) -> PyResult<M> {
    meaning.ok_or_else(|| unknown_word(setting.name, setting.words.iter().map(|(word, _)| *word), given))
}

/// The word of a setting that has a meaning.
fn word_that(setting: &Setting, means: impl Fn(&str) -> bool) -> Option<&'static str> {
    setting.words.iter().map(|(word, _)| *word).find(|word| means(word))
}

/// The groups of a loaded model are groups of the estimator, and the settings those of its first.
pub fn settings<'py, T: Real>(
    py: Python<'py>,
    whitener: &GroupedWhitener<T>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let Some((_, first)) = whitener.groups().next() else { return Ok(all) };
    let own = first.settings();
    let pace = own.time_constants(first.channels()).map_err(|error| exception(py, error))?;
    match own.time_constant {
        None => all.set_item("time_constant", TIME_CONSTANT.default.to_string())?,
        Some(_) => all.set_item("time_constant", pace.shortest)?,
    }
    all.set_item("synapse_time_constant", pace.synapses)?;
    all.set_item("strength", own.strength)?;
    let bad_samples = word_that(&BAD_SAMPLES, |word| BAD_SAMPLES.meaning(word) == Some(own.bad_samples));
    all.set_item("bad_samples", bad_samples)?;
    all.set_item("follow", word_that(&FOLLOW, |word| FOLLOW.meaning(word) == Some(own.follow)))?;
    all.set_item("saturation", own.saturation)?;
    all.set_item("floor", own.floor)?;
    all.set_item("update_every", own.update_every)?;
    all.set_item("exclude_above", own.exclude_above)?;
    all.set_item("n_interneurons", first.interneurons())?;
    let groups: Option<Vec<Vec<usize>>> = match whitener.single() {
        Some(_) => None,
        None => Some(whitener.groups().map(|(channels, _)| channels.to_vec()).collect()),
    };
    all.set_item("groups", groups)?;
    Ok(all)
}
