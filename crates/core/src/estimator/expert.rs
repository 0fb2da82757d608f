//! Puts a memory next to what it predicted, and how large rows have been by its measure.

use super::block::BlockMoments;
use super::memory::Memory;
use super::prediction::Prediction;
#[cfg(feature = "model-file")]
use crate::archive::{Archive, require};
#[cfg(feature = "model-file")]
use crate::error::Result;
use crate::linalg::Room;

/// A prediction is made anew when this part of its memory is new.
const STALE: f64 = 1.0 / 32.0;
/// Gains stay within these limits.
const GAINS: std::ops::RangeInclusive<f64> = 1e-12..=1e12;

/// A memory and what it predicts.
#[derive(Clone)]
pub(crate) struct Expert {
    pub memory: Memory,
    /// What it predicted a while ago, which is scored, and what it will be scored by next.
    pub now: Prediction,
    pub next: Prediction,
    /// How large rows have been lately: the mean of |y|²/N, times the power that y was measured by. 0 if that is not
    /// known yet.
    pub level: f64,
    /// Rows since `next` was made.
    stale: f64,
    /// Σ |y|² of the block, and of how many rows.
    pub squares: f64,
    pub scored: f64,
}

impl Expert {
    pub fn new(channels: usize, length: f64) -> Self {
        Self {
            memory: Memory::new(channels, length),
            now: Prediction::new(channels),
            next: Prediction::new(channels),
            level: 0.0,
            stale: 0.0,
            squares: 0.0,
            scored: 0.0,
        }
    }

    pub fn clear(&mut self) {
        self.memory.clear();
        (self.now.version, self.next.version) = (0, 0);
        (self.level, self.stale, self.squares, self.scored) = (0.0, 0.0, 0.0, 0.0);
    }

    pub fn copy_from(&mut self, other: &Self) {
        self.memory.copy_from(&other.memory);
        self.now.copy_from(&other.now);
        self.next.copy_from(&other.next);
        (self.level, self.stale) = (0.0, other.stale);
        (self.now.gain, self.next.gain) = (1.0, 1.0);
    }

    /// What was to come is scored from now on, and what the memory says now comes next.
    pub fn turn(&mut self, live: &[bool], floor: f64, versions: &mut u64, room: &mut Room) {
        self.now.copy_from(&self.next);
        if self.next.version == 0 || self.stale >= STALE * self.memory.count {
            *versions += 1;
            self.next.make(&self.memory, live, floor, *versions, room);
            self.stale = 0.0;
        }
        self.next.gain = self.gain(self.next.power);
    }

    /// The level relative to the power of a covariance.
    pub fn gain(&self, power: f64) -> f64 {
        let known = self.level > 0.0 && power > 0.0;
        if known { (self.level / power).clamp(*GAINS.start(), *GAINS.end()) } else { 1.0 }
    }

    /// Lets the level follow the rows of the block, and takes the block in. Returns by which part the level has moved.
    pub fn absorb(&mut self, block: &mut BlockMoments, memory: f64) -> f64 {
        let mut moved = 0.0;
        if self.scored > 0.0 {
            let seen = self.now.power * self.squares / (self.now.directions.max(1.0) * self.scored);
            let rate = if self.level > 0.0 { (self.scored / memory).min(1.0) } else { 1.0 };
            let before = self.level;
            self.level += rate * (seen - self.level);
            moved = if before > 0.0 { (self.level / before - 1.0).abs() } else { 1.0 };
        }
        (self.squares, self.scored) = (0.0, 0.0);
        self.stale += block.count as f64;
        self.memory.absorb(block);
        moved
    }
}

#[cfg(feature = "model-file")]
impl Expert {
    /// Visits all that later estimates depend on.
    pub fn archive<A: Archive>(&mut self, archive: &mut A, name: &str) -> Result<()> {
        self.memory.archive(archive, name)?;
        self.now.archive(archive, &format!("{name}.now"))?;
        self.next.archive(archive, &format!("{name}.next"))?;
        archive.value(&format!("{name}.level"), &mut self.level)?;
        archive.value(&format!("{name}.stale"), &mut self.stale)?;
        if !A::READS {
            return Ok(());
        }
        // Squares are summed up within a block, and a file is written between two.
        let sound = self.level >= 0.0 && self.level < 1e300;
        require(&format!("{name}.level"), sound, "a variance", self.level)?;
        require(&format!("{name}.stale"), (0.0..=1e16).contains(&self.stale), "a number of rows", self.stale)
    }
}
