//! The settings of a whitener: every parameter, its default and its trade-off.

use crate::error::{Error, Result, require_positive};

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

/// How a [`crate::Whitener`] adapts. The defaults work on data that has not been checked or cleaned.
///
/// ```
/// use leukos::{Span, WhitenerSettings};
///
/// let settings = WhitenerSettings {
///     sample_rate: Some(250.0),
///     time_constant: Span::Seconds(8.0),
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
    /// τ: how long the gains remember (1000 samples). Four times as long halves the noise of the gains, which leaves
    /// a whitening error of about √(1/τ) along each axis, but they follow a change of context four times more slowly.
    pub time_constant: Span,
    /// How long the synapses remember; none means that they do not change. It should be a hundred time
    /// constants or more: synapses that follow one context forget the others.
    pub synapse_time_constant: Option<Span>,
    /// How long the running mean remembers; none means ten time constants. Slower signals than this are taken for
    /// drift and removed.
    pub mean_time_constant: Option<Span>,
    /// s in F_s = \[(1 − s) I + s M⁻¹\]/σ: 0 only centres and scales, 1 whitens (the default). Values between keep some
    /// of the correlations, and amplify weak directions less.
    pub strength: f64,
    /// What to do with samples that cannot be used.
    pub bad_samples: BadSamples,
    /// Values this large, of either sign, count as saturated, in units of the input; none means no limit.
    pub saturation: Option<f64>,
    /// The number of samples between two updates of mean, gains and synapses (1). More is cheaper for many channels; it delays
    /// adaptation by as much, so it should stay well below the time constant.
    pub update_every: usize,
    /// The number of samples (200) from which a whitener without a model estimates its mean and scale. More gives
    /// steadier estimates, but later.
    pub calibration: usize,
    /// The smallest standard deviation, relative to the scale of the input, that is amplified to one (1e-3).
    /// Directions and channels with less count as empty; a smaller floor amplifies weaker ones, and their noise.
    pub floor: f64,
    /// A sample whose response is this many times (30) larger than expected is answered but not learned from, and
    /// one that is as much smaller counts as silence. A smaller limit shields better against artefacts, and mistakes more of a
    /// heavy-tailed signal for them.
    pub outlier_limit: f64,
    /// How long the input must stay too large, or too small, until that counts as a permanent change, and mean and scale
    /// are estimated again; none means two time constants, and at least 2000 samples. A shorter time recovers sooner from
    /// a change of units, but takes long artefacts for one.
    pub patience: Option<Span>,
    /// The leak α in M = αI + W diag(g) Wᵀ, relative to the scale of the input (1). In directions that no interneuron
    /// reaches, M is α; so with fewer interneurons than channels it must not be below the floor. With K ≥ N it hardly
    /// matters.
    pub leak: f64,
}

impl Default for WhitenerSettings {
    fn default() -> Self {
        Self {
            sample_rate: None,
            time_constant: Span::Samples(1000.0),
            synapse_time_constant: None,
            mean_time_constant: None,
            strength: 1.0,
            bad_samples: BadSamples::Mark,
            saturation: None,
            update_every: 1,
            calibration: 200,
            floor: 1e-3,
            outlier_limit: 30.0,
            patience: None,
            leak: 1.0,
        }
    }
}

/// The time constants of a whitener, in samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeConstants {
    /// Of the gains.
    pub gains: f64,
    /// Of the synapses; none when they do not change.
    pub synapses: Option<f64>,
    /// Of the running mean.
    pub mean: f64,
    /// How long a change must last to count as permanent.
    pub patience: f64,
}

/// Artefacts are seldom longer.
const LEAST_PATIENCE: f64 = 2000.0;

impl WhitenerSettings {
    /// Checks every number.
    ///
    /// # Errors
    /// When one is out of its range, or a time is in seconds and there is no sample rate.
    pub fn validate(&self) -> Result<()> {
        if let Some(rate) = self.sample_rate {
            require_positive("sample_rate", rate)?;
        }
        self.time_constants()?;
        if let Some(limit) = self.saturation {
            require_positive("saturation", limit)?;
        }
        let share = |x: f64| (0.0..=1.0).contains(&x);
        require("strength", "a number from 0 to 1", self.strength, share)?;
        require("update_every", "1 sample or more", self.update_every as f64, |x| x >= 1.0)?;
        require("calibration", "8 samples or more", self.calibration as f64, |x| x >= 8.0)?;
        require("floor", "a number from 1e-6 to 0.5", self.floor, |x| (1e-6..=0.5).contains(&x))?;
        require("outlier_limit", "a number from 4 to 1e6", self.outlier_limit, |x| (4.0..=1e6).contains(&x))?;
        require("leak", "a number from 0 to 1000", self.leak, |x| (0.0..=1000.0).contains(&x))
    }

    /// The time constants in samples.
    ///
    /// # Errors
    /// When one is shorter than a sample or not finite, or is in seconds and there is no sample rate.
    pub fn time_constants(&self) -> Result<TimeConstants> {
        let samples = |argument, span: Span| span.samples(argument, self.sample_rate);
        let gains = samples("time_constant", self.time_constant)?;
        let synapses =
            self.synapse_time_constant.map(|span| samples("synapse_time_constant", span)).transpose()?;
        let mean = self.mean_time_constant.map(|span| samples("mean_time_constant", span)).transpose()?;
        let patience = self.patience.map(|span| samples("patience", span)).transpose()?;
        Ok(TimeConstants {
            gains,
            synapses,
            mean: mean.unwrap_or(10.0 * gains),
            patience: patience.unwrap_or((2.0 * gains).max(LEAST_PATIENCE)),
        })
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
