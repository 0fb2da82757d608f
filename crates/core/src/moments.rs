//! Sums up samples into means and covariances that can be merged.

use crate::circuit::require_rows;
use crate::error::{Error, Result, require_finite};
use crate::kernels::add_scaled;
use crate::linalg::{View, multiply};
use crate::matrix::Matrix;
use crate::metrics::require_symmetric;
use crate::real::Real;
use crate::size::require_memory;
use crate::whitener::{leave_out_wild, usable};

/// Count, mean and co-moments Σ (s − mean)(s − mean)ᵀ of samples.
///
/// Parts of a stream can be summed up separately and merged (Chan, Golub and LeVeque 1983): any split gives the same to
/// rounding, and the same bits as long as it is the same split. Samples with a number that is not finite are counted
/// as bad and left out, and so are wild ones: those more than 30 times as far from the median of their block of 256 as
/// is typical there.
///
/// ```
/// use leukos::Moments;
///
/// let mut moments = Moments::new(1);
/// moments.update(&[1.0, 2.0, f64::NAN])?;
/// let mut rest = Moments::new(1);
/// rest.update(&[6.0])?;
/// moments.merge(&rest)?;
/// assert_eq!((moments.count(), moments.bad()), (3, 1));
/// assert_eq!(moments.mean(), [3.0]);
/// assert!((moments.covariance()?[(0, 0)] - 14.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    count: u64,
    bad: u64,
    mean: Vec<f64>,
    comoments: Matrix,
}

/// Makes a NaN of every value that cannot be used: those that are not finite, and those as large as the limit of
/// saturation. Returns how many rows have one, which [`Moments`] leave out.
pub fn mark_unusable(rows: &mut [f64], channels: usize, saturation: Option<f64>) -> u64 {
    let limit = saturation.unwrap_or(f64::INFINITY);
    let mut bad_rows = 0;
    for row in rows.chunks_exact_mut(channels.max(1)) {
        let mut bad = false;
        for value in row.iter_mut().filter(|value| !usable(**value, limit)) {
            *value = f64::NAN;
            bad = true;
        }
        bad_rows += u64::from(bad);
    }
    bad_rows
}

/// How many samples are centred and multiplied together.
pub(crate) const BLOCK: usize = 256;

impl Moments {
    /// Without samples yet. It allocates `channels` squared numbers at once; if that number cannot be trusted, call
    /// [`crate::size::require_moments`] first.
    pub fn new(channels: usize) -> Self {
        Self { count: 0, bad: 0, mean: vec![0.0; channels], comoments: Matrix::zeros(channels, channels) }
    }

    /// From sums that were computed elsewhere.
    ///
    /// # Errors
    /// When sizes do not match, a number is not finite, or the co-moments are not symmetric.
    pub fn from_parts(count: u64, bad: u64, mean: Vec<f64>, comoments: Matrix) -> Result<Self> {
        comoments.require_shape("comoments", mean.len(), mean.len())?;
        require_symmetric("comoments", &comoments)?;
        require_finite("mean", &mean)?;
        Ok(Self { count, bad, mean, comoments })
    }

    /// Of so many samples that are known only by their covariance, with mean zero.
    ///
    /// # Errors
    /// When the covariance is not finite and symmetric, or there are no samples.
    pub fn of_covariance(covariance: &Matrix, count: u64) -> Result<Self> {
        require_symmetric("covariance", covariance)?;
        if count == 0 {
            return Err(Error::shape("samples", "at least one", "none"));
        }
        let n = covariance.rows();
        let comoments = Matrix::from_fn(n, n, |i, j| covariance[(i, j)] * count as f64);
        Ok(Self { count, bad: 0, mean: vec![0.0; n], comoments })
    }

    /// The number of channels.
    pub fn channels(&self) -> usize {
        self.mean.len()
    }

    /// The number of samples summed up.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of samples left out.
    pub fn bad(&self) -> u64 {
        self.bad
    }

    /// The mean; zero without samples.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Σ (s − mean)(s − mean)ᵀ.
    pub fn comoments(&self) -> &Matrix {
        &self.comoments
    }

