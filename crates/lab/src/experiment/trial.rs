//! Learns synapses for natural contexts from one start and measures them: what the figures after Fig. 4 D share.

use leukos::Matrix;
use leukos::contexts::Split;
use serde::{Deserialize, Serialize};

use super::Task;
use super::offline::{InitialColumns, Learning, mean};
use super::online::columns;
use super::plan::Draws;
use super::spec::{Scale, Scaled};

/// How synapses are learned, and how often.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    pub starts: Scaled,
    pub presentations: Scaled,
    pub initial_synapses: InitialColumns,
    pub learning: Learning,
}

/// What one start gives.
pub struct Trial {
    pub synapses: Matrix,
    /// The mean error over the contexts learned from, and over those kept back, after the gains have adapted.
    pub train: f64,
    pub test: f64,
}

/// What is kept of it.
#[derive(Serialize, Deserialize)]
pub struct TrialRun {
    pub train: f64,
    pub test: f64,
    /// The synapses of the start that is drawn.
    pub synapses: Option<Vec<Vec<f64>>>,
}

impl Trial {
    /// What to keep of a task's trial.
    pub fn kept(&self, task: &Task) -> TrialRun {
        let synapses = task.is_shown().then(|| columns(&self.synapses));
        TrialRun { train: self.train, test: self.test, synapses }
    }
}

impl TrialSpec {
    /// Learns `interneurons` columns from one start.
    pub fn run(
        &self,
        split: &Split,
        interneurons: usize,
        (scale, draws): (Scale, Draws),
        task: &Task,
    ) -> leukos::Result<Trial> {
        let neurons = split.train.neurons();
        let initial = self.initial_synapses.draw(neurons, interneurons, draws.start("synapses", task.start));
        let synapses = if interneurons == 0 {
            initial
        } else {
            let rng = draws.start("schedule", task.start);
            self.learning.learn(initial, &split.train, self.presentations.at(scale), rng)?.synapses
        };
        let train = mean(&self.learning.adapted_errors(&synapses, &split.train)?);
        let test = mean(&self.learning.adapted_errors(&synapses, &split.test)?);
        Ok(Trial { synapses, train, test })
    }

    /// All starts of a case with these N and K.
    pub fn tasks(&self, name: &str, case: &str, size: [usize; 2], scale: Scale) -> Vec<(Task, u64)> {
        let work = self.learning.work(size, self.presentations.at(scale));
        Task::starts(name, case, self.starts.at(scale)).into_iter().map(|task| (task, work)).collect()
    }
}
