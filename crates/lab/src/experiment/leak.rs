//! Reruns the leak sweep of the authors' rebuttal: circuits whose leak is not that of the contexts.

use std::collections::BTreeMap;

use anyhow::Result;
use leukos::Circuit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::online::{Probe, distance};
use super::online_spec::{AxesSpec, OnlineSpec};
use super::pair::Pair;
use super::plan::{Draws, Setting};
use super::spec::{Positive, Scale};
use super::statistics::{Outcome, Starts, Statistic};
use super::{Experiment, Figure, FigureSpec, Origin, Origins, Records, Source, Summary, Task};

/// The spec of the leak sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeakSpec {
    figure: Figure,
    variants: BTreeMap<String, LeakVariant>,
}

/// Training that is repeated with each leak and each kind of V.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeakVariant {
    leaks: Vec<Positive>,
    orthogonal: AxesSpec,
    oblique: AxesSpec,
    training: OnlineSpec,
}

/// The leak sweep.
pub struct Leak {
    spec: LeakSpec,
    scale: Scale,
    draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
struct Run {
    distance_final: f64,
    error_last10: f64,
}

/// The kinds of V.
const KINDS: [&str; 2] = ["orthogonal", "oblique"];

impl LeakVariant {
    /// The training of one case, named by its kind of V and its leak.
    fn case(&self, case: &str) -> OnlineSpec {
        let mut spec = self.training.clone();
        let (kind, leak) = case.split_once(' ').unwrap_or((case, ""));
        spec.leak = leak.parse().unwrap_or(spec.leak);
        spec.family.axes = if kind == KINDS[0] { self.orthogonal.clone() } else { self.oblique.clone() };
        spec
    }

    fn cases(&self, kind: &str) -> Vec<String> {
        self.leaks.iter().map(|leak| format!("{kind} {}", leak.0)).collect()
    }
}

impl FigureSpec for LeakSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Leak::new(self, setting)?))
    }
}

impl Leak {
    fn new(spec: LeakSpec, setting: &Setting) -> Result<Self> {
        spec.variants.iter().try_for_each(|(name, variant)| variant.training.validate(name))?;
        Ok(Self { spec, scale: setting.scale, draws: setting.draws(Figure::Leak) })
    }

    fn train(&self, task: &Task) -> leukos::Result<Run> {
        let spec = self.spec.variants[&task.variant].case(&task.case);
        let pair = Pair { spec: &spec, scale: self.scale, draws: self.draws };
        let drawn = spec.contexts(self.draws, task.start)?;
        let initial = pair.initial(&drawn.contexts, task.start)?;
        let nothing = |_: &Circuit| 0.0;
        let mut probe = Probe::new(Vec::new(), &nothing);
        let (errors, learned) = pair.train(initial, &drawn.contexts, task.start, &mut probe)?;
        Ok(Run { distance_final: distance(&learned, &drawn.axes)?, error_last10: errors.last() })
    }
}

impl Experiment for Leak {
    fn origins(&self) -> Origins {
        let origin = |(name, variant): (&String, &LeakVariant)| {
            let kind = |kind: &str| variant.case(kind).family.describe();
            let words = format!("{}, or {}; built with leak 1", kind(KINDS[0]), kind(KINDS[1]));
            (name.clone(), Origin { source: Source::Synthetic, words })
        };
        self.spec.variants.iter().map(origin).collect()
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let mut tasks = Vec::new();
        for (name, variant) in &self.spec.variants {
            let (starts, work) = (variant.training.starts.at(self.scale), variant.training.work(self.scale));
            for case in KINDS.iter().flat_map(|kind| variant.cases(kind)) {
                tasks.extend(Task::starts(name, &case, starts).into_iter().map(|task| (task, work)));
            }
        }
        tasks
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.train(task))
    }

    /// Failure, a distance above a threshold, is what this figure shows, so only divergence counts as one here.
    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, variant) in &self.spec.variants {
            let leaks: Vec<f64> = variant.leaks.iter().map(|leak| leak.0).collect();
            let mut numbers = json!({ "seeds": variant.training.starts.at(self.scale), "leak": leaks });
            let mut panels = json!({ "leak": leaks });
            for kind in KINDS {
                let cases = variant.cases(kind);
                let starts = cases
                    .iter()
                    .map(|case| Ok(records.starts(name, case)?.in_sets(variant.training.sets(self.scale))))
                    .collect::<Result<Vec<Starts<Run>>>>()?;
                let each = |value: &dyn Fn(&Run) -> f64| {
                    starts.iter().map(|starts| starts.statistic(value)).collect::<Vec<Statistic>>()
                };
                numbers[kind] = json!(each(&|run| run.distance_final));
                numbers[format!("{kind}_error_last10")] = json!(each(&|run| run.error_last10));
                let diverged = starts.iter().map(Starts::divergence).collect::<Vec<_>>();
                numbers[format!("{kind}_diverged")] = json!(diverged);
                let values = starts.iter().map(|starts| starts.values(|run| run.distance_final));
                panels[kind] = json!(values.collect::<Vec<_>>());
            }
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}
