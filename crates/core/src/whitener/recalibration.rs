//! Estimates mean, scale or gains again when the input has changed permanently, or returns to earlier ones that fit.

use super::Whitener;
use super::block::Block;
use super::conditioning::{Calibration, is_usable, median};
use super::surprise::TRY_FORMER_AFTER;
use crate::kernels::inner;
use crate::real::Real;

/// A calibration that may come back, with the gains that belong to it.
#[derive(Clone)]
pub(super) struct Former {
    pub calibration: Calibration,
    pub gains: Vec<f64>,
}

impl Former {
    /// One that fits no input.
    pub fn blank(n: usize, k: usize) -> Self {
        Self { calibration: Calibration { mean: vec![0.0; n], scale: 0.0 }, gains: vec![0.0; k] }
    }

    pub fn take(&mut self, calibration: &Calibration, gains: &[f64]) {
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

/// The number of rows that a recalibration is made from.
pub(super) const LATEST_ROWS: usize = 64;
/// By what factor all axes of M may leave those of the start before the scale follows.
const WIDEST_AXIS: f64 = 4.0;
/// An earlier state explains the input if the log of |r|²/N is no larger: the factor 9.
const LARGEST_MISFIT: f64 = 2.2;
/// It must also make the latest rows clearly more likely than the present state does: by so many nats for each row.
const CLEARLY: f64 = 2.0;
/// The median of |r|²/N for N independent standard normal numbers (Wilson and Hilferty 1931).
fn median_power(n: f64) -> f64 {
    (1.0 - 2.0 / (9.0 * n)).powi(3)
}

impl<T: Real> Whitener<T> {
    /// The input has changed permanently: estimates mean and scale from the latest rows.
    pub(super) fn recalibrate(&mut self) {
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
    pub(super) fn follow_scale(&mut self) {
        let ratios =
            self.circuit.sensitivities().iter().zip(&self.sensitivities).map(|(now, start)| start / now);
        let (least, most) =
            ratios.clone().fold((f64::INFINITY, 0.0), |(a, b), x| (f64::min(a, x), f64::max(b, x)));
        let known = !self.sensitivities.is_empty();
        let off = known && (least > WIDEST_AXIS || most < 1.0 / WIDEST_AXIS);
        // A change that has lasted for a whole window counts as permanent.
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

    /// Goes back to an earlier calibration or earlier gains, or to the mean of the prior, if these explain the latest
    /// rows.
    pub(super) fn try_former(&mut self) {
        let present = Former { calibration: self.calibration.clone(), gains: self.circuit.gains().to_vec() };
        // Where every earlier state was spoilt, as by a long stretch of rank one, there are the contexts of the training.
        let trained = Calibration { scale: self.anchor, ..self.calibration.clone() };
        let typical =
            self.prior.as_ref().map(|prior| Former { gains: prior.mean.clone(), calibration: trained });
        let candidates =
            [Some(self.window_start.clone()), Some(self.settled.clone()), self.former.clone(), typical];
        let mut least = self.surprise_at_latest(&present.calibration).1 - CLEARLY;
        let mut best = None;
        for candidate in candidates.into_iter().flatten() {
            let valid = self.circuit.set_gains(&candidate.gains);
            let (misfit, own) = self.surprise_at_latest(&candidate.calibration);
            if valid && misfit < LARGEST_MISFIT && own < least {
                (least, best) = (own, Some(candidate));
            }
        }
        let Some(best) = best else {
            self.circuit.put_back(&present.gains);
            return;
        };
        self.circuit.put_back(&best.gains);
        self.adopt(best.calibration);
        self.former = Some(present);
    }

    /// How far the responses to the latest rows would be from their expected size, in logarithm; and how unlikely the
    /// rows are, in nats for each row, up to a constant: ln det σM + |r|²/2, with the median in place of the mean.
    ///
    /// The size alone would not tell of an M that is far too large along some directions.
    fn surprise_at_latest(&mut self, calibration: &Calibration) -> (f64, f64) {
        let power = self.response_to_latest(calibration, TRY_FORMER_AFTER as usize).power;
        let live = self.channels.live_count() as f64;
        let volume = self.circuit.log_determinant() * live / self.channels() as f64;
        (power.ln().abs(), live * (calibration.scale.ln() + power / 2.0) + volume)
    }

    /// How large the responses to the latest rows would be.
    fn response_to_latest(&mut self, calibration: &Calibration, rows: usize) -> TypicalResponse {
        let (n, k) = (self.channels(), self.circuit.gains().len());
        let live = self.channels.live_count().max(1) as f64;
        let mut powers = Vec::with_capacity(rows);
        let mut squares: Vec<Vec<f64>> = vec![Vec::with_capacity(rows); k];
        for row in self.latest.latest(rows) {
            // One row at a time through the first places of the block's buffers.
            let s: Vec<T> = row.iter().map(|&s| T::from_f64(s)).collect();
            let Block { x, r, z, .. } = &mut self.block;
            calibration.condition(&s, &self.channels, &mut x[..n]);
            self.circuit.respond(&x[..n], &mut r[..n], &mut z[..k]);
            powers.push(inner(&r[..n], &r[..n]).to_f64() / live / median_power(live));
            squares.iter_mut().zip(&z[..k]).for_each(|(squares, z)| squares.push(z.to_f64() * z.to_f64()));
        }
        let power = median(&mut powers);
        let mut typical: Vec<f64> =
            squares.iter_mut().map(|squares| median(squares) / median_power(1.0)).collect();
        let along_interneurons = if k == 0 { power } else { median(&mut typical) };
        TypicalResponse { power, along_interneurons }
    }
}
