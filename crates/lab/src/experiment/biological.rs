//! Reruns the appendix's last figure: Algorithm 3, with separate non-negative feedforward and feedback synapses.

use std::collections::BTreeMap;

use anyhow::Result;
use leukos::asymmetry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::online_spec::{OnlineSpec, origins};
use super::pair::{self, Pair, PairNumbers, PairRun};
use super::plan::{Draws, Setting};
use super::spec::Scale;
use super::statistics::{Outcome, Starts, Statistic};
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of Algorithm 3's figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BiologicalSpec {
    figure: Figure,
    /// After how many samples the asymmetry is reported.
    asymmetry_at: Vec<u64>,
    variants: BTreeMap<String, OnlineSpec>,
}

/// Algorithm 3's figure.
pub struct Biological {
    spec: BiologicalSpec,
    scale: Scale,
    draws: Draws,
}

#[derive(Serialize)]
struct Numbers {
    #[serde(flatten)]
    pair: PairNumbers,
    /// ‖W_rn − W_nrᵀ‖_F after so many samples.
    asymmetry: BTreeMap<String, Statistic>,
}

impl FigureSpec for BiologicalSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Biological::new(self, setting)?))
    }
}

impl Biological {
    fn new(spec: BiologicalSpec, setting: &Setting) -> Result<Self> {
        spec.variants.iter().try_for_each(|(name, variant)| variant.validate(name))?;
        Ok(Self { spec, scale: setting.scale, draws: setting.draws(Figure::Biological) })
    }

    /// The steps at which the asymmetry is taken: those to report, and some for the picture.
    fn probed(&self, spec: &OnlineSpec) -> Vec<u64> {
        let mut steps = spec.probed(self.scale);
        let last = steps.last().copied().unwrap_or(0);
        steps.extend(self.spec.asymmetry_at.iter().filter(|&&step| step <= last));
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    fn numbers(&self, starts: &Starts<PairRun>, spec: &OnlineSpec) -> Numbers {
        let probed = self.probed(spec);
        let statistic = |index: usize| starts.statistic(|run| run.probed[index]);
        let at = |step: &u64| Some((step.to_string(), statistic(probed.binary_search(step).ok()?)));
        let mut asymmetry: BTreeMap<_, _> = self.spec.asymmetry_at.iter().filter_map(at).collect();
        asymmetry.insert("last".to_owned(), statistic(probed.len() - 1));
        Numbers { pair: PairNumbers::of(starts), asymmetry }
    }
}

impl Experiment for Biological {
    fn origins(&self) -> Origins {
        origins(self.spec.variants.iter())
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        pair::tasks(&self.spec.variants, self.scale)
    }

    fn run(&self, task: &Task) -> Result<Value> {
        let spec = &self.spec.variants[&task.variant];
        let pair = Pair { spec, scale: self.scale, draws: self.draws };
        let run = pair.run(task, self.probed(spec), &|circuit, _| asymmetry(circuit.synapses()));
        Outcome::record(run)
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, spec) in &self.spec.variants {
            let starts = records.starts(name, "")?.in_sets(spec.sets(self.scale));
            let probed = ("asymmetry", self.probed(spec));
            let panels = pair::panels(&starts, spec.presentations.at(self.scale), probed);
            summary.add(name, self.numbers(&starts, spec), panels)?;
        }
        Ok(summary)
    }
}
