//! Trains a whitener on samples or covariances of known contexts.

use std::ops::ControlFlow;

use rand::Rng;

use super::groups::require_partition;
use super::settings::WhitenerSettings;
use super::{GainPrior, GroupedWhitener, LEAK, Learned, Whitener};
use crate::error::{Error, Result, Test};
use crate::estimator::usual_shortest;
use crate::linalg::{product, symmetric_eigen};
use crate::matrix::Matrix;
use crate::metrics::require_symmetric;
use crate::moments::Moments;
use crate::optimal_gains::optimal_gains;
use crate::real::Real;
use crate::size::{require_square, require_whitener};
use crate::starts;
use crate::synapse_learning::{LearningProgress, LearningState, SynapseLearner, require_learning};

/// Where the synapses of a trained whitener come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TrainingSynapses {
    /// The eigenvectors of the contexts' mean covariance ([`starts::mean_eigenbasis`]).
    #[default]
    Eigenbasis,
    /// Random orthonormal columns.
    Random,
    /// These (N × K).
    Given(Matrix),
}

/// Whether the synapses are then fitted to the contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrainingRule {
    /// To the optimum of Eq. (3), where there is more than one context ([`SynapseLearner`]).
    #[default]
    Optimal,
    /// Not at all.
    None,
}

/// How to train a whitener.
///
/// ```
/// use std::ops::ControlFlow;
/// use leukos::{Moments, Whitener, WhitenerSettings, WhitenerTraining, contexts::stream};
///
/// let mut moments = Moments::new(2);
/// moments.update(&[2.0, 1.0, -2.0, 1.0, 0.5, -1.0, -0.5, -1.0])?;
/// let training = WhitenerTraining { moments: vec![moments], ..WhitenerTraining::default() };
/// let settings = WhitenerSettings::default();
/// let whitener: Whitener = training.fit(settings, &mut stream(0, 0), |_| ControlFlow::Continue(()))?;
/// let mut response = [0.0; 2];
/// whitener.whiten_frozen(&[0.0, 1.0], &mut response)?;
/// assert!((response[1] - 1.0).abs() < 1e-9, "the second channel has variance one already");
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhitenerTraining {
    /// What is known of each context.
    pub moments: Vec<Moments>,
    /// The number of interneurons; none means as many as there are channels.
    pub interneurons: Option<usize>,
    /// Where the synapses come from.
    pub synapses: TrainingSynapses,
    /// Whether they are then fitted.
    pub rule: TrainingRule,
}

/// What the training set says about the channels and the contexts.
struct Evidence {
    mean: Vec<f64>,
    dead: Vec<bool>,
    /// The covariances in units of the scale, lifted to the floor.
    covariances: Vec<Matrix>,
    /// Of all samples, in their own units.
    count: f64,
    pooled: Matrix,
}

/// The largest number of iterations; learning the synapses converges in a few dozen.
const MOST_ITERATIONS: usize = 500;

impl WhitenerTraining {
    /// Trains a whitener. `watch` sees every iteration of learning the synapses and may end it.
    ///
    /// It begins with the mean and covariance of all samples, so that their responses are white. With several contexts
    /// the synapses are learned across them, and the gains that are best in each give the prior.
    ///
    /// # Errors
    /// When there is no context, one has no samples, sizes do not match, nothing varies, a setting is out of range, no gains make M
    /// positive definite, or there is no memory for so many channels, interneurons or contexts.
    pub fn fit<T: Real>(
        &self,
        settings: WhitenerSettings,
        rng: &mut (impl Rng + ?Sized),
        watch: impl FnMut(LearningProgress) -> ControlFlow<()>,
    ) -> Result<Whitener<T>> {
        settings.validate()?;
        self.require_room()?;
        let evidence = Evidence::new(&self.moments, settings.floor)?;
        let start = self.start(&evidence, rng)?;
        let synapses = self.learned(start, &evidence, watch)?;
        let gains_for = |covariance: &Matrix| optimal_gains(&synapses, covariance, LEAK);
        let prior = if evidence.covariances.len() == 1 {
            None
        } else {
            let gains: Vec<Vec<f64>> = evidence.covariances.iter().map(gains_for).collect::<Result<_>>()?;
            Some(GainPrior::of(&gains))
        };
        Ok(Whitener::new(synapses, settings)?.fitted(evidence.learned(), prior))
    }

