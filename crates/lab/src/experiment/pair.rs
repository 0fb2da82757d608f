//! Runs one start of two neurons and two interneurons: training, and five contexts before and after it.

use std::collections::BTreeMap;

use leukos::contexts::{Contexts, Stimuli, SyntheticContexts};
use leukos::{Circuit, Diverged, Error, Matrix, Synapses};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Task;
use super::online::{Errors, FiveContexts, Probe, Training, columns, distance};
use super::online_spec::OnlineSpec;
use super::plan::Draws;
use super::spec::Scale;
use super::statistics::{Divergence, Starts, Statistic};

/// A variant of training two neurons and two interneurons.
pub struct Pair<'a> {
    pub spec: &'a OnlineSpec,
    pub scale: Scale,
    pub draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
pub struct PairRun {
    distance_initial: f64,
    pub distance_final: f64,
    error_first10: f64,
    error_last10: f64,
    late_error_initial_synapses: Option<f64>,
    late_error_learned_synapses: Option<f64>,
    curve: Vec<f64>,
    /// What the probe saw.
    pub probed: Vec<f64>,
    shown: Option<Value>,
}

/// The numbers of a variant.
#[derive(Serialize)]
pub struct PairNumbers {
    seeds: usize,
    failures: usize,
    diverged: Option<Divergence>,
    distance_initial: Statistic,
    distance_final: Statistic,
    /// With the starts that failed by their distance alone.
    distance_final_all: Statistic,
    error_first10: Statistic,
    error_last10: Statistic,
    error_last10_all: Statistic,
    late_error_initial_synapses: Statistic,
    late_error_learned_synapses: Statistic,
}

/// A start whose synapses end further than this from V has failed.
const FAILED: f64 = 0.1;

/// All starts of all variants.
pub fn tasks(variants: &BTreeMap<String, OnlineSpec>, scale: Scale) -> Vec<(Task, u64)> {
    let tasks = |(name, spec): (&String, &OnlineSpec)| {
        let work = spec.work(scale);
        Task::starts(name, "", spec.starts.at(scale)).into_iter().map(move |task| (task, work))
    };
    variants.iter().flat_map(tasks).collect()
}

