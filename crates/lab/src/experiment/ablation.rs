//! Tests the paper's argument: synapses alone, gains alone and both, on the same stream of switching contexts.

use std::collections::BTreeMap;

use anyhow::Result;
use leukos::contexts::Stimuli;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::online::{Training, WINDOW, log_grid};
use super::online_spec::{OnlineSpec, origins};
use super::pair::{self, Pair};
use super::plan::{Draws, Setting};
use super::spec::Scale;
use super::statistics::{Divergence, Outcome, Starts, Statistic};
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of the ablation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblationSpec {
    figure: Figure,
    variants: BTreeMap<String, OnlineSpec>,
}

/// The ablation.
pub struct Ablation {
    spec: AblationSpec,
    scale: Scale,
    draws: Draws,
}

/// What one start gives: errors over the last ten presentations.
#[derive(Serialize, Deserialize)]
struct Run {
    /// The mean over every sample.
    error_last10: f64,
    /// The mean over the samples of the second half of each presentation.
    error_late: f64,
    /// The mean over presentations at so many samples after the switch.
    after_switch: Vec<f64>,
}

#[derive(Serialize)]
struct Numbers {
    seeds: usize,
    diverged: Option<Divergence>,
    error_last10: Statistic,
    error_late: Statistic,
}

/// The points of the curve after a switch.
const POINTS: usize = 40;

impl FigureSpec for AblationSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Ablation::new(self, setting)?))
    }
}

impl Ablation {
    fn new(spec: AblationSpec, setting: &Setting) -> Result<Self> {
        spec.variants.iter().try_for_each(|(name, variant)| variant.validate(name))?;
        Ok(Self { spec, scale: setting.scale, draws: setting.draws(Figure::Ablation) })
    }

    fn train(&self, task: &Task) -> leukos::Result<Run> {
        let spec = &self.spec.variants[&task.variant];
        let drawn = spec.contexts(self.draws, task.start)?;
        let pair = Pair { spec, scale: self.scale, draws: self.draws };
        let circuit = pair.initial(&drawn.contexts, task.start)?;
        let stimuli = Stimuli::gaussian(drawn.contexts, self.draws.start("stimuli", task.start));
        let mut training = Training::new(circuit, spec.rules(), stimuli, spec.samples.get())?;
        let presented = spec.presented(self.scale, self.draws, task.start)?;
        let (before, last) = presented.split_at(presented.len().saturating_sub(WINDOW));
        before.iter().try_for_each(|&context| training.present(context))?;
        let mut errors = vec![0.0; spec.samples.get()];
        for &context in last {
            let mut sums = errors.iter_mut();
            training.present_watched(context, |_, error| {
                if let Some(sum) = sums.next() {
                    *sum += error / last.len() as f64;
                }
            })?;
        }
        Ok(Run::of(&errors))
    }
}

impl Run {
    /// From the mean error at each sample after a switch.
    fn of(errors: &[f64]) -> Self {
        let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
        Self {
            error_last10: mean(errors),
            error_late: mean(&errors[errors.len() / 2..]),
            after_switch: log_grid(errors.len(), POINTS)
                .into_iter()
                .map(|sample| errors[sample - 1])
                .collect(),
        }
    }
}

impl Experiment for Ablation {
    fn origins(&self) -> Origins {
        origins(self.spec.variants.iter())
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        pair::tasks(&self.spec.variants, self.scale)
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.train(task))
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, spec) in &self.spec.variants {
            let starts: Starts<Run> = records.starts(name, "")?.in_sets(spec.sets(self.scale));
            let numbers = Numbers {
                seeds: starts.len(),
                diverged: starts.divergence(),
                error_last10: starts.statistic(|run| run.error_last10),
                error_late: starts.statistic(|run| run.error_late),
            };
            let panels = json!({
                "sample": log_grid(spec.samples.get(), POINTS),
                "error": starts.curve(|run| &run.after_switch),
            });
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}
