//! Reruns Fig. 4 without its panel E: natural images of 5 × 5 pixels.

use std::collections::BTreeMap;

use anyhow::Result;
use leukos::contexts::Contexts;
use leukos::{Matrix, basis_distance, basis_match, eigenbasis};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::images::{Images, ImagesSpec};
use super::offline::{Learned, Learning, Optimality, errors, grid, mean};
use super::online::columns;
use super::plan::{Draws, Setting, StackSize};
use super::spec::Scale;
use super::statistics::{Outcome, Starts, Statistic};
use super::trial::TrialSpec;
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The variant whose starts the report shows one by one, and how many of them.
const ONE_BY_ONE: (&str, usize) = ("authors", 12);

/// The spec of Fig. 4 without E.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NaturalSpec {
    figure: Figure,
    images: ImagesSpec,
    variants: BTreeMap<String, TrialSpec>,
}

/// Fig. 4 without E.
pub struct Natural {
    spec: NaturalSpec,
    images: Images,
    scale: Scale,
    draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
struct Run {
    curve: Vec<f64>,
    test_adapted: f64,
    train_adapted: f64,
    test_fixed_gains: f64,
    test_initial_synapses: f64,
    basis_error_learned: f64,
    basis_error_initial: f64,
    dct_match: f64,
    optimum: Option<Optimality>,
    shown: Option<Value>,
    /// What the report shows of this start, where it is one of those that it shows.
    kept: Option<Value>,
}

impl Run {
    /// Whether what was learned is what was looked for: a learner that looks for an optimum may not have found one.
    fn is_settled(&self) -> bool {
        self.optimum.is_none_or(|optimum| optimum.is_settled())
    }

    fn gap(&self) -> f64 {
        self.optimum.map_or(f64::NAN, |optimum| optimum.gap)
    }
}

impl FigureSpec for NaturalSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Natural::new(self, setting)?))
    }
}

impl Natural {
    fn new(spec: NaturalSpec, setting: &Setting) -> Result<Self> {
        let size = StackSize::Any { usual: spec.images.neurons(), other: 0 };
        let images = spec.images.contexts(Figure::Natural, setting, size)?;
        Ok(Self { spec, images, scale: setting.scale, draws: setting.draws(Figure::Natural) })
    }

    fn learn(&self, task: &Task) -> leukos::Result<Run> {
        let variant = &self.spec.variants[&task.variant];
        let n = self.images.contexts.neurons();
        let initial = variant.initial_synapses.draw(n, n, self.draws.start("synapses", task.start));
        let (train, rng) = (&self.images.split.train, self.draws.start("schedule", task.start));
        let presentations = variant.presentations.at(self.scale);
        let learned = variant.learning.learn(initial.clone(), train, presentations, rng)?;
        self.measure(&variant.learning, &initial, &learned, task)
    }

    fn measure(
        &self,
        how: &Learning,
        initial: &Matrix,
        learned: &Learned,
        task: &Task,
    ) -> leukos::Result<Run> {
        let images = &self.images;
        let adapted = |synapses, contexts: &Contexts| {
            how.adapted_errors(synapses, contexts).map(|errors| mean(&errors))
        };
        let fixed = errors(&learned.synapses, &images.split.test, |_| Ok(learned.mean_gains.clone()))?;
        let basis_error = |synapses| {
            basis_distance(synapses, &images.eigenbasis).map(|distance| distance / synapses.rows() as f64)
        };
        Ok(Run {
            test_adapted: adapted(&learned.synapses, &images.split.test)?,
            train_adapted: adapted(&learned.synapses, &images.split.train)?,
            test_fixed_gains: mean(&fixed),
            test_initial_synapses: adapted(initial, &images.split.test)?,
            basis_error_learned: basis_error(&learned.synapses)?,
            basis_error_initial: basis_error(initial)?,
            dct_match: basis_match(&learned.synapses, &images.cosines)?,
            curve: learned.curve.clone(),
            optimum: learned.optimum,
            shown: task.is_shown().then(|| {
                json!({ "initial_synapses": columns(initial), "learned_synapses": columns(&learned.synapses) })
            }),
            kept: (task.variant == ONE_BY_ONE.0 && task.start < ONE_BY_ONE.1)
                .then(|| json!({ "start": task.start, "learned_synapses": rounded(&learned.synapses) })),
        })
    }

    /// ‖Q(c) − Q*‖_F / N of each context.
    fn basis_error_contexts(&self) -> leukos::Result<Vec<f64>> {
        let n = self.images.contexts.neurons() as f64;
        let error = |covariance| Ok(basis_distance(&eigenbasis(covariance)?, &self.images.eigenbasis)? / n);
        self.images.contexts.covariances().iter().map(error).collect()
    }

