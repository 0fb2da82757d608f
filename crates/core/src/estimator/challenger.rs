//! Challenges what is believed: a memory that began a little while ago, and what speaks for it.

use super::expert::Expert;
#[cfg(feature = "model-file")]
use crate::archive::{Archive, require, require_all};
#[cfg(feature = "model-file")]
use crate::error::Result;

/// A young memory. Under steady statistics it predicts worse than the older ones. After a sharp change all others still
/// hold the old context, and it does not.
#[derive(Clone)]
pub(crate) struct Challenger {
    pub expert: Expert,
    /// The weights of the experts before it began.
    pub before: Vec<f64>,
    /// When it began, and how many of its rows were wild.
    pub born: f64,
    pub wild: f64,
    /// What it has predicted better than the mixture, and than the mixture would have with the weights from before.
    pub than_mixture: Evidence,
    pub than_before: Evidence,
}

/// The sum of some nats since it was lowest: what speaks for something that may have begun at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Evidence {
    pub nats: f64,
    /// When it was lowest.
    pub since: f64,
}

impl Evidence {
    /// Takes in some nats of rows until this time.
    pub fn add(&mut self, nats: f64, until: f64) {
        self.nats += nats;
        if self.nats <= 0.0 {
            *self = Self { nats: 0.0, since: until };
        }
    }
}

impl Challenger {
    pub fn new(channels: usize, weights: &[f64]) -> Self {
        Self {
            expert: Expert::new(channels, f64::INFINITY),
            before: weights.to_vec(),
            born: 0.0,
            wild: 0.0,
            than_mixture: Evidence::default(),
            than_before: Evidence::default(),
        }
    }

    /// Begins anew at this time.
    pub fn begin(&mut self, time: f64, before: &[f64]) {
        self.expert.clear();
        self.before.copy_from_slice(before);
        (self.born, self.wild) = (time, 0.0);
        let none = Evidence { nats: 0.0, since: time };
        (self.than_mixture, self.than_before) = (none, none);
    }

    /// Whether most of what it has seen is wild.
    pub fn is_wild(&self) -> bool {
        2.0 * self.wild >= self.expert.memory.count
    }
}

#[cfg(feature = "model-file")]
impl Challenger {
    /// Visits all that later estimates depend on.
    pub fn archive<A: Archive>(&mut self, archive: &mut A, name: &str) -> Result<()> {
        self.expert.archive(archive, name)?;
        let experts = self.before.len();
        archive.vector(&format!("{name}.before"), experts, &mut self.before)?;
        archive.value(&format!("{name}.born"), &mut self.born)?;
        archive.value(&format!("{name}.wild"), &mut self.wild)?;
        self.than_mixture.archive(archive, &format!("{name}.than_mixture"))?;
        self.than_before.archive(archive, &format!("{name}.than_before"))?;
        if !A::READS {
            return Ok(());
        }
        let weight = |weight| (0.0..=1.0).contains(&weight);
        require_all(&format!("{name}.before"), &self.before, "weights from 0 to 1", weight)?;
        let counted = |value: f64| (0.0..=1e16).contains(&value);
        require(&format!("{name}.born"), counted(self.born), "a number of rows", self.born)?;
        require(&format!("{name}.wild"), counted(self.wild), "a number of rows", self.wild)
    }
}

#[cfg(feature = "model-file")]
impl Evidence {
    pub fn archive<A: Archive>(&mut self, archive: &mut A, name: &str) -> Result<()> {
        archive.value(name, &mut self.nats)?;
        archive.value(&format!("{name}.since"), &mut self.since)?;
        if !A::READS {
            return Ok(());
        }
        require(name, (0.0..=1e16).contains(&self.nats), "nats that are not negative", self.nats)?;
        require(&format!("{name}.since"), (0.0..=1e16).contains(&self.since), "a number of rows", self.since)
    }
}
