//! Surveys a recording: each channel by itself, and what the channels have in common.

use std::fmt;

use anyhow::Result;
use leukos::size::require_moments;
use leukos::{Matrix, RunningMoments, WhitenerSettings, eigenbasis};
use serde::Serialize;

use crate::channels::{dead, duplicates, named};
use crate::contexts::Spectrum;
use crate::recording::{Layout, Rows};
use crate::words::{count, short};

/// What has been seen of a recording so far.
pub struct Survey {
    channels: Vec<ChannelStatistics>,
    moments: RunningMoments,
    rows: u64,
    bad_rows: u64,
}

/// What a channel carries. Without a usable number all but `bad` are null in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelStatistics {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sd: f64,
    /// The smallest number.
    pub min: f64,
    /// The largest number.
    pub max: f64,
    /// How many numbers are not finite.
    pub bad: u64,
    #[serde(skip)]
    count: u64,
    #[serde(skip)]
    squares: f64,
}

/// What is in a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordingReport {
    /// Its format.
    pub format: String,
    /// The kind of its numbers.
    pub dtype: String,
    /// The number of rows.
    pub rows: u64,
    /// Rows with a number that is not finite.
    pub bad_rows: u64,
    /// Samples a second, where that is known.
    pub sample_rate: Option<f64>,
    /// How long it lasts, where that is known.
    pub seconds: Option<f64>,
    /// Each channel.
    pub channels: Vec<ChannelStatistics>,
    /// The condition number of the covariance of the channels that vary; null where it is singular.
    pub condition: Option<f64>,
    /// How many directions carry more than the floor.
    pub rank: usize,
    /// Channels that do not vary.
    pub dead: Vec<usize>,
    /// Pairs of channels that carry the same signal.
    pub duplicates: Vec<(usize, usize)>,
    /// Advice for fitting a whitener to it.
    pub advice: Vec<String>,
}

/// A number this many standard deviations from the mean weighs on a covariance.
const FAR: f64 = 12.0;
/// Rows that a covariance needs for each channel.
const ENOUGH: u64 = 10;
/// Tables of more channels are shortened.
const MOST_LINES: usize = 40;
/// The widest column of names; longer names stick out, because a formatter panics at widths above 65 535.
const WIDEST: usize = 40;

impl Survey {
    /// Of a recording whose rows are still to come.
    ///
    /// # Errors
    /// When it has too many channels for any memory, or for this one.
    pub fn new(layout: &Layout) -> Result<Self> {
        require_moments(layout.channels, 1)?;
        let name = |channel: usize| layout.names.as_ref().map(|names| names[channel].clone());
        let blank = |channel| ChannelStatistics {
            name: name(channel),
            mean: f64::NAN,
            sd: f64::NAN,
            min: f64::NAN,
            max: f64::NAN,
            bad: 0,
            count: 0,
            squares: 0.0,
        };
        let channels = (0..layout.channels).map(blank).collect();
        Ok(Self { channels, moments: RunningMoments::new(layout.channels), rows: 0, bad_rows: 0 })
    }

    /// Takes in some rows.
    ///
    /// # Errors
    /// When they are not whole rows.
    pub fn update(&mut self, rows: &Rows) -> Result<()> {
        self.moments.update(&rows.values)?;
        for row in rows.values.chunks_exact(self.channels.len()) {
            self.channels.iter_mut().zip(row).for_each(|(channel, value)| channel.add(*value));
            self.rows += 1;
            self.bad_rows += u64::from(row.iter().any(|value| !value.is_finite()));
        }
        Ok(())
    }

    /// What is in the recording.
    ///
    /// # Errors
    /// When its numbers are too large for a covariance.
    pub fn finish(mut self, layout: &Layout, format: String) -> Result<RecordingReport> {
        self.channels.iter_mut().for_each(ChannelStatistics::finish);
        let mut report = RecordingReport {
            format,
            dtype: layout.sample_type.to_string(),
            rows: self.rows,
            bad_rows: self.bad_rows,
            sample_rate: layout.sample_rate,
            seconds: layout.sample_rate.map(|rate| self.rows as f64 / rate),
            channels: self.channels,
            condition: None,
            rank: 0,
            dead: Vec::new(),
            duplicates: Vec::new(),
            advice: Vec::new(),
        };
        let moments = self.moments.finish()?;
        if moments.count() > 0 {
            report.add_covariance(&moments.covariance()?)?;
        }
        report.advise();
        Ok(report)
    }
}

impl ChannelStatistics {
    /// Welford's way, which keeps its digits far from zero.
    fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.bad += 1;
            return;
        }
        self.count += 1;
        if self.count == 1 {
            (self.mean, self.min, self.max) = (value, value, value);
        }
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }

    fn finish(&mut self) {
        self.sd = (self.squares / self.count as f64).sqrt();
    }

    /// How many standard deviations its farthest number lies from the mean.
    fn reach(&self) -> f64 {
        (self.max - self.mean).max(self.mean - self.min) / self.sd
    }
}

