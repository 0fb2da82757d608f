//! Whitens a real stream: the paper's circuit with safeguards, for input that nobody has looked at.
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

mod block;
mod change;
mod channels;
#[cfg(feature = "model-file")]
mod checkpoint;
mod conditioning;
mod guarded_circuit;
mod inverse;
mod plasticity;
mod settings;
mod status;
mod stillness;
mod surprise;
mod training;

pub use channels::Exclusion;
pub use settings::{BadSamples, Span, TimeConstants, WhitenerSettings};
pub use status::{GuardCounts, SampleCounts, WhitenerStatus};
pub use training::{TrainingRule, TrainingSynapses, WhitenerTraining};

use self::block::Block;
use self::change::Change;
use self::channels::{Channels, Limits, Row};
use self::conditioning::{Calibration, Rows, is_usable, median};
use self::guarded_circuit::{GainDrive, Guard, GuardedCircuit, SynapseDrive};
use self::plasticity::Plasticity;
use self::stillness::Stillness;
use self::surprise::{Level, Surprise, TRY_FORMER_AFTER};
use crate::circuit::{Circuit, require_rows};
use crate::error::{Error, Result, require_length};
use crate::kernels::inner;
use crate::matrix::Matrix;
use crate::real::Real;
use crate::running_error::RunningError;

/// A whitener that can be left running.
///
/// Its circuit is that of the paper, in units in which the input has a scale of one, and comes to rest where the
/// paper's does: E\[zᵢ²\] = ‖wᵢ‖². On the way there it takes steps that no input can turn into a divergence: M stays
/// positive definite and the output finite. Bad samples, outliers and silence teach it nothing; dead channels are
/// left out until they come back; a lasting change of mean or scale is noticed and taken over.
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
    gathering: Option<Rows>,
    /// The latest rows, for the next one.
    latest: Rows,
    /// What was in force before the last recalibration.
    former: Option<Former>,
    /// How things stood when the present window of `stillness` began, and when the last complete one did.
    window_start: Former,
    settled: Former,
    channels: Channels,
    surprise: Surprise,
    change: Change,
    /// Whether it has seen one in this block.
    changed: bool,
    stillness: Stillness,
    /// None where synapses stand still.
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
    /// Samples that the running mean stands on.
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

/// A calibration that may come back, with the gains that belong to it.
#[derive(Clone)]
struct Former {
    calibration: Calibration,
    gains: Vec<f64>,
}

impl Former {
    /// One that explains nothing.
    fn blank(n: usize, k: usize) -> Self {
        Self { calibration: Calibration { mean: vec![0.0; n], scale: 0.0 }, gains: vec![0.0; k] }
    }

    fn take(&mut self, calibration: &Calibration, gains: &[f64]) {
        self.calibration.mean.copy_from_slice(&calibration.mean);
        self.calibration.scale = calibration.scale;
        self.gains.copy_from_slice(gains);
    }
}

/// Medians over some rows: of |r|²/N, and over interneurons of their own medians of zᵢ², as of a Gaussian variance.
struct TypicalResponse {
    power: f64,
    along_interneurons: f64,
}

/// The first steps have the rate 1/10, and each the rate of a mean of all samples so far, until that is 1/τ.
const HEAD_START: u64 = 10;
/// The number of rows that a recalibration is made from.
const LATEST_ROWS: usize = 64;
/// The estimates of covariances take in one row of so many for each 16 channels: they are for people to read.
const CHANNELS_PER_THINNING: usize = 16;
/// Synapses learn from this many samples after a change of context on.
const SETTLED_AFTER: u64 = 100;
/// By what factor all axes of M may leave those of the start before the scale follows.
const WIDEST_AXIS: f64 = 4.0;
/// An earlier state explains the input if the log of |r|²/N is no larger: the factor 9.
const LARGEST_MISFIT: f64 = 2.2;
/// It must also explain the input clearly better than the present state.
const CLEARLY: f64 = 1.0;
/// After a change of context the mean is taken to stand on so many samples at most.
const MEAN_AFTER_CHANGE: u64 = 20;
/// A channel is left out after one time constant without use, and this many samples at least.
const LEAST_CHANNEL_PATIENCE: u64 = 100;
/// The median of a squared standard normal number.
const MEDIAN_SQUARE: f64 = 0.4549;

