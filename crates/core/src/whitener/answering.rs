//! Answers rows of input at once, and hands them to the estimator block by block.

use super::screen::{Row, WILD};
use super::{BadSamples, Follow, Whitener};
use crate::error::{Error, Result};
use crate::kernels::{all_finite, inner};
use crate::real::Real;

/// The rows of the present block, and of the present call.
#[derive(Clone)]
pub(super) struct Block<T> {
    /// Rows of the block so far, of any kind, in all calls.
    pub rows: usize,
    /// Those that are handed on, in units, and which of them are wild.
    pub values: Vec<f64>,
    pub wild: Vec<bool>,
    /// |r|²/N of their responses.
    pub powers: Vec<f64>,
    /// Rows taken in by the present call, and which of them are good.
    taken: usize,
    good: Vec<usize>,
    /// Centred rows and responses of the good rows.
    x: Vec<T>,
    r: Vec<T>,
    scratch: Vec<f64>,
}

impl<T: Real> Block<T> {
    pub fn new(channels: usize, rows: usize) -> Self {
        let zeros = || vec![T::ZERO; rows * channels];
        Self {
            rows: 0,
            values: Vec::with_capacity(rows * channels),
            wild: Vec::with_capacity(rows),
            powers: Vec::with_capacity(rows),
            taken: 0,
            good: Vec::with_capacity(rows),
            x: zeros(),
            r: zeros(),
            scratch: Vec::with_capacity(channels),
        }
    }

    /// Begins the next block.
    pub fn reset(&mut self) {
        self.rows = 0;
        self.forget();
    }

    /// Discards the rows of this block.
    pub fn forget(&mut self) {
        self.values.clear();
        self.wild.clear();
        self.powers.clear();
    }
}