impl RecordingReport {
    fn add_covariance(&mut self, covariance: &Matrix) -> Result<()> {
        let floor = WhitenerSettings::default().floor;
        self.dead = dead(covariance, floor);
        self.duplicates = duplicates(covariance, floor);
        let live: Vec<usize> =
            (0..covariance.rows()).filter(|channel| !self.dead.contains(channel)).collect();
        let own = Matrix::from_fn(live.len(), live.len(), |i, j| covariance[(live[i], live[j])]);
        if live.is_empty() {
            return Ok(());
        }
        self.condition = Some(Spectrum::of(&own)?.condition()).filter(|condition| condition.is_finite());
        let mean = own.trace() / live.len() as f64;
        let vectors = eigenbasis(&own)?;
        let along = |v: &[f64]| -> f64 {
            let product = |i: usize| own.column(i).iter().zip(v).map(|(c, v)| c * v).sum::<f64>();
            v.iter().enumerate().map(|(i, v)| v * product(i)).sum()
        };
        self.rank = (0..live.len()).filter(|&k| along(vectors.column(k)) > floor * floor * mean).count();
        Ok(())
    }

    fn names(&self) -> Option<Vec<String>> {
        self.channels.iter().map(|channel| channel.name.clone()).collect()
    }

    fn advise(&mut self) {
        let (names, n) = (self.names(), self.channels.len());
        let name = |channel: usize| named(channel, names.as_deref());
        let mut advice = Vec::new();
        let silent = self.channels.iter().enumerate().filter(|(_, channel)| channel.count == 0);
        advice.extend(silent.map(|(i, _)| {
            format!("{} has no usable number, so no row can be used: remove this channel", name(i))
        }));
        advice.extend(
            self.dead.iter().map(|&i| format!("{} does not vary: a whitener leaves it out", name(i))),
        );
        let same = |&(i, j): &(usize, usize)| format!("{} carries the same signal as {}", name(j), name(i));
        advice.extend(self.duplicates.iter().map(same));
        if self.rank < n - self.dead.len() {
            let (rank, live) = (self.rank, n - self.dead.len());
            advice.push(format!("{rank} of {live} directions carry a signal: the others are not amplified"));
        }
        if self.bad_rows > 0 {
            let rows = count(self.bad_rows as usize, "row");
            advice.push(format!(
                "{rows} with a bad number: a whitener does not learn from them (see --bad-samples)"
            ));
        }
        for (i, channel) in self.channels.iter().enumerate().filter(|(_, channel)| channel.reach() > FAR) {
            let (reach, limit) =
                (short(channel.reach()), short(0.9 * channel.max.abs().max(channel.min.abs())));
            advice.push(format!(
                "{} reaches {reach} standard deviations from its mean: if that is an artefact, --saturation {limit} \
                 keeps it out of a fit",
                name(i)
            ));
        }
        let (usable, enough) = (self.rows - self.bad_rows, ENOUGH * n as u64);
        if usable < enough {
            advice.push(format!("{usable} usable rows: a covariance of {n} channels needs {enough} or more"));
        }
        self.advice = advice;
    }

    /// The same in words, with all channels or with the middle of a long table left out.
    pub fn words(&self, lines: Lines) -> Words<'_> {
        Words { report: self, lines }
    }
}

/// How much of a table is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// All of it.
    All,
    /// Its beginning and its end.
    Ends,
}

/// A report in words.
pub struct Words<'a> {
    report: &'a RecordingReport,
    lines: Lines,
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RecordingReport { format, dtype, rows, bad_rows, channels, .. } = self.report;
        writeln!(f, "format        {format}, {dtype}")?;
        writeln!(f, "channels      {}", channels.len())?;
        writeln!(f, "rows          {rows}, {bad_rows} of them bad")?;
        if let (Some(rate), Some(seconds)) = (self.report.sample_rate, self.report.seconds) {
            writeln!(f, "duration      {} s at {rate} samples a second", short(seconds))?;
        }
        let live = channels.len() - self.report.dead.len();
        let condition = self.report.condition.map_or("infinite".into(), short);
        writeln!(f, "condition     {condition}; {} of {live} directions carry a signal", self.report.rank)?;
        self.table(f)?;
        self.report.advice.iter().try_for_each(|advice| write!(f, "\n! {advice}"))
    }
}

impl Words<'_> {
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channels = &self.report.channels;
        let name = |i: usize| channels[i].name.clone().unwrap_or_default();
        let widest = (0..channels.len()).map(|i| name(i).chars().count()).max().unwrap_or(0).min(WIDEST);
        write!(
            f,
            "\n{:>7} {:widest$} {:>10} {:>10} {:>10} {:>10} {:>8}",
            "channel", "", "mean", "sd", "min", "max", "bad"
        )?;
        let hidden = match self.lines {
            Lines::Ends if channels.len() > MOST_LINES => MOST_LINES / 2..channels.len() - MOST_LINES / 2,
            Lines::Ends | Lines::All => 0..0,
        };
        for (i, channel) in channels.iter().enumerate().filter(|(i, _)| !hidden.contains(i)) {
            let [mean, sd, min, max] = [channel.mean, channel.sd, channel.min, channel.max].map(short);
            write!(
                f,
                "\n{i:>7} {:widest$} {mean:>10} {sd:>10} {min:>10} {max:>10} {:>8}",
                name(i),
                channel.bad
            )?;
            if i + 1 == hidden.start {
                write!(f, "\n    ... {} more channels; --all shows them", hidden.len())?;
            }
        }
        Ok(())
    }
}