    /// Trains a whitener for each of several groups of channels, one after another; see [`Self::fit`]. The number of
    /// interneurons is that of each group.
    ///
    /// # Errors
    /// As for [`Self::fit`], and when the groups do not hold each of the channels 0, 1, 2, … once, or synapses are given.
    pub fn fit_groups<T: Real>(
        &self,
        groups: &[Vec<usize>],
        settings: &WhitenerSettings,
        rng: &mut (impl Rng + ?Sized),
        mut watch: impl FnMut(LearningProgress) -> ControlFlow<()>,
    ) -> Result<GroupedWhitener<T>> {
        let channels = require_partition(groups.iter().map(Vec::as_slice))?;
        if let Some(other) = self.moments.iter().map(Moments::channels).find(|&found| found != channels) {
            let expected = format!("groups of all {other} channels");
            return Err(Error::shape("groups", expected, format!("{channels} channels")));
        }
        if matches!(self.synapses, TrainingSynapses::Given(_)) {
            let reason = "synapses can be given only where all channels are in one group";
            return Err(Error::Incompatible { argument: "synapses".into(), reason });
        }
        let mut whiteners = Vec::with_capacity(groups.len());
        for own in groups {
            let moments = self.moments.iter().map(|moments| moments.select(own)).collect::<Result<_>>()?;
            let training = Self { moments, ..self.clone() };
            whiteners.push((own.clone(), training.fit(settings.clone(), rng, &mut watch)?));
        }
        GroupedWhitener::new(whiteners)
    }

    /// Before anything is allocated: of the contexts, and of learning where there are several.
    fn require_room(&self) -> Result<()> {
        let channels = self.moments.first().map_or(0, Moments::channels);
        let interneurons = self.interneurons.unwrap_or(match &self.synapses {
            TrainingSynapses::Given(synapses) => synapses.columns(),
            TrainingSynapses::Eigenbasis | TrainingSynapses::Random => channels,
        });
        require_square("channels", channels)?;
        require_learning(channels, interneurons, self.moments.len())?;
        require_whitener(channels, interneurons)
    }

    fn start(&self, evidence: &Evidence, rng: &mut (impl Rng + ?Sized)) -> Result<Matrix> {
        let n = evidence.mean.len();
        let k = self.interneurons.unwrap_or(n);
        match &self.synapses {
            TrainingSynapses::Eigenbasis => starts::mean_eigenbasis(&evidence.covariances, k, LEAK, rng),
            TrainingSynapses::Random => Ok(starts::orthogonal(n, k, rng)),
            TrainingSynapses::Given(synapses) => {
                let columns = self.interneurons.unwrap_or(synapses.columns());
                synapses.require_shape("synapses", n, columns)?;
                Ok(synapses.clone())
            }
        }
    }

    fn learned(
        &self,
        start: Matrix,
        evidence: &Evidence,
        mut watch: impl FnMut(LearningProgress) -> ControlFlow<()>,
    ) -> Result<Matrix> {
        if self.rule == TrainingRule::None || evidence.covariances.len() == 1 || start.columns() == 0 {
            return Ok(start);
        }
        let covariances = evidence.covariances.clone();
        let mut learner = SynapseLearner::new(start, covariances, LEAK, SynapseLearner::GAIN_COST)?;
        for _ in 0..MOST_ITERATIONS {
            let progress = learner.advance(1);
            if watch(progress).is_break() || progress.state != LearningState::Learning {
                break;
            }
        }
        Ok(learner.synapses().clone())
    }
}

