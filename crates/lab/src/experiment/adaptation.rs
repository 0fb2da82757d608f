//! Asks how fast gains adapt to a natural context they have not met: with which synapses, how many, and by which rule.

mod bases;
mod cholesky;
mod estimators;
mod gain_prior;
mod switch;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anyhow::Result;
use leukos::Matrix;
use leukos::contexts::Split;
use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::images::{Images, ImagesSpec};
use super::plan::{Draws, Setting, StackSize};
use super::spec::{Positive, Scale, Scaled};
use super::statistics::{Divergence, Outcome, Starts, median};
use super::sweep::SweepAt;
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};
use bases::{Basis, Library, Material};
use estimators::Estimator;
use gain_prior::GainPrior;
use switch::{ADAPTED, Adapted, REPORTED, Switch, drawn};

/// The spec of adaptation to unseen contexts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdaptationSpec {
    figure: Figure,
    images: ImagesSpec,
    interneurons: SweepAt,
    starts: Scaled,
    /// How many samples come after the switch.
    horizon: Scaled,
    /// How many iterations learning takes at most.
    iterations: Scaled,
    gain_rates: RatesAt,
    variants: BTreeMap<String, Follower>,
}

/// The rates η_g that are tried at either scale.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RatesAt {
    quick: Vec<Positive>,
    paper: Vec<Positive>,
}

/// What adapts after a switch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Follower {
    /// Gains by Eq. (7) on such synapses; not told of the switch.
    Gradient(Basis),
    /// Gains with a prior over gains; told of the switch.
    Prior(Basis),
    /// The same without the correlations between gains.
    IndependentPrior(Basis),
    /// No circuit; told of the switch.
    Estimate(Estimator),
}

impl Follower {
    fn basis(self) -> Option<Basis> {
        match self {
            Self::Gradient(basis) | Self::Prior(basis) | Self::IndependentPrior(basis) => Some(basis),
            Self::Estimate(_) => None,
        }
    }
}

/// Adaptation to unseen contexts.
pub struct Adaptation {
    spec: AdaptationSpec,
    images: Images,
    library: Library,
    scale: Scale,
    draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
struct Run {
    /// The error with optimal gains; `None` without a circuit.
    floor: Option<f64>,
    /// With each gain rate; one entry where there is none.
    adapted: Vec<Adapted>,
}

impl Run {
    fn with_rate(&self, rate: usize) -> Option<&Adapted> {
        self.adapted.get(rate)
    }

    fn samples(&self, rate: usize) -> f64 {
        self.with_rate(rate).and_then(|adapted| adapted.samples).unwrap_or(f64::NAN)
    }

    fn error(&self, rate: usize, series: impl Fn(&Adapted) -> &[Option<f64>], point: usize) -> f64 {
        let error = self.with_rate(rate).and_then(|adapted| *series(adapted).get(point)?);
        error.unwrap_or(f64::NAN)
    }
}

/// If optimal gains leave an error above this, no rate will reach [`ADAPTED`], and only the middle rate is run.
const HOPELESS: f64 = 4.0 * ADAPTED;

impl FigureSpec for AdaptationSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Adaptation::new(self, setting)?))
    }
}

impl Adaptation {
    fn new(spec: AdaptationSpec, setting: &Setting) -> Result<Self> {
        let size = StackSize::Any { usual: spec.images.neurons(), other: 0 };
        let images = spec.images.contexts(Figure::Adaptation, setting, size)?;
        let (scale, draws) = (setting.scale, setting.draws(Figure::Adaptation));
        Ok(Self { spec, images, library: Library::default(), scale, draws })
    }

    fn rates(&self) -> Vec<f64> {
        let rates = match self.scale {
            Scale::Quick => &self.spec.gain_rates.quick,
            Scale::Paper => &self.spec.gain_rates.paper,
        };
        rates.iter().map(|rate| rate.0).collect()
    }

    /// The numbers of interneurons that a follower can have; `None` for one that has none.
    fn interneurons(&self, follower: Follower) -> Option<Vec<usize>> {
        let most = follower.basis()?.most(&self.images);
        let n = self.images.contexts.neurons();
        let mut numbers = self.spec.interneurons.at(self.scale, self.spec.images.neurons(), n);
        numbers.retain(|&k| k > 0 && most.is_none_or(|most| k <= most));
        Some(numbers)
    }

    /// The cases of a variant, as tasks name them.
    fn cases(&self, follower: Follower) -> Vec<String> {
        let numbers = self.interneurons(follower).map(|k| k.iter().map(usize::to_string).collect());
        numbers.unwrap_or_else(|| vec![String::new()])
    }

