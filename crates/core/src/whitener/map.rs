//! The map that answers: the symmetric root of the covariance in force, in the channels that take part.
//!
//! ```text
//! C = V diag(λ) Vᵀ,   F = V diag(f) Vᵀ,   fᵢ = (1 − s)/σ + s/√max(λᵢ, floor² σ²),   r = F (x − mean)
//! ```
//!
//! σ² is the mean variance of the channels that take part. Frozen use and the inverse are views of this one map.

use crate::linalg::{EigenRoom, View, multiply};
use crate::matrix::Matrix;
use crate::panels::Panels;
use crate::real::Real;
#[cfg(feature = "model-file")]
use crate::{
    archive::{Archive, require, require_all},
    error::Result,
};

/// The map, and what it was made from. All numbers are in the whitener's units.
#[derive(Clone)]
pub(super) struct Map<T> {
    /// What is taken off a row; it moves with every block.
    pub mean: Vec<f64>,
    /// σ; 0 as long as nothing has varied.
    pub scale: f64,
    /// The standard deviations of the channels.
    pub deviations: Vec<f64>,
    /// F with zeros for channels that are left out, in the precision of the rows.
    matrix: Panels<T>,
    /// The channels that take part, and the eigenvectors and f on them.
    live: Vec<usize>,
    eigen: EigenRoom,
    factors: Vec<f64>,
    /// How many directions were lifted to the floor.
    pub lifted: usize,
    /// ln det of the covariance that makes responses white; none where they are not to be.
    pub log_determinant: Option<f64>,
    scratch: Scratch,
}

#[derive(Clone)]
struct Scratch {
    covariance: Matrix,
    scaled: Matrix,
    product: Matrix,
}

impl Scratch {
    fn new(live: usize) -> Self {
        let square = || Matrix::zeros(live, live);
        Self { covariance: square(), scaled: square(), product: square() }
    }
}

impl<T: Real> Map<T> {
    /// One that knows nothing yet, and answers with zeros.
    pub fn new(channels: usize) -> Self {
        Self {
            mean: vec![0.0; channels],
            scale: 0.0,
            deviations: vec![0.0; channels],
            matrix: Panels::new(channels),
            live: (0..channels).collect(),
            eigen: EigenRoom::new(channels),
            factors: vec![0.0; channels],
            lifted: 0,
            log_determinant: None,
            scratch: Scratch::new(channels),
        }
    }

    /// Becomes the root of a covariance on some of the channels. Stays as it was if that has no power.
    pub fn follow(&mut self, covariance: &Matrix, live: &[bool], floor: f64, strength: f64) {
        self.take_part(live);
        let count = self.live.len();
        let power = self.live.iter().map(|&j| covariance[(j, j)]).sum::<f64>() / count.max(1) as f64;
        if !(power > 0.0 && power.is_finite()) {
            return;
        }
        for (j, &column) in self.live.iter().enumerate() {
            for (i, &row) in self.live.iter().enumerate() {
                self.scratch.covariance[(i, j)] = covariance[(row, column)];
            }
        }
        if self.eigen.decompose(&self.scratch.covariance).is_none() {
            return;
        }
        self.scale = power.sqrt();
        for (j, deviation) in self.deviations.iter_mut().enumerate() {
            *deviation = covariance[(j, j)].max(0.0).sqrt();
        }
        let least = floor * floor * power;
        self.lifted = self.eigen.values.iter().filter(|value| **value < least).count();
        self.set_strength(floor, strength);
    }

    /// Makes room for the channels that take part, if those are others.
    fn take_part(&mut self, live: &[bool]) {
        let taking_part = (0..live.len()).filter(|&channel| live[channel]);
        if !taking_part.clone().eq(self.live.iter().copied()) {
            self.live = taking_part.collect();
            self.eigen = EigenRoom::new(self.live.len());
            self.factors.resize(self.live.len(), 0.0);
            self.scratch = Scratch::new(self.live.len());
        }
    }

