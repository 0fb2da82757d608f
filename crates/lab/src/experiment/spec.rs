//! Reads the specs of experiments: one TOML file per figure, embedded here, replaceable by the user's.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    Figure, ablation, biological, control, geometry, interneurons, leak, natural, one_dimensional, synthetic,
};

/// How much of the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Everything in about a minute on two cores
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
        Err(format!("expected a finite number above 0, came {value}"))
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

/// The spec of a figure.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Spec {
    /// Figs. 1 and 2.
    Geometry(geometry::GeometrySpec),
    /// Fig. 3.
    Synthetic(synthetic::SyntheticSpec),
    /// Fig. 4 without E.
    Natural(natural::NaturalSpec),
    /// Fig. 4 E.
    Interneurons(interneurons::InterneuronsSpec),
    /// 16 × 1 pixels.
    OneDimensional(one_dimensional::OneDimensionalSpec),
    /// Random eigenvectors.
    Control(control::ControlSpec),
    /// Algorithm 3.
    Biological(biological::BiologicalSpec),
    /// Other leaks.
    Leak(leak::LeakSpec),
    /// Synapses alone, gains alone, both.
    Ablation(ablation::AblationSpec),
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
        Self::parse(embedded(figure)).with_context(|| format!("the embedded spec of {}", figure.name()))
    }

    /// The spec in a file.
    ///
    /// # Errors
    /// When the file cannot be read, or a key is missing, unknown or has a value that will not do.
    pub fn read(path: &Path) -> Result<Self> {
        let read = || Self::parse(&std::fs::read_to_string(path)?);
        read().with_context(|| format!("spec {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let title: Title = toml::from_str(text)?;
        Ok(match title.figure {
            Figure::Geometry => Self::Geometry(body(text)?),
            Figure::Synthetic => Self::Synthetic(body(text)?),
            Figure::Natural => Self::Natural(body(text)?),
            Figure::Interneurons => Self::Interneurons(body(text)?),
            Figure::OneDimensional => Self::OneDimensional(body(text)?),
            Figure::Control => Self::Control(body(text)?),
            Figure::Biological => Self::Biological(body(text)?),
            Figure::Leak => Self::Leak(body(text)?),
            Figure::Ablation => Self::Ablation(body(text)?),
        })
    }

    /// The figure it is for.
    pub fn figure(&self) -> Figure {
        match self {
            Self::Geometry(_) => Figure::Geometry,
            Self::Synthetic(_) => Figure::Synthetic,
            Self::Natural(_) => Figure::Natural,
            Self::Interneurons(_) => Figure::Interneurons,
            Self::OneDimensional(_) => Figure::OneDimensional,
            Self::Control(_) => Figure::Control,
            Self::Biological(_) => Figure::Biological,
            Self::Leak(_) => Figure::Leak,
            Self::Ablation(_) => Figure::Ablation,
        }
    }
}

fn body<S: DeserializeOwned>(text: &str) -> Result<S> {
    Ok(toml::from_str(text)?)
}

fn embedded(figure: Figure) -> &'static str {
    match figure {
        Figure::Geometry => include_str!("../../../../experiments/geometry.toml"),
        Figure::Synthetic => include_str!("../../../../experiments/synthetic.toml"),
        Figure::Natural => include_str!("../../../../experiments/natural.toml"),
        Figure::Interneurons => include_str!("../../../../experiments/interneurons.toml"),
        Figure::OneDimensional => include_str!("../../../../experiments/one-dimensional.toml"),
        Figure::Control => include_str!("../../../../experiments/control.toml"),
        Figure::Biological => include_str!("../../../../experiments/biological.toml"),
        Figure::Leak => include_str!("../../../../experiments/leak.toml"),
        Figure::Ablation => include_str!("../../../../experiments/ablation.toml"),
    }
}
