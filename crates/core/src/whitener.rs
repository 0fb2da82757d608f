//! Whitens a real stream: the paper's circuit with safeguards, for input that has not been checked or cleaned.
//!
//! What it does to a row of input, from left to right:
//!
//! ```text
//! screen (bad? saturated?) -> condition x = (s − mean)/σ -> respond r = M⁻¹x -> output (1 − strength) x + strength r
//!                                                               |
//!              ordinary, loud, quiet or silent? <- |r|²/N ------+
//!                    | ordinary only
//!                    v
//!         mean, gains, synapses, after every `update_every` rows
//! ```
//!
//! All state moves at the end of a block of `update_every` rows, so the rows of a block are answered together, and how
//! a stream is cut into calls changes no bit.

mod answering;
mod block;
mod change;
mod channels;
#[cfg(feature = "model-file")]
mod checkpoint;
mod conditioning;
mod frozen;
mod groups;
mod guarded_circuit;
mod inverse;
mod learning;
mod plasticity;
mod recalibration;
mod reversible;
mod settings;
mod status;
mod stillness;
mod surprise;
mod training;

pub use channels::Exclusion;
pub use frozen::FrozenWhitener;
pub use groups::GroupedWhitener;
pub use settings::{BadSamples, Span, TimeConstants, WhitenerSettings};
pub use status::{GuardCounts, SampleCounts, WhitenerStatus};
pub use training::{TrainingRule, TrainingSynapses, WhitenerTraining};

use self::block::Block;
use self::change::Change;
use self::channels::Channels;
use self::conditioning::{Calibration, GatheredRows};
use self::guarded_circuit::GuardedCircuit;
use self::plasticity::Plasticity;
use self::recalibration::{Former, LATEST_ROWS};
use self::stillness::Stillness;
use self::surprise::Surprise;
use crate::circuit::{Circuit, require_rows};
use crate::error::{Error, Result, require_length};
use crate::matrix::Matrix;
use crate::real::Real;
use crate::running_error::RunningError;
use crate::size::require_whitener;

/// A whitener that can be left running.
///
/// Its circuit is that of the paper, in units in which the input has a scale of one, and comes to rest where the
/// paper's does: E\[zᵢ²\] = ‖wᵢ‖². On the way there it takes steps that no input can turn into a divergence: M stays
/// positive definite and the output finite. Bad samples, outliers and silence teach it nothing; dead channels are
/// left out until they come back; a lasting change of mean or scale is detected, and both are estimated again.
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
    circuit: GuardedCircuit<T>,
    calibration: Calibration,
    /// Rows gathered for the first calibration; none once that is done.
    gathering: Option<GatheredRows>,
    /// The latest rows, for the next one.
    latest: GatheredRows,
    /// The calibration before the last recalibration.
    former: Option<Former>,
    /// The state at the beginning of the present window of `stillness`, and at that of the last complete one.
    window_start: Former,
    settled: Former,
    channels: Channels,
    surprise: Surprise,
    change: Change,
    /// Whether something in this block suggests that an earlier state may fit better.
    look_back: bool,
    stillness: Stillness,
    /// `None` if the synapses do not learn.
    plasticity: Option<Plasticity>,
    block: Block<T>,
    prior: Option<GainPrior>,
    /// The scale of the first calibration.
    anchor: f64,
    /// Whether all of M was far larger or smaller than at the start when the last window ended.
    off_scale: bool,
    /// The sensitivities at the start, when the leak was in proportion.
    sensitivities: Vec<f64>,
    /// Ordinary samples since the whitener last had reason to adapt quickly.
    age: u64,
    /// The number of samples behind the running mean.
    mean_age: u64,
    adapting: bool,
    samples: SampleCounts,
    guard: GuardCounts,
    responses: RunningError,
    inputs: RunningError,
}

/// Mean and covariance of the gains that were best in the contexts of a training set.
#[derive(Clone, Debug, PartialEq)]
pub struct GainPrior {
    /// The mean, one number for each interneuron.
    pub mean: Vec<f64>,
    /// The covariance (K × K).
    pub covariance: Matrix,
}

/// The estimates of covariances are only for display, so with more than 16 channels they use one row in several: one in
/// two up to 32 channels, and so on.
const CHANNELS_PER_THINNING: usize = 16;
/// A channel is left out after one time constant without use, and this many samples at least.
const LEAST_CHANNEL_PATIENCE: u64 = 100;

impl<T: Real> Whitener<T> {
    /// A whitener with these synapses (N × K, each column rescaled to unit length) that takes its mean and scale from
    /// the first samples of the stream. Until then the output uses the estimates so far.
    ///
    /// # Errors
    /// When a setting is out of range, a weight is not finite, a column has no direction, or there are no gains for
    /// these synapses and this leak that whiten.
    pub fn new(synapses: Matrix, settings: WhitenerSettings) -> Result<Self> {
        settings.validate()?;
        let (n, k) = (synapses.rows(), synapses.columns());
        let spread = if k == 0 { 0.0 } else { n as f64 / k as f64 };
        let gains = vec![(1.0 - settings.leak) * spread.min(1.0); k];
        Self::assemble(synapses, gains, settings)
    }

    /// A whitener whose mean and scale are known; see [`crate::WhitenerTraining`].
    pub(crate) fn calibrated(mut self, mean: Vec<f64>, scale: f64) -> Self {
        self.calibration = Calibration { mean, scale };
        self.anchor = scale;
        self.gathering = None;
        self.mean_age = samples(self.pace.mean);
        self
    }

