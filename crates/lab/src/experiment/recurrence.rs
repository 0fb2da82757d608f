//! Asks how many iterations the recurrent loop needs: Algorithm 1 with responses that are cut short.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use anyhow::{Result, ensure};
use leukos::contexts::Stimuli;
use leukos::{Circuit, Diverged, Error, Matrix, Online, Solver, Step, WhiteningMeter, definiteness};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::online::{WINDOW, distance, distance_from_white};
use super::online_spec::OnlineSpec;
use super::pair::Pair;
use super::plan::{Draws, Setting};
use super::spec::{Positive, Scale};
use super::statistics::{Outcome, Starts, Statistic};
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of the loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrenceSpec {
    figure: Figure,
    variants: BTreeMap<String, CutShort>,
}

/// Training that is repeated with loops of each length.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CutShort {
    /// η_r; without it a rate that follows the circuit.
    response_rate: Option<Positive>,
    iterations: Vec<NonZeroUsize>,
    /// The loops whose learning curves are shown.
    shown: Vec<NonZeroUsize>,
    training: OnlineSpec,
}

/// The loop.
pub struct Recurrence {
    spec: RecurrenceSpec,
    scale: Scale,
    draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
struct Run {
    distance_final: f64,
    /// By presentation.
    errors: Vec<Measured>,
}

/// Means over stimuli.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Measured {
    /// The error of M, Eq. (9).
    error: f64,
    /// The error of the responses that the loop gives.
    emitted: f64,
    /// The smallest and the largest eigenvalue of M.
    eigenvalues: [f64; 2],
    /// Those of the root of the context's covariance, which M has when it is right.
    root: [f64; 2],
    /// Those that would make the responses white; none where no M with a settling loop does.
    needed: [Option<f64>; 2],
}

/// Every how many stimuli the errors are measured: no divisor of a length, so that every place in a context has its turn.
const EVERY: u64 = 13;

/// The case without a loop.
const EXACT: &str = "exact";

impl FigureSpec for RecurrenceSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        for (name, variant) in &self.variants {
            variant.training.validate(name)?;
            let tied = variant.training.multiplier_rate.is_none();
            ensure!(
                tied,
                "{name}.training.multiplier_rate: expected no such key, because M has to be symmetric"
            );
            let known = variant.shown.iter().all(|shown| variant.iterations.contains(shown));
            ensure!(known, "{name}.shown: expected some of its iterations");
        }
        Ok(Box::new(Recurrence { spec: self, scale: setting.scale, draws: setting.draws(Figure::Loop) }))
    }
}

impl CutShort {
    fn solver(&self, case: &str) -> Solver {
        let rate = self.response_rate.map(|rate| rate.0);
        case.parse().map_or(Solver::Direct, |iterations| Solver::Loop { rate, iterations })
    }

    fn cases(&self) -> Vec<String> {
        self.iterations.iter().map(ToString::to_string).chain([EXACT.to_owned()]).collect()
    }

    /// About how many microseconds one start takes.
    fn work(&self, scale: Scale, case: &str) -> u64 {
        let iterations: u64 = case.parse().unwrap_or(0);
        self.training.work(scale) * (4 + iterations) / 4
    }
}

impl Recurrence {
    fn train(&self, task: &Task) -> leukos::Result<Run> {
        let variant = &self.spec.variants[&task.variant];
        let (spec, solver) = (&variant.training, variant.solver(&task.case));
        let drawn = spec.contexts(self.draws, task.start)?;
        let circuit =
            Pair { spec, scale: self.scale, draws: self.draws }.initial(&drawn.contexts, task.start)?;
        let mut meter = Meter { solver, meter: WhiteningMeter::new(&circuit) };
        let mut run = Online::new(circuit, spec.rules(), &solver)?;
        let mut stimuli = Stimuli::gaussian(drawn.contexts.clone(), self.draws.start("stimuli", task.start));
        let [mut block, mut responses] = [0; 2].map(|_| vec![0.0; 2 * spec.samples.get()]);
        let mut errors = Vec::new();
        for context in spec.presented(self.scale, self.draws, task.start)? {
            stimuli.fill(context, &mut block)?;
            let (covariance, root) =
                (&drawn.contexts.covariances()[context], &drawn.contexts.roots()[context]);
            let (mut sum, mut failure) = (Sum::default(), None);
            run.advance(&block, &mut responses, &mut |step: &Step<'_>| match sum
                .add(&mut meter, step, covariance)
            {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(lost(error, step));
                    ControlFlow::Break(())
                }
            })?;
            failure.map_or(Ok(()), Err)?;
            let (root, needed) = (eigenvalues(root)?, meter.needed(root)?);
            errors.push(Measured { root, needed, ..sum.mean() });
        }
        let circuit = run.into_circuit()?;
        Ok(Run { distance_final: distance(&circuit, &drawn.axes)?, errors })
    }
}

