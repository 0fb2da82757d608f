//! Asks when fast gains need slow synapses: contexts of several lengths, shown to circuits with many pairs of rates.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use anyhow::{Result, ensure};
use leukos::contexts::{Contexts, Schedule, Stimuli};
use leukos::{
    Circuit, GainRule, Matrix, Online, Rules, Solver, SynapseRule, Synapses, UnitNorm, WhiteningMeter,
    starts, whitening_error,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::online_spec::Family;
use super::plan::{Draws, Setting};
use super::spec::{Positive, Scale, Scaled};
use super::statistics::{Outcome, Starts, Statistic};
use super::{Experiment, Figure, FigureSpec, Origin, Origins, Records, Source, Summary, Task};

/// The spec of the time scales.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeScalesSpec {
    figure: Figure,
    variants: BTreeMap<String, Switching>,
}

/// Contexts that switch after each of several lengths, and the rates that circuits meet them with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switching {
    /// N, and K.
    neurons: NonZeroUsize,
    starts: Scaled,
    /// The number of stimuli in all, whatever the length of a context.
    stimuli: Scaled,
    lengths: Vec<NonZeroUsize>,
    /// Of Algorithm 1 with unit columns, and of gains alone.
    gain_rates: Vec<Positive>,
    /// Of Algorithm 1 as printed, with columns of any length.
    printed_gain_rates: Vec<Positive>,
    /// Of Algorithm 1 in either way.
    synapse_rates: Vec<Positive>,
    /// Of synapses alone.
    alone_rates: Vec<Positive>,
    /// Every how many stimuli of the last tenth the error is measured.
    measured_every: NonZeroUsize,
    family: Family,
}

/// The time scales.
pub struct TimeScales {
    spec: TimeScalesSpec,
    scale: Scale,
    draws: Draws,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    /// Algorithm 1 with unit columns.
    Both,
    /// Algorithm 1 as printed, with columns of any length.
    Printed,
    /// Gains alone.
    Gains,
    /// Synapses alone: no leak, and all gains 1.
    Synapses,
}

impl Compared {
    const ALL: [Self; 4] = [Self::Both, Self::Printed, Self::Gains, Self::Synapses];

    fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Printed => "printed",
            Self::Gains => "gains",
            Self::Synapses => "synapses",
        }
    }
}

/// A circuit that is shown the stimuli: a model, with η_g and η_w where they learn.
#[derive(Clone, Copy, Debug)]
struct Contender {
    model: Compared,
    gain_rate: Option<f64>,
    synapse_rate: Option<f64>,
}

/// What one stream of stimuli gives.
#[derive(Serialize, Deserialize)]
struct Run {
    /// The mean error of each circuit over the last tenth.
    errors: Vec<Outcome<f64>>,
    /// Of the filter that whitens the mean of all contexts and never changes, and of the best multiple of it.
    fixed: [f64; 2],
}

/// One circuit over all starts.
struct Cell {
    contender: Contender,
    starts: Starts<f64>,
}

/// The stimuli that all circuits are shown before the next are drawn.
const BLOCK: usize = 1024;

impl FigureSpec for TimeScalesSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        for (name, variant) in &self.variants {
            let lists = [&variant.gain_rates, &variant.synapse_rates, &variant.alone_rates];
            let some = !variant.lengths.is_empty() && lists.iter().all(|list| !list.is_empty());
            ensure!(some, "{name}: expected at least one of its lengths and of each of its rates");
        }
        Ok(Box::new(TimeScales {
            spec: self,
            scale: setting.scale,
            draws: setting.draws(Figure::TimeScales),
        }))
    }
}

impl Switching {
    /// All circuits, in a fixed order.
    fn contenders(&self) -> Vec<Contender> {
        let rates = |list: &[Positive]| list.iter().map(|rate| Some(rate.0)).collect::<Vec<_>>();
        let of = |model: Compared| -> Vec<Contender> {
            let (gain_rates, synapse_rates) = match model {
                Compared::Both => (rates(&self.gain_rates), rates(&self.synapse_rates)),
                Compared::Printed => (rates(&self.printed_gain_rates), rates(&self.synapse_rates)),
                Compared::Gains => (rates(&self.gain_rates), vec![None]),
                Compared::Synapses => (vec![None], rates(&self.alone_rates)),
            };
            let pairs = gain_rates.iter().flat_map(|gain| synapse_rates.iter().map(move |rate| (gain, rate)));
            pairs.map(|(&gain_rate, &synapse_rate)| Contender { model, gain_rate, synapse_rate }).collect()
        };
        Compared::ALL.into_iter().flat_map(of).collect()
    }

