//! Whitens a real stream: input that has not been checked or cleaned, and whose covariance changes.
//!
//! What it does to a row of input, from left to right:
//!
//! ```text
//! screen (bad? silent? wild? dead channels?) -> map r = F (x − mean) -> output
//!                                                  ^                       |
//!                              the covariance      |                       v
//!                              in force      estimate <- weigh <- a block of rows
//! ```
//!
//! Every row is answered at once, with the map as it stands. All state moves at the end of a block of a few rows, so how
//! a stream is cut into calls changes no bit. The paper's circuit is what explains the map: its synapses are learned in
//! training, and its gains are those that are best for the covariance in force.

mod answering;
#[cfg(feature = "model-file")]
mod checkpoint;
mod frozen;
mod groups;
mod imagination;
mod inverse;
mod map;
mod reversible;
mod screen;
mod settings;
mod status;
mod training;

pub use frozen::FrozenWhitener;
pub use groups::GroupedWhitener;
pub use screen::Exclusion;
pub(crate) use screen::{leave_out_wild, usable};
pub(crate) use settings::MOST_TOGETHER;
pub use settings::{BadSamples, Follow, Span, TimeConstants, WhitenerSettings};
pub use status::{MemoryWeight, SampleCounts, WhitenerStatus};
pub use training::{TrainingRule, TrainingSynapses, WhitenerTraining};

use self::answering::Block;
use self::imagination::Imagination;
use self::map::Map;
use self::screen::Screen;
use crate::circuit::{Circuit, Synapses, require_rows};
use crate::error::{Error, Result, require_length};
use crate::estimator::{Estimator, Rows};
use crate::matrix::Matrix;
use crate::offline::{Offline, OfflineGains};
use crate::optimal_gains::optimal_gains;
use crate::real::Real;
use crate::rules::{Rules, SynapseRule, UnitNorm};
use crate::running_error::RunningError;
use crate::size::require_whitener;
use crate::spheres::to_unit_columns;

/// A whitener that can be left running.
///
/// It answers each row with the symmetric root of the covariance in force, which it estimates from the stream. Whatever
/// comes in, the map stays positive definite and the output finite. Bad samples and silence teach it nothing, wild
/// samples only if they go on; dead channels are left out until they come back.
///
/// ```
/// use leukos::{Matrix, Whitener, WhitenerSettings};
///
/// let mut whitener = Whitener::<f64>::new(Matrix::identity(2), WhitenerSettings::default())?;
/// let stimuli: Vec<f64> = (0..4000).map(|i| f64::from(i * 7919 % 1000) - 300.0).collect();
/// let mut responses = vec![0.0; stimuli.len()];
/// whitener.whiten(&stimuli, &mut responses)?;
/// assert_eq!(whitener.status().samples.seen, 2000);
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone)]
pub struct Whitener<T: Real = f64> {
    settings: WhitenerSettings,
    pace: TimeConstants,
    /// The number of rows in a block.
    rows_together: usize,
    /// W of the circuit, with columns of unit length.
    synapses: Matrix,
    prior: Option<GainPrior>,
    /// What the whitener was fitted to: a count of rows, and their mean and covariance in units of the input.
    learned: Option<Learned>,
    /// The power of two in which rows are measured, so that no number is too large or too small, and no bit depends on
    /// the units of the input by more than that.
    unit: f64,
    /// Whether the estimator has begun.
    started: bool,
    estimator: Estimator,
    map: Map<T>,
    screen: Screen,
    /// Which channels take part, and what is imagined of the others.
    live: Vec<bool>,
    imagination: Option<Imagination>,
    block: Block<T>,
    /// The last row of output.
    last: Vec<T>,
    /// Rows since synapses have learned.
    unlearned: f64,
    adapting: bool,
    samples: SampleCounts,
    responses: RunningError,
    /// One response in so many is measured.
    thinning: u64,
}

/// What a whitener was fitted to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Learned {
    pub count: f64,
    pub mean: Vec<f64>,
    pub covariance: Matrix,
    /// Channels that did not vary.
    pub dead: Vec<bool>,
}