impl GainPrior {
    /// Of the gains of several contexts; the covariance divides by their number.
    fn of(gains: &[Vec<f64>]) -> Self {
        let (contexts, k) = (gains.len() as f64, gains.first().map_or(0, Vec::len));
        let mean: Vec<f64> = (0..k).map(|i| gains.iter().map(|g| g[i]).sum::<f64>() / contexts).collect();
        let covariance = Matrix::from_fn(k, k, |i, j| {
            gains.iter().map(|g| (g[i] - mean[i]) * (g[j] - mean[j])).sum::<f64>() / contexts
        });
        Self { mean, covariance }
    }
}

impl Evidence {
    fn new(moments: &[Moments], floor: f64) -> Result<Self> {
        let mut pooled = Moments::new(moments.first().map_or(0, Moments::channels));
        for moments in moments {
            pooled.merge(moments)?;
        }
        if moments.is_empty() || pooled.channels() == 0 {
            return Err(Error::shape("contexts", "at least one context with one channel", "none"));
        }
        // Contexts count alike, however many samples they have.
        let covariances: Vec<Matrix> = moments.iter().map(Moments::covariance).collect::<Result<_>>()?;
        let n = pooled.channels();
        let variances: Vec<f64> = (0..n)
            .map(|j| covariances.iter().map(|c| c[(j, j)]).sum::<f64>() / covariances.len() as f64)
            .collect();
        let (scale, dead) = scale_and_dead(&variances, floor)?;
        let normalise = |covariance: &Matrix| lifted(&normalised(covariance, scale, &dead), floor);
        Ok(Self {
            mean: pooled.mean().to_vec(),
            covariances: covariances.iter().map(normalise).collect::<Result<_>>()?,
            count: pooled.count() as f64,
            pooled: pooled.covariance()?,
            dead,
        })
    }

    fn learned(self) -> Learned {
        // A stack of covariances does not say how many samples it stands for; it is believed like a few at least.
        let count = self.count.max(usual_shortest(self.mean.len()));
        let (n, pooled) = (self.mean.len(), self.pooled);
        let covariance = Matrix::from_fn(n, n, |i, j| f64::midpoint(pooled[(i, j)], pooled[(j, i)]));
        Learned { count, mean: self.mean, covariance, dead: self.dead }
    }
}

/// The root of the mean variance of the channels that vary, and which do not.
fn scale_and_dead(variances: &[f64], floor: f64) -> Result<(f64, Vec<bool>)> {
    let mean = variances.iter().sum::<f64>() / variances.len() as f64;
    if !(mean > 0.0 && mean.is_finite()) {
        let expected = "samples of which at least one channel varies within the range of its precision";
        return Err(Error::out_of_range("samples", expected, mean));
    }
    let dead: Vec<bool> = variances.iter().map(|&variance| variance <= floor * floor * mean).collect();
    let live = dead.iter().filter(|dead| !**dead).count() as f64;
    Ok(((mean * variances.len() as f64 / live).sqrt(), dead))
}

/// In units of the scale; a dead channel is taken to be an ordinary one that is on its own.
fn normalised(covariance: &Matrix, scale: f64, dead: &[bool]) -> Matrix {
    Matrix::from_fn(dead.len(), dead.len(), |i, j| match (dead[i] || dead[j], i == j) {
        (true, true) => 1.0,
        (true, false) => 0.0,
        (false, _) => covariance[(i, j)] / scale / scale,
    })
}

/// The same covariance with every eigenvalue at the square of the floor or above.
fn lifted(covariance: &Matrix, floor: f64) -> Result<Matrix> {
    let (n, least) = (covariance.rows(), floor * floor);
    require_symmetric("covariance", covariance)?;
    let failed = Error::NotPositiveDefinite {
        argument: "covariance".into(),
        expected: "a matrix with eigenvectors",
        test: Test::Overflow,
    };
    let (values, vectors) = symmetric_eigen(covariance).ok_or(failed)?;
    if values.iter().all(|&value| value >= least) {
        return Ok(covariance.clone());
    }
    let scaled = Matrix::from_fn(n, n, |i, j| vectors[(i, j)] * values[j].max(least));
    let lifted = product(scaled.view(), vectors.view().transposed());
    Ok(Matrix::from_fn(n, n, |i, j| f64::midpoint(lifted[(i, j)], lifted[(j, i)])))
}
