//! Reads the parameters of `AdaptiveWhitener`, and writes them from a model.

use leukos::{
    BadSamples, Follow, GroupedWhitener, Moments, Real, Span, TrainingSynapses, WhitenerSettings,
    WhitenerTraining,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::matrix;
use crate::errors::exception;
use crate::words::{word, word_for};

const BAD_SAMPLES: [(&str, BadSamples); 4] = [
    ("error", BadSamples::Error),
    ("mark", BadSamples::Mark),
    ("hold", BadSamples::Hold),
    ("zero", BadSamples::Zero),
];
const FOLLOW: [(&str, Follow); 2] = [("contexts", Follow::Contexts), ("nothing", Follow::Nothing)];
/// The word for a time constant that the samples show.
const AUTO: &str = "auto";

/// How a whitener is fitted, in words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Fitting<'py> {
    n_interneurons: Option<usize>,
    synapses: SynapseWords<'py>,
    pub groups: Option<Vec<Vec<usize>>>,
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
            bad_samples: word("bad_samples", &self.bad_samples, &BAD_SAMPLES)?,
            follow: word("follow", &self.follow, &FOLLOW)?,
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
    let own = first.settings();
    let pace = own.time_constants(first.channels()).map_err(|error| exception(py, error))?;
    match own.time_constant {
        None => all.set_item("time_constant", AUTO)?,
        Some(_) => all.set_item("time_constant", pace.shortest)?,
    }
    all.set_item("synapse_time_constant", pace.synapses)?;
    all.set_item("strength", own.strength)?;
    all.set_item("bad_samples", word_for(own.bad_samples, &BAD_SAMPLES))?;
    all.set_item("follow", word_for(own.follow, &FOLLOW))?;
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
