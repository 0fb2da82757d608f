//! Decides when synapses may learn: not from responses that leave a direction empty.
//!
//! The Hebbian rule, Eq. (8), turns synapses towards where responses vary too much and away from where they vary too
//! little. Where a direction carries nothing for a while, because channels repeat one another or follow one signal,
//! that tells nothing about what contexts share. So the smallest variance of the latest responses is compared with
//! what it usually is.

#[cfg(feature = "model-file")]
use crate::archive::{Archive, require};
use crate::error::Result;
use crate::real::Real;
use crate::running_error::RunningError;

/// The smallest variance of the latest responses, and its usual value.
#[derive(Clone)]
pub(super) struct Plasticity {
    pub recent: RunningError,
    pub usual: f64,
    pub seen: u64,
    pub permitted: bool,
    /// For how many checks what is usual is remembered.
    memory: f64,
}

/// How often the variances are looked at.
const CHECK_EVERY: u64 = 16;
/// A smallest variance below this share of the usual one counts as zero.
const EMPTY: f64 = 0.1;

impl Plasticity {
    pub fn new(channels: usize, time_constant: f64) -> Result<Self> {
        let recent = RunningError::new(channels, (4.0 * channels as f64).max(50.0))?;
        let memory = 10.0 * time_constant / CHECK_EVERY as f64;
        Ok(Self { recent, usual: 0.0, seen: 0, permitted: false, memory: memory.max(10.0) })
    }

    /// Takes in a response that counts.
    pub fn see<T: Real>(&mut self, response: &[T]) {
        // One that overflowed is left out.
        let _ = self.recent.update(response);
        self.seen += 1;
        if self.seen.is_multiple_of(CHECK_EVERY) {
            self.check();
        }
    }

    fn check(&mut self) {
        let Some([least, _]) = self.recent.extreme_variances() else { return };
        // Rounding can make a variance of zero negative.
        let least = least.max(0.0);
        let checks = (self.seen / CHECK_EVERY) as f64;
        self.permitted = least > EMPTY * self.usual;
        // A state that lasts becomes the usual one in the end.
        let memory = if self.permitted { self.memory } else { 100.0 * self.memory };
        self.usual += (least - self.usual) / memory.min(checks);
    }
}

#[cfg(feature = "model-file")]
impl Plasticity {
    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let Self { recent, usual, seen, permitted, memory: _ } = self;
        recent.archive(archive, "plasticity")?;
        archive.value("plasticity.usual", usual)?;
        archive.value("plasticity.seen", seen)?;
        archive.value("plasticity.permitted", permitted)?;
        let sound = !A::READS || *usual >= 0.0;
        require("plasticity.usual", sound, "a number that is not negative", *usual)
    }
}
