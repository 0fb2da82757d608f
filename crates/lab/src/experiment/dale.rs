//! Runs Algorithm 3 on natural contexts, which the paper does not, and asks what each of its constraints costs.

mod bounds;
mod constrained;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use anyhow::Result;
use leukos::contexts::{Contexts, Schedule};
use leukos::{Matrix, Offline, WhiteningMeter, asymmetry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::images::{Images, ImagesSpec};
use super::offline::mean;
use super::online::{columns, log_grid};
use super::plan::{Draws, Setting, StackSize};
use super::spec::{Scale, Scaled};
use super::statistics::{Outcome, Starts};
use super::sweep::SweepAt;
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};
use bounds::Bounds;
use constrained::{Constraint, RatesSpec, start};

/// The spec of Algorithm 3 on natural contexts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaleSpec {
    figure: Figure,
    images: ImagesSpec,
    interneurons: SweepAt,
    starts: Scaled,
    presentations: Scaled,
    /// Updates in each presentation, J.
    steps: NonZeroUsize,
    rates: RatesSpec,
    variants: BTreeMap<String, Variant>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Variant {
    /// A circuit under constraints.
    Circuit(Constraint),
    /// What constraints leave possible in each context on its own: a circuit with non-negative weights and gains learns
    /// from that context alone for so many steps.
    Bounds {
        /// Its updates.
        steps: NonZeroUsize,
    },
}

/// Algorithm 3 on natural contexts.
pub struct Dale {
    spec: DaleSpec,
    images: Images,
    scale: Scale,
    draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
struct Run {
    /// The mean error, after the gains have adapted, over contexts learned from and over those kept back.
    train: f64,
    test: f64,
    /// ‖W_rn − W_nrᵀ‖_F before and after learning.
    asymmetry_initial: f64,
    asymmetry_final: f64,
    /// ‖M − Mᵀ‖_F / ‖M‖_F, the mean over the contexts looked at: what of the asymmetry is in use.
    asymmetry_in_use: f64,
    /// The share of the weights W_nr that are 0.
    zeros: f64,
    /// The mean over columns of how many pixels a column spreads over: (Σw²)²/Σw⁴.
    pixels: f64,
    /// The share of interneurons whose gain is 0 in all contexts looked at.
    silent: f64,
    /// The error and the asymmetry at the points of a curve.
    curve: Vec<f64>,
    asymmetry: Vec<f64>,
    /// The columns of W_nr of the start that is drawn, from the largest mean gain to the smallest.
    synapses: Option<Vec<Vec<f64>>>,
}

/// The points of a curve, and over how many presentations before each the error is averaged.
const POINTS: usize = 40;
const WINDOW: usize = 10;

impl FigureSpec for DaleSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Dale::new(self, setting)?))
    }
}

impl Dale {
    fn new(spec: DaleSpec, setting: &Setting) -> Result<Self> {
        let size = StackSize::Any { usual: spec.images.neurons(), other: 0 };
        let images = spec.images.contexts(Figure::Dale, setting, size)?;
        Ok(Self { spec, images, scale: setting.scale, draws: setting.draws(Figure::Dale) })
    }

    fn interneurons(&self) -> Vec<usize> {
        let n = self.images.contexts.neurons();
        let mut numbers = self.spec.interneurons.at(self.scale, self.spec.images.neurons(), n);
        numbers.retain(|&k| k > 0);
        numbers
    }

    /// The K whose curves and filters are drawn: 2N, or the largest.
    fn shown(&self) -> usize {
        let (numbers, n) = (self.interneurons(), self.images.contexts.neurons());
        numbers.iter().position(|&k| k == 2 * n).unwrap_or(numbers.len().saturating_sub(1))
    }

    fn grid(&self) -> Vec<usize> {
        log_grid(self.spec.presentations.at(self.scale), POINTS)
    }

