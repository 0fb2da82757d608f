//! Remembers rows: their mean, covariance and trend, with a memory that grows until it is full and then forgets.

use super::block::BlockMoments;
use crate::kernels::blend;
use crate::matrix::Matrix;
#[cfg(feature = "model-file")]
use crate::{
    archive::{Archive, require, require_all},
    error::Result,
    whitener::MOST_TOGETHER,
};

/// What a memory of some length holds. Until it is full every row counts alike; from then on rows are forgotten
/// exponentially, so that `count` stays at the length.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    /// The number of rows it can hold, which may be infinite.
    pub length: f64,
    /// The weight of all rows in it.
    pub count: f64,
    pub mean: Vec<f64>,
    /// The covariance about the mean; only the lower triangle is kept.
    pub covariance: Matrix,
    /// Mean and variance of the rows' times, and their covariance with the rows.
    pub time: f64,
    pub time_variance: f64,
    pub drift: Vec<f64>,
}

/// Times of less spread than this (in squared rows) show no trend.
const LEAST_TIME_VARIANCE: f64 = 1.0;

impl Memory {
    /// An empty one.
    pub fn new(channels: usize, length: f64) -> Self {
        Self {
            length,
            count: 0.0,
            mean: vec![0.0; channels],
            covariance: Matrix::zeros(channels, channels),
            time: 0.0,
            time_variance: 0.0,
            drift: vec![0.0; channels],
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.count, self.time, self.time_variance) = (0.0, 0.0, 0.0);
        self.mean.fill(0.0);
        self.drift.fill(0.0);
        self.covariance.as_mut_slice().fill(0.0);
    }

    /// Remembers what is known of so many rows before time 0.
    pub fn recall(&mut self, count: f64, mean: &[f64], covariance: &Matrix) {
        self.count = count.min(self.length);
        self.mean.copy_from_slice(mean);
        self.covariance.as_mut_slice().copy_from_slice(covariance.as_slice());
        self.drift.fill(0.0);
        // A full memory has an age of its length on average, one that grows half of it.
        (self.time, self.time_variance) = if count > self.length {
            (-self.count, self.count * self.count)
        } else {
            (-self.count / 2.0, self.count * self.count / 12.0)
        };
    }

    /// Takes over what another one remembers.
    pub fn copy_from(&mut self, other: &Self) {
        let Self { length: _, count, mean, covariance, time, time_variance, drift } = other;
        (self.count, self.time, self.time_variance) = (*count, *time, *time_variance);
        self.mean.copy_from_slice(mean);
        self.drift.copy_from_slice(drift);
        self.covariance.as_mut_slice().copy_from_slice(covariance.as_slice());
    }

    /// Takes in a block of rows, forgetting as much as there is no room for.
    pub fn absorb(&mut self, block: &mut BlockMoments) {
        let rows = block.count as f64;
        let kept = (self.length - rows).max(0.0).min(self.count);
        let total = kept + rows;
        let (old, new, spread) = (kept / total, 1.0 / total, kept * rows / (total * total));
        let n = self.mean.len();
        block.offset.clear();
        block.offset.extend(block.mean.iter().zip(&self.mean).map(|(own, mean)| own - mean));
        for j in 0..n {
            let factor = spread * block.offset[j];
            blend(
                &mut self.covariance.column_mut(j)[j..],
                [old, new, factor],
                &block.comoments.column(j)[j..],
                &block.offset[j..],
            );
        }
        let later = block.time - self.time;
        for (drift, offset) in self.drift.iter_mut().zip(&block.offset) {
            *drift = old * *drift + spread * later * offset;
        }
        self.time_variance = old * self.time_variance + spread * later * later;
        self.mean.iter_mut().zip(&block.offset).for_each(|(mean, offset)| *mean += rows * new * offset);
        self.time += rows * new * later;
        self.count = total;
    }

    /// The variance of the times, large enough to divide by.
    pub fn spread_of_times(&self) -> f64 {
        self.time_variance.max(LEAST_TIME_VARIANCE)
    }

    /// The mean variance of the channels that take part.
    pub fn power(&self, live: &[bool]) -> f64 {
        let own = (0..live.len()).filter(|&j| live[j]);
        let (sum, count) =
            own.fold((0.0, 0.0), |(sum, count), j| (sum + self.covariance[(j, j)], count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    }
}

#[cfg(feature = "model-file")]
impl Memory {
    pub fn archive<A: Archive>(&mut self, archive: &mut A, name: &str) -> Result<()> {
        let n = self.mean.len();
        archive.value(&format!("{name}.count"), &mut self.count)?;
        archive.value(&format!("{name}.time"), &mut self.time)?;
        archive.value(&format!("{name}.time_variance"), &mut self.time_variance)?;
        archive.vector(&format!("{name}.mean"), n, &mut self.mean)?;
        archive.vector(&format!("{name}.drift"), n, &mut self.drift)?;
        let mut entries = self.covariance.as_slice().to_vec();
        archive.matrix(&format!("{name}.covariance"), (n, n), &mut entries)?;
        self.covariance.as_mut_slice().copy_from_slice(&entries);
        if !A::READS {
            return Ok(());
        }
        // A block may be longer than a memory.
        let most = self.length.max(MOST_TOGETHER as f64).min(1e16);
        let counted = (0.0..=most).contains(&self.count);
        require(&format!("{name}.count"), counted, "a count within the memory's length", self.count)?;
        require(&format!("{name}.time"), self.time.abs() <= 1e16, "a time in rows", self.time)?;
        let spread = self.time_variance >= 0.0 && self.time_variance <= 1e32;
        require(&format!("{name}.time_variance"), spread, "a variance of times", self.time_variance)?;
        let variances: Vec<f64> = (0..n).map(|j| self.covariance[(j, j)]).collect();
        require_all(&format!("{name}.covariance"), &variances, "variances that are not negative", |v| {
            v >= 0.0
        })
    }
}
