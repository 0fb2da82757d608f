//! Reruns the appendix's first figure, A and B: synapses for rows of 16 pixels against cosines and principal components.

use std::collections::BTreeMap;

use anyhow::Result;
use leukos::{Matrix, align, basis_match};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::images::{Images, ImagesSpec};
use super::online::columns;
use super::plan::{Draws, Setting, StackSize};
use super::spec::Scale;
use super::statistics::{Divergence, Outcome, Starts, Statistic};
use super::trial::TrialSpec;
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of the one-dimensional figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneDimensionalSpec {
    figure: Figure,
    images: ImagesSpec,
    variants: BTreeMap<String, TrialSpec>,
}

/// The one-dimensional figure.
pub struct OneDimensional {
    spec: OneDimensionalSpec,
    images: Images,
    scale: Scale,
    draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
struct Run {
    train: f64,
    test: f64,
    dct_match: f64,
    pca_match: f64,
    /// The synapses in the order and with the signs of the cosines.
    synapses: Option<Vec<Vec<f64>>>,
}

#[derive(Serialize)]
struct Numbers {
    seeds: usize,
    diverged: Option<Divergence>,
    train: Statistic,
    test: Statistic,
    dct_match: Statistic,
    pca_match: Statistic,
}

impl FigureSpec for OneDimensionalSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(OneDimensional::new(self, setting)?))
    }
}

impl OneDimensional {
    fn new(spec: OneDimensionalSpec, setting: &Setting) -> Result<Self> {
        let size = StackSize::Any { usual: spec.images.neurons(), other: 0 };
        let images = spec.images.contexts(Figure::OneDimensional, setting, size)?;
        Ok(Self { spec, images, scale: setting.scale, draws: setting.draws(Figure::OneDimensional) })
    }

    fn learn(&self, task: &Task) -> leukos::Result<Run> {
        let images = &self.images;
        let setting = (self.scale, self.draws);
        let trial =
            self.spec.variants[&task.variant].run(&images.split, images.contexts.neurons(), setting, task)?;
        Ok(Run {
            train: trial.train,
            test: trial.test,
            dct_match: basis_match(&trial.synapses, &images.cosines)?,
            pca_match: basis_match(&trial.synapses, &images.eigenbasis)?,
            synapses: if task.is_shown() { Some(self.in_order(&trial.synapses)?) } else { None },
        })
    }

    fn in_order(&self, basis: &Matrix) -> leukos::Result<Vec<Vec<f64>>> {
        Ok(columns(&align(basis, &self.images.cosines)?.0))
    }
}

impl Experiment for OneDimensional {
    fn origins(&self) -> Origins {
        Origins::shared(self.spec.variants.keys(), &self.images.origin)
    }

    fn fingerprint(&self) -> u64 {
        self.images.fingerprint
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let n = self.images.contexts.neurons();
        let tasks = |(name, spec): (&String, &TrialSpec)| spec.tasks(name, "", [n, n], self.scale);
        self.spec.variants.iter().flat_map(tasks).collect()
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.learn(task))
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for name in self.spec.variants.keys() {
            let starts: Starts<Run> = records.starts(name, "")?;
            let numbers = Numbers {
                seeds: starts.len(),
                diverged: starts.divergence(),
                train: starts.statistic(|run| run.train),
                test: starts.statistic(|run| run.test),
                dct_match: starts.statistic(|run| run.dct_match),
                pca_match: starts.statistic(|run| run.pca_match),
            };
            let panels = json!({
                "patch": self.images.patch,
                "synapses": starts.shown(|run| run.synapses.as_ref()),
                "cosines": columns(&self.images.cosines),
                "principal_components": self.in_order(&self.images.eigenbasis)?,
            });
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}