    fn learn(&self, constraint: Constraint, k: usize, task: &Task) -> leukos::Result<Run> {
        let split = self.images.split_of(task.start, self.draws)?;
        let draw = |purpose| start(split.train.neurons(), k, self.draws.start(purpose, task.start));
        let circuit = constraint.circuit(draw("feedback"), &draw("feedforward"))?;
        let (asymmetry_initial, mut meter) = (asymmetry(circuit.synapses()), WhiteningMeter::new(&circuit));
        let mut run = constraint.learn(&self.spec.rates, circuit, split.train.covariances().to_vec())?;
        let rng = self.draws.start("schedule", task.start);
        let presented =
            Schedule::blocks(split.train.len(), 1, rng)?.take(self.spec.presentations.at(self.scale));
        let (mut errors, mut asymmetries, grid) = (Vec::new(), Vec::new(), self.grid());
        for context in presented {
            run.advance(&[context], self.spec.steps.get(), &mut ())?;
            errors.push(meter.error(run.circuit(), &split.train.covariances()[context])?);
            if grid.binary_search(&errors.len()).is_ok() {
                asymmetries.push(asymmetry(run.circuit().synapses()));
            }
        }
        let curve = grid.iter().map(|&end| mean(&errors[end.saturating_sub(WINDOW)..end])).collect();
        let train = every_few(&split.train, split.test.len())?;
        let [seen, unseen] =
            [self.adapt(constraint, &run, &train)?, self.adapt(constraint, &run, &split.test)?];
        let synapses = run.circuit().synapses().feedback();
        Ok(Run {
            train: seen.error,
            test: unseen.error,
            asymmetry_initial,
            asymmetry_final: asymmetry(run.circuit().synapses()),
            asymmetry_in_use: 0.5 * (seen.asymmetry + unseen.asymmetry),
            zeros: share(synapses.as_slice().iter().map(|&w| w == 0.0)),
            pixels: mean(&columns(synapses).iter().map(|column| spread(column)).collect::<Vec<_>>()),
            silent: share(seen.gains.iter().zip(&unseen.gains).map(|(a, b)| *a == 0.0 && *b == 0.0)),
            curve,
            asymmetry: asymmetries,
            synapses: task.is_shown().then(|| by_gain(columns(synapses), &seen.gains)),
        })
    }

    /// Lets the gains alone adapt to each context, from where they are.
    fn adapt(
        &self,
        constraint: Constraint,
        run: &Offline,
        contexts: &Contexts,
    ) -> leukos::Result<InContexts> {
        let (circuit, mut meter) = (run.circuit(), WhiteningMeter::new(run.circuit()));
        let (mut errors, mut asymmetries) = (Vec::new(), Vec::new());
        let mut gains = vec![0.0; circuit.interneurons()];
        for covariance in contexts.covariances() {
            let covariances = vec![covariance.clone()];
            let mut run = constraint.adapt(&self.spec.rates, circuit.clone(), covariances)?;
            // Twice as long as in training, so that the gains have settled and the error is not theirs.
            run.advance(&[0], 2 * self.spec.steps.get(), &mut ())?;
            errors.push(meter.error(run.circuit(), covariance)?);
            asymmetries.push(asymmetry_of(&run.circuit().inverse_whitening_matrix()));
            gains.iter_mut().zip(run.circuit().gains()).for_each(|(sum, gain)| *sum += gain.abs());
        }
        Ok(InContexts { error: mean(&errors), asymmetry: mean(&asymmetries), gains })
    }

    fn bounds(&self, steps: usize, task: &Task) -> leukos::Result<Bounds> {
        let split = self.images.split_of(task.start, self.draws)?;
        let rng = self.draws.start("feedback", task.start);
        Bounds::of(&split.test, &self.spec.rates, (steps, rng))
    }

    fn circuit_numbers(&self, starts: &[Starts<Run>]) -> Value {
        let each = |value: &dyn Fn(&Run) -> f64| -> Value {
            starts.iter().map(|starts| json!(starts.statistic(value))).collect()
        };
        json!({
            "n": self.images.contexts.neurons(),
            "k": self.interneurons(),
            "seeds": starts.first().map_or(0, Starts::len),
            "diverged": starts.iter().map(Starts::divergence).collect::<Vec<_>>(),
            "train": each(&|run| run.train),
            "test": each(&|run| run.test),
            "asymmetry_initial": each(&|run| run.asymmetry_initial),
            "asymmetry_final": each(&|run| run.asymmetry_final),
            "asymmetry_in_use": each(&|run| run.asymmetry_in_use),
            "zeros": each(&|run| run.zeros),
            "pixels": each(&|run| run.pixels),
            "silent": each(&|run| run.silent),
        })
    }

    fn circuit_panels(&self, starts: &[Starts<Run>]) -> Value {
        let each = |value: &dyn Fn(&Run) -> f64| -> Vec<_> {
            starts.iter().map(|starts| json!({ "median": starts.statistic(value).median, "quartiles": ends(starts, value) })).collect()
        };
        let shown = starts.get(self.shown());
        json!({
            "patch": self.images.patch,
            "k": self.interneurons(),
            "shown": self.interneurons().get(self.shown()),
            "train": each(&|run| run.train),
            "test": each(&|run| run.test),
            "presentation": self.grid(),
            "error": shown.map(|starts| drawn(starts, |run| &run.curve)),
            "asymmetry": shown.map(|starts| drawn(starts, |run| &run.asymmetry)),
            "synapses": shown.and_then(|starts| starts.shown(|run| run.synapses.as_ref())),
        })
    }
}

/// What gains make of several contexts.
struct InContexts {
    error: f64,
    asymmetry: f64,
    /// The sum of each interneuron's gains.
    gains: Vec<f64>,
}

