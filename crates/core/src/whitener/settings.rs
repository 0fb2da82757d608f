//! The settings of a whitener: every parameter, its default and its trade-off.

use crate::error::{Error, Result, require_positive};
use crate::estimator::usual_shortest;

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

/// The largest number of samples: a double can count no further one by one.
const LONGEST: f64 = 1e15;

impl Span {
    fn samples(self, argument: &'static str, sample_rate: Option<f64>) -> Result<f64> {
        let samples = match (self, sample_rate) {
            (Self::Samples(samples), _) => samples,
            (Self::Seconds(seconds), Some(rate)) => seconds * rate,
            (Self::Seconds(_), None) => {
                let reason = "a time in seconds needs a sample rate; give one, or give the time in samples";
                return Err(Error::Incompatible { argument: argument.into(), reason });
            }
        };
        if (1.0..=LONGEST).contains(&samples) {
            return Ok(samples);
        }
        Err(out_of_range(argument, "a time of 1 to 1e15 samples", samples))
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
    /// What is signal and what is context: the length of the shortest memory. What changes faster is signal and is
    /// left alone; a new context is believed when it has been there for about as long. None, the default, means about
    /// two samples for each channel, and that the samples themselves show how long to remember.
    pub time_constant: Option<Span>,
    /// How long the synapses remember; none means that they do not change. It should be a hundred time
    /// constants or more: synapses that follow one context forget the others.
    pub synapse_time_constant: Option<Span>,
    /// s in F_s = (1 − s) I/σ + s C^−½: 0 only centres and scales, 1 whitens (the default). Values between keep some
    /// of the correlations, and amplify weak directions less.
    pub strength: f64,
    /// What to do with samples that cannot be used.
    pub bad_samples: BadSamples,
    /// What it follows.
    pub follow: Follow,
    /// Values this large, of either sign, count as saturated, in units of the input; none means no limit.
    pub saturation: Option<f64>,
    /// The smallest standard deviation, relative to the scale of the input, that is amplified to one (1e-3).
    /// Directions and channels with less count as empty; a smaller floor amplifies weaker ones, and their noise.
    pub floor: f64,
    /// The number of samples between two updates; none means a third of the number of channels, 128 at most. More is
    /// cheaper, and delays adaptation by as much. Every sample is answered at once.
    pub update_every: Option<usize>,
    /// Samples with a channel further from its mean than so many of its standard deviations are answered, but not
    /// learned from unless they go on; none means that only wild ones are left out.
    pub exclude_above: Option<f64>,
}

impl Default for WhitenerSettings {
    fn default() -> Self {
        Self {
            sample_rate: None,
            time_constant: None,
            synapse_time_constant: None,
            strength: 1.0,
            bad_samples: BadSamples::Mark,
            follow: Follow::Contexts,
            saturation: None,
            floor: 1e-3,
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
        if let Some(limit) = self.saturation {
            require_positive("saturation", limit)?;
        }
        let share = |x: f64| (0.0..=1.0).contains(&x);
        require("strength", "a number from 0 to 1", self.strength, share)?;
        if let Some(rows) = self.update_every {
            let fits = |x: f64| (1.0..=MOST_TOGETHER as f64).contains(&x);
            require("update_every", "1 to 65536 samples", rows as f64, fits)?;
        }
        if let Some(limit) = self.exclude_above {
            require("exclude_above", "a number from 2 to 1e6", limit, |x| (2.0..=1e6).contains(&x))?;
        }
        require("floor", "a number from 1e-6 to 0.5", self.floor, |x| (1e-6..=0.5).contains(&x))
    }

    /// The times in samples, for so many channels.
    ///
    /// # Errors
    /// When one is shorter than a sample or not finite, or is in seconds and there is no sample rate.
    pub fn time_constants(&self, channels: usize) -> Result<TimeConstants> {
        let samples = |argument, span: Option<Span>| {
            span.map(|span| span.samples(argument, self.sample_rate)).transpose()
        };
        let shortest = samples("time_constant", self.time_constant)?;
        let synapses = samples("synapse_time_constant", self.synapse_time_constant)?;
        Ok(TimeConstants { shortest: shortest.unwrap_or_else(|| usual_shortest(channels)), synapses })
    }

    /// After how many samples a whitener of so many channels learns from them.
    pub fn rows_together(&self, channels: usize) -> usize {
        self.update_every.unwrap_or_else(|| (channels / CHANNELS_PER_ROW).clamp(1, USUALLY_TOGETHER))
    }
}

fn require(
    argument: &'static str,
    expected: &'static str,
    found: f64,
    holds: impl FnOnce(f64) -> bool,
) -> Result<()> {
    if holds(found) { Ok(()) } else { Err(out_of_range(argument, expected, found)) }
}

fn out_of_range(argument: &'static str, expected: &'static str, found: f64) -> Error {
    Error::OutOfRange { argument: argument.into(), expected, found }
}