impl<T: Real> Whitener<T> {
    /// Answers rows of one block, and takes note of them. Returns how many it has taken in.
    pub(super) fn take_in(&mut self, stimuli: &[T], responses: &mut [T], first: usize) -> Result<usize> {
        let n = self.channels();
        self.block.taken = 0;
        self.block.good.clear();
        let mut outcome = Ok(());
        for (row, s) in stimuli.chunks_exact(n).enumerate() {
            if row > 0 && self.screen.would_revive(s, self.limit()) {
                // Rows that are answered together have the same channels.
                break;
            }
            match self.look_at(s) {
                Row::Good => self.centre(s, row),
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
        self.note_all(stimuli);
        outcome.map(|()| taken)
    }

    /// Values this large are saturated, or too large to be squared.
    pub(super) fn limit(&self) -> f64 {
        self.settings.saturation.unwrap_or(f64::INFINITY).min(FARTHEST * self.unit)
    }

    fn look_at(&mut self, s: &[T]) -> Row {
        let (row, revived) = self.screen.screen(s, self.limit());
        self.welcome(revived);
        self.samples.seen += 1;
        if row != Row::Good {
            self.samples.bad += 1;
        }
        row
    }

    /// Takes note that so many channels have come back.
    pub(super) fn welcome(&mut self, revived: u64) {
        if revived > 0 {
            self.samples.revivals += revived;
            self.change_channels();
        }
    }

    fn centre(&mut self, s: &[T], row: usize) {
        let (n, place) = (s.len(), self.block.good.len());
        self.block.good.push(row);
        let needed = (place + 1) * n;
        if self.block.x.len() < needed {
            self.block.x.resize(needed, T::ZERO);
            self.block.r.resize(needed, T::ZERO);
        }
        self.centre_into(s, place);
    }

    /// x = s/unit − mean, within what can be answered with a finite response; 0 for channels that are left out.
    pub(super) fn centre_into(&mut self, s: &[T], place: usize) {
        let (n, most) = (s.len(), reach::<T>() * self.map.scale);
        let x = &mut self.block.x[place * n..(place + 1) * n];
        for (j, ((x, s), mean)) in x.iter_mut().zip(s).zip(&self.map.mean).enumerate() {
            let centred = s.to_f64() / self.unit - mean;
            *x = if self.live[j] { T::from_f64(centred.clamp(-most, most)) } else { T::ZERO };
        }
    }

    /// Responds to the good rows at hand, and writes all of them.
    fn answer(&mut self, responses: &mut [T]) {
        let n = self.channels();
        let count = self.block.good.len();
        self.map.answer(&self.block.x[..count * n], &mut self.block.r[..count * n]);
        let mut place = 0;
        for (row, out) in responses.chunks_exact_mut(n).take(self.block.taken).enumerate() {
            if self.block.good.get(place) == Some(&row) {
                out.copy_from_slice(&self.block.r[place * n..(place + 1) * n]);
                self.last.copy_from_slice(out);
                place += 1;
            } else {
                fill_bad(self.settings.bad_samples, &self.last, out);
            }
        }
    }

    /// The response to a row, without learning.
    pub(super) fn answer_alone(&mut self, s: &[T], out: &mut [T]) {
        let n = s.len();
        self.block.x.resize(self.block.x.len().max(n), T::ZERO);
        self.centre_into(s, 0);
        self.map.answer(&self.block.x[..n], out);
    }

    /// Takes note of the rows just answered, and learns at the end of a block.
    fn note_all(&mut self, stimuli: &[T]) {
        let n = self.channels();
        for place in 0..self.block.good.len() {
            let row = self.block.good[place];
            self.note(&stimuli[row * n..(row + 1) * n], place);
        }
        self.block.rows += self.block.taken;
        if self.block.rows >= self.rows_together {
            self.finish_block();
        }
    }

    fn note(&mut self, s: &[T], place: usize) {
        let silent = self.screen.watch(s);
        // Who has no map yet needs one, whether or not it is to follow anything.
        if self.started && (!self.adapting || self.settings.follow == Follow::Nothing) {
            return;
        }
        if silent {
            self.samples.silent += 1;
            return;
        }
        let n = s.len();
        let (x, r) = (&self.block.x[place * n..(place + 1) * n], &self.block.r[place * n..(place + 1) * n]);
        let power = self.power_of(r);
        let wild = self.started && (!(power <= WILD * WILD) || self.is_excluded(x));
        if wild {
            self.samples.outliers += 1;
        } else {
            self.samples.learned += 1;
            if self.started && self.samples.learned.is_multiple_of(self.thinning) && all_finite(r) {
                // An unusable row says nothing about the error, which is only shown.
                let _ = self.responses.update(r);
            }
        }
        let start = self.block.values.len();
        self.block.values.extend(s.iter().map(|s| s.to_f64() / self.unit));
        if let Some(imagination) = &self.imagination {
            imagination.complete(&mut self.block.values[start..], &mut self.block.scratch);
        }
        self.block.wild.push(wild);
        self.block.powers.push(power);
    }

    /// |r|²/N over the channels that take part, relative to what white responses of this strength have.
    fn power_of(&self, r: &[T]) -> f64 {
        let live = self.live.iter().filter(|live| **live).count().max(1);
        let power = inner(r, r).to_f64();
        if power.is_finite() { power / live as f64 } else { f64::MAX }
    }

    fn is_excluded(&self, x: &[T]) -> bool {
        let Some(limit) = self.settings.exclude_above else { return false };
        let far = |(x, deviation): (&T, &f64)| x.to_f64().abs() > limit * deviation;
        x.iter().zip(&self.map.deviations).any(far)
    }
}

/// How many units from zero a value may lie: its square must be far from overflow.
const FARTHEST: f64 = 1e100;

/// How many scales from the mean a value may lie: beyond that, responses could overflow, and it is answered as if it
/// lay there.
fn reach<T: Real>() -> f64 {
    T::MAX.to_f64().cbrt()
}

pub(super) fn fill_bad<T: Real>(choice: BadSamples, last: &[T], out: &mut [T]) {
    match choice {
        BadSamples::Mark | BadSamples::Error => out.fill(T::from_f64(f64::NAN)),
        BadSamples::Hold => out.copy_from_slice(last),
        BadSamples::Zero => out.fill(T::ZERO),
    }
}