    fn follow(&self, task: &Task) -> Result<Run> {
        let split = self.images.split_of(task.start, self.draws)?;
        let switch = self.switch(&split, task.start);
        let follower = self.spec.variants[&task.variant];
        let basis = match follower {
            Follower::Gradient(basis) | Follower::Prior(basis) | Follower::IndependentPrior(basis) => basis,
            Follower::Estimate(estimator) => {
                return Ok(Run { floor: None, adapted: vec![estimator.follow(&switch)?] });
            }
        };
        let mut material = Material {
            images: &self.images,
            train: &split.train,
            start: task.start,
            iterations: self.spec.iterations.at(self.scale),
            rng: self.draws.start("synapses", task.start),
        };
        let synapses = self.library.columns(basis, task.case.parse()?, &mut material)?;
        let floor = switch.floor(&synapses)?;
        let prior =
            || -> leukos::Result<_> { Ok(GainPrior::of(&self.library.gains(basis, &synapses, &material)?)) };
        let adapted = match follower {
            Follower::Prior(_) => vec![prior()?.follow(&switch, &synapses)?],
            Follower::IndependentPrior(_) => vec![prior()?.independent().follow(&switch, &synapses)?],
            Follower::Gradient(_) | Follower::Estimate(_) => self.with_rates(&switch, &synapses, floor)?,
        };
        Ok(Run { floor: Some(floor), adapted })
    }

    /// The contexts before and after the switch: the same for all variants of a start.
    fn switch<'a>(&self, split: &'a Split, start: usize) -> Switch<'a> {
        let mut rng = self.draws.start("contexts", start);
        let from = rng.random_range(0..split.train.len());
        Switch {
            from: &split.train.covariances()[from],
            test: &split.test,
            to: rng.random_range(0..split.test.len()),
            stimuli: self.draws.start("stimuli", start),
            horizon: self.spec.horizon.at(self.scale),
        }
    }

    fn with_rates(&self, switch: &Switch<'_>, synapses: &Matrix, floor: f64) -> leukos::Result<Vec<Adapted>> {
        let rates = self.rates();
        if let (true, Some(&middle)) = (floor > HOPELESS, rates.get(rates.len() / 2)) {
            return Ok(vec![switch.follow_gradient(synapses, middle)?; rates.len()]);
        }
        rates.iter().map(|&rate| switch.follow_gradient(synapses, rate)).collect()
    }

    /// About how many microseconds a task takes.
    fn work(&self, follower: Follower, case: &str) -> u64 {
        let (n, horizon) = (self.images.contexts.neurons(), self.spec.horizon.at(self.scale));
        let k: usize = case.parse().unwrap_or(0);
        let (points, step) = (switch::measured(horizon).len(), n * n * (n + 3 * k) / 10_000 + 1);
        let learning = self.spec.iterations.at(self.scale) * (10_000 + 400 * k) * n / 25;
        let work = match follower {
            Follower::Gradient(Basis::Learned) => {
                learning + self.rates().len() * (horizon * step + points * 20)
            }
            Follower::Gradient(Basis::Sphere | Basis::LocalFrame) => horizon * step + points * 20,
            Follower::Gradient(_) => self.rates().len() * (horizon * step + points * 20),
            Follower::Prior(_) | Follower::IndependentPrior(_) => {
                points * (50 + k * k * k / 2000) + 30 * k * n
            }
            Follower::Estimate(_) => points * 100 + horizon,
        };
        work as u64
    }

    fn summary_of(&self, name: &str, follower: Follower, records: &Records) -> Result<[Value; 2]> {
        let cases = self.cases(follower);
        let starts = cases.iter().map(|case| records.starts(name, case));
        let starts = starts.collect::<Result<Vec<Starts<Run>>>>()?;
        let of_variant = OfVariant {
            n: self.images.contexts.neurons(),
            k: self.interneurons(follower),
            rates: matches!(follower, Follower::Gradient(_)).then(|| self.rates()),
            best: starts.iter().map(best_rate).collect(),
            horizon: self.spec.horizon.at(self.scale),
            starts,
        };
        Ok([of_variant.numbers(), of_variant.panels()])
    }
}

