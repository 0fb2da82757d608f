//! Watches each channel, and leaves out those without a signal until they have one again.

use super::answering::reach;
use super::conditioning::Calibration;
use super::settings::WhitenerSettings;
#[cfg(feature = "model-file")]
use crate::archive::{Archive, require};
#[cfg(feature = "model-file")]
use crate::error::Result;
use crate::real::Real;

/// Why a channel is left out. Its output is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(rename_all = "snake_case"))]
pub enum Exclusion {
    /// It has stopped varying, or never did.
    Constant,
    /// It delivers no usable number.
    Bad,
}

/// What is known of every channel.
#[derive(Clone)]
pub(super) struct Channels {
    own: Vec<Channel>,
    /// For how many rows nothing at all has changed.
    still: u64,
    /// For how many rows a channel must have been useless to be left out.
    pub patience: u64,
}

#[derive(Clone)]
#[cfg_attr(feature = "model-file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "model-file", serde(deny_unknown_fields))]
struct Channel {
    /// The value from which it has not moved for `run` rows.
    #[cfg_attr(feature = "model-file", serde(with = "crate::archive::nan_as_null"))]
    reference: f64,
    run: u64,
    /// Its last value.
    #[cfg_attr(feature = "model-file", serde(with = "crate::archive::nan_as_null"))]
    latest: f64,
    /// For how many rows in a row it has delivered no usable number.
    bad_run: u64,
    exclusion: Option<Exclusion>,
    /// The variance it had, relative to the scale, when it was left out.
    variance: f64,
}

impl Channel {
    fn revive(&mut self) {
        *self = Self { exclusion: None, run: 0, variance: 0.0, ..*self };
    }

    /// Whether a channel that was left out has a signal again.
    fn shows_life(&self, value: f64, index: usize, limits: &Limits<'_>) -> bool {
        let moves = |tolerance: f64| !((value - self.reference).abs() <= REVIVAL * tolerance);
        match self.exclusion {
            None => false,
            Some(Exclusion::Constant) => limits.admit(value, index) && moves(limits.tolerance),
            Some(Exclusion::Bad) => limits.admit(value, index),
        }
    }
}

/// The limits within which a value can be used.
pub(super) struct Limits<'a> {
    /// Values this large are saturated.
    pub saturation: f64,
    /// How many scales from the mean a value may lie.
    pub reach: f64,
    pub calibration: &'a Calibration,
    /// What a channel must move by to count as moving.
    pub tolerance: f64,
}

impl<'a> Limits<'a> {
    /// The limits for values of type T.
    pub fn new<T: Real>(settings: &WhitenerSettings, calibration: &'a Calibration) -> Self {
        Self {
            saturation: settings.saturation.unwrap_or(f64::INFINITY),
            reach: reach::<T>(),
            calibration,
            tolerance: settings.floor * calibration.scale,
        }
    }

    /// A NaN is not admitted.
    fn admit(&self, value: f64, channel: usize) -> bool {
        let Calibration { mean, scale } = self.calibration;
        let within_reach = *scale == 0.0 || (value - mean[channel]).abs() <= self.reach * scale;
        value.abs() < self.saturation.min(LARGEST) && within_reach
    }
}

/// How a row looks before it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Row {
    Good,
    /// The first channel without a usable number.
    Bad {
        channel: usize,
    },
}

/// Beyond this the squares of values could overflow.
pub(super) const LARGEST: f64 = 1e150;
/// The input is silent when nothing at all has changed for so many rows.
const SILENT_AFTER: u64 = 10;
/// A channel moves if it has done so within so many rows.
const MOVES_WITHIN: u64 = 10;
/// An excluded channel comes back when it moves by this many tolerances at once.
const REVIVAL: f64 = 4.0;

impl Channels {
    pub fn new(channels: usize, patience: u64) -> Self {
        let (exclusion, variance) = (None, 0.0);
        let (reference, latest) = (f64::NAN, f64::NAN);
        let channel = Channel { reference, run: 0, latest, bad_run: 0, exclusion, variance };
        Self { own: vec![channel; channels], still: 0, patience }
    }

    pub fn is_live(&self, channel: usize) -> bool {
        self.own[channel].exclusion.is_none()
    }

    pub fn live_count(&self) -> usize {
        self.live().count()
    }

    pub fn reference(&self, channel: usize) -> f64 {
        self.own[channel].reference
    }

