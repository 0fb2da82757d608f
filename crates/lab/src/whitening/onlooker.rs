//! Lets somebody watch a stream while it is whitened, and give instructions.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use leukos::{Model, Real, SampleCounts, WhitenerStatus};

use super::engine::Engine;
use crate::inspection::all_gains;
use crate::recording::Layout;

/// Somebody who watches a stream. What is written does not depend on it, unless it gives instructions.
pub trait Onlooker {
    /// The stream begins; errors end it.
    ///
    /// # Errors
    /// When such a stream cannot be watched.
    fn begin(&mut self, layout: &Layout, whitening: &mut dyn Watched) -> Result<()>;

    /// Waits until rows are due, and says how many of the next `most` may be read; none when `stop` is set.
    fn wait(&mut self, row: u64, most: usize, stop: &AtomicBool) -> usize;

    /// What to do before the next row.
    fn instructions(&mut self) -> Vec<Instruction>;

    /// An instruction was carried out before this row.
    fn obeyed(&mut self, row: u64, words: &str);

    /// Rows were whitened.
    ///
    /// # Errors
    /// When something cannot be computed from them.
    fn see(&mut self, seen: &Seen<'_>, whitening: &mut dyn Watched) -> Result<()>;
}

/// What an onlooker may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A new context begins.
    NewContext,
    /// Adapt, or keep everything as it is.
    Adapt(bool),
    /// Save the model with its running state.
    Save(PathBuf),
}

/// Some rows of a stream, and what became of them.
pub struct Seen<'a> {
    /// The number of the first row.
    pub first: u64,
    /// What was read, row after row.
    pub stimuli: &'a [f64],
    /// What was written.
    pub responses: &'a [f64],
    /// The rows at which a label said that a new context begins, and the labels.
    pub told: &'a [(u64, String)],
}

/// A whitener at work, in either precision.
pub trait Watched {
    /// The gains of all interneurons, group after group; not so quick to ask for.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn gains(&self) -> Result<Vec<f64>>;

    /// What each group of channels has met so far; quick to ask for.
    fn samples(&self) -> Vec<SampleCounts>;

    /// How each group of channels is doing.
    fn statuses(&mut self) -> Vec<(Vec<usize>, WhitenerStatus)>;

    /// The model with its running state.
    ///
    /// # Errors
    /// When it is too large for a model file.
    fn snapshot(&self) -> Result<Model<f64>>;
}

impl<T: Real> Watched for Engine<T> {
    fn gains(&self) -> Result<Vec<f64>> {
        Ok(all_gains(&self.model().whitener)?)
    }

    fn samples(&self) -> Vec<SampleCounts> {
        self.model().whitener.whiteners().map(leukos::Whitener::samples).collect()
    }

    fn statuses(&mut self) -> Vec<(Vec<usize>, WhitenerStatus)> {
        let groups: Vec<_> = self.model().whitener.groups().map(|(channels, _)| channels.to_vec()).collect();
        groups.into_iter().zip(self.whiteners_mut().map(leukos::Whitener::status)).collect()
    }

    fn snapshot(&self) -> Result<Model<f64>> {
        Ok(Model::from_bytes(&self.model().to_checkpoint()?)?)
    }
}
