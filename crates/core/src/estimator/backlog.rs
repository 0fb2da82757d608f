//! Gathers blocks into portions, so that a long memory takes in several of them at once.
//!
//! ```text
//! blocks         | | | | | | | | | | | | | | | | |      portion 0: each block
//! gathered[0]    |       |       |       |       |      portion 1: four of them
//! gathered[1]    |                               |      portion 2: sixteen, and so on
//! ```
//!
//! To take something in costs as much for a block as for a thousand rows, and what a memory of a million rows says does
//! not depend on the last hundred. A portion has at most a twelfth of what the memory holds.

use super::expert::Expert;
use super::memory::Memory;
#[cfg(feature = "model-file")]
use crate::archive::{Archive, require};
#[cfg(feature = "model-file")]
use crate::error::Result;

/// How many kinds of portions there are.
pub(crate) const PORTIONS: usize = 4;
/// A portion holds so many of the kind before.
const TIMES: u64 = 4;
/// And at most this part of what a memory holds that takes it in.
const PART: f64 = 1.0 / 12.0;

/// Some rows, and how large the responses to them were.
#[derive(Clone)]
pub(crate) struct Portion {
    pub rows: Memory,
    /// The mean of |r|²/N.
    pub power: f64,
}

impl Portion {
    pub fn new(channels: usize) -> Self {
        Self { rows: Memory::new(channels, f64::INFINITY), power: 0.0 }
    }

    fn absorb(&mut self, other: &Self, offset: &mut Vec<f64>) {
        self.rows.absorb(&other.rows, offset);
        self.power += other.rows.count / self.rows.count * (other.power - self.power);
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.power = 0.0;
    }
}

/// Rows that some memories have not taken in yet.
#[derive(Clone)]
pub(crate) struct Backlog {
    /// What is gathered for portions 1, 2, …
    gathered: Vec<Portion>,
    /// Blocks so far.
    blocks: u64,
    offset: Vec<f64>,
}

impl Backlog {
    pub fn new(channels: usize) -> Self {
        Self {
            gathered: vec![Portion::new(channels); PORTIONS - 1],
            blocks: 0,
            offset: Vec::with_capacity(channels),
        }
    }

    /// Forgets everything, for experts that begin anew.
    pub fn clear(&mut self) {
        self.gathered.iter_mut().for_each(Portion::clear);
        self.blocks = 0;
    }

    /// Lets every expert whose turn it is take in what it has not taken in yet, this block included. Calls `taken` with
    /// the index of such an expert, the part of its memory that is new, and the power of that.
    pub fn hand_out(
        &mut self,
        block: &Portion,
        experts: &mut [Expert],
        mut taken: impl FnMut(usize, f64, f64),
    ) {
        self.blocks += 1;
        let mut full = 0;
        loop {
            let (done, gathering) = self.gathered.split_at_mut(full);
            let portion = done.last().unwrap_or(block);
            for (index, expert) in experts.iter_mut().enumerate().filter(|(_, own)| own.portion == full) {
                expert.absorb(&portion.rows, &mut self.offset);
                taken(index, portion.rows.count / expert.memory.count, portion.power);
            }
            let Some(next) = gathering.first_mut() else { break };
            next.absorb(portion, &mut self.offset);
            if !self.blocks.is_multiple_of(TIMES.pow(full as u32 + 1)) {
                break;
            }
            full += 1;
        }
        // Whoever has just taken everything in may do so less often from now on, or more often.
        let Self { gathered, .. } = self;
        for expert in experts.iter_mut().filter(|own| own.portion <= full) {
            let suits = |kind: &usize| gathered[kind - 1].rows.count <= PART * expert.memory.count;
            expert.portion = (1..=full).rev().find(suits).unwrap_or(0);
        }
        gathered[..full].iter_mut().for_each(Portion::clear);
    }
}

#[cfg(feature = "model-file")]
impl Backlog {
    /// Visits all that later estimates depend on.
    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        for (index, gathered) in self.gathered.iter_mut().enumerate() {
            gathered.rows.archive(archive, &format!("gathered{index}"))?;
            archive.value(&format!("gathered{index}.power"), &mut gathered.power)?;
            let sound = gathered.power >= 0.0;
            require(&format!("gathered{index}.power"), sound, "a power", gathered.power)?;
        }
        archive.value("blocks", &mut self.blocks)?;
        if A::READS {
            require("blocks", self.blocks <= 1 << 53, "a number of blocks", self.blocks)?;
        }
        Ok(())
    }
}