    pub fn exclusion(&self, channel: usize) -> Option<Exclusion> {
        self.own[channel].exclusion
    }

    fn live(&self) -> impl Iterator<Item = &Channel> {
        self.own.iter().filter(|channel| channel.exclusion.is_none())
    }

    /// The variances that excluded channels are thought to have; 0 for the others.
    pub fn imagined(&self) -> impl Iterator<Item = f64> {
        self.own.iter().map(|channel| if channel.exclusion.is_some() { channel.variance } else { 0.0 })
    }

    /// Leaves a channel out that rests at `reference`.
    pub fn exclude(&mut self, index: usize, why: Exclusion, reference: f64, variance: f64) {
        let channel = &mut self.own[index];
        *channel = Channel { reference, exclusion: Some(why), variance, ..*channel };
    }

    /// Looks at a row before it is used. A channel that shows life takes part again from this row on.
    /// Returns also how many did.
    pub fn screen<T: Real>(&mut self, row: &[T], limits: &Limits<'_>) -> (Row, u64) {
        let (mut verdict, mut revived) = (Row::Good, 0);
        for (index, (channel, value)) in self.own.iter_mut().zip(row).enumerate() {
            let value = value.to_f64();
            if channel.shows_life(value, index, limits) {
                channel.revive();
                revived += 1;
            }
            if channel.exclusion.is_some() {
                continue;
            }
            let usable = limits.admit(value, index);
            channel.bad_run = if usable { 0 } else { channel.bad_run + 1 };
            if !usable && verdict == Row::Good {
                verdict = Row::Bad { channel: index };
            }
        }
        (verdict, revived)
    }

    /// Whether this row would bring a channel back.
    pub fn would_revive<T: Real>(&self, row: &[T], limits: &Limits<'_>) -> bool {
        let values = self.own.iter().zip(row).enumerate();
        values.into_iter().any(|(index, (channel, value))| channel.shows_life(value.to_f64(), index, limits))
    }

    /// Brings back the channels of which `alive` says so. Returns how many those are.
    pub fn revive(&mut self, alive: impl Fn(usize) -> bool) -> u64 {
        let mut revived = 0;
        for (index, channel) in self.own.iter_mut().enumerate() {
            if channel.exclusion.is_some() && alive(index) {
                channel.revive();
                revived += 1;
            }
        }
        revived
    }

    /// Takes note of a good row. Returns whether the input is silent.
    pub fn watch<T: Real>(&mut self, row: &[T], tolerance: f64) -> bool {
        let mut still = true;
        for (channel, value) in self.own.iter_mut().zip(row) {
            if channel.exclusion.is_some() {
                continue;
            }
            let value = value.to_f64();
            if (value - channel.reference).abs() <= tolerance {
                channel.run += 1;
            } else {
                (channel.reference, channel.run) = (value, 0);
            }
            still &= value == channel.latest;
            channel.latest = value;
        }
        self.still = if still { self.still + 1 } else { 0 };
        self.still >= SILENT_AFTER
    }

    /// A channel that has been useless for too long while others were not.
    pub fn useless(&self) -> Option<(usize, Exclusion)> {
        let some_move = self.live().any(|channel| channel.run < MOVES_WITHIN);
        let some_deliver = self.live().any(|channel| channel.bad_run == 0);
        let live = self.own.iter().enumerate().filter(|(_, channel)| channel.exclusion.is_none());
        let mut useless = live.filter_map(|(index, channel)| {
            let bad = channel.bad_run >= self.patience && some_deliver;
            let constant = channel.run >= self.patience && some_move;
            let why = if bad { Exclusion::Bad } else { Exclusion::Constant };
            (bad || constant).then_some((index, why))
        });
        useless.next()
    }
}

#[cfg(feature = "model-file")]
impl Channels {
    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let Self { own, still, patience: _ } = self;
        let channels = own.len();
        archive.value("channels", own)?;
        archive.value("still", still)?;
        if !A::READS {
            return Ok(());
        }
        require("channels", own.len() == channels, &format!("{channels} of them"), own.len())?;
        require("channels", self.live_count() > 0, "one at least that is not excluded", "none")?;
        for (index, channel) in self.own.iter().enumerate() {
            let name = format!("variance of channel {index}");
            require(&name, channel.variance >= 0.0, "a number that is not negative", channel.variance)?;
        }
        Ok(())
    }
}
