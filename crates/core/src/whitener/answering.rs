//! Answers rows of input: screens them, conditions them, responds, and writes the output.

use super::block::Block;
use super::channels::{Limits, Row};
use super::learning::MEAN_AFTER_CHANGE;
use super::{BadSamples, Whitener};
use crate::error::{Error, Result};
use crate::real::Real;

impl<T: Real> Whitener<T> {
    /// Answers and learns from rows of one block. Returns how many it has taken in.
    pub(super) fn take_in(&mut self, stimuli: &[T], responses: &mut [T], first: usize) -> Result<usize> {
        let n = self.channels();
        self.block.begin(stimuli.len() / n);
        self.circuit.reserve(stimuli.len() / n);
        let mut outcome = Ok(());
        for (row, s) in stimuli.chunks_exact(n).enumerate() {
            let limits = Limits::new::<T>(&self.settings, &self.calibration);
            if row > 0 && self.channels.would_revive(s, &limits) {
                // Rows that are answered together have the same channels.
                break;
            }
            match self.screen(s) {
                Row::Good => self.condition(s, row),
                Row::Bad { channel } if self.settings.bad_samples == BadSamples::Error => {
                    outcome = Err(Error::BadSample {
                        index: (first + row) * n + channel,
                        value: s[channel].to_f64(),
                    });
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
        let limits = Limits::new::<T>(&self.settings, &self.calibration);
        let (row, revived) = self.channels.screen(s, &limits);
        self.welcome(revived);
        self.samples.seen += 1;
        if row != Row::Good {
            self.samples.bad += 1;
        }
        row
    }

    /// Takes note that so many channels have come back: their means may be old.
    pub(super) fn welcome(&mut self, revived: u64) {
        if revived > 0 {
            self.samples.revivals += revived;
            self.mean_age = self.mean_age.min(MEAN_AFTER_CHANGE);
            self.block.mask_changed = true;
        }
    }

    fn condition(&mut self, s: &[T], row: usize) {
        let gathers = self.gathering.is_some();
        if gathers {
            self.gather(s);
        }
        let (n, place) = (s.len(), self.block.good.len());
        self.block.good.push(row);
        let x = &mut self.block.x[place * n..(place + 1) * n];
        self.calibration.condition(s, &self.channels, x);
        if gathers {
            // The row was screened with the scale before it, and may be too large for the new scale.
            let most = T::from_f64(reach::<T>());
            x.iter_mut().for_each(|x| *x = x.max(-most).min(most));
        }
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
    pub(super) fn mix(&self, place: usize, out: &mut [T]) {
        let strength = T::from_f64(self.settings.strength);
        let (x, r) = self.block.row(place);
        for (j, out) in out.iter_mut().enumerate() {
            let mixed = if strength == T::ONE { r[j] } else { (T::ONE - strength) * x[j] + strength * r[j] };
            *out = if self.channels.is_live(j) { mixed } else { T::ZERO };
        }
    }
}

/// How many scales from the mean a value may lie: beyond that, responses could overflow.
pub(super) fn reach<T: Real>() -> f64 {
    T::MAX.to_f64().cbrt()
}

pub(super) fn fill_bad<T: Real>(choice: BadSamples, last: &[T], out: &mut [T]) {
    match choice {
        BadSamples::Mark | BadSamples::Error => out.fill(T::from_f64(f64::NAN)),
        BadSamples::Hold => out.copy_from_slice(last),
        BadSamples::Zero => out.fill(T::ZERO),
    }
}
