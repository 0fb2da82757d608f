//! Screens rows: tells which can be used, and leaves out channels without a signal until they have one again.
//!
//! One definition for all who learn from rows ([`usable`], [`leave_out_wild`]): the whitener, and sums of samples.

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
pub(super) struct Screen {
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
    /// How far it has been from there meanwhile, and what it must move by to count as moving.
    departed: f64,
    tolerance: f64,
    /// Its last value.
    #[cfg_attr(feature = "model-file", serde(with = "crate::archive::nan_as_null"))]
    latest: f64,
    /// For how many rows in a row it has delivered no usable number.
    bad_run: u64,
    exclusion: Option<Exclusion>,
}

impl Channel {
    fn revive(&mut self) {
        *self = Self { exclusion: None, run: 0, departed: 0.0, ..*self };
    }

    /// Whether a channel that was left out has a signal again.
    fn shows_life(&self, value: f64, limit: f64) -> bool {
        let moves = || !((value - self.reference).abs() <= REVIVAL * self.tolerance);
        match self.exclusion {
            None => false,
            Some(Exclusion::Constant) => usable(value, limit) && moves(),
            Some(Exclusion::Bad) => usable(value, limit),
        }
    }
}

/// Beyond this the squares of values could overflow.
const LARGEST: f64 = 1e150;

/// Whether a value is a number below the limit. A NaN is not.
pub(crate) fn usable(value: f64, limit: f64) -> bool {
    value.abs() < limit.min(LARGEST)
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

/// The input is silent when nothing at all has changed for so many rows.
const SILENT_AFTER: u64 = 10;
/// A channel moves if it has done so within so many rows.
const MOVES_WITHIN: u64 = 10;
/// An excluded channel comes back when it moves by this many tolerances at once.
const REVIVAL: f64 = 4.0;

impl Screen {
    pub fn new(channels: usize, patience: u64) -> Self {
        let (reference, latest) = (f64::NAN, f64::NAN);
        let (departed, tolerance) = (0.0, 0.0);
        let channel = Channel { reference, run: 0, departed, tolerance, latest, bad_run: 0, exclusion: None };
        Self { own: vec![channel; channels], still: 0, patience }
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

    /// Which channels take part.
    pub fn live_into(&self, live: &mut Vec<bool>) {
        live.clear();
        live.extend(self.own.iter().map(|channel| channel.exclusion.is_none()));
    }

    /// Says what a channel must move by to count as moving. One that has moved by this measure does not rest.
    pub fn set_tolerance(&mut self, index: usize, tolerance: f64) {
        let channel = &mut self.own[index];
        channel.tolerance = tolerance;
        if channel.departed > tolerance {
            (channel.reference, channel.run, channel.departed) = (channel.latest, 0, 0.0);
        }
    }

    /// Leaves a channel out that rests at `reference`.
    pub fn exclude(&mut self, index: usize, why: Exclusion, reference: f64) {
        let channel = &mut self.own[index];
        *channel = Channel { reference, exclusion: Some(why), ..*channel };
    }

    /// Looks at a row before it is used. A channel that shows life takes part again from this row on.
    /// Returns also how many did.
    pub fn screen<T: Real>(&mut self, row: &[T], limit: f64) -> (Row, u64) {
        let (mut verdict, mut revived) = (Row::Good, 0);
        for (index, (channel, value)) in self.own.iter_mut().zip(row).enumerate() {
            let value = value.to_f64();
            if channel.shows_life(value, limit) {
                channel.revive();
                revived += 1;
            }
            if channel.exclusion.is_some() {
                continue;
            }
            let usable = usable(value, limit);
            channel.bad_run = if usable { 0 } else { channel.bad_run + 1 };
            if !usable && verdict == Row::Good {
                verdict = Row::Bad { channel: index };
            }
        }
        (verdict, revived)
    }

    /// Whether this row would bring a channel back.
    pub fn would_revive<T: Real>(&self, row: &[T], limit: f64) -> bool {
        self.own.iter().zip(row).any(|(channel, value)| channel.shows_life(value.to_f64(), limit))
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
    pub fn watch<T: Real>(&mut self, row: &[T]) -> bool {
        let mut still = true;
        for (channel, value) in self.own.iter_mut().zip(row) {
            if channel.exclusion.is_some() {
                continue;
            }
            let value = value.to_f64();
            let departed = (value - channel.reference).abs();
            if departed <= channel.tolerance {
                channel.run += 1;
                channel.departed = channel.departed.max(departed);
            } else {
                (channel.reference, channel.run, channel.departed) = (value, 0, 0.0);
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
impl Screen {
    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let Self { own, still, patience: _ } = self;
        let channels = own.len();
        archive.value("channels", own)?;
        archive.value("still", still)?;
        if !A::READS {
            return Ok(());
        }
        require("channels", own.len() == channels, &format!("{channels} of them"), own.len())?;
        for channel in &*own {
            let sound = |value: f64| value >= 0.0 && value.is_finite();
            require(
                "tolerance",
                sound(channel.tolerance),
                "a number that is not negative",
                channel.tolerance,
            )?;
            require("departed", sound(channel.departed), "a number that is not negative", channel.departed)?;
        }
        require("channels", self.live_count() > 0, "one at least that is not excluded", "none")?;
        Ok(())
    }
}

/// A row whose channels deviate by so many typical deviations, in the root mean square, is wild: it is answered and
/// counted, and not learned from.
pub(super) const WILD: f64 = 30.0;

/// Leaves out the wild ones of some finite rows of N numbers, by the median and the median deviation of each channel.
/// Returns how many those were. Of fewer rows than 32 nobody can tell.
pub(crate) fn leave_out_wild(rows: &mut Vec<f64>, n: usize) -> u64 {
    const ENOUGH: usize = 32;
    /// Of a Gaussian, the standard deviation in units of the median deviation.
    const DEVIATION: f64 = 1.482_602_218_505_602;
    let count = rows.len() / n;
    if count < ENOUGH {
        return 0;
    }
    let mut powers = vec![0.0; count];
    let mut column = Vec::with_capacity(count);
    for channel in 0..n {
        column.clear();
        column.extend(rows.iter().skip(channel).step_by(n));
        let centre = median(&mut column);
        column.iter_mut().for_each(|value| *value = (*value - centre).abs());
        let mut scale = DEVIATION * median(&mut column);
        if scale == 0.0 {
            // A channel that mostly repeats a value: whatever else it shows is part of it.
            scale = (column.iter().map(|value| value * value).sum::<f64>() / count as f64).sqrt();
        }
        if scale > 0.0 {
            for (power, row) in powers.iter_mut().zip(rows.chunks_exact(n)) {
                *power += ((row[channel] - centre) / scale).powi(2) / n as f64;
            }
        }
    }
    let mut kept = 0;
    for (index, power) in powers.iter().enumerate() {
        if *power <= WILD * WILD {
            rows.copy_within(index * n..(index + 1) * n, kept * n);
            kept += 1;
        }
    }
    rows.truncate(kept * n);
    (count - kept) as u64
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}