    /// Makes the matrix anew with another strength.
    pub fn set_strength(&mut self, floor: f64, strength: f64) {
        if self.scale == 0.0 {
            return;
        }
        let count = self.live.len();
        let least = floor * floor * self.scale * self.scale;
        for (factor, value) in self.factors.iter_mut().zip(&self.eigen.values) {
            *factor = (1.0 - strength) / self.scale + strength / value.max(least).sqrt();
        }
        let white = strength == 1.0;
        self.log_determinant =
            white.then(|| -2.0 * self.factors.iter().map(|factor| factor.ln()).sum::<f64>());
        let Scratch { scaled, product, .. } = &mut self.scratch;
        for (k, factor) in self.factors.iter().enumerate() {
            let column = self.eigen.vectors.column(k).iter().map(|v| v * factor.sqrt());
            scaled.column_mut(k).iter_mut().zip(column).for_each(|(own, v)| *own = v);
        }
        let half = View::of(scaled.as_slice(), count);
        multiply(product.as_mut_slice(), half, half.transposed());
        self.matrix.clear();
        for (j, &column) in self.live.iter().enumerate() {
            for (i, &row) in self.live.iter().enumerate() {
                // One triangle for both: the matrix is symmetric to the last bit.
                self.matrix.set(row, column, T::from_f64(product[(i.max(j), i.min(j))]));
            }
        }
    }

    /// Answers rows that are centred; how many there are changes no bit.
    pub fn answer(&self, x: &[T], r: &mut [T]) {
        self.matrix.map(x, r);
    }

    /// F in double precision.
    pub fn whitening(&self) -> Matrix {
        self.embedded(|factor| factor)
    }

    /// The inverse of F on the channels that take part.
    pub fn dewhitening(&self) -> Matrix {
        self.embedded(|factor| 1.0 / factor)
    }

    /// The covariance relative to the scale, lifted to the floor, with channels that are left out white.
    pub fn covariance_in_units(&self, floor: f64) -> Matrix {
        let scale = self.scale * self.scale;
        let lifted = self.eigen.values.iter().map(|value| (value / scale).max(floor * floor));
        let mut covariance = self.embedded_with(lifted);
        let mut live = self.live.iter().copied().peekable();
        for j in 0..self.mean.len() {
            if live.next_if_eq(&j).is_none() {
                covariance[(j, j)] = 1.0;
            }
        }
        covariance
    }

    /// V diag(of(f)) Vᵀ in all channels.
    fn embedded(&self, of: impl Fn(f64) -> f64) -> Matrix {
        self.embedded_with(self.factors.iter().map(|&factor| of(factor)))
    }

    /// V diag(values) Vᵀ in all channels.
    fn embedded_with(&self, values: impl Iterator<Item = f64>) -> Matrix {
        let n = self.mean.len();
        let mut scaled = self.eigen.vectors.clone();
        for (k, value) in values.enumerate() {
            scaled.column_mut(k).iter_mut().for_each(|v| *v *= value.sqrt());
        }
        let half = scaled.view();
        let product = crate::linalg::product(half, half.transposed());
        let mut whole = Matrix::zeros(n, n);
        for (j, &column) in self.live.iter().enumerate() {
            for (i, &row) in self.live.iter().enumerate() {
                whole[(row, column)] = product[(i.max(j), i.min(j))];
            }
        }
        whole
    }
}

#[cfg(feature = "model-file")]
impl<T: Real> Map<T> {
    /// Visits the mean and the decomposition; all else follows from them.
    pub fn archive<A: Archive>(
        &mut self,
        archive: &mut A,
        live: &[bool],
        floor: f64,
        strength: f64,
    ) -> Result<()> {
        let n = self.mean.len();
        if A::READS {
            self.take_part(live);
        }
        let own = self.live.len();
        archive.value("map.scale", &mut self.scale)?;
        archive.vector("map.mean", n, &mut self.mean)?;
        archive.vector("map.deviations", n, &mut self.deviations)?;
        archive.vector("map.values", own, &mut self.eigen.values)?;
        let mut entries = self.eigen.vectors.as_slice().to_vec();
        archive.matrix("map.vectors", (own, own), &mut entries)?;
        self.eigen.vectors.as_mut_slice().copy_from_slice(&entries);
        if !A::READS {
            return Ok(());
        }
        let sound = self.scale >= 0.0 && self.scale < 1e150;
        require("map.scale", sound, "a number that is not negative", self.scale)?;
        require_all("map.vectors", &entries, "parts of unit vectors", |v| v.abs() <= 1.0 + 1e-9)?;
        let least = floor * floor * self.scale * self.scale;
        self.lifted = self.eigen.values.iter().filter(|value| **value < least).count();
        self.set_strength(floor, strength);
        Ok(())
    }
}
