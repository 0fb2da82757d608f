//! Estimates the whitening error of a stream from its responses alone.

#[cfg(feature = "model-file")]
use crate::archive::{Archive, require};
use crate::error::{Error, Result, require_finite, require_length};
use crate::extreme_eigenvalues::ExtremeEigenvalues;
use crate::linalg::mirror_lower;
use crate::matrix::Matrix;
use crate::metrics::distance_from_one;
use crate::real::Real;

/// The operator-norm distance of an exponentially weighted response covariance from the identity: Eq. (9) as far
/// as it can be known without the covariance of the stimuli.
///
/// Responses are taken to be centred, as everywhere. A sample counts e^-1 as much after τ others, which makes the
/// estimate about as good as one from 2τ − 1 equally weighted samples, and lets it forget a context after a few τ.
/// The estimate is biased upwards: of N directions it shows the one that looks worst. Responses that are white
/// show about [`Self::noise_floor`], (1 + √γ)² − 1 with γ = N/(2τ − 1), and an error far below that floor cannot
/// be told from it. (Measured on white Gaussian responses: .56 of that floor on average at N = 1, .70 at 2, .84 at 5 and
/// .94 at 25.) Four times the time constant halves the floor and adapts four times as slowly.
///
/// ```
/// use leukos::RunningError;
///
/// let mut running = RunningError::new(2, 100.0)?;
/// for sample in 0..1000 {
///     running.update(if sample % 2 == 0 { &[2.0, 0.0] } else { &[0.0, 2.0] })?;
/// }
/// let error = running.error().unwrap_or(f64::INFINITY);
/// assert!((error - 1.0).abs() < 0.02, "both variances are 2");
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone)]
pub struct RunningError {
    neurons: usize,
    time_constant: f64,
    /// The sum of the weights of all samples so far, which approaches τ, and of their squares.
    weight: f64,
    squares: f64,
    /// Σ weight · r rᵀ; its lower triangle.
    moments: Vec<f64>,
    scaled: Vec<f64>,
    extremes: ExtremeEigenvalues,
}

impl RunningError {
    /// Starts an estimate for responses of `neurons` neurons that forgets with `time_constant` τ, in samples.
    ///
    /// # Errors
    /// When the time constant is not a finite number of at least 1.
    pub fn new(neurons: usize, time_constant: f64) -> Result<Self> {
        if !(time_constant.is_finite() && time_constant >= 1.0) {
            let (expected, found) = ("a finite number of samples, 1 or more", time_constant);
            return Err(Error::out_of_range("time_constant", expected, found));
        }
        Ok(Self {
            neurons,
            time_constant,
            weight: 0.0,
            squares: 0.0,
            moments: vec![0.0; neurons * neurons],
            scaled: vec![0.0; neurons * neurons],
            extremes: ExtremeEigenvalues::new(neurons),
        })
    }

    /// Takes in one response. Nothing is allocated.
    ///
    /// # Errors
    /// When it is not of `neurons` finite numbers; it is then left out.
    pub fn update<T: Real>(&mut self, response: &[T]) -> Result<()> {
        require_length("response", response, self.neurons, "one for each neuron")?;
        require_finite("response", response)?;
        let keep = 1.0 - 1.0 / self.time_constant;
        self.weight = keep * self.weight + 1.0;
        self.squares = keep * keep * self.squares + 1.0;
        for (j, column) in self.moments.chunks_exact_mut(self.neurons.max(1)).enumerate() {
            let right = response[j].to_f64();
            for (moment, left) in column[j..].iter_mut().zip(&response[j..]) {
                *moment = keep * *moment + left.to_f64() * right;
            }
        }
        Ok(())
    }

    /// The estimated whitening error; `None` before the first response, or when a number overflowed. Nothing is
    /// allocated.
    pub fn error(&mut self) -> Option<f64> {
        Some(distance_from_one(&self.extreme_variances()?))
    }

    /// The smallest and the largest variance in any direction; `None` as for [`Self::error`]. Nothing is allocated.
    pub fn extreme_variances(&mut self) -> Option<[f64; 2]> {
        if self.weight == 0.0 {
            return None;
        }
        self.scaled.copy_from_slice(&self.moments);
        self.scaled.iter_mut().for_each(|moment| *moment /= self.weight);
        mirror_lower(&mut self.scaled, self.neurons);
        self.extremes.of(&self.scaled)
    }

    /// About what white Gaussian responses would show by now: (1 + √γ)² − 1 with γ = N/n, where
    /// n = (Σ weight)²/Σ weight² is the number of equally weighted samples that would know as much. Infinite before
    /// the first response.
    pub fn noise_floor(&self) -> f64 {
        if self.weight == 0.0 {
            return f64::INFINITY;
        }
        let ratio = self.neurons as f64 * self.squares / (self.weight * self.weight);
        ratio + 2.0 * ratio.sqrt()
    }

    /// The exponentially weighted response covariance; zero before the first response.
    pub fn covariance(&self) -> Matrix {
        let weight = if self.weight == 0.0 { 1.0 } else { self.weight };
        let n = self.neurons;
        Matrix::from_fn(n, n, |i, j| self.moments[i.min(j) * n + i.max(j)] / weight)
    }
}

#[cfg(feature = "model-file")]
impl RunningError {
    /// Visits the state, under names that begin with `whose`.
    pub(crate) fn archive<A: Archive>(&mut self, archive: &mut A, whose: &str) -> Result<()> {
        let Self { neurons, time_constant: _, weight, squares, moments, scaled: _, extremes: _ } = self;
        archive.value(&format!("{whose}.weight"), weight)?;
        archive.value(&format!("{whose}.squared_weights"), squares)?;
        archive.matrix(&format!("{whose}.moments"), (*neurons, *neurons), moments)?;
        if !A::READS {
            return Ok(());
        }
        let begun = |sum: f64| sum == 0.0 || sum >= 1.0;
        let expected = "0, or 1 or more";
        require(&format!("{whose}.weight"), begun(*weight), expected, *weight)?;
        require(&format!("{whose}.squared_weights"), begun(*squares), expected, *squares)
    }
}
