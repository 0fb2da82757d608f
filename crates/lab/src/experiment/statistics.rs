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
}

impl Statistic {
    /// The statistic of these values; those that are not finite failed.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let failed_as_infinite = |x: f64| if x.is_finite() { x } else { f64::INFINITY };
        let mut sorted: Vec<f64> = values.into_iter().map(failed_as_infinite).collect();
        sorted.sort_by(f64::total_cmp);
        let finite = &sorted[..sorted.partition_point(|x| x.is_finite())];
        let n = finite.len();
        let mean = finite.iter().sum::<f64>() / n as f64;
        let squares = finite.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let std = (squares / n.saturating_sub(1).max(1) as f64).sqrt();
        let some = |x: f64| x.is_finite().then_some(x);
        Self { median: some(median(&sorted)), mean: some(mean), std: some(mean + std).map(|_| std), n }
    }
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
pub struct Starts<R>(pub Vec<Outcome<R>>);

impl<R> Starts<R> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn finished(&self) -> impl Iterator<Item = &R> {
        self.0.iter().filter_map(|outcome| match outcome {
            Outcome::Finished(run) => Some(run),
            Outcome::Diverged { .. } => None,
        })
    }

    /// The first start that has what is asked for.
    pub fn shown<T>(&self, detail: impl Fn(&R) -> Option<&T>) -> Option<&T> {
        self.finished().find_map(detail)
    }

    pub fn divergence(&self) -> Option<Divergence> {
        let steps = self.0.iter().filter_map(|outcome| match outcome {
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
        self.0.iter().map(of).collect()
    }

    pub fn statistic(&self, value: impl Fn(&R) -> f64) -> Statistic {
        Statistic::of(self.values(value))
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