/// Mean and covariance of the gains that were best in the contexts of a training set.
#[derive(Clone, Debug, PartialEq)]
pub struct GainPrior {
    /// The mean, one number for each interneuron.
    pub mean: Vec<f64>,
    /// The covariance (K × K).
    pub covariance: Matrix,
}

/// The leak of the circuit, relative to the scale of the input.
pub(crate) const LEAK: f64 = 1.0;
/// The estimate of the error is only for display, so with more than 16 channels it uses one row in several: one in
/// two up to 32 channels, and so on.
const CHANNELS_PER_THINNING: usize = 16;
/// The error is that of so many rows, and at least ten for each channel.
const ROWS_OF_ERROR: f64 = 1000.0;
/// A channel is left out after so many samples without use at least.
const LEAST_CHANNEL_PATIENCE: f64 = 100.0;
/// The map is made anew when this part of the covariance in force is new, for each part by which that is uncertain by
/// itself;
const UNCERTAIN: f64 = 1.5;
/// but what rests on few rows follows what changes fast, and waits only for this, times the root of its rows for each
/// channel;
const FOLLOWS: f64 = 0.02;
/// and it is not made anew for less than this.
const LEAST_MOVED: f64 = 0.03;
/// A whitener without training begins with so many rows.
const FIRST_ROWS: usize = 8;
/// The largest step of the synapses, where rows are many and their time constant is short.
const LARGEST_STEP: f64 = 0.1;

impl<T: Real> Whitener<T> {
    /// A whitener with these synapses (N × K, each column rescaled to unit length) that knows nothing of its stream yet;
    /// its first eight responses are zero.
    ///
    /// # Errors
    /// When a setting is out of range, a weight is not finite, or a column has no direction.
    pub fn new(mut synapses: Matrix, settings: WhitenerSettings) -> Result<Self> {
        settings.validate()?;
        let (n, k) = (synapses.rows(), synapses.columns());
        require_whitener(n, k)?;
        if n == 0 {
            return Err(Error::shape("synapses", "at least one row (a channel)", "none"));
        }
        synapses.require_finite("synapses")?;
        to_unit_columns(&mut synapses)?;
        Self::around(synapses, settings)
    }

    /// A whitener that has seen nothing yet.
    fn around(synapses: Matrix, settings: WhitenerSettings) -> Result<Self> {
        let n = synapses.rows();
        let pace = settings.time_constants(n)?;
        let rows_together = settings.rows_together(n);
        let thinning = n.div_ceil(CHANNELS_PER_THINNING).max(1);
        let slow = (ROWS_OF_ERROR / thinning as f64).max(10.0 * n as f64);
        let patience = pace.shortest.max(LEAST_CHANNEL_PATIENCE);
        Ok(Self {
            estimator: Estimator::new(
                n,
                settings.time_constant.map(|_| pace.shortest),
                settings.floor,
                rows_together,
            ),
            pace,
            rows_together,
            prior: None,
            learned: None,
            unit: 1.0,
            started: false,
            map: Map::new(n),
            screen: Screen::new(n, samples(patience)),
            live: vec![true; n],
            imagination: None,
            block: Block::new(n, rows_together.max(FIRST_ROWS)),
            last: vec![T::ZERO; n],
            unlearned: 0.0,
            adapting: true,
            samples: SampleCounts::default(),
            responses: RunningError::new(n, slow)?,
            thinning: thinning as u64,
            synapses,
            settings,
        })
    }

    /// A whitener that begins with what is known; see [`crate::WhitenerTraining`].
    pub(crate) fn fitted(mut self, learned: Learned, prior: Option<GainPrior>) -> Self {
        for (channel, _) in learned.dead.iter().enumerate().filter(|(_, dead)| **dead) {
            self.screen.exclude(channel, Exclusion::Constant, learned.mean[channel]);
        }
        let power = mean_variance(&learned.covariance, &learned.dead);
        self.unit = unit_of(power);
        let (unit, n) = (self.unit, self.channels());
        let mean: Vec<f64> = learned.mean.iter().map(|mean| mean / unit).collect();
        let covariance = Matrix::from_fn(n, n, |i, j| match (learned.dead[i] || learned.dead[j], i == j) {
            // A channel that did not vary is taken to be an ordinary one that is on its own.
            (true, true) => power / unit / unit,
            (true, false) => 0.0,
            (false, _) => learned.covariance[(i, j)] / unit / unit,
        });
        self.estimator.begin(learned.count, &mean, &covariance);
        (self.prior, self.learned, self.started) = (prior, Some(learned), true);
        self.change_channels();
        self.draw_map();
        self
    }

