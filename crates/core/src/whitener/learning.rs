//! Learns from rows that have been answered: tells which of them count, and moves everything at the end of a block.

use super::channels::Limits;
use super::guarded_circuit::{GainDrive, Guard, SynapseDrive};
use super::surprise::Level;
use super::{Whitener, thinning};
use crate::kernels::inner;
use crate::real::Real;

/// The first steps have the rate 1/10, and each the rate of a mean of all samples so far, until that is 1/τ.
const HEAD_START: u64 = 10;
/// Synapses learn from this many samples after a change of context on.
const SETTLED_AFTER: u64 = 100;
/// After a change of context the mean is taken to stand on so many samples at most.
pub(super) const MEAN_AFTER_CHANGE: u64 = 20;

impl<T: Real> Whitener<T> {
    /// Takes note of the rows just answered, and moves everything at the end of a block.
    pub(super) fn learn(&mut self, stimuli: &[T]) {
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
        let n = s.len();
        let tolerance = Limits::new::<T>(&self.settings, &self.calibration).tolerance;
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
        self.look_back |= self.surprise.suggests_former();
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
            self.stillness.begin(self.circuit.mean_axis().powi(2));
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
        let circuit = &self.circuit;
        if self.change.see(self.block.inputs(place), |i| circuit.is_at_floor(i)) {
            self.samples.switches += 1;
            self.age = 0;
            self.mean_age = self.mean_age.min(MEAN_AFTER_CHANGE);
            self.look_back = true;
        }
        if self.samples.learned.is_multiple_of(thinning(self.channels()) as u64) {
            // A row that overflowed is left out of the estimates.
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
            None if self.look_back => self.try_former(),
            None => {}
        }
        self.look_back = false;
        if self.block.count > 0 {
            self.move_circuit();
            self.move_mean();
        }
    }

    pub(super) fn imagine_absent(&mut self) {
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
}