    fn numbers(&self, starts: &Starts<Run>, variant: &TrialSpec) -> Result<Value> {
        let mut numbers = json!({ "seeds": starts.len(), "diverged": starts.divergence() });
        if starts.finished().next().is_none() {
            return Ok(numbers);
        }
        let statistic = |value: &dyn Fn(&Run) -> f64| {
            starts.statistic(|run| if run.is_settled() { value(run) } else { f64::NAN })
        };
        let statistics = json!({
            "curve": curve_numbers(starts, variant.presentations.at(self.scale)),
            "test_adapted": statistic(&|run| run.test_adapted),
            "train_adapted": statistic(&|run| run.train_adapted),
            "test_fixed_gains": statistic(&|run| run.test_fixed_gains),
            "test_initial_synapses": statistic(&|run| run.test_initial_synapses),
            "basis_error_learned": statistic(&|run| run.basis_error_learned),
            "basis_error_initial": statistic(&|run| run.basis_error_initial),
            "basis_error_contexts": Statistic::of(self.basis_error_contexts()?),
            "dct_match": statistic(&|run| run.dct_match),
        });
        merge(&mut numbers, statistics);
        if let Some(optimum) = optimum_numbers(starts) {
            merge(&mut numbers, optimum);
        }
        Ok(numbers)
    }

    fn panels(&self, starts: &Starts<Run>, variant: &TrialSpec) -> Result<Value> {
        let images = &self.images;
        Ok(json!({
            "patch": images.patch,
            "presentation": grid(variant.presentations.at(self.scale)),
            "error": starts.curve(|run| &run.curve),
            "test_adapted": starts.values(|run| run.test_adapted),
            "train_adapted": starts.values(|run| run.train_adapted),
            "test_fixed_gains": starts.values(|run| run.test_fixed_gains),
            "test_initial_synapses": starts.values(|run| run.test_initial_synapses),
            "basis_error_learned": starts.values(|run| run.basis_error_learned),
            "basis_error_initial": starts.values(|run| run.basis_error_initial),
            "basis_error_contexts": self.basis_error_contexts()?,
            "test_contexts": images.split.test_indices,
            "covariances": images.contexts.covariances().iter().take(2).map(columns).collect::<Vec<_>>(),
            "shown": starts.shown(|run| run.shown.as_ref()),
            "starts": starts.finished().filter_map(|run| run.kept.as_ref()).collect::<Vec<_>>(),
        }))
    }
}

/// Columns with three decimals, which is finer than colours show.
fn rounded(synapses: &Matrix) -> Vec<Vec<f64>> {
    let round = |column: Vec<f64>| column.into_iter().map(|x| (1000.0 * x).round() / 1000.0).collect();
    columns(synapses).into_iter().map(round).collect()
}

/// How many starts found an optimum, how good it is, and the best of them; `None` where none was looked for.
fn optimum_numbers(starts: &Starts<Run>) -> Option<Value> {
    starts.finished().find_map(|run| run.optimum)?;
    let settled = starts.finished().filter(|run| run.is_settled());
    let best = settled.clone().min_by(|a, b| a.gap().total_cmp(&b.gap())).map(|run| {
        json!({ "gap": run.gap(), "test_adapted": run.test_adapted, "train_adapted": run.train_adapted })
    });
    Some(json!({
        "unsettled": starts.finished().count() - settled.count(),
        "gap": starts.statistic(|run| if run.is_settled() { run.gap() } else { f64::NAN }),
        "best": best,
    }))
}

/// The error at presentations 1, 10, 100, … and the last.
fn curve_numbers(starts: &Starts<Run>, presentations: usize) -> Map<String, Value> {
    let mut numbers = Map::new();
    let statistics = starts.curve(|run| &run.curve);
    for (presentation, statistic) in grid(presentations).into_iter().zip(statistics) {
        if presentation == 10_usize.pow(presentation.ilog10()) {
            numbers.insert(presentation.to_string(), json!(statistic));
        }
        if presentation == presentations {
            numbers.insert("last".to_owned(), json!(statistic));
        }
    }
    numbers
}

/// Adds the entries of one object to another.
fn merge(to: &mut Value, from: Value) {
    if let (Value::Object(to), Value::Object(from)) = (to, from) {
        to.extend(from);
    }
}

impl Experiment for Natural {
    fn origins(&self) -> Origins {
        Origins::shared(self.spec.variants.keys(), &self.images.origin)
    }

    fn fingerprint(&self) -> u64 {
        self.images.fingerprint
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let n = self.images.contexts.neurons();
        let tasks = |(name, variant): (&String, &TrialSpec)| variant.tasks(name, "", [n, n], self.scale);
        self.spec.variants.iter().flat_map(tasks).collect()
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.learn(task))
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, variant) in &self.spec.variants {
            let starts = records.starts(name, "")?;
            summary.add(name, self.numbers(&starts, variant)?, self.panels(&starts, variant)?)?;
        }
        Ok(summary)
    }
}