impl<T: Real> Whitener<T> {
    /// A whitener with these synapses (N × K, each column rescaled to unit length) that takes its mean and scale from
    /// the first samples of the stream. Until then it puts out what it can with what it has seen.
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
        let patience = samples(pace.patience).max(LATEST_ROWS as u64);
        let (learns, sensitivities) = (pace.synapses.is_some(), circuit.sensitivities().to_vec());
        let slow = (pace.gains / thinning(n) as f64).max(10.0 * n as f64);
        Ok(Self {
            pace,
            circuit,
            calibration: Calibration { mean: vec![0.0; n], scale: 0.0 },
            gathering: Some(Rows::new(n, settings.calibration)),
            latest: Rows::new(n, LATEST_ROWS),
            former: None,
            window_start: Former::blank(n, k),
            settled: Former::blank(n, k),
            channels: Channels::new(n, samples(pace.gains).max(LEAST_CHANNEL_PATIENCE)),
            surprise: Surprise::new(settings.outlier_limit, patience),
            change: Change::new(k, pace.gains),
            changed: false,
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

    /// Whitens rows of N numbers into as many rows, and adapts on the way. Nothing is allocated.
    ///
    /// # Errors
    /// When `stimuli` is not a whole number of rows or `responses` not of the same length; or, under
    /// [`BadSamples::Error`], at the first bad sample: the rows before it have been whitened then, and the whitener
    /// goes on after it as if it had not been there.
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

    /// Answers and learns from rows of one block. Returns how many it has taken in.
    fn take_in(&mut self, stimuli: &[T], responses: &mut [T], first: usize) -> Result<usize> {
        let n = self.channels();
        self.block.begin(stimuli.len() / n);
        self.circuit.reserve(stimuli.len() / n);
        let mut outcome = Ok(());
        for (row, s) in stimuli.chunks_exact(n).enumerate() {
            if row > 0 && self.channels.would_revive(s, &self.limits()) {
                // Rows that are answered together have the same channels.
                break;
            }
            match self.screen(s) {
                Row::Good => self.condition(s, row),
                Row::Bad { channel } if self.settings.bad_samples == BadSamples::Error => {
                    outcome = Err(unusable((first + row) * n + channel, s[channel].to_f64()));
                    break;
                }
                Row::Bad { .. } => {}
            }
            self.block.taken += 1;
        }
        self.answer(responses);
        let taken = self.block.taken;
        self.learn(stimuli);
        outcome.map(|()| taken)
    }

    fn screen(&mut self, s: &[T]) -> Row {
        let limits = Limits {
            saturation: self.settings.saturation.unwrap_or(f64::INFINITY),
            reach: reach::<T>(),
            calibration: &self.calibration,
            tolerance: self.settings.floor * self.calibration.scale,
        };
        let (row, revived) = self.channels.screen(s, &limits);
        if revived > 0 {
            self.samples.revivals += revived;
            self.mean_age = self.mean_age.min(MEAN_AFTER_CHANGE);
            self.block.mask_changed = true;
        }
        self.samples.seen += 1;
        if row != Row::Good {
            self.samples.bad += 1;
        }
        row
    }

    /// What a channel must move by to count as moving.
    fn tolerance(&self) -> f64 {
        self.settings.floor * self.calibration.scale
    }

    fn limits(&self) -> Limits<'_> {
        Limits {
            saturation: self.settings.saturation.unwrap_or(f64::INFINITY),
            reach: reach::<T>(),
            calibration: &self.calibration,
            tolerance: self.tolerance(),
        }
    }

    fn condition(&mut self, s: &[T], row: usize) {
        if self.gathering.is_some() {
            self.gather(s);
        }
        let (n, place) = (s.len(), self.block.good.len());
        self.block.good.push(row);
        let x = &mut self.block.x[place * n..(place + 1) * n];
        self.calibration.condition(s, &self.channels, x);
    }

    /// Takes a row into the first calibration. Until that is complete, mean and scale are those of the rows so far.
    fn gather(&mut self, s: &[T]) {
        let Some(rows) = &mut self.gathering else { return };
        let repeats = rows.last().is_some_and(|last| last.iter().zip(s).all(|(own, s)| *own == s.to_f64()));
        if repeats {
            return;
        }
        rows.push(s, &self.calibration.mean);
        rows.calibrate(&self.channels, &mut self.calibration);
        if !rows.is_full() {
            return;
        }
        if self.calibration.scale > 0.0 {
            self.mean_age = rows.len() as u64;
            self.anchor = self.calibration.scale;
            self.gathering = None;
        } else {
            rows.clear();
        }
    }

    /// Responds to the good rows of the block at hand, and writes all of them.
    fn answer(&mut self, responses: &mut [T]) {
        let n = self.channels();
        let (k, count) = (self.circuit.gains().len(), self.block.good.len());
        let Block { x, r, z, .. } = &mut self.block;
        self.circuit.respond(&x[..count * n], &mut r[..count * n], &mut z[..count * k]);
        let mut place = 0;
        for (row, out) in responses.chunks_exact_mut(n).take(self.block.taken).enumerate() {
            if self.block.good.get(place) == Some(&row) {
                self.mix(place, out);
                self.block.last.copy_from_slice(out);
                place += 1;
            } else {
                fill_bad(self.settings.bad_samples, &self.block.last, out);
            }
        }
    }

    /// The output (1 − s) x + s r of the channels that take part.
    fn mix(&self, place: usize, out: &mut [T]) {
        let strength = T::from_f64(self.settings.strength);
        let (x, r) = self.block.row(place);
        for (j, out) in out.iter_mut().enumerate() {
            let mixed = if strength == T::ONE { r[j] } else { (T::ONE - strength) * x[j] + strength * r[j] };
            *out = if self.channels.is_live(j) { mixed } else { T::ZERO };
        }
    }

    /// Takes note of the rows just answered, and moves everything at the end of a block.
    fn learn(&mut self, stimuli: &[T]) {
        let n = self.channels();
        for place in 0..self.block.good.len() {
            let row = self.block.good[place];
            let s = &stimuli[row * n..(row + 1) * n];
            self.note(s, place);
        }
        if self.gathering.is_some() {
            return;
        }
        self.block.rows += self.block.taken;
        if self.block.rows >= self.settings.update_every {
            self.update();
            self.block.reset();
        }
    }

    fn note(&mut self, s: &[T], place: usize) {
        let (n, tolerance) = (s.len(), self.tolerance());
        let silent = self.channels.watch(s, tolerance);
        if self.gathering.is_some() || !self.adapting {
            return;
        }
        if silent {
            self.samples.silent += 1;
            return;
        }
        self.watch_variation(s, place);
        let r = &self.block.r[place * n..(place + 1) * n];
        let power = inner(r, r).to_f64() / self.channels.live_count().max(1) as f64;
        let level = self.surprise.judge(power);
        if self.surprise.learns_from(level) {
            self.note_ordinary(place, power);
        } else if level == Level::Loud {
            self.samples.outliers += 1;
        } else {
            self.samples.quiet += 1;
        }
    }

    /// Keeps the latest rows, and the variance of a long window of them.
    fn watch_variation(&mut self, s: &[T], place: usize) {
        self.latest.push(s, &self.calibration.mean);
        if self.stillness.begins() {
            let power = self.power();
            self.stillness.begin(power);
            self.window_start.take(&self.calibration, self.circuit.gains());
        }
        let (x, _) = self.block.row(place);
        self.stillness.see(x.iter().map(|x| x.to_f64()));
    }

    fn note_ordinary(&mut self, place: usize, power: f64) {
        self.samples.learned += 1;
        self.block.add(place, power);
        if let Some(plasticity) = &mut self.plasticity {
            plasticity.see(self.block.row(place).1);
        }
        if self.change.see(self.block.inputs(place)) {
            self.samples.switches += 1;
            self.age = 0;
            self.mean_age = self.mean_age.min(MEAN_AFTER_CHANGE);
            self.changed = true;
        }
        if self.samples.learned.is_multiple_of(thinning(self.channels()) as u64) {
            // A row that ran over is left out of the estimates.
            let (x, r) = self.block.row(place);
            let _ = self.inputs.update(x);
            let _ = self.responses.update(r);
        }
    }

    /// Moves everything at the end of a block.
    fn update(&mut self) {
        if !self.adapting {
            return;
        }
        while let Some((channel, why)) = self.channels.useless() {
            let variance = self.circuit.implied_variance(channel);
            let reference = self.channels.reference(channel);
            self.channels.exclude(channel, why, reference, variance);
            self.samples.exclusions += 1;
            self.block.mask_changed = true;
        }
        if self.block.mask_changed {
            self.imagine_absent();
        }
        let verdict = self.stillness.verdict();
        if verdict.is_some() {
            std::mem::swap(&mut self.settled, &mut self.window_start);
        }
        match verdict {
            Some(variance) if self.surprise.is_silence(variance) => {
                // What the gains have learned from a window without variation is wrong.
                self.circuit.set_gains(&self.settled.gains);
                self.recalibrate();
            }
            Some(_) => self.follow_scale(),
            None if self.surprise.is_for_good() => self.recalibrate(),
            None if self.surprise.suggests_former() || self.changed => self.try_former(),
            None => {}
        }
        self.changed = false;
        if self.block.count > 0 {
            self.move_circuit();
            self.move_mean();
        }
    }

    fn imagine_absent(&mut self) {
        self.block.scratch.clear();
        self.block.scratch.extend(self.channels.imagined());
        self.circuit.imagine(&self.block.scratch);
        self.block.mask_changed = false;
    }

    fn move_circuit(&mut self) {
        let count = self.block.count;
        let rate = (1.0 / self.pace.gains).max(1.0 / (HEAD_START + self.age) as f64);
        self.age += count;
        self.block.finish_squares();
        let gains = GainDrive { squares: &self.block.squares, pull: rate * count as f64 };
        let synapses = self.pace.synapses.filter(|_| self.is_settled()).map(|time_constant| SynapseDrive {
            correlations: &self.block.correlations,
            weight: self.block.weight,
            rate: 1.0 / time_constant,
        });
        match self.circuit.step(gains, synapses) {
            Guard::Passed => {}
            Guard::Corrected => self.guard.corrected += 1,
            Guard::Shortened => self.guard.shortened += 1,
            Guard::Refused => self.guard.refused += 1,
        }
    }

    /// Whether the responses are white enough to learn synapses from: where a direction is empty, or just changing, the
    /// correlations tell nothing about what contexts share.
    fn is_settled(&self) -> bool {
        let permitted = self.plasticity.as_ref().is_some_and(|plasticity| plasticity.permitted);
        permitted && self.age >= SETTLED_AFTER && self.channels.live_count() == self.channels()
    }

    fn move_mean(&mut self) {
        self.mean_age += self.block.count;
        let rate = (1.0 / self.pace.mean).max(1.0 / self.mean_age as f64).min(1.0 / self.block.count as f64);
        for (mean, sum) in self.calibration.mean.iter_mut().zip(&self.block.sums) {
            *mean += rate * self.calibration.scale * sum;
        }
    }

    /// The input has changed for good: takes mean and scale from the latest rows.
    fn recalibrate(&mut self) {
        let before = self.calibration.clone();
        let mut fresh = before.clone();
        self.latest.calibrate(&self.channels, &mut fresh);
        fresh.scale = before.scale;
        let factor = self.response_to_latest(&fresh, LATEST_ROWS).along_interneurons.sqrt();
        if !(factor > 0.0 && factor.is_finite()) {
            // Nothing varies: silence, however long, is no new scale.
            self.surprise.calm_down();
            return;
        }
        if !self.surprise.is_ordinary(factor * factor) {
            fresh.scale = self.near_anchor(before.scale * factor);
        }
        self.former = Some(Former { calibration: before, gains: self.circuit.gains().to_vec() });
        let power = self.response_to_latest(&fresh, LATEST_ROWS).power;
        self.adopt(fresh);
        if !self.surprise.is_ordinary(power) {
            self.surprise.give_in();
        }
    }

    fn adopt(&mut self, calibration: Calibration) {
        self.calibration = calibration;
        self.age = 0;
        self.change.restart();
        self.stillness.restart();
        self.mean_age = self.latest.len() as u64;
        self.block.forget();
        self.surprise.calm_down();
        self.samples.recalibrations += 1;
    }

    /// Where all of M has grown or shrunk, lets the scale follow, so that the leak keeps its proportion to it.
    fn follow_scale(&mut self) {
        let ratios =
            self.circuit.sensitivities().iter().zip(&self.sensitivities).map(|(now, start)| start / now);
        let (least, most) =
            ratios.clone().fold((f64::INFINITY, 0.0), |(a, b), x| (f64::min(a, x), f64::max(b, x)));
        let off = least > WIDEST_AXIS || most < 1.0 / WIDEST_AXIS;
        // For good is what has lasted for a whole window.
        if !std::mem::replace(&mut self.off_scale, off) || !off {
            return;
        }
        let logs: f64 = ratios.map(f64::ln).sum();
        let factor = (logs / self.sensitivities.len() as f64).exp();
        let scale = self.near_anchor(self.calibration.scale * factor);
        if self.circuit.rescale(scale / self.calibration.scale) {
            self.adopt(Calibration { scale, ..self.calibration.clone() });
        }
    }

    /// The scale of the first calibration where this one is not far from it: contexts differ in size too.
    fn near_anchor(&self, scale: f64) -> f64 {
        let ratio = scale / self.anchor;
        if (1.0 / WIDEST_AXIS..=WIDEST_AXIS).contains(&ratio) || !is_usable(scale) {
            self.anchor
        } else {
            scale
        }
    }

    /// Goes back to an earlier calibration or earlier gains if these explain the latest rows.
    fn try_former(&mut self) {
        let present = Former { calibration: self.calibration.clone(), gains: self.circuit.gains().to_vec() };
        let candidates = [Some(self.window_start.clone()), Some(self.settled.clone()), self.former.clone()];
        let misfit = |whitener: &mut Self, state: &Former| {
            let power = whitener.response_to_latest(&state.calibration, TRY_FORMER_AFTER as usize).power;
            power.ln().abs()
        };
        let mut least = (misfit(self, &present) - CLEARLY).min(LARGEST_MISFIT);
        let mut best = None;
        for candidate in candidates.into_iter().flatten() {
            let valid = self.circuit.set_gains(&candidate.gains);
            let own = misfit(self, &candidate);
            if valid && own < least {
                (least, best) = (own, Some(candidate));
            }
        }
        let Some(best) = best else {
            self.circuit.set_gains(&present.gains);
            return;
        };
        self.circuit.set_gains(&best.gains);
        self.adopt(best.calibration);
        self.former = Some(present);
    }

    /// How large the responses to the latest rows would be.
    fn response_to_latest(&mut self, calibration: &Calibration, rows: usize) -> TypicalResponse {
        let (n, k) = (self.channels(), self.circuit.gains().len());
        let mut powers = Vec::with_capacity(rows);
        let mut squares: Vec<Vec<f64>> = vec![Vec::with_capacity(rows); k];
        for row in self.latest.latest(rows) {
            // One row at a time through the first places of the block's buffers.
            let s: Vec<T> = row.iter().map(|&s| T::from_f64(s)).collect();
            let Block { x, r, z, .. } = &mut self.block;
            calibration.condition(&s, &self.channels, &mut x[..n]);
            self.circuit.respond(&x[..n], &mut r[..n], &mut z[..k]);
            powers.push(inner(&r[..n], &r[..n]).to_f64() / n as f64);
            squares.iter_mut().zip(&z[..k]).for_each(|(squares, z)| squares.push(z.to_f64() * z.to_f64()));
        }
        let power = median(&mut powers);
        let mut typical: Vec<f64> =
            squares.iter_mut().map(|squares| median(squares) / MEDIAN_SQUARE).collect();
        let along_interneurons = if k == 0 { power } else { median(&mut typical) };
        TypicalResponse { power, along_interneurons }
    }

    /// E|x|²/N if M whitens: tr M²/N.
    fn power(&self) -> f64 {
        let n = self.channels();
        (0..n).map(|j| self.circuit.implied_variance(j)).sum::<f64>() / n as f64
    }

    /// Stops adapting until [`Self::resume`]: rows are answered with mean, gains and synapses as they are.
    pub fn pause(&mut self) {
        self.adapting = false;
    }

    /// Adapts again.
    pub fn resume(&mut self) {
        self.adapting = true;
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

    /// The number of channels N.
    pub fn channels(&self) -> usize {
        self.calibration.mean.len()
    }

    /// The settings.
    pub fn settings(&self) -> &WhitenerSettings {
        &self.settings
    }

    /// The circuit as it stands, in units of [`Self::scale`].
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

fn unusable(index: usize, value: f64) -> Error {
    if value.is_finite() {
        let expected = "values within the saturation limit (or another choice of bad_samples)";
        return Error::OutOfRange { argument: format!("stimuli[{index}]").into(), expected, found: value };
    }
    Error::NotFinite { argument: "stimuli".into(), index, value }
}

/// How many scales from the mean a value may lie: beyond that, responses could run over.
fn reach<T: Real>() -> f64 {
    T::MAX.to_f64().cbrt()
}

fn fill_bad<T: Real>(choice: BadSamples, last: &[T], out: &mut [T]) {
    match choice {
        BadSamples::Mark | BadSamples::Error => out.fill(T::from_f64(f64::NAN)),
        BadSamples::Hold => out.copy_from_slice(last),
        BadSamples::Zero => out.fill(T::ZERO),
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