/// The rate that gets to [`ADAPTED`] first in the median; where none does, the one that gets there most often, and then
/// the one that ends lowest.
fn best_rate(starts: &Starts<Run>) -> usize {
    let rates = starts.finished().map(|run| run.adapted.len()).max().unwrap_or(0);
    let merits = |rate: usize| {
        let last = |run: &Run| run.with_rate(rate).map_or(0, |adapted| adapted.curve.len()).saturating_sub(1);
        let end = starts.statistic(|run| run.error(rate, |adapted| &adapted.curve, last(run)));
        let samples = starts.statistic(|run| run.samples(rate));
        let [samples, end] = [samples, end].map(|of| of.median.unwrap_or(f64::INFINITY));
        // If only one rate was run, it is the middle one.
        [samples, -(reached(starts, rate) as f64), end, f64::from(u8::from(rate != rates / 2))]
    };
    let merits: Vec<_> = (0..rates).map(merits).collect();
    let better = |a: &usize, b: &usize| {
        let pairs = merits[*a].iter().zip(&merits[*b]);
        pairs.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    (0..rates).min_by(better).unwrap_or(0)
}

/// How many starts get to [`ADAPTED`].
fn reached(starts: &Starts<Run>, rate: usize) -> usize {
    starts.values(|run| run.samples(rate)).iter().filter(|samples| samples.is_finite()).count()
}

/// The starts of one variant, case by case.
struct OfVariant {
    n: usize,
    k: Option<Vec<usize>>,
    rates: Option<Vec<f64>>,
    starts: Vec<Starts<Run>>,
    /// Which rate is best in each case.
    best: Vec<usize>,
    horizon: usize,
}

impl OfVariant {
    /// A value of each case, or the only one where a variant has no K.
    fn each<T: Serialize>(&self, value: impl Fn(&Starts<Run>, usize) -> T) -> Value {
        let mut values = self.starts.iter().zip(&self.best).map(|(starts, &best)| json!(value(starts, best)));
        if self.k.is_some() { values.collect() } else { values.next().unwrap_or(Value::Null) }
    }

    fn numbers(&self) -> Value {
        let mut numbers = Map::new();
        let mut add = |key: &str, value: Value| numbers.insert(key.to_owned(), value);
        add("seeds", json!(self.starts.first().map_or(0, Starts::len)));
        add("horizon", json!(self.horizon));
        add("samples", self.each(|starts, best| starts.statistic(|run| run.samples(best))));
        add("reached", self.each(reached));
        add("diverged", self.each(divergence));
        let points = REPORTED.into_iter().enumerate().filter(|(_, sample)| *sample <= self.horizon);
        let errors = points.map(|(point, sample)| {
            let error = |run: &Run, best| run.error(best, |adapted| &adapted.reported, point);
            (sample.to_string(), self.each(|starts, best| starts.statistic(|run| error(run, best))))
        });
        add("error", errors.collect::<Map<_, _>>().into());
        if let Some(k) = &self.k {
            add("n", json!(self.n));
            add("k", json!(k));
            add("floor", self.each(|starts, _| starts.statistic(|run| run.floor.unwrap_or(f64::NAN))));
        }
        if let Some(rates) = &self.rates {
            add("gain_rate", self.each(|_, best| rates.get(best).copied()));
        }
        numbers.into()
    }

    fn panels(&self) -> Value {
        let at_n = self.k.as_ref().map_or(Some(0), |k| k.iter().position(|&k| k == self.n));
        let shown = at_n.and_then(|case| Some((self.starts.get(case)?, *self.best.get(case)?)));
        let curve = shown.map(|(starts, best)| {
            let error = |point: usize| starts.values(|run| run.error(best, |adapted| &adapted.curve, point));
            let grid = drawn(self.horizon);
            let errors: Vec<_> = (0..grid.len()).map(|point| quartiles(error(point))).collect();
            json!({ "sample": grid, "error": errors })
        });
        let by_rate = shown.zip(self.rates.as_ref()).map(|((starts, _), rates)| {
            let samples = |rate: usize| quartiles(starts.values(|run| run.samples(rate)));
            json!({ "rate": rates, "samples": (0..rates.len()).map(samples).collect::<Vec<_>>() })
        });
        json!({
            "n": self.n,
            "horizon": self.horizon,
            "k": self.k,
            "samples": self.starts.iter().zip(&self.best).map(|(starts, &best)| quartiles(starts.values(|run| run.samples(best)))).collect::<Vec<_>>(),
            "floor": self.starts.iter().map(|starts| quartiles(starts.values(|run| run.floor.unwrap_or(f64::NAN)))).collect::<Vec<_>>(),
            "curve": curve,
            "by_rate": by_rate,
        })
    }
}

/// First quartile, median and third quartile of values of which those that are not finite count as infinite; `None`
/// where one of the three is infinite.
fn quartiles(mut values: Vec<f64>) -> [Option<f64>; 3] {
    values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = f64::INFINITY);
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = |share: usize| values.get(share * last / 4).copied().unwrap_or(f64::NAN);
    [at(1), median(&values), at(3)].map(|value| Some(value).filter(|value| value.is_finite()))
}

fn divergence(starts: &Starts<Run>, best: usize) -> Option<Divergence> {
    let steps = starts.finished().filter_map(|run| run.with_rate(best)?.diverged);
    let count = steps.clone().count();
    steps.min().map(|first_step| Divergence { count, first_step })
}

impl Experiment for Adaptation {
    fn origins(&self) -> Origins {
        Origins::shared(self.spec.variants.keys(), &self.images.origin)
    }

    fn fingerprint(&self) -> u64 {
        self.images.fingerprint
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let mut tasks = Vec::new();
        for (name, &follower) in &self.spec.variants {
            for case in self.cases(follower) {
                let work = self.work(follower, &case);
                let starts = Task::starts(name, &case, self.spec.starts.at(self.scale));
                tasks.extend(starts.into_iter().map(|task| (task, work)));
            }
        }
        tasks
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(Ok(self.follow(task)?))
    }

    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, &follower) in &self.spec.variants {
            let [numbers, panels] = self.summary_of(name, follower, records)?;
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}
