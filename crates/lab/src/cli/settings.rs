//! Holds the flags that say how a whitener adapts and how recordings are read, with one name and one default everywhere.

mod config;
mod values;

use anyhow::Result;
use clap::Args;
use leukos::{BadSamples, Follow, Span, WhitenerSettings};
use serde::{Deserialize, Serialize};
use toml::Table;

pub use config::Config;
pub use values::{Groups, Memory, Start, Time, bad_samples, follow};

use super::Usage;
use crate::recording::{Format, ReadOptions, SampleType};

/// How a whitener adapts. What is not given has the default of `WhitenerSettings`.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Adaptation")]
pub struct Settings {
    /// The number of interneurons [default: as many as there are channels]
    #[arg(long, value_name = "K")]
    pub n_interneurons: Option<usize>,
    /// The synapses to start from: `eigenbasis` (of the mean covariance of the contexts), `random` (orthonormal
    /// columns), a .npy array of shape (channels, K), or another MODEL; with several contexts they are then learned
    /// [default: eigenbasis]
    #[arg(long, value_name = "WORD|FILE.npy|MODEL")]
    pub synapses: Option<Start>,
    /// What is signal and what is context, as the length of the shortest memory: a number of samples, or a time such as
    /// 2s or 500ms, which needs a sample rate. What changes faster is signal and is left alone. `auto` is about two
    /// samples for each channel, and the samples themselves show how long to remember [default: auto]
    #[arg(long, value_name = "TIME|auto")]
    pub time_constant: Option<Memory>,
    /// How long the synapses remember; use at least a hundred times --time-constant [default: synapses do not change]
    #[arg(long, value_name = "TIME")]
    pub synapse_time_constant: Option<Time>,
    /// How strongly to whiten: 0 only centres and scales, 1 whitens fully [default: 1]
    #[arg(long, value_name = "0..1", allow_negative_numbers = true)]
    pub strength: Option<f64>,
    /// What to write for a sample with a NaN, an infinity or a saturated value: `mark` a row of NaN, `hold` the row
    /// before once more, `zero` a row of zeros; `error` stops [default: mark]
    #[arg(long, value_name = "mark|hold|zero|error", value_parser = bad_samples)]
    pub bad_samples: Option<BadSamples>,
    /// Groups of channels that are whitened separately: `0-3,4-7` makes two groups of four channels; `0-2+6,3-5` puts
    /// channels 0, 1, 2 and 6 into the first [default: one group of all channels]
    #[arg(long, value_name = "GROUPS")]
    pub groups: Option<Groups>,
    /// The seed of random synapses [default: 0]
    #[arg(long, value_name = "S")]
    pub random_state: Option<u64>,
    /// Values of this size or larger, of either sign, count as saturated and therefore bad [default: no limit]
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    pub saturation: Option<f64>,
    /// Directions with a smaller standard deviation than this, relative to the scale of the input, count as empty and are
    /// not amplified to one [default: 0.001]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub floor: Option<f64>,
    /// The number of samples between two updates; every sample is answered at once all the same [default: a third of
    /// the number of channels, 128 at most]
    #[arg(long, value_name = "SAMPLES")]
    pub update_every: Option<usize>,
    /// What to follow: `contexts`, the covariance in force, or `nothing`, so that all stays as it was fitted
    /// [default: contexts]
    #[arg(long, value_name = "contexts|nothing", value_parser = follow)]
    pub follow: Option<Follow>,
    /// Do not learn from a sample with a channel further from its mean than so many of its standard deviations, unless
    /// such samples go on [default: no limit, but wild samples are left aside]
    #[arg(long, value_name = "DEVIATIONS", allow_negative_numbers = true)]
    pub exclude_above: Option<f64>,
}

/// How a recording is read, where its file does not say so itself.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Input format")]
pub struct Reading {
    /// The format, if the file name does not tell
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The number of channels of a raw recording
    #[arg(long, value_name = "N")]
    pub channels: Option<usize>,
    /// The type of the numbers in a raw recording
    #[arg(long, value_enum)]
    pub dtype: Option<SampleType>,
    /// Samples per second, if the file does not tell
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    pub sample_rate: Option<f64>,
    /// The column of a CSV or TSV file that holds labels instead of a channel: its name, or its number counted from 0
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
}

impl Settings {
    /// The defaults of those settings that have a fixed one.
    fn usual() -> Self {
        let usual = WhitenerSettings::default();
        Self {
            synapses: Some(Start::Eigenbasis),
            time_constant: Some(Memory::Auto),
            strength: Some(usual.strength),
            bad_samples: Some(usual.bad_samples),
            random_state: Some(0),
            floor: Some(usual.floor),
            follow: Some(usual.follow),
            ..Self::default()
        }
    }

    /// The settings that differ from their defaults.
    ///
    /// # Errors
    /// When they cannot be put into a table.
    pub fn unusual(&self) -> Result<Table> {
        let usual = Table::try_from(Self::usual())?;
        let mut table = Table::try_from(self)?;
        table.retain(|name, value| usual.get(name) != Some(value));
        Ok(table)
    }

    /// The settings of a whitener for recordings with this sample rate.
    ///
    /// # Errors
    /// When a number is out of its range, or a time is in seconds and there is no sample rate: wrong usage.
    pub fn whitener(&self, sample_rate: Option<f64>) -> Result<WhitenerSettings> {
        let usual = WhitenerSettings::default();
        let settings = WhitenerSettings {
            sample_rate,
            time_constant: self.time_constant.unwrap_or_default().span(),
            synapse_time_constant: self.synapse_time_constant.map(|time| time.0),
            strength: self.strength.unwrap_or(usual.strength),
            bad_samples: self.bad_samples.unwrap_or(usual.bad_samples),
            follow: self.follow.unwrap_or(usual.follow),
            saturation: self.saturation,
            floor: self.floor.unwrap_or(usual.floor),
            update_every: self.update_every,
            exclude_above: self.exclude_above,
        };
        settings.validate().map_err(|error| as_flag(&error))?;
        Ok(settings)
    }
}

impl Reading {
    /// The same as options of the readers.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            channels: self.channels,
            sample_type: self.dtype,
            sample_rate: self.sample_rate,
            label: self.label.clone(),
        }
    }
}

/// A whole number of samples, from a flag that may be in seconds.
///
/// # Errors
/// When it is less than one sample, or needs a sample rate that is not known: wrong usage.
#[allow(clippy::cast_sign_loss)] // Checked to be one or more.
pub fn whole_samples(flag: &str, time: Time, sample_rate: Option<f64>) -> Result<u64> {
    let samples = match (time.0, sample_rate) {
        (Span::Samples(samples), _) => samples,
        (Span::Seconds(seconds), Some(rate)) => seconds * rate,
        (Span::Seconds(_), None) => {
            let complaint = format!(
                "{flag}: a time in seconds needs a sample rate; give --sample-rate, or give the time in samples"
            );
            return Err(Usage(complaint).into());
        }
    };
    if !(1.0..=1e15).contains(&samples) {
        return Err(Usage(format!("{flag}: expected 1 to 1e15 samples, got {samples}")).into());
    }
    Ok(samples.round() as u64)
}

/// What core says of an argument, with the argument spelt as a flag.
fn as_flag(error: &leukos::Error) -> Usage {
    let text = error.to_string();
    Usage(match text.split_once(": ") {
        Some((argument, rest)) => format!("--{}: {rest}", argument.replace('_', "-")),
        None => text,
    })
}
