//! Reruns the appendix's first figure, C: contexts with the spectra of natural ones and random eigenvectors.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::images::{Images, ImagesSpec, all_images, fingerprint_all, origins_of_all};
use super::plan::{Draws, Setting};
use super::spec::Scale;
use super::statistics::{Divergence, Outcome, Starts, Statistic};
use super::trial::{TrialRun, TrialSpec};
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of the control.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlSpec {
    figure: Figure,
    variants: BTreeMap<String, ControlVariant>,
}

/// Natural contexts of one size, and how synapses are learned for them and for their controls.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlVariant {
    images: ImagesSpec,
    training: TrialSpec,
}

/// The control.
pub struct Control {
    spec: ControlSpec,
    images: BTreeMap<String, Images>,
    scale: Scale,
    draws: Draws,
}

#[derive(Serialize)]
struct Numbers {
    seeds: usize,
    natural_train: Statistic,
    natural_test: Statistic,
    natural_diverged: Option<Divergence>,
    control_train: Statistic,
    control_test: Statistic,
    control_diverged: Option<Divergence>,
}

const NATURAL: &str = "natural";
const CONTROL: &str = "control";

impl FigureSpec for ControlSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Control::new(self, setting)?))
    }
}

impl Control {
    fn new(spec: ControlSpec, setting: &Setting) -> Result<Self> {
        let sets = spec.variants.iter().map(|(name, variant)| (name, &variant.images));
        let images = all_images(sets, Figure::Control, setting)?;
        let draws = setting.draws(Figure::Control);
        Ok(Self { spec, images, scale: setting.scale, draws })
    }

    fn learn(&self, task: &Task) -> leukos::Result<TrialRun> {
        let images = &self.images[&task.variant];
        let mut split = images.split_of(task.start, self.draws)?;
        if task.case == CONTROL {
            // Each start has controls of its own, so that the spread over starts is also that over controls.
            let controls = images.contexts.controls(&mut self.draws.start("controls", task.start))?;
            split = Cow::Owned(controls.split(&split.test_indices)?);
        }
        let training = &self.spec.variants[&task.variant].training;
        let trial = training.run(&split, split.train.neurons(), (self.scale, self.draws), task)?;
        Ok(trial.kept(task))
    }
}

impl Experiment for Control {
    fn origins(&self) -> Origins {
        origins_of_all(&self.images)
    }

    fn fingerprint(&self) -> u64 {
        fingerprint_all(&self.images)
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let mut tasks = Vec::new();
        for (name, variant) in &self.spec.variants {
            let n = self.images[name].contexts.neurons();
            for case in [NATURAL, CONTROL] {
                tasks.extend(variant.training.tasks(name, case, [n, n], self.scale));
            }
        }
        tasks
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.learn(task))
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for name in self.spec.variants.keys() {
            let natural: Starts<TrialRun> = records.starts(name, NATURAL)?;
            let control: Starts<TrialRun> = records.starts(name, CONTROL)?;
            let numbers = Numbers {
                seeds: natural.len(),
                natural_train: natural.statistic(|run| run.train),
                natural_test: natural.statistic(|run| run.test),
                natural_diverged: natural.divergence(),
                control_train: control.statistic(|run| run.train),
                control_test: control.statistic(|run| run.test),
                control_diverged: control.divergence(),
            };
            let panels = json!({
                "patch": self.images[name].patch,
                "natural_synapses": natural.shown(|run| run.synapses.as_ref()),
                "control_synapses": control.shown(|run| run.synapses.as_ref()),
                "natural_train": natural.values(|run| run.train),
                "control_train": control.values(|run| run.train),
            });
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}
