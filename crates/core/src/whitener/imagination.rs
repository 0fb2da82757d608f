//! Imagines what channels that are left out would have shown, so that memories go on as if they were there.
//!
//! A channel is left out when it has no signal. What it would have shown is, given the other channels, Gaussian with
//! mean B (x − mean) and covariance R, from the covariance in force when it was left out. So its relation to the
//! others is neither forgotten nor learned anew from nothing when it comes back.

use crate::kernels::inner;
use crate::linalg::{Cholesky, product};
use crate::matrix::Matrix;

/// What is imagined of the channels that are left out.
#[derive(Clone)]
pub(super) struct Imagination {
    pub absent: Vec<usize>,
    pub present: Vec<usize>,
    /// For each absent channel the weights of the present ones (present × absent).
    pub weights: Matrix,
    /// The mean in force when it began.
    pub mean: Vec<f64>,
    /// The covariance then, which a checkpoint keeps, since all else follows from it.
    #[cfg(feature = "model-file")]
    pub covariance: Matrix,
    /// The covariance of what is imagined about its mean, with zeros for channels that are present (N × N).
    pub rest: Matrix,
}

impl Imagination {
    /// From the mean and covariance in force. None where every channel takes part.
    pub fn new(live: &[bool], mean: &[f64], covariance: &Matrix, floor: f64) -> Option<Self> {
        let channels = |wanted: bool| (0..live.len()).filter(move |&j| live[j] == wanted).collect::<Vec<_>>();
        let (absent, present) = (channels(false), channels(true));
        if absent.is_empty() {
            return None;
        }
        let part = |rows: &[usize], columns: &[usize]| {
            Matrix::from_fn(rows.len(), columns.len(), |i, j| covariance[(rows[i], columns[j])])
        };
        let across = part(&present, &absent);
        let power = present.iter().map(|&j| covariance[(j, j)]).sum::<f64>() / present.len().max(1) as f64;
        let mut among = part(&present, &present);
        (0..present.len()).for_each(|i| among[(i, i)] += floor * floor * power);
        let mut weights = across.clone();
        match Cholesky::new(among) {
            Ok(factor) => factor.solve_columns(&mut weights),
            Err(_) => weights.as_mut_slice().fill(0.0),
        }
        let explained = product(across.view().transposed(), weights.view());
        let mut rest = Matrix::zeros(live.len(), live.len());
        for (j, &column) in absent.iter().enumerate() {
            for (i, &row) in absent.iter().enumerate() {
                rest[(row, column)] =
                    covariance[(row, column)] - f64::midpoint(explained[(i, j)], explained[(j, i)]);
            }
            rest[(column, column)] = rest[(column, column)].max(0.0);
        }
        Some(Self {
            absent,
            present,
            weights,
            mean: mean.to_vec(),
            #[cfg(feature = "model-file")]
            covariance: covariance.clone(),
            rest,
        })
    }

    /// Puts what is imagined into a row.
    pub fn complete(&self, row: &mut [f64], scratch: &mut Vec<f64>) {
        scratch.clear();
        scratch.extend(self.present.iter().map(|&j| row[j] - self.mean[j]));
        for (j, &channel) in self.absent.iter().enumerate() {
            row[channel] = self.mean[channel] + inner(self.weights.column(j), scratch);
        }
    }
}