    /// About how many microseconds one stream takes.
    fn work(&self, scale: Scale) -> u64 {
        let cost = if self.neurons.get() == 2 { 30 } else { 30 * self.neurons.get() };
        (self.stimuli.at(scale) * self.contenders().len() * cost / 1000) as u64 + 1
    }
}

impl Contender {
    /// A run from the synapses that every circuit of a start begins with.
    fn run(self, weights: &Matrix) -> leukos::Result<Racer> {
        let rules = Rules {
            gains: self.gain_rate.map_or(GainRule::Frozen, |rate| GainRule::Gradient { rate }),
            synapses: self.synapse_rate.map_or(SynapseRule::Frozen, |rate| SynapseRule::Hebbian { rate }),
            unit_norm: if self.model == Compared::Both { UnitNorm::Projected } else { UnitNorm::Free },
            ..Rules::frozen()
        };
        let leak = if self.model == Compared::Synapses { 0.0 } else { 1.0 };
        let circuit = Circuit::new(Synapses::tied(weights.clone())?, vec![1.0; weights.columns()], leak)?;
        let meter = WhiteningMeter::new(&circuit);
        let run = Online::new(circuit, rules, &Solver::Direct)?;
        Ok(Racer { run, meter, sum: 0.0, measured: 0, diverged: None })
    }
}

/// A circuit on its way through the stimuli.
struct Racer {
    run: Online,
    meter: WhiteningMeter,
    sum: f64,
    measured: u32,
    diverged: Option<u64>,
}

/// Some stimuli and the covariance that each was drawn from.
struct Shown<'a> {
    stimuli: &'a [f64],
    contexts: &'a [usize],
    covariances: &'a [Matrix],
    /// Every how many the error is measured; not at all without it.
    measured_every: Option<usize>,
}

impl Racer {
    fn advance(&mut self, shown: &Shown<'_>, responses: &mut [f64]) -> leukos::Result<()> {
        if self.diverged.is_some() {
            return Ok(());
        }
        let ended = match shown.measured_every {
            None => self.run.advance(shown.stimuli, responses, &mut ()).map(drop),
            Some(every) => self.advance_measured(shown, every, responses),
        };
        match ended {
            Err(leukos::Error::Diverged(diverged)) => self.diverged = Some(diverged.step),
            ended => ended?,
        }
        Ok(())
    }

    /// The same with the error of the circuit that answers the first of so many stimuli, and so on.
    fn advance_measured(
        &mut self,
        shown: &Shown<'_>,
        every: usize,
        responses: &mut [f64],
    ) -> leukos::Result<()> {
        let some = every * shown.stimuli.len() / shown.contexts.len();
        let parts = shown.stimuli.chunks(some).zip(responses.chunks_mut(some));
        for ((stimuli, responses), &context) in parts.zip(shown.contexts.iter().step_by(every)) {
            self.sum += self.meter.error(self.run.circuit(), &shown.covariances[context])?;
            self.measured += 1;
            self.run.advance(stimuli, responses, &mut ())?;
        }
        Ok(())
    }

    fn outcome(&self) -> Outcome<f64> {
        let mean = self.sum / f64::from(self.measured.max(1));
        match self.diverged {
            None if mean.is_finite() => Outcome::Finished(mean),
            diverged => Outcome::Diverged { step: diverged.unwrap_or(self.run.steps()) },
        }
    }
}

impl TimeScales {
    fn train(&self, task: &Task) -> leukos::Result<Run> {
        let spec = &self.spec.variants[&task.variant];
        let n = spec.neurons.get();
        let drawn = spec.family.of_start(n, self.draws, task.start)?;
        let weights = starts::orthogonal(n, n, &mut self.draws.start("synapses", task.start));
        let racers = spec.contenders().into_iter().map(|contender| contender.run(&weights));
        let mut racers = racers.collect::<leukos::Result<Vec<_>>>()?;
        self.show(spec, task, &drawn.contexts, &mut racers)?;
        let errors = racers.iter().map(Racer::outcome).collect();
        Ok(Run { errors, fixed: fixed(&drawn.contexts)? })
    }

