//! Measures the whitening error of one circuit again and again, fast enough for every step of a run.

use crate::arithmetic::dispatched;
use crate::circuit::{Circuit, Parts};
use crate::error::{Error, Result, Test};
use crate::extreme_eigenvalues::ExtremeEigenvalues;
use crate::factor::Factor;
use crate::linalg::{View, multiply};
use crate::matrix::Matrix;
use crate::metrics::{distance_from_one, distance_in_logarithm, require_symmetric_in_place};
use crate::pair::PairFactor;

/// Measures circuits of one size, tied or untied, without allocating. Two neurons have a closed form.
///
/// ```
/// use leukos::{Circuit, Matrix, Synapses, WhiteningMeter};
///
/// let circuit = Circuit::new(Synapses::tied(Matrix::identity(2))?, vec![1.0, 2.0], 1.0)?;
/// let mut meter = WhiteningMeter::new(&circuit);
/// let error = meter.error(&circuit, &Matrix::diagonal(&[4.0, 18.0]))?;
/// assert!((error - 1.0).abs() < 1e-12, "the second variance is 2");
/// # Ok::<(), leukos::Error>(())
/// ```
pub struct WhiteningMeter {
    /// N, K, and whether the synapses are tied.
    size: (usize, usize, bool),
    factor: Factor<f64>,
    whitening: Vec<f64>,
    /// M⁻¹C, then M⁻¹CM⁻ᵀ.
    half: Vec<f64>,
    responses: Vec<f64>,
    extremes: ExtremeEigenvalues,
}

impl WhiteningMeter {
    /// A meter for this circuit and others like it: as many neurons and interneurons, tied or untied as it is.
    pub fn new(circuit: &Circuit) -> Self {
        let n = circuit.neurons();
        let room = || vec![0.0; n * n];
        Self {
            size: size_of(circuit),
            factor: Factor::new(circuit.synapses()),
            whitening: room(),
            half: room(),
            responses: room(),
            extremes: ExtremeEigenvalues::new(n),
        }
    }

    /// The whitening error, Eq. (9), as by [`crate::whitening_error`].
    ///
    /// # Errors
    /// When the circuit is not like the meter's or not valid, or the covariance is not a finite, symmetric N × N
    /// matrix.
    #[inline]
    pub fn error(&mut self, circuit: &Circuit, covariance: &Matrix) -> Result<f64> {
        match pair_eigenvalues(circuit, covariance) {
            Some(values) => Ok(distance_from_one(&values)),
            None => self.measure(circuit, covariance).map(|values| distance_from_one(&values)),
        }
    }

    /// The largest |log λ| of the response covariance, as by [`crate::log_whitening_error`].
    ///
    /// # Errors
    /// As for [`Self::error`].
    pub fn log_error(&mut self, circuit: &Circuit, covariance: &Matrix) -> Result<f64> {
        match pair_eigenvalues(circuit, covariance) {
            Some(values) => Ok(distance_in_logarithm(&values)),
            None => self.measure(circuit, covariance).map(|values| distance_in_logarithm(&values)),
        }
    }

    /// The smallest and the largest eigenvalue of the response covariance M⁻¹CM⁻ᵀ of a circuit of any size.
    fn measure(&mut self, circuit: &Circuit, covariance: &Matrix) -> Result<[f64; 2]> {
        self.require_size(circuit)?;
        let n = circuit.neurons();
        covariance.require_shape("covariance", n, n)?;
        require_symmetric_in_place("covariance", covariance)?;
        self.factor.update(circuit.parts()).map_err(|test| circuit.invalid(test))?;
        self.factor.invert_into(&mut self.whitening);
        let whitening = View::of(&self.whitening, n);
        multiply(&mut self.half, whitening, covariance.view());
        multiply(&mut self.responses, View::of(&self.half, n), whitening.transposed());
        self.extremes.of(&self.responses).ok_or_else(|| circuit.invalid(Test::Overflow))
    }

    fn require_size(&self, circuit: &Circuit) -> Result<()> {
        let found = size_of(circuit);
        if found == self.size {
            return Ok(());
        }
        let say = |(n, k, tied): (usize, usize, bool)| {
            format!("{n} neurons and {k} {} interneurons", if tied { "tied" } else { "untied" })
        };
        Err(Error::shape("circuit", format!("{}, as the meter was made for", say(self.size)), say(found)))
    }
}

fn size_of(circuit: &Circuit) -> (usize, usize, bool) {
    (circuit.neurons(), circuit.interneurons(), circuit.synapses().is_tied())
}

/// The eigenvalues for two neurons in closed form; `None` where there are not two or where something is wrong, which
/// the general way then finds out.
#[inline]
fn pair_eigenvalues(circuit: &Circuit, covariance: &Matrix) -> Option<[f64; 2]> {
    let &[a, b, same, d] = covariance.as_slice() else { return None };
    let parts = circuit.parts();
    if parts.neurons != 2 || covariance.rows() != 2 || b != same {
        return None;
    }
    response_eigenvalues(parts, [a, b, d])
}

dispatched! {
    /// The eigenvalues of M⁻¹CM⁻ᵀ for two neurons and C = [[a, b], [b, d]]; `None` where M is not valid or a number
    /// is out of range.
    #[inline]
    fn response_eigenvalues<T, A>(parts: Parts<'_, T>, covariance: [T; 3]) -> Option<[T; 2]> {
        let factor = PairFactor::of::<A>(parts);
        let ([p, q, r, s], [a, b, d]) = (factor.adjugate, covariance);
        // The rows of adj(M) C, then the entries of adj(M) C adj(M)ᵀ.
        let [u, v] = [A::mul_add(p, a, r * b), A::mul_add(p, b, r * d)];
        let [x, y] = [A::mul_add(q, a, s * b), A::mul_add(q, b, s * d)];
        let first = A::mul_add(u, p, v * r);
        let (cross, second) = (A::mul_add(u, q, v * s), A::mul_add(x, q, y * s));
        let half = T::from_f64(0.5);
        let (mean, apart) = (half * (first + second), half * (first - second));
        let scale = factor.reciprocal * factor.reciprocal;
        let larger = (mean + A::mul_add(apart, apart, cross * cross).sqrt()) * scale;
        // The smaller one from the product of both, because the difference would cancel.
        let smaller = A::mul_add(a, d, -(b * b)) * scale / larger;
        (factor.is_valid() & larger.is_finite() & smaller.is_finite()).then_some([smaller, larger])
    }
}
