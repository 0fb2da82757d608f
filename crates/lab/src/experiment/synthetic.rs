//! Reruns Fig. 3: two neurons and two interneurons in synthetic contexts.

use std::collections::BTreeMap;

use anyhow::Result;
use leukos::{Circuit, Matrix};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::online::distance;
use super::online_spec::{OnlineSpec, origins};
use super::pair::{self, Pair, PairNumbers};
use super::plan::{Draws, Setting};
use super::spec::Scale;
use super::statistics::Outcome;
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of Fig. 3.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyntheticSpec {
    figure: Figure,
    variants: BTreeMap<String, OnlineSpec>,
}

/// Fig. 3.
pub struct Synthetic {
    spec: SyntheticSpec,
    scale: Scale,
    draws: Draws,
}

impl FigureSpec for SyntheticSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Synthetic::new(self, setting)?))
    }
}

impl Synthetic {
    fn new(spec: SyntheticSpec, setting: &Setting) -> Result<Self> {
        spec.variants.iter().try_for_each(|(name, variant)| variant.validate(name))?;
        Ok(Self { spec, scale: setting.scale, draws: setting.draws(Figure::Synthetic) })
    }
}

impl Experiment for Synthetic {
    fn origins(&self) -> Origins {
        origins(self.spec.variants.iter())
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        pair::tasks(&self.spec.variants, self.scale)
    }

    fn run(&self, task: &Task) -> Result<Value> {
        let spec = &self.spec.variants[&task.variant];
        let pair = Pair { spec, scale: self.scale, draws: self.draws };
        let aligned = |circuit: &Circuit, axes: &Matrix| distance(circuit, axes).unwrap_or(f64::NAN);
        let run = pair.run(task, spec.probed(self.scale), &aligned);
        Outcome::record(run)
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, spec) in &self.spec.variants {
            let starts = records.starts(name, "")?.in_sets(spec.sets(self.scale));
            let probed = ("distance", spec.probed(self.scale));
            let panels = pair::panels(&starts, spec.presentations.at(self.scale), probed);
            summary.add(name, PairNumbers::of(&starts), panels)?;
        }
        Ok(summary)
    }
}
