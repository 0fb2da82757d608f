//! Sums up the rows of one block, once for all memories.

use crate::kernels::add_scaled;
use crate::linalg::{View, multiply};
use crate::matrix::Matrix;

/// Count, mean and co-moments of the rows of one block, and their middle in time.
#[derive(Clone, Debug)]
pub(crate) struct BlockMoments {
    pub count: usize,
    pub mean: Vec<f64>,
    /// Σ (s − mean)(s − mean)ᵀ.
    pub comoments: Matrix,
    pub time: f64,
    /// The mean relative to that of the memory that is taking the block in.
    pub offset: Vec<f64>,
    centred: Vec<f64>,
}

impl BlockMoments {
    pub fn new(channels: usize, rows: usize) -> Self {
        Self {
            count: 0,
            mean: vec![0.0; channels],
            comoments: Matrix::zeros(channels, channels),
            time: 0.0,
            offset: Vec::with_capacity(channels),
            centred: Vec::with_capacity(channels * rows),
        }
    }

    /// Sums up the rows that are chosen; each brings, beside what it shows, the variance of what had to be imagined of it.
    pub fn sum_up(
        &mut self,
        rows: &[f64],
        time: f64,
        imagined: Option<&Matrix>,
        mut chosen: impl FnMut(usize) -> bool,
    ) {
        let n = self.mean.len();
        self.time = time;
        self.centred.clear();
        for (index, row) in rows.chunks_exact(n).enumerate() {
            if chosen(index) {
                self.centred.extend_from_slice(row);
            }
        }
        self.count = self.centred.len() / n;
        if self.count == 0 {
            return;
        }
        // About the first row, so that a constant has a variance of exactly zero.
        self.mean.copy_from_slice(&self.centred[..n]);
        self.offset.clear();
        self.offset.resize(n, 0.0);
        for row in self.centred.chunks_exact(n).skip(1) {
            for ((sum, first), s) in self.offset.iter_mut().zip(&self.mean).zip(row) {
                *sum += s - first;
            }
        }
        add_scaled(&mut self.mean, 1.0 / self.count as f64, &self.offset);
        for row in self.centred.chunks_exact_mut(n) {
            add_scaled(row, -1.0, &self.mean);
        }
        let centred = View::of(&self.centred, n);
        multiply(self.comoments.as_mut_slice(), centred, centred.transposed());
        if let Some(imagined) = imagined {
            add_scaled(self.comoments.as_mut_slice(), self.count as f64, imagined.as_slice());
        }
    }
}