/// The run checks M only now and then, so a caller that looks at every circuit may be the first to see that M is not valid.
fn lost(error: Error, step: &Step<'_>) -> Error {
    let Error::NotPositiveDefinite { test, .. } = error else { return error };
    Box::new(Diverged { step: step.index, test, last_valid_step: step.index, circuit: step.circuit.clone() })
        .into()
}

/// Measures circuits that answer by a loop.
struct Meter {
    solver: Solver,
    meter: WhiteningMeter,
}

impl Meter {
    /// The error of the responses, and the eigenvalues of M.
    fn responses(&self, circuit: &Circuit, covariance: &Matrix) -> leukos::Result<(f64, [f64; 2])> {
        // What the loop makes of one stimulus and of the other are the columns of its filter.
        let filter = Matrix::from_columns(2, 2, circuit.respond(&[1.0, 0.0, 0.0, 1.0], &self.solver)?)?;
        let emitted = distance_from_white(&filter, covariance, 0.0);
        Ok((emitted, eigenvalues(&circuit.inverse_whitening_matrix())?))
    }

    /// The eigenvalues m of an M whose loop turns a stimulus of standard deviation σ, an eigenvalue of the root of a
    /// covariance, into a response of standard deviation 1.
    fn needed(&self, root: &Matrix) -> leukos::Result<[Option<f64>; 2]> {
        let spread = eigenvalues(root)?;
        Ok(match self.solver {
            Solver::Loop { rate: Some(rate), iterations } => {
                spread.map(|spread| whitening_eigenvalue(spread, rate, iterations))
            }
            Solver::Direct => spread.map(Some),
            _ => [None; 2],
        })
    }
}

/// Sums over stimuli of a presentation.
#[derive(Default)]
struct Sum {
    error: f64,
    emitted: f64,
    eigenvalues: [f64; 2],
    looked_at: f64,
}

impl Sum {
    fn add(&mut self, meter: &mut Meter, step: &Step<'_>, covariance: &Matrix) -> leukos::Result<()> {
        // At every step, to find out at once when M is not valid any more.
        let error = meter.meter.error(step.circuit, covariance)?;
        if step.index.is_multiple_of(EVERY) {
            let (emitted, eigenvalues) = meter.responses(step.circuit, covariance)?;
            self.error += error;
            self.emitted += emitted;
            self.eigenvalues = [0, 1].map(|i| self.eigenvalues[i] + eigenvalues[i]);
            self.looked_at += 1.0;
        }
        Ok(())
    }

    fn mean(&self) -> Measured {
        Measured {
            error: self.error / self.looked_at,
            emitted: self.emitted / self.looked_at,
            eigenvalues: self.eigenvalues.map(|sum| sum / self.looked_at),
            ..Measured::default()
        }
    }
}

/// The smallest and the largest eigenvalue of a symmetric 2 × 2 matrix.
fn eigenvalues(matrix: &Matrix) -> leukos::Result<[f64; 2]> {
    let smallest = definiteness(matrix)?;
    Ok([smallest, matrix.trace() - smallest])
}

/// The m > 0 that solves (1 − (1 − η m)^T)/m = 1/σ, the gain of a loop of T iterations, which falls from ηT at m = 0 to
/// η at m = 1/η; `None` where ηT is too little.
fn whitening_eigenvalue(spread: f64, rate: f64, iterations: usize) -> Option<f64> {
    let power = i32::try_from(iterations).ok()?;
    let gain = |m: f64| (1.0 - (1.0 - rate * m).powi(power)) / m;
    let (mut low, mut high) = (1e-9, 1.0 / rate);
    if gain(low) * spread < 1.0 || gain(high) * spread > 1.0 {
        return None;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if gain(middle) * spread > 1.0 { low = middle } else { high = middle }
    }
    Some(low)
}

impl Run {
    /// The mean over the last ten presentations.
    fn last(&self, value: impl Fn(&Measured) -> f64) -> f64 {
        let last = &self.errors[self.errors.len().saturating_sub(WINDOW)..];
        last.iter().map(value).sum::<f64>() / last.len() as f64
    }
}

impl Experiment for Recurrence {
    fn origins(&self) -> Origins {
        let origin = |(name, variant): (&String, &CutShort)| (name.clone(), variant.training.family.origin());
        self.spec.variants.iter().map(origin).collect()
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let mut tasks = Vec::new();
        for (name, variant) in &self.spec.variants {
            for case in variant.cases() {
                let work = variant.work(self.scale, &case);
                let starts = Task::starts(name, &case, variant.training.starts.at(self.scale));
                tasks.extend(starts.into_iter().map(|task| (task, work)));
            }
        }
        tasks
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.train(task))
    }

    /// Synapses that miss V are what this figure shows, so only divergence counts as failure here.
    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, variant) in &self.spec.variants {
            let sets = variant.training.sets(self.scale);
            let starts = |case: &str| Ok(records.starts(name, case)?.in_sets(sets));
            let each = variant.iterations.iter().map(|iterations| starts(&iterations.to_string()));
            let each = each.collect::<Result<Vec<Starts<Run>>>>()?;
            let exact = starts(EXACT)?;
            let (numbers, panels) = variant.summed_up(&each, &exact);
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}