    /// Whitens rows of N numbers into as many rows, and adapts on the way. Nothing is allocated, except when a channel is
    /// left out or comes back, a context begins, or synapses learn, and for calls with more rows of a block than any
    /// before.
    ///
    /// # Errors
    /// When `stimuli` is not a whole number of rows or `responses` not of the same length; or, under
    /// [`BadSamples::Error`], at the first bad sample: the rows before it have been whitened then, and the whitener
    /// continues after it as if it had not been there.
    pub fn whiten(&mut self, stimuli: &[T], responses: &mut [T]) -> Result<()> {
        let n = self.channels();
        let rows = require_rows("stimuli", stimuli.len(), n)?;
        require_length("responses", responses, stimuli.len(), "one for each of the stimuli")?;
        let mut row = 0;
        while row < rows {
            let span = (rows - row).min(self.rows_together - self.block.rows);
            let (from, to) = (row * n, (row + span) * n);
            row += self.take_in(&stimuli[from..to], &mut responses[from..to], row)?;
        }
        Ok(())
    }

    /// Learns from the rows of a block, and begins the next one.
    fn finish_block(&mut self) {
        if !self.started {
            self.block.rows = 0;
            self.start();
            return;
        }
        if !self.block.wild.is_empty() {
            let learned = self.block.wild.iter().filter(|wild| !**wild).count();
            self.estimator.learn(&Rows {
                values: &self.block.values,
                wild: &self.block.wild,
                imagined: self.imagination.as_ref().map(|imagination| &imagination.rest),
                powers: &self.block.powers,
                log_determinant: self.map.log_determinant,
            });
            self.unlearned += learned as f64;
            self.samples.switches = self.estimator.changes();
            self.estimator.mean_into((self.rows_together as f64 - 1.0) / 2.0, &mut self.map.mean);
        }
        self.block.reset();
        if self.leave_out_useless() {
            self.change_channels();
        }
        let certain = (self.estimator.rows_in_force() / self.channels() as f64).sqrt();
        if self.estimator.moved() >= (FOLLOWS * certain).min(UNCERTAIN / certain).max(LEAST_MOVED) {
            self.draw_map();
            self.learn_synapses();
        }
    }

    /// Begins with the first rows, if they vary.
    fn start(&mut self) {
        let n = self.channels();
        let rows = self.block.values.len() / n;
        if rows < FIRST_ROWS {
            return;
        }
        let first = self.block.values[..n].to_vec();
        let average = |of: &dyn Fn(usize, f64) -> f64, j: usize| {
            self.block.values.iter().skip(j).step_by(n).map(|&s| of(j, s)).sum::<f64>() / rows as f64
        };
        let mean: Vec<f64> = (0..n).map(|j| first[j] + average(&|j, s| s - first[j], j)).collect();
        let variances: Vec<f64> = (0..n).map(|j| average(&|j, s| (s - mean[j]).powi(2), j)).collect();
        let varying = variances.iter().filter(|variance| **variance > 0.0).count();
        let power = variances.iter().sum::<f64>() / varying.max(1) as f64;
        if !(power > 0.0 && power.is_finite()) {
            self.block.forget();
            return;
        }
        let unit = unit_of(power);
        let known = |variance: f64| if variance > 0.0 { variance } else { power };
        let variances: Vec<f64> = variances.iter().map(|&variance| known(variance) / unit / unit).collect();
        let mean: Vec<f64> = mean.iter().map(|mean| mean / unit).collect();
        self.block.values.iter_mut().for_each(|s| *s /= unit);
        self.unit *= unit;
        // Until there are more rows than channels a channel's variance says more than its correlations.
        self.estimator.begin(n as f64, &mean, &Matrix::diagonal(&variances));
        self.started = true;
        self.change_channels();
        let Block { values, wild, powers, .. } = &self.block;
        self.estimator.learn(&Rows { values, wild, imagined: None, powers, log_determinant: None });
        self.estimator.mean_into(0.0, &mut self.map.mean);
        self.block.reset();
        self.draw_map();
    }

