//! Holds the settings of a whitener. What they mean, their ranges and their defaults are in [`crate::settings`].

use crate::error::{Error, Result, require_positive};
use crate::estimator::usual_shortest;
use crate::settings::{
    EXCLUDE_ABOVE, FLOOR, SATURATION, STRENGTH, SYNAPSE_TIME_CONSTANT, Setting, TIME_CONSTANT, UPDATE_EVERY,
};

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(rename_all = "snake_case"))]
pub enum Span {
    /// A number of samples.
    Samples(f64),
    /// Seconds, which [`WhitenerSettings::sample_rate`] turns into samples.
    Seconds(f64),
}

impl Span {
    fn samples(self, setting: &Setting, sample_rate: Option<f64>) -> Result<f64> {
        let samples = match (self, sample_rate) {
            (Self::Samples(samples), _) => samples,
            (Self::Seconds(seconds), Some(rate)) => seconds * rate,
            (Self::Seconds(_), None) => {
                let reason = "a time in seconds needs a sample rate; give one, or give the time in samples";
                return Err(Error::Incompatible { argument: setting.name.into(), reason });
            }
        };
        setting.require(samples).map(|()| samples)
    }
}

/// What to do with a sample that cannot be used: one with a NaN, an infinity or a saturated value.
///
/// The whitener does not learn from such a sample; it is counted, and still has its row in the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(rename_all = "snake_case"))]
pub enum BadSamples {
    /// A row of NaN, so that later programs can recognise it.
    #[default]
    Mark,
    /// The row before it once more (zeros when there is none).
    Hold,
    /// A row of zeros.
    Zero,
    /// No row but an error; all rows before it have been whitened.
    Error,
}

/// What a whitener follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(rename_all = "snake_case"))]
pub enum Follow {
    /// The covariance in force, whatever it changes with.
    #[default]
    Contexts,
    /// Nothing: it stays as it was fitted.
    Nothing,
}

/// How a [`crate::Whitener`] adapts. The defaults work on data that has not been checked or cleaned.
///
/// ```
/// use leukos::{Span, WhitenerSettings};
///
/// let settings = WhitenerSettings {
///     sample_rate: Some(250.0),
///     time_constant: Some(Span::Seconds(8.0)),
///     ..WhitenerSettings::default()
/// };
/// settings.validate()?;
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(deny_unknown_fields))]
pub struct WhitenerSettings {
    /// Samples a second; needed only where a time is given in seconds.
    pub sample_rate: Option<f64>,
    /// The length of the shortest memory, [`TIME_CONSTANT`]; none is its word "auto".
    pub time_constant: Option<Span>,
    /// How long the synapses remember, [`SYNAPSE_TIME_CONSTANT`].
    pub synapse_time_constant: Option<Span>,
    /// How strongly to whiten, [`STRENGTH`].
    pub strength: f64,
    /// What to do with samples that cannot be used, [`BAD_SAMPLES`](crate::settings::BAD_SAMPLES).
    pub bad_samples: BadSamples,
    /// What to follow, [`FOLLOW`](crate::settings::FOLLOW).
    pub follow: Follow,
    /// The size from which on values are saturated, in units of the input, [`SATURATION`].
    pub saturation: Option<f64>,
    /// The smallest standard deviation, relative to the scale of the input, that is amplified to one, [`FLOOR`].
    pub floor: f64,
    /// The number of samples between two updates, [`UPDATE_EVERY`].
    pub update_every: Option<usize>,
    /// How many standard deviations make a sample too far away to be learned from, [`EXCLUDE_ABOVE`].
    pub exclude_above: Option<f64>,
}

impl Default for WhitenerSettings {
    fn default() -> Self {
        Self {
            sample_rate: None,
            time_constant: None,
            synapse_time_constant: None,
            strength: const { STRENGTH.default.number() },
            bad_samples: BadSamples::default(),
            follow: Follow::default(),
            saturation: None,
            floor: const { FLOOR.default.number() },
            update_every: None,
            exclude_above: None,
        }
    }
}

/// The times of a whitener, in samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeConstants {
    /// The length of the shortest memory.
    pub shortest: f64,
    /// How long synapses remember; none when they do not change.
    pub synapses: Option<f64>,
}

/// Up to so many rows are learned from together, unless somebody wants more.
const USUALLY_TOGETHER: usize = 128;
/// And so many at the most.
pub(crate) const MOST_TOGETHER: usize = 65_536;
/// The number of channels for each of them.
const CHANNELS_PER_ROW: usize = 3;

impl WhitenerSettings {
    /// Checks every number.
    ///
    /// # Errors
    /// When one is out of its range, or a time is in seconds and there is no sample rate.
    pub fn validate(&self) -> Result<()> {
        if let Some(rate) = self.sample_rate {
            require_positive("sample_rate", rate)?;
        }
        self.time_constants(1)?;
        STRENGTH.require(self.strength)?;
        FLOOR.require(self.floor)?;
        let given = [
            (SATURATION, self.saturation),
            (UPDATE_EVERY, self.update_every.map(|rows| rows as f64)),
            (EXCLUDE_ABOVE, self.exclude_above),
        ];
        given.iter().try_for_each(|(setting, value)| value.map_or(Ok(()), |value| setting.require(value)))
    }

    /// The times in samples, for so many channels.
    ///
    /// # Errors
    /// When one is shorter than a sample or not finite, or is in seconds and there is no sample rate.
    pub fn time_constants(&self, channels: usize) -> Result<TimeConstants> {
        let samples = |setting, span: Option<Span>| {
            span.map(|span| span.samples(setting, self.sample_rate)).transpose()
        };
        let shortest = samples(&TIME_CONSTANT, self.time_constant)?;
        let synapses = samples(&SYNAPSE_TIME_CONSTANT, self.synapse_time_constant)?;
        Ok(TimeConstants { shortest: shortest.unwrap_or_else(|| usual_shortest(channels)), synapses })
    }

    /// After how many samples a whitener of so many channels learns from them.
    pub fn rows_together(&self, channels: usize) -> usize {
        self.update_every.unwrap_or_else(|| (channels / CHANNELS_PER_ROW).clamp(1, USUALLY_TOGETHER))
    }
}
