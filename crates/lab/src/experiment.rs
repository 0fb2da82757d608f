//! Turns specs into runs, runs into records and records into results.
//!
//! A figure of the paper is an [`Experiment`]: it names its [`Task`]s, runs any of them on its own, and sums up the
//! records of all. A task's random numbers depend on the seed and on the task alone, so neither the number of threads
//! nor an interruption changes a bit of what comes out.

pub(crate) mod ablation;
pub(crate) mod adaptation;
pub(crate) mod biological;
pub(crate) mod control;
pub(crate) mod dale;
pub(crate) mod geometry;
pub(crate) mod hardware;
mod images;
pub(crate) mod interneurons;
pub(crate) mod leak;
pub(crate) mod natural;
mod offline;
pub(crate) mod one_dimensional;
mod online;
mod online_spec;
mod origin;
mod pair;
mod plan;
pub(crate) mod recurrence;
mod results;
mod run;
mod spec;
mod statistics;
mod store;
mod sweep;
pub(crate) mod synthetic;
pub(crate) mod time_scales;
mod trial;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::catalogue::Figure;
pub use origin::{Origin, Origins, Source};
pub use plan::{GivenStack, Plan, Setting};
pub use results::{PANELS, RESULTS, Results, write_json};
pub use run::{Execution, execute, runs_path};
pub use spec::{FigureSpec, Scale, Spec};
use statistics::Starts;
pub use statistics::{Statistic, median};

/// One piece of work: a start of a variant, in one of the variant's cases (a number of interneurons, a leak).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Task {
    /// The variant's name.
    pub variant: String,
    /// The case; empty where a variant has only one.
    pub case: String,
    /// Which start, from 0.
    pub start: usize,
}

impl Task {
    /// Every start of one case.
    fn starts(variant: &str, case: &str, starts: usize) -> Vec<Self> {
        let task = |start| Self { variant: variant.to_owned(), case: case.to_owned(), start };
        (0..starts).map(task).collect()
    }

    /// Whether this is the start whose details are kept for drawing.
    fn is_shown(&self) -> bool {
        self.start == 0
    }
}

/// What a figure of the paper needs to be rerun.
pub trait Experiment: Send + Sync {
    /// Where the contexts of each variant come from.
    fn origins(&self) -> Origins;

    /// A number that stands for contexts from a file; 0 without.
    fn fingerprint(&self) -> u64 {
        0
    }

    /// All the work there is, each task with about how many microseconds it takes.
    fn tasks(&self) -> Vec<(Task, u64)>;

    /// Does one piece of work. A run that diverges is a record like any other, not an error.
    ///
    /// # Errors
    /// When a parameter makes the run impossible.
    fn run(&self, task: &Task) -> Result<Value>;

    /// Sums up the records of all tasks.
    ///
    /// # Errors
    /// When a record is missing or damaged.
    fn summarise(&self, records: &Records) -> Result<Summary>;
}

/// What is reported about a figure: its numbers, and what its pictures need besides.
#[derive(Debug, Default)]
pub struct Summary {
    variants: BTreeMap<String, Value>,
    panels: BTreeMap<String, Value>,
}

impl Summary {
    /// Adds a variant's numbers and the series behind its pictures.
    fn add(&mut self, variant: &str, numbers: impl Serialize, panels: impl Serialize) -> Result<()> {
        self.variants.insert(variant.to_owned(), serde_json::to_value(numbers)?);
        self.panels.insert(variant.to_owned(), serde_json::to_value(panels)?);
        Ok(())
    }
}

/// The records of finished tasks.
pub type RecordMap = BTreeMap<Task, Value>;

/// The records of one figure.
#[derive(Debug)]
pub struct Records(RecordMap);

impl Records {
    /// The outcomes of all starts of a case, in their order, each with contexts of its own or with given ones.
    fn starts<R: DeserializeOwned>(&self, variant: &str, case: &str) -> Result<Starts<R>> {
        let of_case = |task: &&Task| task.variant == variant && task.case == case;
        let outcome = |task: &Task| {
            let record = self.0[task].clone();
            serde_json::from_value(record).with_context(|| format!("the record of {task:?} is damaged"))
        };
        self.0.keys().filter(of_case).map(outcome).collect::<Result<Vec<_>>>().map(Starts::new)
    }
}
