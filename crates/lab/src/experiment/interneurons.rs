//! Reruns Fig. 4 E and the appendix's two figures about the number of interneurons.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::images::{Images, ImagesSpec, all_images, fingerprint_all, origins_of_all};
use super::plan::{Draws, Setting};
use super::spec::Scale;
use super::statistics::{Divergence, Outcome, Starts, Statistic};
use super::sweep::SweepAt;
use super::trial::{TrialRun, TrialSpec};
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of the sweep over K.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterneuronsSpec {
    figure: Figure,
    variants: BTreeMap<String, Sweep>,
}

/// Natural contexts of one size, learned with each number of interneurons.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    images: ImagesSpec,
    interneurons: SweepAt,
    training: TrialSpec,
}

/// The sweep over K.
pub struct Interneurons {
    spec: InterneuronsSpec,
    images: BTreeMap<String, Images>,
    scale: Scale,
    draws: Draws,
}

#[derive(Serialize)]
struct Numbers {
    n: usize,
    k: Vec<usize>,
    seeds: usize,
    train: Vec<Statistic>,
    test: Vec<Statistic>,
    diverged: Vec<Option<Divergence>>,
}

impl Sweep {
    /// The numbers of interneurons for N neurons.
    fn interneurons(&self, scale: Scale, neurons: usize) -> Vec<usize> {
        self.interneurons.at(scale, self.images.neurons(), neurons)
    }
}

impl FigureSpec for InterneuronsSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Interneurons::new(self, setting)?))
    }
}

impl Interneurons {
    fn new(spec: InterneuronsSpec, setting: &Setting) -> Result<Self> {
        let images = all_images(
            spec.variants.iter().map(|(name, sweep)| (name, &sweep.images)),
            Figure::Interneurons,
            setting,
        )?;
        Ok(Self { spec, images, scale: setting.scale, draws: setting.draws(Figure::Interneurons) })
    }
}

impl Experiment for Interneurons {
    fn origins(&self) -> Origins {
        origins_of_all(&self.images)
    }

    fn fingerprint(&self) -> u64 {
        fingerprint_all(&self.images)
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let mut tasks = Vec::new();
        for (name, sweep) in &self.spec.variants {
            let n = self.images[name].contexts.neurons();
            for k in sweep.interneurons(self.scale, n) {
                tasks.extend(sweep.training.tasks(name, &k.to_string(), [n, k], self.scale));
            }
        }
        tasks
    }

    fn run(&self, task: &Task) -> Result<Value> {
        let (sweep, images) = (&self.spec.variants[&task.variant], &self.images[&task.variant]);
        let split = images.split_of(task.start, self.draws)?;
        let trial = sweep.training.run(&split, task.case.parse()?, (self.scale, self.draws), task);
        Outcome::record(trial.map(|trial| trial.kept(task)))
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, sweep) in &self.spec.variants {
            let images = &self.images[name];
            let n = images.contexts.neurons();
            let k = sweep.interneurons(self.scale, n);
            let starts = k
                .iter()
                .map(|k| records.starts(name, &k.to_string()))
                .collect::<Result<Vec<Starts<TrialRun>>>>()?;
            let synapses =
                starts.iter().map(|starts| starts.shown(|run| run.synapses.as_ref())).collect::<Vec<_>>();
            let panels = json!({ "patch": images.patch, "k": k, "synapses": synapses });
            let numbers = Numbers {
                n,
                seeds: sweep.training.starts.at(self.scale),
                train: starts.iter().map(|starts| starts.statistic(|run| run.train)).collect(),
                test: starts.iter().map(|starts| starts.statistic(|run| run.test)).collect(),
                diverged: starts.iter().map(Starts::divergence).collect(),
                k,
            };
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}
