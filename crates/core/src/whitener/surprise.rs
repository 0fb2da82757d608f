//! Tells outliers and silence from ordinary samples, and a permanent change from a passing one.

#[cfg(feature = "model-file")]
use crate::archive::{Archive, require};
#[cfg(feature = "model-file")]
use crate::error::Result;

/// How a sample compares with what the whitener expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Ordinary,
    /// So large that it is answered but not learned from.
    Loud,
    /// So small that nothing can be learned from it.
    Quiet,
}

/// Two leaky counters, of loud and of quiet samples.
#[derive(Clone)]
pub(super) struct Surprise {
    pub limit: f64,
    /// How full a counter must be for a change to count as permanent.
    pub patience: u64,
    pub loud: u64,
    pub quiet: u64,
    /// For how many more samples large ones are learned from, because they have lasted too long to be artefacts.
    pub yielding: u64,
}

/// How long that is: gains that may double at every sample grow by many decades in this time.
const YIELDING: u64 = 64;
/// So many quiet samples in a row are silence. Chance makes that many of one channel once in 50 000 samples, and of
/// more channels hardly ever.
const SILENCE: u64 = 3;
/// What a sample of another kind takes off a counter.
const RELIEF: u64 = 4;
/// After how many surprising samples a former calibration is tried.
pub(super) const TRY_FORMER_AFTER: u64 = 20;

impl Surprise {
    pub fn new(limit: f64, patience: u64) -> Self {
        Self { limit, patience, loud: 0, quiet: 0, yielding: 0 }
    }

    /// Whether a power, relative to the one expected, is within the limits.
    pub fn is_ordinary(&self, power: f64) -> bool {
        power < self.limit * self.limit && power * self.limit * self.limit > 1.0
    }

    /// Whether a power is so small that it says nothing.
    pub fn is_silence(&self, power: f64) -> bool {
        !(power * self.limit * self.limit > 1.0)
    }

    /// Judges a response by |r|²/N, which is 1 on average.
    pub fn judge(&mut self, power: f64) -> Level {
        let level = match power {
            power if self.is_ordinary(power) => Level::Ordinary,
            power if power < 1.0 => Level::Quiet,
            _ => Level::Loud,
        };
        for (count, kind) in [(&mut self.loud, Level::Loud), (&mut self.quiet, Level::Quiet)] {
            *count = if level == kind { *count + 1 } else { count.saturating_sub(RELIEF) };
        }
        level
    }

    /// Whether such a sample is learned from: an ordinary one, a loud one after giving in, or a quiet one among
    /// ordinary ones, which a single channel delivers often.
    pub fn learns_from(&mut self, level: Level) -> bool {
        let yielding = self.yielding > 0;
        self.yielding = self.yielding.saturating_sub(1);
        match level {
            Level::Ordinary => true,
            Level::Loud => yielding,
            Level::Quiet => self.quiet < SILENCE,
        }
    }

    /// Whether it is time to test if an earlier calibration fits the input.
    pub fn suggests_former(&self) -> bool {
        let most = self.loud.max(self.quiet);
        most > 0 && most.is_multiple_of(TRY_FORMER_AFTER)
    }

    /// Whether the input has changed permanently.
    pub fn is_for_good(&self) -> bool {
        self.loud.max(self.quiet) >= self.patience
    }

    /// Forgets the surprise and learns from large samples for a while.
    pub fn give_in(&mut self) {
        self.calm_down();
        self.yielding = YIELDING;
    }

    /// Forgets the surprise.
    pub fn calm_down(&mut self) {
        (self.loud, self.quiet, self.yielding) = (0, 0, 0);
    }
}

#[cfg(feature = "model-file")]
impl Surprise {
    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let Self { limit: _, patience, loud, quiet, yielding } = self;
        archive.value("surprise.loud", loud)?;
        archive.value("surprise.quiet", quiet)?;
        archive.value("surprise.yielding", yielding)?;
        let sound = !A::READS || *yielding <= *patience;
        require("surprise.yielding", sound, &format!("{patience} samples at most"), yielding)
    }
}
