//! Sums up runs: medians, means and spreads over starts, with failures and divergences counted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome<R> {
    /// With these numbers.
    Finished(R),
    /// By leaving the set of valid circuits at this step.
    Diverged {
        /// The step, counted from 0.
        step: u64,
    },
}

impl<R> Outcome<R> {
    /// Keeps divergence as an outcome and passes other errors on.
    fn of(run: leukos::Result<R>) -> anyhow::Result<Self> {
        match run {
            Ok(run) => Ok(Self::Finished(run)),
            Err(leukos::Error::Diverged(diverged)) => Ok(Self::Diverged { step: diverged.step }),
            Err(error) => Err(error.into()),
        }
    }
}

impl<R: Serialize> Outcome<R> {
    /// How a run ended, as a record to keep.
    pub fn record(run: leukos::Result<R>) -> anyhow::Result<Value> {
        Ok(serde_json::to_value(Self::of(run)?)?)
    }
}

/// A number over starts.
///
/// A failed start is left out of mean and standard deviation and counts as +∞ in the median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistic {
    /// `None` (null in files) when half of the starts or more failed.
    pub median: Option<f64>,
    /// `None` when all starts failed.
    pub mean: Option<f64>,
    /// The standard deviation over starts (n − 1); 0 for one start.
    pub std: Option<f64>,
    /// The number of starts in the mean.
    pub n: usize,
    /// How many independent draws the starts make up: as many as there are starts, or fewer where some of them share
    /// what was drawn.
    pub draws: usize,
    /// The standard error of the mean, from the spread among draws; `None` for a single draw.
    pub standard_error: Option<f64>,
    /// The same of the median.
    pub median_standard_error: Option<f64>,
}

impl Statistic {
    /// The statistic of independent values; those that are not finite failed.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let sets = values.len();
        Self::of_sets(&values, sets)
    }

    /// The same where values share what was drawn for so many sets, of which they take turns.
    pub fn of_sets(values: &[f64], sets: usize) -> Self {
        let sorted = ascending(values.iter().copied());
        let (mean, std, n) = moments(&sorted);
        let some = |x: f64| x.is_finite().then_some(x);
        let independent = sets >= values.len();
        let set = |set: usize| ascending(values.iter().skip(set).step_by(sets.max(1)).copied());
        let among_sets = |of_set: &dyn Fn(&[f64]) -> f64| {
            let numbers: Vec<f64> = (0..sets).map(|number| of_set(&set(number))).collect();
            standard_error(&ascending(numbers))
        };
        Self {
            median: some(median(&sorted)),
            mean: some(mean),
            std: some(mean + std).map(|_| std),
            n,
            draws: sets.min(values.len()),
            standard_error: among_sets(&|values| moments(values).0),
            median_standard_error: if independent { rank_error(&sorted) } else { among_sets(&median) },
        }
    }
}

/// Values in their order; what is not finite failed, and comes last.
fn ascending(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let failed_as_infinite = |x: f64| if x.is_finite() { x } else { f64::INFINITY };
    let mut sorted: Vec<f64> = values.into_iter().map(failed_as_infinite).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Mean, standard deviation (n − 1; 0 for one) and number of the finite ones among ascending values.
fn moments(ascending: &[f64]) -> (f64, f64, usize) {
    let finite = &ascending[..ascending.partition_point(|x| x.is_finite())];
    let n = finite.len();
    let mean = finite.iter().sum::<f64>() / n as f64;
    let squares = finite.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (mean, (squares / n.saturating_sub(1).max(1) as f64).sqrt(), n)
}

/// The standard error of the mean of ascending values; `None` for fewer than two that did not fail.
fn standard_error(ascending: &[f64]) -> Option<f64> {
    let (_, std, n) = moments(ascending);
    (n > 1).then(|| std / (n as f64).sqrt())
}

/// The standard error of the median of independent ascending values, whatever their distribution: the number of values
/// below the true median is binomial, so its standard deviation √n/2 either way spans that of the median.
#[allow(clippy::cast_sign_loss)] // Ranks are within the list.
fn rank_error(ascending: &[f64]) -> Option<f64> {
    let (middle, reach) = (0.5 * (ascending.len() as f64 - 1.0), 0.5 * (ascending.len() as f64).sqrt());
    let at = |rank: f64| ascending.get(rank.max(0.0) as usize).copied();
    let [low, high] = [at((middle - reach).round())?, at((middle + reach).round())?];
    (ascending.len() > 3 && high.is_finite()).then_some(0.5 * (high - low))
}

/// The median of ascending values; NaN when there is none.
pub fn median(ascending: &[f64]) -> f64 {
    let half = ascending.len() / 2;
    match ascending.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => ascending[half],
        _ => 0.5 * (ascending[half - 1] + ascending[half]),
    }
}