    /// Leaves out channels that have been useless for too long. Returns whether there was one.
    fn leave_out_useless(&mut self) -> bool {
        let mut found = false;
        while let Some((channel, why)) = self.screen.useless() {
            let reference = self.screen.reference(channel);
            self.screen.exclude(channel, why, reference);
            self.samples.exclusions += 1;
            found = true;
        }
        found
    }

    /// Takes note that other channels take part from now on.
    fn change_channels(&mut self) {
        self.screen.live_into(&mut self.live);
        if !self.started {
            return;
        }
        let (mean, covariance) = self.estimator.in_force();
        self.imagination = Imagination::new(&self.live, &mean, &covariance, self.settings.floor);
        self.estimator.set_live(&self.live);
        self.draw_map();
    }

    /// Makes the map that of the covariance in force.
    fn draw_map(&mut self) {
        let Self { estimator, map, screen, live, settings, unit, .. } = self;
        map.follow(estimator.covariance_in_force(), live, settings.floor, settings.strength);
        estimator.settle();
        // What moves is measured by what a channel has shown for long, not by channels in other units.
        let floor = settings.floor;
        for (channel, usual) in estimator.usual_deviations().enumerate() {
            let usual = usual.max(floor * map.scale).min(map.scale);
            screen.set_tolerance(channel, floor * usual * *unit);
        }
        if self.block.rows == 0 {
            self.estimator.mean_into((self.rows_together as f64 - 1.0) / 2.0, &mut self.map.mean);
        }
    }

    /// One step of Algorithm 2 with the best gains for the covariance in force, where synapses learn at all.
    fn learn_synapses(&mut self) {
        let Some(memory) = self.pace.synapses else { return };
        let rate = (self.unlearned / memory).min(LARGEST_STEP);
        if rate == 0.0 || self.synapses.columns() == 0 {
            return;
        }
        let rules = Rules {
            synapses: SynapseRule::Hebbian { rate },
            unit_norm: UnitNorm::Projected,
            ..Rules::frozen()
        };
        let covariance = self.covariance_in_units();
        let learned = self.circuit().and_then(|circuit| {
            let mut run = Offline::new(circuit, rules, vec![covariance], OfflineGains::Optimal)?;
            run.advance(&[0], 1, &mut ())?;
            Ok(run.into_circuit())
        });
        // Synapses that would lose M stay as they are: the map does not depend on them.
        if let Ok(circuit) = learned {
            self.synapses = circuit.synapses().feedback().clone();
        }
        self.unlearned = 0.0;
    }

    /// The covariance in force relative to the scale, with no direction below the floor; channels that are left out are
    /// white.
    fn covariance_in_units(&self) -> Matrix {
        self.map.covariance_in_units(self.settings.floor)
    }

    /// Stops adapting until [`Self::resume`]: rows are answered with the map as it is.
    pub fn pause(&mut self) {
        self.adapting = false;
    }

    /// Adapts again.
    pub fn resume(&mut self) {
        self.adapting = true;
    }

    /// Sets how strongly it whitens from now on; see [`WhitenerSettings::strength`].
    ///
    /// # Errors
    /// When the strength is not a number from 0 to 1.
    pub fn set_strength(&mut self, strength: f64) -> Result<()> {
        WhitenerSettings { strength, ..self.settings.clone() }.validate()?;
        self.settings.strength = strength;
        self.map.set_strength(self.settings.floor, strength);
        Ok(())
    }

