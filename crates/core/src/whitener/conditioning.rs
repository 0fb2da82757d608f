//! Centres and scales the input, so that volts and microvolts give the same result.

use super::channels::Channels;
use super::channels::LARGEST;
#[cfg(feature = "model-file")]
use crate::archive::{Archive, require, require_all};
#[cfg(feature = "model-file")]
use crate::error::Result;
use crate::real::Real;

/// Where the input lies and how large it is. The circuit sees (s − mean)/scale.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Calibration {
    pub mean: Vec<f64>,
    /// σ: the root of the median of |s − mean|²/N; 0 as long as nothing has varied.
    pub scale: f64,
}

impl Calibration {
    /// Writes x = (s − mean)/σ, with zeros for channels that are excluded.
    pub fn condition<T: Real>(&self, s: &[T], channels: &Channels, x: &mut [T]) {
        let reciprocal = if self.scale > 0.0 { 1.0 / self.scale } else { 0.0 };
        for (j, x) in x.iter_mut().enumerate() {
            let centred = (s[j].to_f64() - self.mean[j]) * reciprocal;
            *x = if channels.is_live(j) { T::from_f64(centred) } else { T::ZERO };
        }
    }

    /// The stimulus s = σx + mean, with the last value of channels that are excluded.
    pub fn restore<T: Real>(&self, x: &[T], channels: &Channels, s: &mut [T]) {
        for (j, s) in s.iter_mut().enumerate() {
            let value = if channels.is_live(j) {
                self.scale * x[j].to_f64() + self.mean[j]
            } else {
                channels.reference(j)
            };
            *s = T::from_f64(value);
        }
    }
}

/// Some rows of input, kept for estimates of mean and scale that a few outliers cannot spoil.
#[derive(Clone)]
pub(super) struct GatheredRows {
    channels: usize,
    capacity: usize,
    values: Vec<f64>,
    /// Where the next row goes once all places are taken.
    next: usize,
    scratch: Vec<f64>,
}

/// The number of rows that memory is allocated for at first; it grows if more are needed.
const ROOM: usize = 256;

impl GatheredRows {
    pub fn new(channels: usize, capacity: usize) -> Self {
        let room = capacity.min(ROOM);
        let values = Vec::with_capacity(channels * room);
        Self { channels, capacity, values, next: 0, scratch: Vec::with_capacity(room) }
    }

    /// Keeps a row, in place of the oldest when there is no room. A channel that is left out may deliver anything:
    /// what cannot be used is kept as if the channel rested.
    pub fn push<T: Real>(&mut self, row: &[T], rest: &[f64]) {
        let usable = |x: f64| Some(x).filter(|x| x.abs() < LARGEST);
        let row = row.iter().zip(rest);
        let row = row.map(|(x, &rest)| usable(x.to_f64()).or(usable(rest)).unwrap_or(0.0));
        if !self.is_full() {
            self.values.extend(row);
            return;
        }
        let place = self.next * self.channels;
        self.values[place..place + self.channels].iter_mut().zip(row).for_each(|(own, x)| *own = x);
        self.next = (self.next + 1) % self.capacity;
    }

    pub fn clear(&mut self) {
        self.values.clear();
        self.next = 0;
    }

    pub fn is_full(&self) -> bool {
        self.values.len() / self.channels >= self.capacity
    }

    pub fn len(&self) -> usize {
        self.values.len() / self.channels
    }

    /// The latest rows, as many of these as there are, in no particular order.
    pub fn latest(&self, count: usize) -> impl Iterator<Item = &[f64]> {
        let rows = self.len();
        let newest = if self.is_full() { self.next + self.capacity } else { rows };
        (0..count.min(rows)).map(move |back| {
            let index = (newest - 1 - back) % self.capacity;
            &self.values[index * self.channels..(index + 1) * self.channels]
        })
    }

    /// The row that was added last, unless the ring buffer is full.
    pub fn last(&self) -> Option<&[f64]> {
        self.values.rchunks_exact(self.channels).next()
    }

    /// The median of what `of` makes of each row; 0 without rows.
    pub fn median(&mut self, mut of: impl FnMut(&[f64]) -> f64) -> f64 {
        self.scratch.clear();
        self.scratch.extend(self.values.chunks_exact(self.channels).map(&mut of));
        median(&mut self.scratch)
    }

    /// The calibration that fits these rows: medians, so that fewer than half of the rows cannot spoil it. Channels
    /// that are excluded keep their place and do not count.
    pub fn calibrate(&mut self, channels: &Channels, calibration: &mut Calibration) {
        for j in 0..self.channels {
            if channels.is_live(j) {
                calibration.mean[j] = self.median(|row| row[j]);
            }
        }
        calibration.scale = self.scale_about(channels, &calibration.mean);
    }

    /// √ of the median of |s − mean|²/N.
    pub fn scale_about(&mut self, channels: &Channels, mean: &[f64]) -> f64 {
        let live = channels.live_count().max(1) as f64;
        let power = |row: &[f64]| {
            let deviations = row.iter().zip(mean).enumerate().filter(|(j, _)| channels.is_live(*j));
            deviations.map(|(_, (s, mean))| (s - mean) * (s - mean)).sum::<f64>() / live
        };
        self.median(power).sqrt()
    }
}

/// The upper median; 0 of nothing. Reorders the values.
pub(super) fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(feature = "model-file")]
impl Calibration {
    /// Visits mean and scale, under names that begin with `whose`.
    pub fn archive<A: Archive>(&mut self, archive: &mut A, whose: &str) -> Result<()> {
        let Self { mean, scale } = self;
        archive.vector(&format!("{whose}mean"), mean.len(), mean)?;
        archive.value(&format!("{whose}scale"), scale)?;
        let sound = scale_is_sound(*scale);
        require(&format!("{whose}scale"), !A::READS || sound, "0 or a positive number below 1e155", scale)
    }
}

#[cfg(feature = "model-file")]
pub(super) fn scale_is_sound(scale: f64) -> bool {
    scale == 0.0 || scale > 0.0 && is_usable(scale)
}

#[cfg(feature = "model-file")]
impl GatheredRows {
    /// Visits the rows and where the next one goes.
    pub fn archive<A: Archive>(&mut self, archive: &mut A, whose: &str) -> Result<()> {
        let Self { channels, capacity, values, next, scratch: _ } = self;
        let name = format!("{whose}.rows");
        archive.rows(&name, (*capacity, *channels), values)?;
        archive.value(&format!("{whose}.next"), next)?;
        if !A::READS {
            return Ok(());
        }
        require_all(&name, values, "numbers of a size below 1e150", |value| value.abs() < LARGEST)?;
        let sound = *next == 0 || *next < *capacity && self.is_full();
        require(
            &format!("{whose}.next"),
            sound,
            "a row that is there, or 0 as long as there is room",
            self.next,
        )
    }
}

/// Whether a scale is neither too small nor too large for what values up to 1e150 can have.
pub(super) fn is_usable(scale: f64) -> bool {
    scale.is_normal() && scale < LARGEST_SCALE
}

/// A little more than the largest value, because responses may be smaller than what they answer.
const LARGEST_SCALE: f64 = 1e155;
