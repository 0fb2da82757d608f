//! Reads the specs of experiments: one TOML file per figure, embedded here, replaceable by the user's.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Experiment, Figure, Setting};

/// How much of the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Everything in two minutes on two cores
    Quick,
    /// The authors' numbers of starts and presentations
    Paper,
}

/// A count at either scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaled {
    quick: NonZeroUsize,
    paper: NonZeroUsize,
}

impl Scaled {
    pub fn at(self, scale: Scale) -> usize {
        match scale {
            Scale::Quick => self.quick.get(),
            Scale::Paper => self.paper.get(),
        }
    }
}

/// A rate or another number that must be above 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64")]
pub struct Positive(pub f64);

impl TryFrom<f64> for Positive {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if value.is_finite() && value > 0.0 {
            return Ok(Self(value));
        }
        Err(format!("expected a finite number above 0, got {value}"))
    }
}

/// How the length of synapses is held at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitNorm {
    /// Not at all.
    Free,
    /// By rescaling after every step.
    Projected,
}

impl UnitNorm {
    pub fn rule(self) -> leukos::UnitNorm {
        match self {
            Self::Free => leukos::UnitNorm::Free,
            Self::Projected => leukos::UnitNorm::Projected,
        }
    }
}

/// A spec that can be carried out: what each figure's file of settings becomes.
pub trait FigureSpec: DeserializeOwned + Serialize {
    /// The experiment it describes.
    ///
    /// # Errors
    /// When a value is not allowed, or contexts cannot be drawn with it.
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>>;
}

/// The spec of any figure, checked.
#[derive(Clone, Debug)]
pub struct Spec {
    figure: Figure,
    /// The settings in one fixed form, whatever the file they came from looked like.
    settings: String,
    carry_out: fn(&str, &Setting) -> Result<Box<dyn Experiment>>,
}

/// What every spec says first.
#[derive(Deserialize)]
struct Title {
    figure: Figure,
}

impl Spec {
    /// The spec that is built in.
    ///
    /// # Errors
    /// When it is damaged, which a test rules out.
    pub fn embedded(figure: Figure) -> Result<Self> {
        Self::parse(figure.embedded_spec()).with_context(|| format!("the embedded spec of {}", figure.name()))
    }

    /// The spec in a file.
    ///
    /// # Errors
    /// When the file cannot be read, or a key is missing, unknown or has a value that is not allowed.
    pub fn read(path: &Path) -> Result<Self> {
        let read = || Self::parse(&std::fs::read_to_string(path)?);
        read().with_context(|| format!("spec {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let title: Title = toml::from_str(text)?;
        title.figure.read_spec(text)
    }

    /// The spec of a figure with settings of this type.
    pub(crate) fn of<S: FigureSpec>(figure: Figure, text: &str) -> Result<Self> {
        let settings: S = toml::from_str(text)?;
        Ok(Self {
            figure,
            settings: serde_json::to_string(&settings)?,
            carry_out: |settings, setting| serde_json::from_str::<S>(settings)?.experiment(setting),
        })
    }

    /// The figure it is for.
    pub fn figure(&self) -> Figure {
        self.figure
    }

    /// Its settings in one fixed form.
    pub fn settings(&self) -> &str {
        &self.settings
    }

    /// The experiment it describes.
    ///
    /// # Errors
    /// When a value is not allowed, or contexts cannot be drawn with it.
    pub fn experiment(&self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        (self.carry_out)(&self.settings, setting)
    }
}