    /// Sets what to do with samples that cannot be used, from now on.
    pub fn set_bad_samples(&mut self, bad_samples: BadSamples) {
        self.settings.bad_samples = bad_samples;
    }

    /// Says that a new context begins: what is in force counts only as much as a sample for each channel, and the next
    /// samples soon outweigh it.
    pub fn begin_context(&mut self) {
        if self.started {
            self.estimator.begin_context(self.channels() as f64);
            self.block.forget();
        }
    }

    /// Takes over what another whitener of the same channels has learned (synapses, prior, what it was fitted to), and
    /// goes on with its own stream where it is.
    ///
    /// # Errors
    /// When the other one has another number of channels.
    pub fn take_over<U: Real>(&mut self, other: &Whitener<U>) -> Result<()> {
        if other.channels() != self.channels() {
            let expected = format!("{} channels", self.channels());
            return Err(Error::shape("whitener", expected, format!("{} channels", other.channels())));
        }
        self.synapses = other.synapses.clone();
        (self.prior, self.learned) = (other.prior.clone(), other.learned.clone());
        self.unlearned = 0.0;
        Ok(())
    }

    /// Values of this size or larger, of either sign, are bad.
    pub fn largest(&self) -> f64 {
        self.limit()
    }

    /// How many samples there have been of each kind; cheaper than the whole [`Self::status`].
    pub fn samples(&self) -> SampleCounts {
        self.samples
    }

    /// The number of channels N.
    pub fn channels(&self) -> usize {
        self.synapses.rows()
    }

    /// The number of interneurons K.
    pub fn interneurons(&self) -> usize {
        self.synapses.columns()
    }

    /// The settings.
    pub fn settings(&self) -> &WhitenerSettings {
        &self.settings
    }

    /// The synapses W (N × K), with columns of unit length.
    pub fn synapses(&self) -> &Matrix {
        &self.synapses
    }

    /// The circuit that whitens the covariance in force as well as its synapses can, in units of [`Self::scale`].
    ///
    /// # Errors
    /// When no gains make M positive definite, which we have not met: the leak alone does.
    pub fn circuit(&self) -> Result<Circuit> {
        Circuit::new(Synapses::tied(self.synapses.clone())?, self.gains()?, LEAK)
    }

    /// The gains g that are best for the covariance in force; the mean of their prior, or 0, as long as nothing
    /// has varied.
    ///
    /// # Errors
    /// As for [`Self::circuit`].
    pub fn gains(&self) -> Result<Vec<f64>> {
        if self.synapses.columns() == 0 {
            return Ok(Vec::new());
        }
        if self.map.scale == 0.0 {
            let unknown = || vec![0.0; self.synapses.columns()];
            return Ok(self.prior.as_ref().map_or_else(unknown, |prior| prior.mean.clone()));
        }
        optimal_gains(&self.synapses, &self.covariance_in_units(), LEAK)
    }

    /// The mean that is taken off the input.
    pub fn mean(&self) -> Vec<f64> {
        self.map.mean.iter().map(|mean| mean * self.unit).collect()
    }

    /// σ, the root of the mean variance of the channels that take part; 0 as long as nothing has varied.
    pub fn scale(&self) -> f64 {
        self.map.scale * self.unit
    }

    /// The prior over gains from a training set, if there was one with contexts.
    pub fn prior(&self) -> Option<&GainPrior> {
        self.prior.as_ref()
    }
}

/// The power of two nearest to the root of a variance.
fn unit_of(variance: f64) -> f64 {
    let exponent = (variance.log2() / 2.0).round().clamp(-500.0, 500.0);
    exponent.exp2()
}

/// The mean variance of the channels that vary.
fn mean_variance(covariance: &Matrix, dead: &[bool]) -> f64 {
    let own = (0..dead.len()).filter(|&j| !dead[j]);
    let (sum, count) = own.fold((0.0, 0.0), |(sum, count), j| (sum + covariance[(j, j)], count + 1.0));
    sum / f64::max(count, 1.0)
}

/// A checked time, in whole samples.
#[allow(clippy::cast_sign_loss)]
fn samples(time: f64) -> u64 {
    time.ceil() as u64
}