/// A number of a start, by name.
type Number = (&'static str, fn(&Run) -> f64);

/// The numbers of a start.
const NUMBERS: [Number; 7] = [
    ("error", |run| run.last(|at| at.error)),
    ("emitted", |run| run.last(|at| at.emitted)),
    ("distance", |run| run.distance_final),
    ("smallest", |run| run.last(|at| at.eigenvalues[0]) / run.last(|at| at.root[0])),
    ("largest", |run| run.last(|at| at.eigenvalues[1]) / run.last(|at| at.root[1])),
    ("smallest_needed", |run| run.last(|at| at.needed[0].unwrap_or(f64::NAN)) / run.last(|at| at.root[0])),
    ("largest_needed", |run| run.last(|at| at.needed[1].unwrap_or(f64::NAN)) / run.last(|at| at.root[1])),
];

impl CutShort {
    /// The numbers of a variant, from the starts of each loop and of the exact solution, and the series behind its
    /// pictures.
    fn summed_up(&self, each: &[Starts<Run>], exact: &Starts<Run>) -> (Value, Value) {
        let mut numbers = json!({
            "seeds": exact.len(),
            "response_rate": self.response_rate,
            "iterations": self.iterations,
            "loop_diverged": each.iter().map(Starts::divergence).collect::<Vec<_>>(),
            "loop_lost": each.iter().map(lost_starts).collect::<Vec<_>>(),
            "exact_diverged": exact.divergence(),
            "exact_lost": lost_starts(exact),
        });
        let mut panels = json!({
            "seeds": exact.len(),
            "iterations": self.iterations,
            "lost": each.iter().map(lost_starts).collect::<Vec<_>>(),
        });
        for (key, value) in NUMBERS {
            let statistics: Vec<Statistic> = each.iter().map(|starts| starts.statistic(value)).collect();
            numbers[format!("loop_{key}")] = json!(statistics);
            numbers[format!("exact_{key}")] = json!(exact.statistic(value));
            let ends = |starts: &Starts<Run>| quartiles(starts.values(value));
            panels[format!("loop_{key}")] = json!({
                "over_starts": statistics, "quartiles": each.iter().map(ends).collect::<Vec<_>>(),
            });
            panels[format!("exact_{key}")] = json!(exact.statistic(value));
        }
        let curve = |starts: &Starts<Run>, case: &str| {
            let curves: Vec<Vec<f64>> = starts.finished().map(smoothed).collect();
            let failed = (curves.len()..starts.len()).map(|_| Outcome::Diverged { step: 0 });
            let starts = Starts::new(curves.into_iter().map(Outcome::Finished).chain(failed).collect());
            json!({
                "iterations": case,
                "error": starts.curve(|curve: &Vec<f64>| curve),
                "quartiles": starts.quartiles(|curve| curve),
                "finished": starts.finished().count(),
            })
        };
        let shown =
            self.iterations.iter().zip(each).filter(|(iterations, _)| self.shown.contains(iterations));
        let curves = shown.map(|(iterations, starts)| curve(starts, &iterations.to_string()));
        panels["curves"] = curves.chain([curve(exact, EXACT)]).collect();
        (numbers, panels)
    }
}

fn lost_starts(starts: &Starts<Run>) -> usize {
    starts.len() - starts.finished().count()
}

/// The first and the third quartile; none where a quarter failed.
fn quartiles(values: Vec<f64>) -> Option<[f64; 2]> {
    let starts = Starts::new(values.into_iter().map(Outcome::Finished).collect());
    starts.quartiles(std::slice::from_ref).first().copied().flatten()
}

/// The error of M at each presentation, averaged over the ten that end there.
fn smoothed(run: &Run) -> Vec<f64> {
    let mean = |end: usize| {
        let window = &run.errors[(end + 1).saturating_sub(WINDOW)..=end];
        window.iter().map(|at| at.error).sum::<f64>() / window.len() as f64
    };
    (0..run.errors.len()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

    use super::*;

    #[test]
    fn the_eigenvalue_needed_whitens_and_is_there_from_one_over_the_rate_on() {
        for (spread, iterations) in [(1.0, 11), (1.0, 16), (3.0, 16), (5.0, 400)] {
            let m = whitening_eigenvalue(spread, 0.1, iterations).unwrap();
            let reached: f64 =
                std::iter::successors(Some(0.1), |term| Some(term * (1.0 - 0.1 * m))).take(iterations).sum();
            assert!((spread * reached - 1.0).abs() < 1e-9, "{spread}, {iterations}: {m}");
            assert!(m < spread);
        }
        assert!((whitening_eigenvalue(5.0, 0.1, 400).unwrap() - 5.0).abs() < 1e-9, "a long loop settles");
        assert_eq!(whitening_eigenvalue(1.0, 0.1, 9), None);
    }
}
