//! Makes one mean and one covariance, those in force, of what all experts say.

use super::memory::Memory;
use super::prediction::{GAIN, PLAIN, TREND, VARIANTS};
use super::{Estimator, Expert, RUNGS, Scratch};
use crate::kernels::{add_scaled, inner};
use crate::matrix::Matrix;

/// Whoever has less than this part of all weight is unlikely. Those are heard all the same: where rows come in bursts, a
/// long memory knows of them, and the shorter one that is believed between them does not.
const UNLIKELY: f64 = 0.01;
/// But the less, the more it is beyond so many times the variances of the likely ones: what is improbable may be a million
/// times too large, and would drown what is known.
const LOUDEST: f64 = 300.0;

impl Estimator {
    /// The weights of the experts, less what is too loud.
    fn hear(&mut self) {
        let Self { memories, mixture, scratch, live, .. } = self;
        let powers = |expert: &Expert| {
            let power = expert.memory.power(live);
            [power, power, expert.gain(power) * power]
        };
        let all = || mixture.weights().iter().zip(memories.iter().flat_map(powers));
        let likely = || all().filter(|(weight, _)| **weight >= UNLIKELY);
        let usual = likely().map(|(weight, power)| weight * power).sum::<f64>()
            / likely().map(|(weight, _)| weight).sum::<f64>();
        for (own, (weight, power)) in scratch.heard.iter_mut().zip(all()) {
            let louder = if *weight < UNLIKELY { power / (LOUDEST * usual) } else { 0.0 };
            *own = weight / louder.max(1.0).powi(2);
        }
        let total: f64 = scratch.heard.iter().sum();
        scratch.heard.iter_mut().for_each(|weight| *weight /= total);
    }

    /// The mean in force, for a row that comes so much later.
    pub fn mean_into(&mut self, ahead: f64, mean: &mut [f64]) {
        self.hear();
        let time = self.time + ahead;
        mean.fill(0.0);
        for (expert, own) in self.memories.iter().zip(self.scratch.heard.chunks_exact(VARIANTS)) {
            let Memory { mean: own_mean, drift, time: own_time, .. } = &expert.memory;
            add_scaled(mean, own.iter().sum(), own_mean);
            add_scaled(mean, own[TREND] * (time - own_time) / expert.memory.spread_of_times(), drift);
        }
    }

    /// The mean and the covariance in force.
    pub fn in_force(&mut self) -> (Vec<f64>, Matrix) {
        let covariance = self.covariance_in_force().clone();
        (self.scratch.mean.clone(), covariance)
    }

    /// The covariance in force.
    pub fn covariance_in_force(&mut self) -> &Matrix {
        let n = self.live.len();
        let mut mean = std::mem::take(&mut self.scratch.mean);
        self.mean_into(0.0, &mut mean);
        let Scratch { offset, in_force: covariance, heard, .. } = &mut self.scratch;
        covariance.as_mut_slice().fill(0.0);
        for (expert, own) in self.memories.iter().zip(heard.chunks_exact(VARIANTS)) {
            let memory = &expert.memory;
            let spread = memory.spread_of_times();
            let gain = expert.gain(memory.power(&self.live));
            let shares = [own[PLAIN], own[TREND], own[GAIN] * gain];
            add_lower(covariance, shares.iter().sum(), &memory.covariance);
            // Whoever is unlikely is heard for how large rows may be, and not for where they are.
            let likely = |variant: &usize| own[*variant] >= UNLIKELY;
            let about_trend = (0..VARIANTS).filter(|variant| *variant == TREND || !likely(variant));
            let about_trend: f64 = about_trend.map(|variant| shares[variant]).sum();
            add_outer(covariance, -about_trend / spread, &memory.drift);
            let ahead = [0.0, (self.time - memory.time) / spread, 0.0];
            for variant in (0..VARIANTS).filter(likely) {
                offset.copy_from_slice(&memory.mean);
                add_scaled(offset, ahead[variant], &memory.drift);
                add_scaled(offset, -1.0, &mean);
                add_outer(covariance, own[variant], offset);
            }
        }
        for j in 0..n {
            for i in j + 1..n {
                covariance[(j, i)] = covariance[(i, j)];
            }
            covariance[(j, j)] = covariance[(j, j)].max(0.0);
        }
        self.scratch.mean = mean;
        &self.scratch.in_force
    }

    /// How far the covariance in force has moved since the last call of [`Self::settle`]: about 1 where it is another.
    pub fn moved(&self) -> f64 {
        self.moved
    }

    /// Says that the covariance in force has been taken note of.
    pub fn settle(&mut self) {
        self.moved = 0.0;
    }

    /// The standard deviation of every channel in the longest memory that forgets.
    pub fn usual_deviations(&self) -> impl Iterator<Item = f64> {
        let covariance = &self.memories[RUNGS - 1].memory.covariance;
        (0..covariance.columns()).map(|j| covariance[(j, j)].sqrt())
    }

    /// How many rows the covariance in force rests on.
    pub fn rows_in_force(&self) -> f64 {
        let own = self.memories.iter().zip(self.mixture.weights().chunks_exact(VARIANTS));
        1.0 / own.map(|(expert, own)| own.iter().sum::<f64>() / expert.memory.count.max(1.0)).sum::<f64>()
    }

    /// The lengths of the memories with their weights, and at the end the memory since the last change.
    pub fn weights(&self) -> Vec<(f64, [f64; 3])> {
        let own = self.memories.iter().zip(self.mixture.weights().chunks_exact(VARIANTS));
        own.map(|(expert, own)| (expert.memory.length, [own[PLAIN], own[TREND], own[GAIN]])).collect()
    }
}

/// Adds to the lower triangle.
fn add_lower(out: &mut Matrix, factor: f64, matrix: &Matrix) {
    for j in 0..out.columns() {
        add_scaled(&mut out.column_mut(j)[j..], factor, &matrix.column(j)[j..]);
    }
}

fn add_outer(out: &mut Matrix, factor: f64, x: &[f64]) {
    if factor == 0.0 || inner(x, x) == 0.0 {
        return;
    }
    for j in 0..out.columns() {
        add_scaled(&mut out.column_mut(j)[j..], factor * x[j], &x[j..]);
    }
}
