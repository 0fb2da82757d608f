//! Remembers rows: their mean, covariance and trend, with a memory that grows until it is full and then forgets.

use crate::kernels::{add_scaled, blend};
use crate::linalg::gram;
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

    /// Takes in the rows that another one holds, forgetting as much as there is no room for. `offset` is scratch.
    pub fn absorb(&mut self, rows: &Self, offset: &mut Vec<f64>) {
        let kept = (self.length - rows.count).max(0.0).min(self.count);
        let total = kept + rows.count;
        let (old, new) = (kept / total, rows.count / total);
        let spread = old * new;
        offset.clear();
        offset.extend(rows.mean.iter().zip(&self.mean).map(|(own, mean)| own - mean));
        for j in 0..self.mean.len() {
            blend(
                &mut self.covariance.column_mut(j)[j..],
                [old, new, spread * offset[j]],
                &rows.covariance.column(j)[j..],
                &offset[j..],
            );
        }
        let later = rows.time - self.time;
        for ((drift, own), offset) in self.drift.iter_mut().zip(&rows.drift).zip(offset.iter()) {
            *drift = old * *drift + new * own + spread * later * offset;
        }
        self.time_variance = old * self.time_variance + new * rows.time_variance + spread * later * later;
        add_scaled(&mut self.mean, new, offset);
        self.time += new * later;
        self.count = total;
    }

    /// Becomes the memory of some rows about the middle of their time, of which there is at least one. Each brings,
    /// beside what it shows, the variance of what had to be imagined of it. The rows are overwritten.
    pub fn hold(&mut self, rows: &mut [f64], time: f64, imagined: Option<&Matrix>) {
        let n = self.mean.len();
        let (first, later) = rows.split_at_mut(n);
        self.count = 1.0 + (later.len() / n) as f64;
        (self.time, self.time_variance) = (time, 0.0);
        // About the first row, so that a constant has a variance of exactly zero.
        self.mean.fill(0.0);
        for row in later.chunks_exact(n) {
            for ((sum, first), s) in self.mean.iter_mut().zip(first.iter()).zip(row) {
                *sum += s - first;
            }
        }
        for (mean, first) in self.mean.iter_mut().zip(first) {
            *mean = *first + *mean / self.count;
        }
        let each = self.count.sqrt().recip();
        for row in rows.chunks_exact_mut(n) {
            row.iter_mut().zip(&self.mean).for_each(|(s, mean)| *s = each * (*s - mean));
        }
        gram(self.covariance.as_mut_slice(), rows, n);
        if let Some(imagined) = imagined {
            add_scaled(self.covariance.as_mut_slice(), 1.0, imagined.as_slice());
        }
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
        // Rows lie within 1e100, so that squares and their sums stay far from overflow.
        let within = |most: f64| move |value: f64| value.abs() <= most;
        require_all(&format!("{name}.mean"), &self.mean, "numbers that can be squared", within(1e101))?;
        require_all(&format!("{name}.drift"), &self.drift, "covariances with times", within(1e120))?;
        let squares = within(1e203);
        require_all(&format!("{name}.covariance"), &entries, "covariances of numbers below 1e101", squares)?;
        let variances: Vec<f64> = (0..n).map(|j| self.covariance[(j, j)]).collect();
        require_all(&format!("{name}.covariance"), &variances, "variances that are not negative", |v| {
            v >= 0.0
        })
    }
}
