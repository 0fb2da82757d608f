//! Draws stimuli s = C^½ ε from white noise ε.

use rand::Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use rand_pcg::Pcg64;

use super::{Contexts, Drift};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::real::Real;

/// The law of the white noise ε, which has mean 0 and covariance I under each of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Independent normal numbers: the paper's stimuli.
    Gaussian,
    /// Heavy tails: normal numbers, all scaled by the same √((ν − 2)/χ²), χ² with ν degrees of freedom.
    /// Every projection of a stimulus is then Student's t; its excess kurtosis is 6/(ν − 4).
    StudentT {
        /// The degrees of freedom ν, above 2.
        degrees: f64,
    },
    /// Normal numbers that remember: ε ← ρε + √(1 − ρ²) ξ, started from its stationary law.
    /// Within a context the stimuli have lag-k autocovariance ρᵏC, and at a switch their covariance is at once the new one.
    Autocorrelated {
        /// The coefficient ρ, between −1 and 1.
        coefficient: f64,
    },
}

/// A source of stimuli that fills the caller's buffers and allocates nothing while it does.
///
/// Numbers are drawn in double precision one stimulus after another, so neither the buffer's type nor how a stream is
/// cut into buffers changes what is drawn.
///
/// ```
/// use leukos::Matrix;
/// use leukos::contexts::{Contexts, Law, Stimuli, stream};
///
/// let contexts = Contexts::new(vec![Matrix::diagonal(&[4.0, 1.0])])?;
/// let mut stimuli = Stimuli::new(contexts, Law::StudentT { degrees: 5.0 }, stream(0, 0))?;
/// let mut three = [0.0; 6];
/// stimuli.fill(0, &mut three)?;
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stimuli<R = Pcg64> {
    contexts: Contexts,
    noise: Noise,
    rng: R,
    /// The white noise ε, and s = C^½ ε before it is rounded to the caller's type.
    white: Vec<f64>,
    stimulus: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    Gaussian,
    StudentT { variance: f64, chi_squared: ChiSquared<f64> },
    Autocorrelated { kept: f64, fresh: f64 },
}

impl<R: Rng> Stimuli<R> {
    /// Stimuli of these contexts under `law`.
    ///
    /// # Errors
    /// When the law's parameter is out of range.
    pub fn new(contexts: Contexts, law: Law, rng: R) -> Result<Self> {
        let mut stimuli = Self::gaussian(contexts, rng);
        stimuli.noise = match law {
            Law::Gaussian => Noise::Gaussian,
            Law::StudentT { degrees } => student(degrees)?,
            Law::Autocorrelated { coefficient } => {
                let noise = autocorrelated(coefficient)?;
                draw_normal(&mut stimuli.white, &mut stimuli.rng);
                noise
            }
        };
        Ok(stimuli)
    }

    /// Gaussian stimuli of these contexts.
    pub fn gaussian(contexts: Contexts, rng: R) -> Self {
        let n = contexts.neurons();
        Self { contexts, noise: Noise::Gaussian, rng, white: vec![0.0; n], stimulus: vec![0.0; n] }
    }

    /// The contexts the stimuli are drawn for.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Fills `stimuli` with as many stimuli of one context as fit, one after another.
    ///
    /// # Errors
    /// When there is no such context or the buffer does not hold whole stimuli; nothing is then drawn.
    pub fn fill<T: Real>(&mut self, context: usize, stimuli: &mut [T]) -> Result<()> {
        self.contexts.require_context("context", context)?;
        self.require_whole(stimuli)?;
        for out in stimuli.chunks_exact_mut(self.white.len()) {
            self.draw_white();
            self.stimulus.fill(0.0);
            accumulate(&self.contexts.roots[context], 1.0, &self.white, &mut self.stimulus);
            round_into(out, &self.stimulus);
        }
        Ok(())
    }

    /// Fills `stimuli` with as many stimuli as fit, each of the next point of `drift`.
    ///
    /// # Errors
    /// When the path names a context that is not there (the stimuli before it are drawn) or the buffer does not hold
    /// whole stimuli.
    pub fn fill_drifting<T: Real>(&mut self, drift: &mut Drift, stimuli: &mut [T]) -> Result<()> {
        self.require_whole(stimuli)?;
        for (out, point) in stimuli.chunks_exact_mut(self.white.len()).zip(drift) {
            self.contexts.require_waypoint(point)?;
            self.draw_white();
            self.stimulus.fill(0.0);
            let (from, to) = (&self.contexts.roots[point.from], &self.contexts.roots[point.to]);
            accumulate(from, 1.0 - point.fraction, &self.white, &mut self.stimulus);
            accumulate(to, point.fraction, &self.white, &mut self.stimulus);
            round_into(out, &self.stimulus);
        }
        Ok(())
    }

    fn require_whole<T>(&self, stimuli: &[T]) -> Result<()> {
        let n = self.white.len();
        if stimuli.len().is_multiple_of(n) {
            return Ok(());
        }
        let expected = format!("a multiple of {n} numbers (one for each primary neuron)");
        Err(Error::shape("stimuli", expected, format!("{} numbers", stimuli.len())))
    }

    /// The next white noise.
    fn draw_white(&mut self) {
        let (white, rng) = (&mut self.white, &mut self.rng);
        match self.noise {
            Noise::Gaussian => draw_normal(white, rng),
            Noise::StudentT { variance, chi_squared } => {
                draw_normal(white, rng);
                let scale = (variance / chi_squared.sample(rng)).sqrt();
                for x in white {
                    *x *= scale;
                }
            }
            Noise::Autocorrelated { kept, fresh } => {
                for x in white {
                    let new: f64 = StandardNormal.sample(rng);
                    *x = kept * *x + fresh * new;
                }
            }
        }
    }
}

fn student(degrees: f64) -> Result<Noise> {
    let refused = || {
        Error::out_of_range("degrees", "a finite number above 2, below which there is no covariance", degrees)
    };
    if !(degrees.is_finite() && degrees > 2.0) {
        return Err(refused());
    }
    let chi_squared = ChiSquared::new(degrees).map_err(|_| refused())?;
    Ok(Noise::StudentT { variance: degrees - 2.0, chi_squared })
}

fn autocorrelated(coefficient: f64) -> Result<Noise> {
    if coefficient.abs() < 1.0 {
        let fresh = ((1.0 - coefficient) * (1.0 + coefficient)).sqrt();
        return Ok(Noise::Autocorrelated { kept: coefficient, fresh });
    }
    let expected = "a number between -1 and 1, both left out";
    Err(Error::out_of_range("coefficient", expected, coefficient))
}

fn draw_normal(out: &mut [f64], rng: &mut impl Rng) {
    for x in out {
        *x = StandardNormal.sample(rng);
    }
}

/// Adds weight · C^½ ε to `out`, column by column.
fn accumulate(root: &Matrix, weight: f64, white: &[f64], out: &mut [f64]) {
    for (j, &white) in white.iter().enumerate() {
        let scaled = weight * white;
        for (out, &root) in out.iter_mut().zip(root.column(j)) {
            *out += root * scaled;
        }
    }
}

fn round_into<T: Real>(out: &mut [T], stimulus: &[f64]) {
    for (out, &s) in out.iter_mut().zip(stimulus) {
        *out = T::from_f64(s);
    }
}
