//! Measures how far a covariance reaches, and scales it.

use leukos::{Matrix, Result, definiteness};

/// The extreme eigenvalues of a covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spectrum {
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// What is no more than rounding.
    rounding: f64,
}

/// What becomes of the scale of a covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    /// It is multiplied so that its largest eigenvalue is this.
    Norm(f64),
    /// It stays as it was measured.
    AsMeasured,
}

impl Spectrum {
    /// The spectrum of a covariance.
    ///
    /// # Errors
    /// When a number is not finite.
    pub fn of(covariance: &Matrix) -> Result<Self> {
        let n = covariance.rows();
        let mirrored = Matrix::from_fn(n, n, |i, j| -covariance[(i, j)]);
        let (least, most) = (definiteness(covariance)?, -definiteness(&mirrored)?);
        Ok(Self { least, most, rounding: n as f64 * f64::EPSILON * most })
    }

    /// The condition number; infinite where the smallest eigenvalue is no more than rounding.
    pub fn condition(self) -> f64 {
        if self.least > self.rounding { self.most / self.least } else { f64::INFINITY }
    }
}

impl Scaling {
    /// Scales a covariance with this spectrum.
    pub fn apply(self, covariance: &mut Matrix, spectrum: Spectrum) {
        if let Self::Norm(norm) = self {
            covariance.as_mut_slice().iter_mut().for_each(|x| *x *= norm / spectrum.most);
        }
    }
}