impl Pair<'_> {
    /// Trains a start, and measures it at the steps of a probe.
    pub fn run(
        &self,
        task: &Task,
        steps: Vec<u64>,
        measure: &dyn Fn(&Circuit, &Matrix) -> f64,
    ) -> leukos::Result<PairRun> {
        let drawn = self.spec.contexts(self.draws, task.start)?;
        let initial = self.initial(&drawn.contexts, task.start)?;
        let measure = |circuit: &Circuit| measure(circuit, &drawn.axes);
        let mut probe = Probe::new(steps, &measure);
        let (errors, learned) = self.train(initial.clone(), &drawn.contexts, task.start, &mut probe)?;
        let five =
            [&initial, &learned].map(|circuit| self.five_contexts(circuit, &drawn.contexts, task.start));
        let shown = task.is_shown().then(|| self.shown(&drawn, [&initial, &learned], &five));
        let [before, after] = five.map(|five| five.map(|five| five.late_error));
        Ok(PairRun {
            distance_initial: distance(&initial, &drawn.axes)?,
            distance_final: distance(&learned, &drawn.axes)?,
            error_first10: errors.first(),
            error_last10: errors.last(),
            late_error_initial_synapses: before,
            late_error_learned_synapses: after,
            curve: errors.curve(),
            probed: probe.values,
            shown,
        })
    }

    /// The circuit a start begins with. One that is not valid has diverged before its first step.
    pub fn initial(&self, contexts: &Contexts, start: usize) -> leukos::Result<Circuit> {
        match self.spec.circuit(contexts, self.draws, start) {
            Err(Error::NotPositiveDefinite { test, .. }) => {
                let circuit = Circuit::new(Synapses::tied(Matrix::zeros(2, 0))?, Vec::new(), 1.0)?;
                Err(Box::new(Diverged { step: 0, test, last_valid_step: 0, circuit }).into())
            }
            circuit => circuit,
        }
    }

    /// Trains a circuit on the variant's presentations.
    pub fn train(
        &self,
        circuit: Circuit,
        contexts: &Contexts,
        start: usize,
        probe: &mut Probe<'_>,
    ) -> leukos::Result<(Errors, Circuit)> {
        let stimuli = Stimuli::gaussian(contexts.clone(), self.draws.start("stimuli", start));
        let mut training = Training::new(circuit, self.spec.rules(), stimuli, self.spec.samples.get())?;
        let presented = self.spec.presented(self.scale, self.draws, start)?;
        let errors = Errors::train(&mut training, &presented, probe)?;
        Ok((errors, training.run.into_circuit()?))
    }

    /// `None` when the gains alone diverge.
    fn five_contexts(&self, circuit: &Circuit, contexts: &Contexts, start: usize) -> Option<FiveContexts> {
        let stimuli = Stimuli::gaussian(contexts.clone(), self.draws.start("five contexts", start));
        FiveContexts::present(circuit, self.spec, stimuli, &self.five(contexts)).ok()
    }

    fn five(&self, contexts: &Contexts) -> Vec<usize> {
        FiveContexts::draw(contexts.len(), &mut self.draws.shared("five contexts"))
    }

    fn shown(
        &self,
        drawn: &SyntheticContexts,
        circuits: [&Circuit; 2],
        five: &[Option<FiveContexts>; 2],
    ) -> Value {
        let trace = |five: &Option<FiveContexts>| json!(five.as_ref().map(|five| &five.trace));
        let [initial, learned] = circuits.map(Circuit::synapses);
        let mut shown = json!({
            "axes": columns(&drawn.axes),
            "contexts": drawn.contexts.covariances().iter().map(columns).collect::<Vec<_>>(),
            "initial_synapses": columns(initial.feedback()),
            "learned_synapses": columns(learned.feedback()),
            "five_contexts": {
                "presented": self.five(&drawn.contexts), "samples": self.spec.samples,
                "initial_synapses": trace(&five[0]), "learned_synapses": trace(&five[1]),
            },
        });
        if !initial.is_tied() {
            shown["initial_feedforward"] = json!(columns(initial.feedforward_transposed()));
            shown["learned_feedforward"] = json!(columns(learned.feedforward_transposed()));
        }
        shown
    }
}

impl PairNumbers {
    pub fn of(starts: &Starts<PairRun>) -> Self {
        let failed = |run: &PairRun| run.distance_final > FAILED;
        let statistic = |value: &dyn Fn(&PairRun) -> f64| {
            starts.statistic(|run| if failed(run) { f64::NAN } else { value(run) })
        };
        let optional = |value: Option<f64>| value.unwrap_or(f64::NAN);
        Self {
            seeds: starts.len(),
            failures: starts.len() - starts.finished().filter(|run| !failed(run)).count(),
            diverged: starts.divergence(),
            distance_initial: statistic(&|run| run.distance_initial),
            distance_final: statistic(&|run| run.distance_final),
            distance_final_all: starts.statistic(|run| run.distance_final),
            error_first10: statistic(&|run| run.error_first10),
            error_last10: statistic(&|run| run.error_last10),
            error_last10_all: starts.statistic(|run| run.error_last10),
            late_error_initial_synapses: statistic(&|run| optional(run.late_error_initial_synapses)),
            late_error_learned_synapses: statistic(&|run| optional(run.late_error_learned_synapses)),
        }
    }
}

/// What the pictures of a variant need; `name` is what the probe saw at `steps`.
pub fn panels(starts: &Starts<PairRun>, presentations: usize, (name, steps): (&str, Vec<u64>)) -> Value {
    json!({
        "presentation": Errors::grid(presentations),
        "error": starts.curve(|run| &run.curve),
        "error_quartiles": starts.quartiles(|run| &run.curve),
        "step": steps,
        name: starts.curve(|run| &run.probed),
        "distance_initial": starts.values(|run| run.distance_initial),
        "distance_final": starts.values(|run| run.distance_final),
        "shown": starts.shown(|run| run.shown.as_ref()),
    })
}