    /// Shows all circuits the same stimuli, and measures them over the last tenth.
    fn show(
        &self,
        spec: &Switching,
        task: &Task,
        contexts: &Contexts,
        racers: &mut [Racer],
    ) -> leukos::Result<()> {
        let (n, total) = (spec.neurons.get(), spec.stimuli.at(self.scale));
        let length = task.case.parse().unwrap_or(1);
        let mut stimuli = Stimuli::gaussian(contexts.clone(), self.draws.start("stimuli", task.start));
        let schedule = Schedule::blocks(contexts.len(), length, self.draws.start("schedule", task.start))?;
        let presented: Vec<usize> = schedule.take(total).collect();
        let [mut block, mut responses] = [0; 2].map(|_| vec![0.0; n * BLOCK]);
        let (before, last) = presented.split_at(total - total / 10);
        for (part, measured_every) in [(before, None), (last, Some(spec.measured_every.get()))] {
            for contexts_shown in part.chunks(BLOCK) {
                let size = n * contexts_shown.len();
                for (stimulus, &context) in block.chunks_exact_mut(n).zip(contexts_shown) {
                    stimuli.fill(context, stimulus)?;
                }
                let (stimuli, covariances) = (&block[..size], contexts.covariances());
                let shown = Shown { stimuli, contexts: contexts_shown, covariances, measured_every };
                racers.iter_mut().try_for_each(|racer| racer.advance(&shown, &mut responses[..size]))?;
            }
        }
        Ok(())
    }
}

/// The mean error over contexts of filters that never change: the one that whitens the mean covariance, and the best
/// multiple of it. The error is convex in the square of the factor, which golden sections find.
fn fixed(contexts: &Contexts) -> leukos::Result<[f64; 2]> {
    let mean = Contexts::new(vec![contexts.mean_covariance()])?;
    let root = &mean.roots()[0];
    let error = |power: f64| {
        let factor = power.sqrt().recip();
        let scaled = Matrix::from_fn(root.rows(), root.columns(), |i, j| factor * root[(i, j)]);
        let errors = contexts.covariances().iter().map(|covariance| whitening_error(&scaled, covariance));
        Ok::<f64, leukos::Error>(errors.sum::<leukos::Result<f64>>()? / contexts.len() as f64)
    };
    let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut from, mut to) = (0.01, 4.0);
    for _ in 0..32 {
        let [left, right] = [to - golden * (to - from), from + golden * (to - from)];
        if error(left)? < error(right)? { to = right } else { from = left }
    }
    Ok([error(1.0)?, error(0.5 * (from + to))?])
}

impl Cell {
    fn statistic(&self) -> Statistic {
        self.starts.statistic(|error| *error)
    }

    fn quartiles(&self) -> Option<[f64; 2]> {
        self.starts.quartiles(std::slice::from_ref).first().copied().flatten()
    }

    /// The rates and the error.
    fn report(&self) -> Value {
        let Contender { gain_rate, synapse_rate, .. } = self.contender;
        json!({ "gain_rate": gain_rate, "synapse_rate": synapse_rate, "error": self.statistic() })
    }

    /// The one with the least median; the first where all have failed.
    fn best(cells: &[Self]) -> Option<&Self> {
        let median = |cell: &&Self| cell.statistic().median.unwrap_or(f64::INFINITY);
        cells.iter().min_by(|a, b| median(a).total_cmp(&median(b)))
    }
}

impl Experiment for TimeScales {
    fn origins(&self) -> Origins {
        let origin = |(name, variant): (&String, &Switching)| {
            let words = format!("N = {}, {}", variant.neurons, variant.family.describe());
            (name.clone(), Origin { source: Source::Synthetic, words })
        };
        self.spec.variants.iter().map(origin).collect()
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let mut tasks = Vec::new();
        for (name, variant) in &self.spec.variants {
            let (starts, work) = (variant.starts.at(self.scale), variant.work(self.scale));
            for length in &variant.lengths {
                let starts = Task::starts(name, &length.to_string(), starts);
                tasks.extend(starts.into_iter().map(|task| (task, work)));
            }
        }
        tasks
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.train(task))
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, variant) in &self.spec.variants {
            let sets = variant.family.sets(variant.starts.at(self.scale));
            let starts = |length: &NonZeroUsize| Ok(records.starts(name, &length.to_string())?.in_sets(sets));
            let starts = variant.lengths.iter().map(starts).collect::<Result<Vec<Starts<Run>>>>()?;
            let (numbers, panels) = variant.summed_up(&starts, variant.stimuli.at(self.scale));
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}