    /// The same with a prior over gains.
    pub(crate) fn with_prior(mut self, prior: GainPrior) -> Self {
        self.prior = Some(prior);
        self
    }

    pub(crate) fn assemble(synapses: Matrix, gains: Vec<f64>, settings: WhitenerSettings) -> Result<Self> {
        settings.validate()?;
        require_whitener(synapses.rows(), synapses.columns())?;
        let mut circuit = GuardedCircuit::new(synapses, gains, settings.leak, settings.floor)?;
        if settings.synapse_time_constant.is_some() {
            circuit.generalise();
        }
        circuit.reserve(settings.update_every.min(block::ROOM));
        Self::around(circuit, settings)
    }

    /// A whitener that has seen nothing yet.
    fn around(circuit: GuardedCircuit<T>, settings: WhitenerSettings) -> Result<Self> {
        let pace = settings.time_constants()?;
        let (n, k) = (circuit.circuit().neurons(), circuit.circuit().interneurons());
        if k < n && settings.leak < settings.floor {
            let expected =
                "at least the floor where there are fewer interneurons than channels: M is the leak there";
            return Err(Error::OutOfRange { argument: "leak".into(), expected, found: settings.leak });
        }
        let patience = samples(pace.patience).max(LATEST_ROWS as u64);
        let (learns, sensitivities) = (pace.synapses.is_some(), circuit.sensitivities().to_vec());
        let slow = (pace.gains / thinning(n) as f64).max(10.0 * n as f64);
        Ok(Self {
            pace,
            circuit,
            calibration: Calibration { mean: vec![0.0; n], scale: 0.0 },
            gathering: Some(GatheredRows::new(n, settings.calibration)),
            latest: GatheredRows::new(n, LATEST_ROWS),
            former: None,
            window_start: Former::blank(n, k),
            settled: Former::blank(n, k),
            channels: Channels::new(n, samples(pace.gains).max(LEAST_CHANNEL_PATIENCE)),
            surprise: Surprise::new(settings.outlier_limit, patience),
            change: Change::new(k, pace.gains),
            look_back: false,
            stillness: Stillness::new(n, patience),
            plasticity: pace.synapses.map(|_| Plasticity::new(n, pace.gains)).transpose()?,
            block: Block::new(n, k, settings.update_every, learns),
            prior: None,
            anchor: 0.0,
            off_scale: false,
            sensitivities,
            age: 0,
            mean_age: 0,
            adapting: true,
            samples: SampleCounts::default(),
            guard: GuardCounts::default(),
            responses: RunningError::new(n, slow)?,
            inputs: RunningError::new(n, slow)?,
            settings,
        })
    }

    /// Whitens rows of N numbers into as many rows, and adapts on the way. Nothing is allocated, except when a
    /// change of context, mean or scale is examined, and for calls with more rows of a block than any before.
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
            let span = self.span(rows - row);
            let (from, to) = (row * n, (row + span) * n);
            let done = self.take_in(&stimuli[from..to], &mut responses[from..to], row)?;
            row += done;
        }
        Ok(())
    }

    /// How many rows to answer together: up to the end of the block. While mean and scale are gathered they move at
    /// every row.
    fn span(&self, rows: usize) -> usize {
        if self.gathering.is_some() { 1 } else { rows.min(self.settings.update_every - self.block.rows) }
    }

    /// Stops adapting until [`Self::resume`]: rows are answered with mean, gains and synapses as they are.
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
        Ok(())
    }

    /// Sets what to do with samples that cannot be used, from now on.
    pub fn set_bad_samples(&mut self, bad_samples: BadSamples) {
        self.settings.bad_samples = bad_samples;
    }

    /// Says that a new context begins: the gains go to the mean of their prior, if there is one, and the next samples
    /// count as much as the first of a stream.
    pub fn begin_context(&mut self) {
        if let Some(prior) = &self.prior {
            self.circuit.set_gains(&prior.mean);
        }
        self.age = 0;
        self.change.restart();
        self.surprise.calm_down();
        self.block.forget();
    }

    /// How many samples there have been of each kind; cheaper than the whole [`Self::status`].
    pub fn samples(&self) -> SampleCounts {
        self.samples
    }

    /// The number of channels N.
    pub fn channels(&self) -> usize {
        self.calibration.mean.len()
    }

    /// The settings.
    pub fn settings(&self) -> &WhitenerSettings {
        &self.settings
    }

    /// The present circuit, in units of [`Self::scale`].
    pub fn circuit(&self) -> &Circuit<T> {
        self.circuit.circuit()
    }

    /// The gains g in double precision.
    pub fn gains(&self) -> &[f64] {
        self.circuit.gains()
    }

    /// The mean that is taken off the input.
    pub fn mean(&self) -> &[f64] {
        &self.calibration.mean
    }

    /// σ, by which the input is divided; 0 as long as nothing has varied.
    pub fn scale(&self) -> f64 {
        self.calibration.scale
    }

    /// The prior over gains from a training set, if there was one with contexts.
    pub fn prior(&self) -> Option<&GainPrior> {
        self.prior.as_ref()
    }
}

/// A checked time, in whole samples.
#[allow(clippy::cast_sign_loss)]
fn samples(time: f64) -> u64 {
    time.ceil() as u64
}

fn thinning(channels: usize) -> usize {
    channels.div_ceil(CHANNELS_PER_THINNING)
}
