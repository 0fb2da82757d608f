//! Reports how a whitener is doing, in numbers and in words.

use std::fmt;

use super::channels::Exclusion;
use super::settings::TimeConstants;
use super::{Whitener, thinning};
use crate::linalg::symmetric_eigenvalues;
use crate::matrix::Matrix;
use crate::real::Real;

/// How many samples there were of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(deny_unknown_fields))]
pub struct SampleCounts {
    /// Rows taken in, of any kind.
    pub seen: u64,
    /// Rows that mean, gains and synapses have learned from.
    pub learned: u64,
    /// Rows with a NaN, an infinity, a saturated value or one far larger than all others.
    pub bad: u64,
    /// Rows that were answered but too large to learn from.
    pub outliers: u64,
    /// Rows that were too small to learn from.
    pub quiet: u64,
    /// Rows in which no channel had moved for a while.
    pub silent: u64,
    /// How often the context seemed to have changed, and the gains were made to adapt quickly.
    pub switches: u64,
    /// How often mean and scale were estimated again because the input had changed permanently.
    pub recalibrations: u64,
    /// How often a channel was left out.
    pub exclusions: u64,
    /// How often a channel came back.
    pub revivals: u64,
}

/// How often the guard of positive definiteness acted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(deny_unknown_fields))]
pub struct GuardCounts {
    /// A step was taken without its synapses, or with sensitivities computed anew.
    pub corrected: u64,
    /// A step was shortened.
    pub shortened: u64,
    /// A step was not taken.
    pub refused: u64,
}

/// How a [`Whitener`] is doing. Its `Display` is meant for people.
#[derive(Clone, Debug, PartialEq)]
pub struct WhitenerStatus {
    /// Samples by kind.
    pub samples: SampleCounts,
    /// Actions of the guard.
    pub guard: GuardCounts,
    /// Whether mean and scale are settled.
    pub calibrated: bool,
    /// Whether it adapts, or has been told to pause.
    pub adapting: bool,
    /// σ, the scale of the input.
    pub scale: f64,
    /// Channels that are left out, and why.
    pub excluded: Vec<(usize, Exclusion)>,
    /// Pairs of channels that carry the same signal up to a factor.
    pub duplicates: Vec<(usize, usize)>,
    /// How many directions of the input carry more than the floor; the number of live channels when none is empty.
    pub rank: Option<usize>,
    /// Interneurons along which M is as small as it may become.
    pub at_floor: usize,
    /// The whitening error as far as the latest responses show it.
    pub error: Option<f64>,
    /// The error that perfectly white responses would show by now; an error below this cannot be told from zero.
    pub noise_floor: f64,
    /// The time constants in samples.
    pub time_constants: TimeConstants,
}

/// The estimates of covariances are used from this many samples for each channel on.
const ENOUGH: f64 = 4.0;

impl<T: Real> Whitener<T> {
    /// How it is doing.
    pub fn status(&mut self) -> WhitenerStatus {
        let n = self.channels();
        let known = self.samples.learned as f64 >= ENOUGH * (n * thinning(n)) as f64;
        let covariance = known.then(|| self.inputs.covariance());
        let floor = self.settings.floor;
        WhitenerStatus {
            samples: self.samples,
            guard: self.guard,
            calibrated: self.gathering.is_none(),
            adapting: self.adapting,
            scale: self.calibration.scale,
            excluded: (0..n).filter_map(|j| self.channels.exclusion(j).map(|why| (j, why))).collect(),
            duplicates: covariance.as_ref().map_or_else(Vec::new, |c| duplicates(c, floor)),
            rank: covariance.as_ref().and_then(|c| rank(c, floor)),
            at_floor: (0..self.gains().len()).filter(|&i| self.circuit.is_at_floor(i)).count(),
            error: self.responses.error(),
            noise_floor: self.responses.noise_floor(),
            time_constants: self.pace,
        }
    }
}

/// Pairs whose difference, each scaled to variance one, has a standard deviation below the floor.
fn duplicates(covariance: &Matrix, floor: f64) -> Vec<(usize, usize)> {
    let n = covariance.rows();
    let alike = |i: usize, j: usize| {
        let scale = (covariance[(i, i)] * covariance[(j, j)]).sqrt();
        scale > 0.0 && 1.0 - covariance[(i, j)].abs() / scale <= floor * floor / 2.0
    };
    (0..n).flat_map(|j| (0..j).map(move |i| (i, j))).filter(|&(i, j)| alike(i, j)).collect()
}

/// The number of directions with a standard deviation above the floor, in units of the scale.
fn rank(covariance: &Matrix, floor: f64) -> Option<usize> {
    let values = symmetric_eigenvalues(covariance)?;
    Some(values.iter().filter(|&&value| value > floor * floor).count())
}

impl fmt::Display for WhitenerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SampleCounts { seen, learned, bad, outliers, quiet, silent, .. } = self.samples;
        writeln!(f, "samples       {seen} seen, {learned} learned from")?;
        writeln!(f, "left aside    {bad} bad, {outliers} outliers, {quiet} quiet, {silent} silent")?;
        writeln!(f, "contexts      {} changes detected", self.samples.switches)?;
        self.describe_state(f)?;
        self.describe_error(f)?;
        self.describe_channels(f)?;
        let GuardCounts { corrected, shortened, refused } = self.guard;
        writeln!(f, "guard         {corrected} steps corrected, {shortened} shortened, {refused} refused")?;
        let TimeConstants { gains, synapses, mean, .. } = self.time_constants;
        write!(f, "time constant {gains} samples for gains, {mean} for the mean, ")?;
        match synapses {
            Some(samples) => write!(f, "{samples} for synapses"),
            None => f.write_str("synapses do not change"),
        }
    }
}

impl WhitenerStatus {
    fn describe_state(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.calibrated, self.adapting) {
            (false, _) => "gathering mean and scale",
            (true, true) => "adapting",
            (true, false) => "paused",
        };
        let again = match self.samples.recalibrations {
            0 => String::new(),
            times => format!(", recalibrated {times} times"),
        };
        writeln!(f, "state         {state}; scale {:.6e}{again}", self.scale)
    }

    fn describe_error(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error {
            Some(error) => {
                writeln!(f, "error         {error:.3} (white responses would show {:.3})", self.noise_floor)
            }
            None => writeln!(f, "error         not known yet"),
        }
    }

    fn describe_channels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (channel, why) in &self.excluded {
            let why = match why {
                Exclusion::Constant => "does not vary",
                Exclusion::Bad => "delivers no usable number",
            };
            writeln!(f, "channel {channel:<5} left out: {why}")?;
        }
        for (first, second) in &self.duplicates {
            writeln!(f, "channel {second:<5} carries the same signal as channel {first}")?;
        }
        if let Some(rank) = self.rank {
            writeln!(
                f,
                "rank          {rank} directions above the floor, {} interneurons at it",
                self.at_floor
            )?;
        }
        Ok(())
    }
}