impl Switching {
    /// The circuits of a model over the starts of one length.
    fn cells(&self, model: Compared, starts: &Starts<Run>) -> Vec<Cell> {
        let of_model = |(_, contender): &(usize, Contender)| contender.model == model;
        let cell = |(i, contender): (usize, Contender)| {
            let outcomes = starts.finished().map(|run| run.errors[i].clone()).collect();
            Cell { contender, starts: Starts::new(outcomes).in_sets(self.family.sets(starts.len())) }
        };
        self.contenders().into_iter().enumerate().filter(of_model).map(cell).collect()
    }

    /// The numbers of a variant, from the starts of each length, and the series behind its pictures.
    fn summed_up(&self, starts: &[Starts<Run>], stimuli: usize) -> (Value, Value) {
        let fixed =
            |which: usize| starts.first().map(|starts| starts.statistic(|run: &Run| run.fixed[which]));
        let mut numbers = json!({
            "seeds": starts.first().map_or(0, Starts::len),
            "n": self.neurons,
            "stimuli": stimuli,
            "length": self.lengths,
            "mean_filter": fixed(0),
            "best_filter": fixed(1),
        });
        let mut panels = numbers.clone();
        for model in Compared::ALL {
            let name = model.name();
            let lengths: Vec<Vec<Cell>> = starts.iter().map(|starts| self.cells(model, starts)).collect();
            if lengths.iter().all(Vec::is_empty) {
                continue;
            }
            let cells = lengths.iter().map(|cells| cells.iter().map(Cell::report).collect::<Vec<_>>());
            let cells: Vec<Vec<Value>> = cells.collect();
            let each = |of: &dyn Fn(&Cell) -> Value| -> Vec<Value> {
                lengths.iter().map(|cells| Cell::best(cells).map_or(Value::Null, of)).collect()
            };
            numbers[name] = json!(cells);
            panels[name] = json!(cells);
            numbers[format!("{name}_best")] = json!(each(&|cell| json!(cell.statistic())));
            numbers[format!("{name}_gain_rate")] = json!(each(&|cell| json!(cell.contender.gain_rate)));
            numbers[format!("{name}_synapse_rate")] = json!(each(&|cell| json!(cell.contender.synapse_rate)));
            numbers[format!("{name}_diverged")] = json!(each(&|cell| json!(cell.starts.divergence())));
            panels[format!("{name}_best")] = json!({
                "over_starts": each(&|cell| json!(cell.statistic())),
                "quartiles": each(&|cell| json!(cell.quartiles())),
            });
        }
        (numbers, panels)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

    use super::*;

    #[test]
    fn fixed_filters_suit_the_contexts_on_average() {
        let contexts = |variances: &[[f64; 2]]| {
            Contexts::new(variances.iter().map(|variance| Matrix::diagonal(variance)).collect()).unwrap()
        };
        let [mean, best] = fixed(&contexts(&[[4.0, 9.0]])).unwrap();
        assert!(mean < 1e-12 && best < 1e-6, "one context is whitened: {mean} {best}");
        // Variances of .5 and 1.5 after the mean filter: errors of .5 and .5; times c: max(|.5c - 1|, |1.5c - 1|) in both.
        let [mean, best] = fixed(&contexts(&[[1.0, 3.0], [3.0, 1.0]])).unwrap();
        assert!((mean - 0.5).abs() < 1e-12 && (best - 0.5).abs() < 1e-6, "{mean} {best}");
        // Variances of .25 and 1.75 (both neurons alike): |.25c - 1| + |1.75c - 1| is least where 1.75 c = 1.
        let [mean, best] = fixed(&contexts(&[[1.0, 1.0], [7.0, 7.0]])).unwrap();
        assert!((mean - 0.75).abs() < 1e-12 && (best - 3.0 / 7.0).abs() < 1e-6, "{mean} {best}");
    }
}