/// ‖M − Mᵀ‖_F / ‖M‖_F.
fn asymmetry_of(m: &Matrix) -> f64 {
    let norm = |entry: &dyn Fn(usize, usize) -> f64| {
        let all = (0..m.rows()).flat_map(|i| (0..m.rows()).map(move |j| (i, j)));
        all.map(|(i, j)| entry(i, j).powi(2)).sum::<f64>().sqrt()
    };
    norm(&|i, j| m[(i, j)] - m[(j, i)]) / norm(&|i, j| m[(i, j)])
}

/// So many of the contexts, evenly spread over all.
fn every_few(contexts: &Contexts, count: usize) -> leukos::Result<Contexts> {
    let count = count.min(contexts.len());
    contexts.select(&(0..count).map(|i| i * contexts.len() / count).collect::<Vec<_>>())
}

/// The first and the third quartile of a number over starts.
fn ends(starts: &Starts<Run>, value: &dyn Fn(&Run) -> f64) -> Option<[f64; 2]> {
    let mut values = starts.values(value);
    values.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = f64::INFINITY);
    values.sort_by(f64::total_cmp);
    let at = |share: usize| values.get(share * values.len().saturating_sub(1) / 4).copied();
    Some([at(1)?, at(3)?]).filter(|ends| ends[1].is_finite())
}

/// The medians and the quartiles of a curve.
fn drawn(starts: &Starts<Run>, curve: impl Fn(&Run) -> &[f64]) -> Value {
    let medians: Vec<_> = starts.curve(&curve).into_iter().map(|at| at.median).collect();
    json!({ "median": medians, "quartiles": starts.quartiles(curve) })
}

fn share(held: impl ExactSizeIterator<Item = bool>) -> f64 {
    let all = held.len() as f64;
    held.filter(|&held| held).count() as f64 / all
}

/// Over how many entries a vector spreads; 0 for one that is 0.
fn spread(column: &[f64]) -> f64 {
    let power = |exponent: i32| column.iter().map(|w| w.powi(exponent)).sum::<f64>();
    power(2).powi(2) / power(4).max(f64::MIN_POSITIVE)
}

/// Columns from the largest gain to the smallest.
fn by_gain(columns: Vec<Vec<f64>>, gains: &[f64]) -> Vec<Vec<f64>> {
    let mut ordered: Vec<_> = columns.into_iter().zip(gains).collect();
    ordered.sort_by(|a, b| b.1.total_cmp(a.1));
    ordered.into_iter().map(|(column, _)| column).collect()
}

impl Experiment for Dale {
    fn origins(&self) -> Origins {
        Origins::shared(self.spec.variants.keys(), &self.images.origin)
    }

    fn fingerprint(&self) -> u64 {
        self.images.fingerprint
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let (n, starts) = (self.images.contexts.neurons(), self.spec.starts.at(self.scale));
        let updates = self.spec.presentations.at(self.scale) * self.spec.steps.get();
        let test = self.images.split.test.len();
        let mut tasks = Vec::new();
        for (name, variant) in &self.spec.variants {
            let cases = match variant {
                Variant::Circuit(constraint) => self
                    .interneurons()
                    .into_iter()
                    .map(|k| {
                        let adapting = 2 * self.spec.steps.get() * 2 * test;
                        (k.to_string(), (updates + adapting) as u64 * constraint.step_work(n, k) / 1000)
                    })
                    .collect(),
                Variant::Bounds { steps } => {
                    let work = Constraint::Sign.step_work(n, 2 * n) * (steps.get() * test) as u64 / 1000;
                    vec![(String::new(), work)]
                }
            };
            for (case, work) in cases {
                tasks.extend(Task::starts(name, &case, starts).into_iter().map(|task| (task, work + 1)));
            }
        }
        tasks
    }

    fn run(&self, task: &Task) -> Result<Value> {
        match &self.spec.variants[&task.variant] {
            Variant::Circuit(constraint) => {
                Outcome::record(self.learn(*constraint, task.case.parse()?, task))
            }
            Variant::Bounds { steps } => Outcome::record(self.bounds(steps.get(), task)),
        }
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, variant) in &self.spec.variants {
            if let Variant::Bounds { .. } = variant {
                let starts: Starts<Bounds> = records.starts(name, "")?;
                summary.add(name, Bounds::numbers(&starts), json!({}))?;
                continue;
            }
            let numbers = self.interneurons();
            let starts = numbers.iter().map(|k| records.starts(name, &k.to_string()));
            let starts = starts.collect::<Result<Vec<Starts<Run>>>>()?;
            summary.add(name, self.circuit_numbers(&starts), self.circuit_panels(&starts))?;
        }
        Ok(summary)
    }
}
