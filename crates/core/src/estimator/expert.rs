//! Puts a memory next to what it predicted, and how large rows have been by its measure.

#[cfg(feature = "model-file")]
use super::backlog::PORTIONS;
use super::memory::Memory;
use super::prediction::Prediction;
#[cfg(feature = "model-file")]
use crate::archive::{Archive, require};
#[cfg(feature = "model-file")]
use crate::error::Result;
use crate::linalg::Room;

/// A prediction is made anew when this part of its memory is new.
const STALE: f64 = 1.0 / 32.0;
/// Levels stay below this.
const LOUDEST: f64 = 1e290;
/// Gains stay within these limits.
const GAINS: std::ops::RangeInclusive<f64> = 1e-12..=1e12;

/// A memory and what it predicts.
#[derive(Clone)]
pub(crate) struct Expert {
    pub memory: Memory,
    /// What it predicted of the rows that come now.
    pub prediction: Prediction,
    /// How large rows have been lately: the mean of |y|²/N, times the power that y was measured by. 0 if that is not
    /// known yet.
    pub level: f64,
    /// Rows since the last prediction was made.
    stale: f64,
    /// Σ |y|² of the block, and of how many rows.
    pub squares: f64,
    pub scored: f64,
    /// It takes blocks in by portions of this kind; see [`super::backlog`].
    pub portion: usize,
}

impl Expert {
    pub fn new(channels: usize, length: f64) -> Self {
        Self {
            memory: Memory::new(channels, length),
            prediction: Prediction::new(channels),
            level: 0.0,
            stale: 0.0,
            squares: 0.0,
            scored: 0.0,
            portion: 0,
        }
    }

    pub fn clear(&mut self) {
        self.memory.clear();
        self.prediction.is_made = false;
        (self.level, self.stale, self.squares, self.scored) = (0.0, 0.0, 0.0, 0.0);
        self.portion = 0;
    }

    pub fn copy_from(&mut self, other: &Self) {
        self.memory.copy_from(&other.memory);
        self.prediction.copy_from(&other.prediction);
        (self.level, self.stale, self.portion) = (0.0, other.stale, other.portion);
        self.prediction.gain = 1.0;
    }

    /// Predicts the rows to come: by what it holds now, or by what it held when little of it was other.
    pub fn predict(&mut self, live: &[bool], floor: f64, room: &mut Room) {
        if !self.prediction.is_made || self.stale >= STALE * self.memory.count {
            self.prediction.make(&self.memory, live, floor, room);
            self.stale = 0.0;
        }
        self.prediction.gain = self.gain(self.prediction.power);
    }

    /// The level relative to the power of a covariance.
    pub fn gain(&self, power: f64) -> f64 {
        let known = self.level > 0.0 && power > 0.0;
        if known { (self.level / power).clamp(*GAINS.start(), *GAINS.end()) } else { 1.0 }
    }

    /// Lets the level follow the rows of the block. Returns by which part it has moved.
    pub fn follow_level(&mut self, memory: f64) -> f64 {
        let mut moved = 0.0;
        let seen = self.prediction.power * self.squares / (self.prediction.directions.max(1.0) * self.scored);
        // Nothing was scored, or by a measure that is none.
        if seen < LOUDEST {
            let rate = if self.level > 0.0 { (self.scored / memory).min(1.0) } else { 1.0 };
            let before = self.level;
            self.level += rate * (seen - self.level);
            moved = if before > 0.0 { (self.level / before - 1.0).abs() } else { 1.0 };
        }
        (self.squares, self.scored) = (0.0, 0.0);
        moved
    }

    /// Takes rows in.
    pub fn absorb(&mut self, rows: &Memory, offset: &mut Vec<f64>) {
        self.stale += rows.count;
        self.memory.absorb(rows, offset);
    }
}

#[cfg(feature = "model-file")]
impl Expert {
    /// Visits all that later estimates depend on.
    pub fn archive<A: Archive>(&mut self, archive: &mut A, name: &str) -> Result<()> {
        self.memory.archive(archive, name)?;
        self.prediction.archive(archive, &format!("{name}.prediction"))?;
        archive.value(&format!("{name}.level"), &mut self.level)?;
        archive.value(&format!("{name}.stale"), &mut self.stale)?;
        archive.value(&format!("{name}.portion"), &mut self.portion)?;
        if !A::READS {
            return Ok(());
        }
        // Squares are summed up within a block, and a file is written between two.
        let sound = self.level >= 0.0 && self.level < 1e300;
        require(&format!("{name}.level"), sound, "a variance", self.level)?;
        require(&format!("{name}.portion"), self.portion < PORTIONS, "a kind of portion", self.portion)?;
        require(&format!("{name}.stale"), (0.0..=1e16).contains(&self.stale), "a number of rows", self.stale)
    }
}
