//! Makes one mean and one covariance, those in force, of what all experts say.

use super::memory::Memory;
use super::prediction::{GAIN, PLAIN, TREND, VARIANTS};
use super::{Estimator, RUNGS, Scratch};
use crate::kernels::{add_scaled, inner};
use crate::matrix::Matrix;

/// An expert with less than this part of all weight is not asked: what is improbable may be a million times too large,
/// and would drown what is known.
const LEAST_HEARD: f64 = 0.01;

impl Estimator {
    /// The weights of the experts that are asked.
    fn hear(&mut self) {
        let heard = |weight: &f64| if *weight >= LEAST_HEARD { *weight } else { 0.0 };
        let total: f64 = self.mixture.weights().iter().map(heard).sum();
        let weights = self.scratch.heard.iter_mut().zip(self.mixture.weights());
        weights.for_each(|(own, weight)| *own = heard(weight) / total);
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
            let share = own[PLAIN] + own[TREND] + own[GAIN] * gain;
            add_lower(covariance, share, &memory.covariance);
            add_outer(covariance, -own[TREND] / spread, &memory.drift);
            let ahead = [0.0, (self.time - memory.time) / spread, 0.0];
            for variant in 0..VARIANTS {
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
