//! Detects a change of context from the interneurons alone.
//!
//! Once the gains have settled, E\[zᵢ²\] = 1 for every interneuron, however well W suits the context. So a short average
//! of zᵢ² that is further from 1 than usual indicates a new context. The usual distance is measured, because short
//! averages scatter more in autocorrelated or heavy-tailed input.

#[cfg(feature = "model-file")]
use crate::archive::{Archive, require, require_all};
#[cfg(feature = "model-file")]
use crate::error::Result;
use crate::real::Real;

/// Compares short averages of zᵢ² with 1.
#[derive(Clone)]
pub(super) struct Change {
    /// Short averages of zᵢ².
    pub averages: Vec<f64>,
    /// The usual distance of all of them from 1, in units of what independent Gaussian samples would show.
    pub usual: f64,
    /// Samples since the last change.
    pub seen: u64,
    /// The number of samples behind the usual distance.
    pub known: u64,
    /// The number of samples that the usual distance remembers.
    memory: f64,
}

/// The number of samples that a short average remembers.
const SHORT: f64 = 50.0;
/// After a change the averages settle for so many samples before another one can be seen.
const SETTLING: u64 = 200;
/// A distance counts as a change if chance would exceed it with a probability below e^−12. The bound is that of
/// Laurent and Massart (2000) for a mean of K squares of standard normal numbers: 1 + 2√(x/K) + 2x/K.
const IMPROBABLE: f64 = 12.0;
/// In the usual distance a single distance counts as at most this many times the usual one.
const LARGEST_UNUSUAL: f64 = 4.0;
/// A single square counts as this at most.
const LARGEST_SQUARE: f64 = 25.0;

impl Change {
    pub fn new(interneurons: usize, time_constant: f64) -> Self {
        let memory = (10.0 * time_constant).max(10.0 * SETTLING as f64);
        Self { averages: vec![1.0; interneurons], usual: 1.0, seen: 0, known: 0, memory }
    }

    /// Takes in the inputs of the interneurons. Returns whether the context seems to have changed. Where M is as small
    /// as it may become, an average below 1 is as it should be: there is next to nothing in that direction.
    pub fn see<T: Real>(&mut self, z: &[T], at_floor: impl Fn(usize) -> bool) -> bool {
        if z.is_empty() {
            return false;
        }
        self.seen += 1;
        let rate = 1.0 / SHORT;
        let mut distance = 0.0;
        for (i, (average, z)) in self.averages.iter_mut().zip(z).enumerate() {
            let square = (z.to_f64() * z.to_f64()).min(LARGEST_SQUARE);
            *average += rate * (square - *average);
            // Twice the divergence of one variance from the other: (average − 1)² near 1, and far below 1 it has no bound.
            let ratio = average.max(if at_floor(i) { 1.0 } else { f64::MIN_POSITIVE });
            distance += 2.0 * (ratio - 1.0 - ratio.ln());
        }
        if self.seen <= SETTLING {
            return false;
        }
        let k = z.len() as f64;
        // The variance of an average of squares of independent Gaussian numbers is 2 rate/(2 − rate).
        let distance = distance / k * (2.0 - rate) / (2.0 * rate);
        let bound = 1.0 + 2.0 * (IMPROBABLE / k).sqrt() + 2.0 * IMPROBABLE / k;
        if distance > self.usual * bound {
            self.restart();
            return true;
        }
        self.known += 1;
        let share = (1.0 / self.memory).max(1.0 / (self.known + SETTLING) as f64);
        // A slow change must not become usual before it is detected.
        self.usual += share * (distance.min(LARGEST_UNUSUAL * self.usual) - self.usual);
        false
    }

    /// Starts again.
    pub fn restart(&mut self) {
        self.averages.fill(1.0);
        self.seen = 0;
    }
}

#[cfg(feature = "model-file")]
impl Change {
    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let Self { averages, usual, seen, known, memory: _ } = self;
        archive.vector("change.averages", averages.len(), averages)?;
        archive.value("change.usual", usual)?;
        archive.value("change.seen", seen)?;
        archive.value("change.known", known)?;
        if !A::READS {
            return Ok(());
        }
        let expected = "averages of squares from 0 to 25";
        require_all("change.averages", averages, expected, |x| (0.0..=LARGEST_SQUARE).contains(&x))?;
        require("change.usual", *usual >= 0.0, "a number that is not negative", usual)
    }
}
