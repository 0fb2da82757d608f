//! Accumulates the mean and the covariance of samples as they come, without loss where the mean is large.

use leukos::Matrix;

/// The mean of the samples so far and the sums of products of their distances from it (Welford's recurrence).
#[derive(Clone, Debug)]
pub struct Moments {
    count: u64,
    mean: Vec<f64>,
    /// Lower triangle, row by row.
    products: Vec<f64>,
    /// The sample's distances from the mean before it.
    before: Vec<f64>,
}

impl Moments {
    /// The moments of no samples of N numbers yet.
    pub fn new(n: usize) -> Self {
        let products = vec![0.0; n * (n + 1) / 2];
        Self { count: 0, mean: vec![0.0; n], products, before: vec![0.0; n] }
    }

    /// Takes one more sample of N numbers into account.
    pub fn add(&mut self, sample: &[f64]) {
        self.count += 1;
        let share = 1.0 / self.count as f64;
        for ((before, mean), x) in self.before.iter_mut().zip(&mut self.mean).zip(sample) {
            *before = x - *mean;
            *mean += share * *before;
        }
        // (x − new mean)ᵢ (x − old mean)ⱼ is symmetric, because the first factor is (1 − 1/n) times the second.
        let weight = 1.0 - share;
        let mut rows = self.products.as_mut_slice();
        for i in 0..self.before.len() {
            let (row, rest) = rows.split_at_mut(i + 1);
            let after = weight * self.before[i];
            row.iter_mut().zip(&self.before).for_each(|(product, before)| *product += after * before);
            rows = rest;
        }
    }

    /// The covariance about the mean: the sums of products divided by the number of samples less one.
    pub fn covariance(&self) -> Matrix {
        let (n, share) = (self.mean.len(), 1.0 / (self.count.max(2) - 1) as f64);
        Matrix::from_fn(n, n, |i, j| {
            let (row, column) = (i.max(j), i.min(j));
            share * self.products[row * (row + 1) / 2 + column]
        })
    }
}
