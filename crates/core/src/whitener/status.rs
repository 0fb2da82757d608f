//! Reports how a whitener is doing, in numbers and in words.

use std::fmt;

use super::Whitener;
use super::screen::Exclusion;
use super::settings::TimeConstants;
use crate::matrix::Matrix;
use crate::real::Real;

/// How many samples there were of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(deny_unknown_fields))]
pub struct SampleCounts {
    /// Rows taken in, of any kind.
    pub seen: u64,
    /// Rows that it has learned from.
    pub learned: u64,
    /// Rows with a NaN, an infinity or a saturated value.
    pub bad: u64,
    /// Rows that were answered but too wild to learn from, unless they went on.
    pub outliers: u64,
    /// Rows in which no channel had moved for a while.
    pub silent: u64,
    /// How often the context was found to have changed.
    pub switches: u64,
    /// How often a channel was left out.
    pub exclusions: u64,
    /// How often a channel came back.
    pub revivals: u64,
}

/// How much a memory counts, which may be used as it is, along its trend, and scaled by its gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryWeight {
    /// Its length in samples; infinite for the memory since the last change.
    pub length: f64,
    /// Its weight as it is.
    pub plain: f64,
    /// With its mean carried on along its trend.
    pub trend: f64,
    /// With its covariance scaled by how large samples have been lately.
    pub gain: f64,
}

impl MemoryWeight {
    /// Of all three.
    pub fn total(&self) -> f64 {
        self.plain + self.trend + self.gain
    }
}

/// How a [`Whitener`] is doing. Its `Display` is meant for people.
#[derive(Clone, Debug, PartialEq)]
pub struct WhitenerStatus {
    /// Samples by kind.
    pub samples: SampleCounts,
    /// Whether it knows enough of its stream to answer.
    pub started: bool,
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
    /// The whitening error as far as the latest responses show it.
    pub error: Option<f64>,
    /// The error that perfectly white responses would show by now; an error below this cannot be told from zero.
    pub noise_floor: f64,
    /// How many samples the covariance in force rests on.
    pub rows_in_force: f64,
    /// By how many nats a sample was answered worse, on average, than the memories together had foreseen it; none as long
    /// as nothing was scored.
    pub excess: Option<f64>,
    /// The weights of the memories, from the shortest to the one since the last change.
    pub memories: Vec<MemoryWeight>,
    /// The sample with which the latest change of context began, counted from the first that was learned from.
    pub last_change: Option<u64>,
    /// The times in samples.
    pub time_constants: TimeConstants,
}

impl<T: Real> Whitener<T> {
    /// How it is doing.
    #[allow(clippy::cast_sign_loss)]
    pub fn status(&mut self) -> WhitenerStatus {
        let n = self.channels();
        let floor = self.settings.floor;
        let known = self.started && self.map.scale > 0.0;
        let memory =
            |(length, [plain, trend, gain]): (f64, [f64; 3])| MemoryWeight { length, plain, trend, gain };
        WhitenerStatus {
            samples: self.samples,
            started: self.started,
            adapting: self.adapting,
            scale: self.scale(),
            excluded: (0..n).filter_map(|j| self.screen.exclusion(j).map(|why| (j, why))).collect(),
            duplicates: if known {
                duplicates(self.estimator.covariance_in_force(), floor)
            } else {
                Vec::new()
            },
            rank: known.then(|| self.screen.live_count() - self.map.lifted),
            error: self.responses.error(),
            noise_floor: self.responses.noise_floor(),
            rows_in_force: if self.started { self.estimator.rows_in_force() } else { 0.0 },
            excess: self.estimator.excess(),
            memories: self.estimator.weights().into_iter().map(memory).collect(),
            last_change: self.estimator.last_change().map(|row| row as u64),
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

impl fmt::Display for WhitenerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SampleCounts { seen, learned, bad, outliers, silent, switches, .. } = self.samples;
        writeln!(f, "samples       {seen} seen, {learned} learned from")?;
        writeln!(f, "left aside    {bad} bad, {outliers} wild, {silent} silent")?;
        write!(f, "contexts      {switches} changes detected")?;
        match self.last_change {
            Some(row) => writeln!(f, ", the latest from sample {row} on")?,
            None => writeln!(f)?,
        }
        self.describe_state(f)?;
        self.describe_error(f)?;
        self.describe_channels(f)?;
        let TimeConstants { shortest, synapses } = self.time_constants;
        write!(
            f,
            "memory        {:.0} samples in force, {shortest} in the shortest memory; ",
            self.rows_in_force
        )?;
        match synapses {
            Some(samples) => write!(f, "synapses remember {samples}"),
            None => f.write_str("synapses do not change"),
        }
    }
}

impl WhitenerStatus {
    fn describe_state(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.started, self.adapting) {
            (false, _) => "waiting for samples that vary",
            (true, true) => "adapting",
            (true, false) => "paused",
        };
        writeln!(f, "state         {state}; scale {:.6e}", self.scale)
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
            writeln!(f, "rank          {rank} directions above the floor")?;
        }
        Ok(())
    }
}
