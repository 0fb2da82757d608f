//! Moves gains by the fast rule of a stream, and fits them to a known covariance.

use crate::arithmetic::Arithmetic;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, weighted_gram};
use crate::matrix::Matrix;
use crate::metrics::{frobenius, square_root};
use crate::outer_products::OuterProducts;
use crate::real::Real;
use crate::size::Work;

/// Eq. (7), Δgᵢ = η_g (zᵢ² − ‖wᵢ‖²), without the part η_g zᵢ² that a drive adds to it.
#[inline(always)]
pub(crate) fn gain_base<T: Real, A: Arithmetic>(gain: T, rate: T, target: T) -> T {
    A::mul_add(-rate, target, gain)
}

/// The gains whose M = αI + W diag(g) Wᵀ is nearest to C^½ in the Frobenius norm:
/// g = [(WᵀW)∘²]⁺ diag(WᵀC^½W − αWᵀW), of least norm where several are.
///
/// Nothing keeps that M positive definite; [`crate::OptimalGains`] does.
///
/// # Errors
/// When a size does not match, a number is not finite or overflows, or `covariance` is not one.
pub fn least_squares_gains(synapses: &Matrix, covariance: &Matrix, leak: f64) -> Result<Vec<f64>> {
    require_fit(synapses, covariance)?;
    require_leak(leak)?;
    require_gains(synapses)?;
    least_squares_gains_for_root(synapses, &square_root("covariance", covariance)?, leak)
}

/// The same where C^½ is known already.
pub(crate) fn least_squares_gains_for_root(synapses: &Matrix, root: &Matrix, leak: f64) -> Result<Vec<f64>> {
    let gains = OuterProducts::new(synapses)?.fit(root, leak);
    if gains.iter().all(|gain| gain.is_finite()) { Ok(gains) } else { Err(out_of_range()) }
}

/// How far a covariance is from 𝔽(W), the covariances that W can whiten by its gains alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// The gains whose M = αI + W diag(g) Wᵀ is nearest to C^½.
    pub gains: Vec<f64>,
    /// How near: ‖C^½ − M‖ / ‖C^½‖ in the Frobenius norm. Rounding leaves about 1e-15 of a member.
    pub residual: f64,
    /// Whether that M is positive definite. One that is not may square to C, but does not whiten.
    pub definite: bool,
}

impl Membership {
    /// Whether the covariance is a member up to this residual.
    pub fn holds(&self, tolerance: f64) -> bool {
        self.definite && self.residual <= tolerance
    }
}

/// Whether C is in 𝔽(W) = { [αI + W diag(g) Wᵀ]² } with a positive definite root, by the least-squares fit of
/// C^½ − αI on the outer products wᵢwᵢᵀ.
///
/// ```
/// use leukos::{Matrix, membership};
///
/// let w = Matrix::from_rows(&[[1.0, 0.6], [0.0, 0.8]]);
/// assert!(membership(&w, &Matrix::diagonal(&[4.0, 1.0]), 1.0)?.holds(1e-12), "g = (1, 0)");
/// assert!(!membership(&w, &Matrix::diagonal(&[1.0, 4.0]), 1.0)?.holds(1e-12));
/// # Ok::<(), leukos::Error>(())
/// ```
///
/// # Errors
/// As for [`least_squares_gains`].
pub fn membership(synapses: &Matrix, covariance: &Matrix, leak: f64) -> Result<Membership> {
    require_fit(synapses, covariance)?;
    require_leak(leak)?;
    require_gains(synapses)?;
    let root = square_root("covariance", covariance)?;
    let gains = least_squares_gains_for_root(synapses, &root, leak)?;
    let m = weighted_gram(synapses, &gains, leak);
    let left = frobenius(root.as_slice().iter().zip(m.as_slice()).map(|(root, m)| root - m));
    // Where C is zero only M = 0 would do, which is not definite.
    let residual = left / frobenius(root.as_slice().iter().copied()).max(f64::MIN_POSITIVE);
    Ok(Membership { gains, residual, definite: Cholesky::new(m).is_ok() })
}

pub(crate) fn out_of_range() -> Error {
    let reason = "their sizes are so far from those of the covariance and the leak that the gains overflow; \
                  rescale them";
    Error::Incompatible { argument: "synapses".into(), reason }
}

pub(crate) fn require_fit(synapses: &Matrix, covariance: &Matrix) -> Result<()> {
    synapses.require_finite("synapses")?;
    covariance.require_shape("covariance", synapses.rows(), synapses.rows())
}

/// Checks that there is room to find gains for these synapses.
pub(crate) fn require_gains(synapses: &Matrix) -> Result<()> {
    let room = Work::of("neurons", synapses.rows(), synapses.columns());
    Work { squares: 20, weights: 16, gains: 20, ..room }.require()
}

pub(crate) fn require_leak<T: Real>(leak: T) -> Result<()> {
    if leak.is_finite() && leak >= T::ZERO {
        return Ok(());
    }
    let (expected, found) = ("a finite number, 0 or more", leak.to_f64());
    Err(Error::out_of_range("leak", expected, found))
}