    /// The covariance about the mean, Σ (s − mean)(s − mean)ᵀ / count.
    ///
    /// # Errors
    /// When there are no samples, or a number has overflowed.
    pub fn covariance(&self) -> Result<Matrix> {
        if self.count == 0 {
            return Err(Error::shape("samples", "at least one without NaN or infinity", "none"));
        }
        let n = self.channels();
        let covariance = Matrix::from_fn(n, n, |i, j| self.comoments[(i, j)] / self.count as f64);
        covariance.require_finite("covariance")?;
        Ok(covariance)
    }

    /// The same for some of the channels, in this order.
    ///
    /// # Errors
    /// When there is no such channel.
    pub fn select(&self, channels: &[usize]) -> Result<Self> {
        if let Some(missing) = channels.iter().find(|&&channel| channel >= self.channels()) {
            let expected = format!("channels below {}", self.channels());
            return Err(Error::shape("channels", expected, missing.to_string()));
        }
        let entry = |i: usize, j: usize| self.comoments[(channels[i], channels[j])];
        Ok(Self {
            count: self.count,
            bad: self.bad,
            mean: channels.iter().map(|&channel| self.mean[channel]).collect(),
            comoments: Matrix::from_fn(channels.len(), channels.len(), entry),
        })
    }

    /// Takes in rows of samples.
    ///
    /// # Errors
    /// When `samples` is not a whole number of rows, or there is no memory for the moments of a block.
    pub fn update<T: Real>(&mut self, samples: &[T]) -> Result<()> {
        let n = self.channels();
        if n == 0 {
            return Err(Error::shape("channels", "at least one", "none"));
        }
        require_rows("samples", samples.len(), n)?;
        require_memory("channels", (n + 2 * BLOCK).saturating_mul(n))?;
        let mut block = Vec::with_capacity(n * BLOCK);
        for samples in samples.chunks(n * BLOCK) {
            block.clear();
            for row in samples.chunks_exact(n) {
                if row.iter().all(|s| usable(s.to_f64(), f64::INFINITY)) {
                    block.extend(row.iter().map(|s| s.to_f64()));
                } else {
                    self.bad += 1;
                }
            }
            self.bad += leave_out_wild(&mut block, n);
            if !block.is_empty() {
                self.merge(&Self::of_block(&mut block, n))?;
            }
        }
        Ok(())
    }

    /// The moments of some finite rows, which are centred in place.
    fn of_block(rows: &mut [f64], n: usize) -> Self {
        let count = rows.len() / n;
        // About the first row, so that a constant has a variance of exactly zero.
        let origin = rows[..n].to_vec();
        let mut mean = origin.clone();
        for row in rows.chunks_exact(n) {
            for ((mean, origin), s) in mean.iter_mut().zip(&origin).zip(row) {
                *mean += (s - origin) / count as f64;
            }
        }
        for row in rows.chunks_exact_mut(n) {
            add_scaled(row, -1.0, &mean);
        }
        let mut comoments = Matrix::zeros(n, n);
        multiply(comoments.as_mut_slice(), View::of(rows, n), View::of(rows, n).transposed());
        Self { count: count as u64, bad: 0, mean, comoments }
    }

    /// Adds the samples that another has summed up.
    ///
    /// # Errors
    /// When it has another number of channels.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let n = self.channels();
        if other.channels() != n {
            let (expected, found) = (format!("{n} channels"), format!("{} channels", other.channels()));
            return Err(Error::shape("moments", expected, found));
        }
        self.bad += other.bad;
        if other.count == 0 {
            return Ok(());
        }
        let total = (self.count + other.count) as f64;
        let share = other.count as f64 / total;
        let weight = self.count as f64 * share;
        let difference: Vec<f64> = other.mean.iter().zip(&self.mean).map(|(own, mean)| own - mean).collect();
        add_scaled(self.comoments.as_mut_slice(), 1.0, other.comoments.as_slice());
        for (j, &factor) in difference.iter().enumerate() {
            add_scaled(self.comoments.column_mut(j), weight * factor, &difference);
        }
        add_scaled(&mut self.mean, share, &difference);
        self.count += other.count;
        Ok(())
    }
}