/// How many starts diverged, and the earliest step at which one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// How many.
    pub count: usize,
    /// The earliest step.
    pub first_step: u64,
}

/// The outcomes of all starts of a variant.
#[derive(Debug)]
pub struct Starts<R> {
    outcomes: Vec<Outcome<R>>,
    sets: usize,
}

impl<R> Starts<R> {
    /// Starts that share nothing that was drawn.
    pub fn new(outcomes: Vec<Outcome<R>>) -> Self {
        Self { sets: outcomes.len(), outcomes }
    }

    /// The same starts, which take turns with so many sets of what was drawn for several of them.
    pub fn in_sets(self, sets: usize) -> Self {
        Self { sets, ..self }
    }

    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    pub fn finished(&self) -> impl Iterator<Item = &R> + Clone {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Finished(run) => Some(run),
            Outcome::Diverged { .. } => None,
        })
    }

    /// The first start that has what is asked for.
    pub fn shown<T>(&self, detail: impl Fn(&R) -> Option<&T>) -> Option<&T> {
        self.finished().find_map(detail)
    }

    pub fn divergence(&self) -> Option<Divergence> {
        let steps = self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Finished(_) => None,
            Outcome::Diverged { step } => Some(*step),
        });
        let count = steps.clone().count();
        steps.min().map(|first_step| Divergence { count, first_step })
    }

    /// A number of every start; a start that diverged has none.
    pub fn values(&self, value: impl Fn(&R) -> f64) -> Vec<f64> {
        let of = |outcome: &Outcome<R>| match outcome {
            Outcome::Finished(run) => value(run),
            Outcome::Diverged { .. } => f64::NAN,
        };
        self.outcomes.iter().map(of).collect()
    }

    pub fn statistic(&self, value: impl Fn(&R) -> f64) -> Statistic {
        Statistic::of_sets(&self.values(value), self.sets)
    }

    /// The first and the third quartile at each point of a curve; `None` where a quarter of the starts failed.
    pub fn quartiles(&self, curve: impl Fn(&R) -> &[f64]) -> Vec<Option<[f64; 2]>> {
        let points = self.finished().map(|run| curve(run).len()).max().unwrap_or(0);
        let at = |point| {
            let known = self.finished().filter_map(|run| curve(run).get(point).copied());
            let mut values: Vec<f64> = known.filter(|x: &f64| x.is_finite()).collect();
            values.resize(self.len(), f64::INFINITY);
            values.sort_by(f64::total_cmp);
            let quartile = |share: usize| values[share * (values.len() - 1) / 4];
            Some([quartile(1), quartile(3)]).filter(|ends| ends[1].is_finite())
        };
        (0..points).map(at).collect()
    }

    /// A statistic for each point of a curve.
    pub fn curve(&self, curve: impl Fn(&R) -> &[f64]) -> Vec<Statistic> {
        let points = self.finished().map(|run| curve(run).len()).max().unwrap_or(0);
        let at = |point| self.statistic(|run| curve(run).get(point).copied().unwrap_or(f64::NAN));
        (0..points).map(at).collect()
    }
}
