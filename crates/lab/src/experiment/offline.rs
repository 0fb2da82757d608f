//! Learns synapses from covariances of natural contexts: what Fig. 4 and most of the appendix have in common.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use leukos::contexts::{Contexts, Pcg64, Schedule};
use leukos::{
    Circuit, GainRule, LearningState, Matrix, Offline, OfflineGains, Order, Rules, Step, SynapseLearner,
    SynapseRule, Synapses, WhiteningMeter, least_squares_gains, optimal_gains, starts, whitening_error,
};
use serde::{Deserialize, Serialize};

use super::online::log_grid;
use super::spec::{Positive, UnitNorm};

/// The leak of every circuit here.
pub const LEAK: f64 = 1.0;
/// The presentations at the end whose gains are averaged.
const LAST: usize = 100;
/// The points of a curve.
const POINTS: usize = 60;

/// How synapses are learned.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learning {
    /// Gains set by least squares, then one synapse step, at every presentation: the authors' code.
    LeastSquares(LeastSquares),
    /// Algorithm 2.
    #[serde(rename = "algorithm-2")]
    Algorithm2(Algorithm2),
    /// The optimum of Eq. (3), with optimal gains.
    Optimum(Optimum),
}

/// Gains set by least squares.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeastSquares {
    synapse_rate: Positive,
    unit_norm: UnitNorm,
}

/// Algorithm 2.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Algorithm2 {
    steps: NonZeroUsize,
    gain_rate: Positive,
    synapse_rate: Positive,
    unit_norm: UnitNorm,
    order: OrderSpec,
}

/// Which values an update sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderSpec {
    /// Gains first, as in the pseudo-code.
    Sequential,
    /// All from the old values, as in the text.
    Concurrent,
}

/// The learner at its optimum.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimum {
    iterations: NonZeroUsize,
    gain_cost: f64,
}

/// What learning leaves.
pub struct Learned {
    pub synapses: Matrix,
    /// The mean of the gains over the last hundred presentations.
    pub mean_gains: Vec<f64>,
    /// The error at each presentation of [`grid`].
    pub curve: Vec<f64>,
    /// Where the learner looks for an optimum: whether it has found one.
    pub optimum: Option<Optimality>,
}

/// What the learner says about an optimum of Eq. (3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimality {
    /// Whether it converged.
    pub converged: bool,
    /// How far the mean objective of the contexts learned from is above its bound.
    pub gap: f64,
    /// The largest |cos| between two columns.
    pub nearest_columns: f64,
    /// The largest gain in any context.
    pub largest_gain: f64,
}

/// Columns this close together have diverged: they approach each other while their gains grow with opposite signs, and no
/// W attains the minimum. The learner still stops there, where rounding hides any further progress.
const DRAWN_TOGETHER: f64 = 0.99;

impl Optimality {
    /// Whether this is a minimum, rather than a point on the way to one at infinity.
    pub fn is_settled(&self) -> bool {
        self.converged && self.nearest_columns < DRAWN_TOGETHER
    }
}

/// The presentations at which curves have their points; powers of ten are among them.
pub fn grid(presentations: usize) -> Vec<usize> {
    let powers = (0..).map(|power| 10_usize.pow(power)).take_while(|&power| power <= presentations);
    let mut grid = log_grid(presentations, POINTS);
    grid.extend(powers);
    grid.sort_unstable();
    grid.dedup();
    grid
}

impl Learning {
    /// Learns from `presentations` of random contexts, starting from `synapses`.
    pub fn learn(
        &self,
        synapses: Matrix,
        contexts: &Contexts,
        presentations: usize,
        rng: Pcg64,
    ) -> leukos::Result<Learned> {
        let presented: Vec<usize> = Schedule::blocks(contexts.len(), 1, rng)?.take(presentations).collect();
        match self {
            Self::LeastSquares(how) => how.learn(synapses, contexts, &presented),
            Self::Algorithm2(how) => how.learn(synapses, contexts, &presented),
            Self::Optimum(how) => how.learn(synapses, contexts),
        }
    }

