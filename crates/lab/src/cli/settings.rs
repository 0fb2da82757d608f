//! Holds the flags that say how a whitener adapts and how recordings are read, with one name and one default everywhere.

mod config;
mod explained;
mod values;

use anyhow::Result;
use clap::Args;
use leukos::settings::{SETTINGS, Setting, TIMES, Value, from_to};
use leukos::{BadSamples, Follow, Span, WhitenerSettings};
use serde::{Deserialize, Serialize};
use toml::Table;

pub use config::Config;
pub use explained::{explained, explained_for_a_model};
pub use values::{Groups, Memory, Start, Time, bad_samples, follow};

use super::Usage;
use crate::recording::{Format, ReadOptions, SampleType};

/// How a whitener adapts. What a flag is for, and what it is when it is not given, is in the table of settings.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Adaptation", mut_args = explained)]
pub struct Settings {
    #[arg(long)]
    pub n_interneurons: Option<usize>,
    #[arg(long)]
    pub synapses: Option<Start>,
    #[arg(long)]
    pub time_constant: Option<Memory>,
    #[arg(long)]
    pub synapse_time_constant: Option<Time>,
    #[arg(long, allow_negative_numbers = true)]
    pub strength: Option<f64>,
    #[arg(long, value_parser = bad_samples)]
    pub bad_samples: Option<BadSamples>,
    #[arg(long)]
    pub groups: Option<Groups>,
    #[arg(long)]
    pub random_state: Option<u64>,
    #[arg(long, value_parser = follow)]
    pub follow: Option<Follow>,
    #[arg(long, allow_negative_numbers = true)]
    pub saturation: Option<f64>,
    #[arg(long, allow_negative_numbers = true)]
    pub floor: Option<f64>,
    #[arg(long)]
    pub update_every: Option<usize>,
    #[arg(long, allow_negative_numbers = true)]
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
    /// The settings that differ from their defaults.
    ///
    /// # Errors
    /// When they cannot be put into a table.
    pub fn unusual(&self) -> Result<Table> {
        let mut table = Table::try_from(self)?;
        for setting in SETTINGS {
            if table.get(setting.name) == default(setting).as_ref() {
                table.remove(setting.name);
            }
        }
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
    if !TIMES.contains(&samples) {
        return Err(Usage(format!("{flag}: expected {} samples, got {samples}", from_to(&TIMES))).into());
    }
    Ok(samples.round() as u64)
}

/// The default of a setting, as a config file would have it.
fn default(setting: &Setting) -> Option<toml::Value> {
    match setting.default {
        Value::None(_) => None,
        Value::Word(word) => Some(word.into()),
        Value::Number(number) => Some(number.into()),
        Value::Whole(number) => Some(number.into()),
    }
}

/// What core says of an argument, with the argument spelt as a flag.
fn as_flag(error: &leukos::Error) -> Usage {
    let text = error.to_string();
    Usage(match text.split_once(": ") {
        Some((argument, rest)) => format!("--{}: {rest}", argument.replace('_', "-")),
        None => text,
    })
}