    /// The whitening error in each context with these synapses, after the gains have adapted to it.
    pub fn adapted_errors(&self, synapses: &Matrix, contexts: &Contexts) -> leukos::Result<Vec<f64>> {
        match self {
            Self::LeastSquares(_) => errors(synapses, contexts, |c| least_squares_gains(synapses, c, LEAK)),
            Self::Algorithm2(how) => how.adapted_errors(synapses, contexts),
            Self::Optimum(_) => errors(synapses, contexts, |c| optimal_gains(synapses, c, LEAK)),
        }
    }

    /// About how many microseconds learning takes.
    pub fn work(&self, [n, k]: [usize; 2], presentations: usize) -> u64 {
        let step = (n * n * n / 3 + n * n * (3 * k + n)) / 8 + 1;
        let fit = k * k * (n + k / 3) / 5;
        let nanoseconds = match self {
            Self::LeastSquares(_) => presentations * (step + fit),
            Self::Algorithm2(how) => presentations * how.steps.get() * step,
            Self::Optimum(_) => 1_000_000_000,
        };
        nanoseconds as u64 / 1000 + 1
    }
}

/// The error in each context with the gains that `adapt` finds for its covariance.
pub fn errors(
    synapses: &Matrix,
    contexts: &Contexts,
    adapt: impl Fn(&Matrix) -> leukos::Result<Vec<f64>>,
) -> leukos::Result<Vec<f64>> {
    let error = |covariance: &Matrix| {
        let gains = adapt(covariance)?;
        whitening_error(&inverse_whitening_matrix(synapses, &gains), covariance)
    };
    contexts.covariances().iter().map(error).collect()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// M = αI + W diag(g) Wᵀ. Least-squares gains need not make it positive definite, so it is no circuit's.
fn inverse_whitening_matrix(synapses: &Matrix, gains: &[f64]) -> Matrix {
    Matrix::from_fn(synapses.rows(), synapses.rows(), |i, j| {
        let spread = gains.iter().enumerate().map(|(k, gain)| gain * (synapses[(i, k)] * synapses[(j, k)]));
        spread.sum::<f64>() + if i == j { LEAK } else { 0.0 }
    })
}

fn circuit(synapses: Matrix) -> leukos::Result<Circuit> {
    let gains = vec![0.0; synapses.columns()];
    Circuit::new(Synapses::tied(synapses)?, gains, LEAK)
}

/// The mean of gains over the last presentations.
struct MeanGains {
    from: usize,
    sum: Vec<f64>,
    count: f64,
}

impl MeanGains {
    fn new(presentations: usize, interneurons: usize) -> Self {
        Self { from: presentations.saturating_sub(LAST), sum: vec![0.0; interneurons], count: 0.0 }
    }

    fn see(&mut self, presentation: usize, gains: &[f64]) {
        if presentation >= self.from {
            self.sum.iter_mut().zip(gains).for_each(|(sum, gain)| *sum += gain);
            self.count += 1.0;
        }
    }

    fn mean(self) -> Vec<f64> {
        self.sum.into_iter().map(|sum| sum / self.count).collect()
    }
}

impl LeastSquares {
    fn learn(&self, synapses: Matrix, contexts: &Contexts, presented: &[usize]) -> leukos::Result<Learned> {
        let rules = Rules {
            synapses: SynapseRule::Hebbian { rate: self.synapse_rate.0 },
            unit_norm: self.unit_norm.rule(),
            ..Rules::frozen()
        };
        let (grid, circuit) = (grid(presented.len()), circuit(synapses)?);
        let (mut curve, mut gains) = (Vec::new(), MeanGains::new(presented.len(), circuit.interneurons()));
        let mut meter = WhiteningMeter::new(&circuit);
        let mut run =
            Offline::new(circuit, rules, contexts.covariances().to_vec(), OfflineGains::LeastSquares)?;
        // Each step is seen with the presentation's gains and before its synapse step.
        let mut watch = |step: &Step| {
            let presentation = step.index as usize;
            gains.see(presentation, step.circuit.gains());
            if grid.get(curve.len()) == Some(&(presentation + 1)) {
                let covariance = &contexts.covariances()[presented[presentation]];
                curve.push(meter.error(step.circuit, covariance).unwrap_or(f64::NAN));
            }
            ControlFlow::Continue(())
        };
        run.advance(presented, 1, &mut watch)?;
        let synapses = run.circuit().synapses().feedback().clone();
        Ok(Learned { synapses, mean_gains: gains.mean(), curve, optimum: None })
    }
}

impl Algorithm2 {
    fn rules(&self) -> Rules {
        Rules {
            gains: GainRule::Gradient { rate: self.gain_rate.0 },
            synapses: SynapseRule::Hebbian { rate: self.synapse_rate.0 },
            unit_norm: self.unit_norm.rule(),
            order: match self.order {
                OrderSpec::Sequential => Order::Sequential,
                OrderSpec::Concurrent => Order::Concurrent,
            },
            ..Rules::frozen()
        }
    }

    fn learn(&self, synapses: Matrix, contexts: &Contexts, presented: &[usize]) -> leukos::Result<Learned> {
        let (grid, circuit) = (grid(presented.len()), circuit(synapses)?);
        let (mut curve, mut gains) = (Vec::new(), MeanGains::new(presented.len(), circuit.interneurons()));
        let mut meter = WhiteningMeter::new(&circuit);
        let mut run =
            Offline::new(circuit, self.rules(), contexts.covariances().to_vec(), OfflineGains::Rule)?;
        for (presentation, &context) in presented.iter().enumerate() {
            run.advance(&[context], self.steps.get(), &mut ())?;
            gains.see(presentation, run.circuit().gains());
            if grid.get(curve.len()) == Some(&(presentation + 1)) {
                curve.push(meter.error(run.circuit(), &contexts.covariances()[context])?);
            }
        }
        Ok(Learned {
            synapses: run.circuit().synapses().feedback().clone(),
            mean_gains: gains.mean(),
            curve,
            optimum: None,
        })
    }

    /// As many gain steps as in training, from gains of 0.
    fn adapted_errors(&self, synapses: &Matrix, contexts: &Contexts) -> leukos::Result<Vec<f64>> {
        let rules = Rules { synapses: SynapseRule::Frozen, ..self.rules() };
        let circuit = circuit(synapses.clone())?;
        let mut meter = WhiteningMeter::new(&circuit);
        let mut error = |covariance: &Matrix| {
            let mut run = Offline::new(circuit.clone(), rules, vec![covariance.clone()], OfflineGains::Rule)?;
            run.advance(&[0], self.steps.get(), &mut ())?;
            meter.error(run.circuit(), covariance)
        };
        contexts.covariances().iter().map(&mut error).collect()
    }
}

impl Optimum {
    fn learn(&self, synapses: Matrix, contexts: &Contexts) -> leukos::Result<Learned> {
        let covariances = contexts.covariances().to_vec();
        let mut learner = SynapseLearner::new(synapses, covariances, LEAK, self.gain_cost)?;
        let progress = learner.advance(self.iterations.get());
        let gains = learner.gains();
        let optimum = Optimality {
            // It has also converged if rounding hides any further progress.
            converged: progress.state != LearningState::Learning,
            gap: progress.gap,
            nearest_columns: nearest_columns(learner.synapses()),
            largest_gain: gains.as_slice().iter().fold(0.0, |most: f64, gain| most.max(gain.abs())),
        };
        let mean_gains = (0..gains.rows())
            .map(|i| (0..gains.columns()).map(|c| gains[(i, c)]).sum::<f64>() / gains.columns() as f64)
            .collect();
        Ok(Learned {
            synapses: learner.synapses().clone(),
            mean_gains,
            curve: Vec::new(),
            optimum: Some(optimum),
        })
    }
}

/// The largest |cos| between two unit columns.
fn nearest_columns(synapses: &Matrix) -> f64 {
    let cosine =
        |i, j| synapses.column(i).iter().zip(synapses.column(j)).map(|(a, b)| a * b).sum::<f64>().abs();
    let pairs = (0..synapses.columns()).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.map(|(i, j)| cosine(i, j)).fold(0.0, f64::max)
}

/// The synapses to begin with, W_0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialColumns {
    /// Columns of random orthogonal matrices.
    Orthogonal,
    /// Columns uniform on the unit sphere.
    Sphere,
}

impl InitialColumns {
    pub fn draw(self, n: usize, k: usize, mut rng: Pcg64) -> Matrix {
        match self {
            Self::Orthogonal => starts::orthogonal(n, k, &mut rng),
            Self::Sphere => starts::on_sphere(n, k, &mut rng),
        }
    }
}
