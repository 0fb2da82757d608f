//! Draws contexts, the order they are presented in, and the stimuli of each.
//!
//! A context is a covariance `C_ss`. [`Contexts`] holds a stack of them; [`Synthetic`] and [`Fields`] draw one,
//! [`Schedule`] and [`Drift`] say which context comes when, and [`Stimuli`] draws samples of it.
//! Everything here is in double precision, and every random generator is the caller's: [`stream`] makes one.
//!
//! ```
//! use leukos::contexts::{Schedule, Stimuli, Synthetic, stream};
//!
//! let drawn = Synthetic::published().draw(&mut stream(7, 0))?;
//! let schedule = Schedule::blocks(drawn.contexts.len(), 1000, stream(7, 1))?;
//! let mut stimuli = Stimuli::gaussian(drawn.contexts, stream(7, 2));
//! let mut stimulus = [0.0_f32; 2];
//! for context in schedule.take(5000) {
//!     stimuli.fill(context, &mut stimulus)?;
//! }
//! # Ok::<(), leukos::Error>(())
//! ```

mod drift;
mod fields;
mod schedule;
mod stimuli;
mod streams;
mod synthetic;

use std::sync::Arc;

use rand::{Rng, RngExt};

use crate::error::{Error, Result, Test};
use crate::linalg::{product, symmetric_eigen};
use crate::matrix::Matrix;
use crate::metrics::require_symmetric;
use crate::size::{Work, require_memory};
use crate::starts;

pub use drift::{Drift, Waypoint};
pub use fields::{Field, FieldContexts, Fields, Patch};
pub use rand_pcg::Pcg64;
pub use schedule::Schedule;
pub use stimuli::{Law, Stimuli};
pub use streams::stream;
pub use synthetic::{Axes, Blank, Synthetic, SyntheticContexts};

/// A stack of contexts: one positive definite covariance each, all of one size. Clones share their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Contexts {
    covariances: Arc<[Matrix]>,
    roots: Arc<[Matrix]>,
}

/// Contexts to learn from and contexts kept back.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The contexts to learn from, in the order of the stack.
    pub train: Contexts,
    /// The contexts kept back, in the order of [`Self::test_indices`].
    pub test: Contexts,
    /// Where the contexts kept back stood in the stack.
    pub test_indices: Vec<usize>,
}

impl Contexts {
    /// Checks a stack of covariances `C_ss` and takes their roots.
    ///
    /// # Errors
    /// When there is none, or one is not a finite, symmetric, positive definite matrix of the first one's size;
    /// the error names it `covariances[c]`.
    pub fn new(covariances: Vec<Matrix>) -> Result<Self> {
        let n = require_neurons(&covariances)?;
        require_stack(n, 0, covariances.len())?;
        let roots = covariances.iter().enumerate().map(|(c, own)| definite_root(c, n, own));
        let roots = roots.collect::<Result<_>>()?;
        Ok(Self { covariances: covariances.into(), roots })
    }

    /// The number of contexts.
    #[allow(clippy::len_without_is_empty)] // There is always one.
    pub fn len(&self) -> usize {
        self.covariances.len()
    }

    /// The number of primary neurons N.
    pub fn neurons(&self) -> usize {
        self.covariances[0].rows()
    }

    /// The covariances `C_ss`, context after context.
    pub fn covariances(&self) -> &[Matrix] {
        &self.covariances
    }

    /// The roots `C_ss`^½, which are also the optimal inverse whitening matrices M.
    pub fn roots(&self) -> &[Matrix] {
        &self.roots
    }

    /// The mean covariance E\[`C_ss`\], each context counting the same.
    pub fn mean_covariance(&self) -> Matrix {
        let n = self.neurons();
        let share = 1.0 / self.len() as f64;
        Matrix::from_fn(n, n, |i, j| share * self.covariances.iter().map(|c| c[(i, j)]).sum::<f64>())
    }

    /// The covariance ((1 − f) A + f B)² at a point of a [`Drift`], where A and B are the roots of the contexts it lies between.
    ///
    /// # Errors
    /// When there is no such context or the fraction is not between 0 and 1.
    pub fn covariance_at(&self, point: Waypoint) -> Result<Matrix> {
        self.require_waypoint(point)?;
        let (from, to) = (&self.roots[point.from], &self.roots[point.to]);
        let mixed = |i, j| (1.0 - point.fraction) * from[(i, j)] + point.fraction * to[(i, j)];
        Ok(square(&Matrix::from_fn(self.neurons(), self.neurons(), mixed)))
    }

    /// These contexts alone, in this order.
    ///
    /// # Errors
    /// When there is none, or no such context.
    pub fn select(&self, indices: &[usize]) -> Result<Self> {
        indices.iter().try_for_each(|&c| self.require_context("indices", c))?;
        if indices.is_empty() {
            return Err(Error::shape("indices", "at least one context", "none"));
        }
        let pick = |stack: &[Matrix]| indices.iter().map(|&c| stack[c].clone()).collect();
        Ok(Self { covariances: pick(&self.covariances), roots: pick(&self.roots) })
    }

    /// Keeps these contexts back for testing.
    ///
    /// # Errors
    /// When there is no such context, one is named twice, or either part would be empty.
    pub fn split(&self, test_indices: &[usize]) -> Result<Split> {
        let mut kept_back = vec![false; self.len()];
        for &c in test_indices {
            self.require_context("test_indices", c)?;
            if std::mem::replace(&mut kept_back[c], true) {
                let found = format!("context {c} twice");
                return Err(Error::shape("test_indices", "each context once at most", found));
            }
        }
        let train: Vec<usize> = (0..self.len()).filter(|&c| !kept_back[c]).collect();
        if train.is_empty() || test_indices.is_empty() {
            let expected = format!("at least one of {} contexts, but not all", self.len());
            return Err(Error::shape("test_indices", expected, test_indices.len().to_string()));
        }
        Ok(Split {
            train: self.select(&train)?,
            test: self.select(test_indices)?,
            test_indices: test_indices.to_vec(),
        })
    }

    /// Keeps ⌈C/10⌉ contexts back, any set of that size being as likely as another.
    ///
    /// # Errors
    /// When there is only one context.
    pub fn random_split(&self, rng: &mut (impl Rng + ?Sized)) -> Result<Split> {
        let mut indices: Vec<usize> = (0..self.len()).collect();
        let test = self.len().div_ceil(10);
        for i in 0..test {
            indices.swap(i, rng.random_range(i..self.len()));
        }
        indices.truncate(test);
        indices.sort_unstable();
        self.split(&indices)
    }

    /// Spectrally matched controls: the same eigenvalues, and for each context random eigenvectors of its own
    /// (Haar measure), so that nothing is left for the synapses to learn.
    ///
    /// # Errors
    /// When a context is so near to singular that rounding leaves its control indefinite.
    pub fn controls(&self, rng: &mut (impl Rng + ?Sized)) -> Result<Self> {
        let n = self.neurons();
        require_stack(n, 0, self.len())?;
        let control = |(c, covariance)| {
            let (values, _) = definite_eigen(c, n, covariance)?;
            Ok(spectral(&values, &starts::orthogonal(n, n, rng)))
        };
        Self::new(self.covariances.iter().enumerate().map(control).collect::<Result<_>>()?)
    }

    fn require_context(&self, argument: &'static str, context: usize) -> Result<()> {
        if context < self.len() {
            return Ok(());
        }
        Err(Error::shape(argument, format!("contexts below {}", self.len()), context.to_string()))
    }

    fn require_waypoint(&self, point: Waypoint) -> Result<()> {
        self.require_context("from", point.from)?;
        self.require_context("to", point.to)?;
        require_probability("fraction", point.fraction)
    }
}

fn require_neurons(covariances: &[Matrix]) -> Result<usize> {
    match covariances.first().map(Matrix::rows) {
        None => Err(Error::shape("covariances", "at least one N x N matrix", "none")),
        Some(0) => Err(Error::shape("covariances[0]", "at least one row (a primary neuron)", "none")),
        Some(n) => Ok(n),
    }
}

/// Eigenvalues and eigenvectors of context `c`, whose covariance must be positive definite.
fn definite_eigen(c: usize, neurons: usize, covariance: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    let argument = format!("covariances[{c}]");
    covariance.require_shape(argument.clone(), neurons, neurons)?;
    require_symmetric(argument.clone(), covariance)?;
    let refused = |test| Error::NotPositiveDefinite {
        argument: argument.into(),
        expected: "a positive definite covariance",
        test,
    };
    let Some((values, vectors)) = symmetric_eigen(covariance) else { return Err(refused(Test::Overflow)) };
    let (least, most) = extremes(&values);
    let rounding = neurons as f64 * f64::EPSILON * most.abs();
    if least < -rounding {
        return Err(refused(Test::Eigenvalue));
    }
    if least <= rounding {
        return Err(refused(Test::Singular));
    }
    Ok((values, vectors))
}

/// The root of context `c`, whose covariance must be positive definite.
fn definite_root(c: usize, neurons: usize, covariance: &Matrix) -> Result<Matrix> {
    let (values, vectors) = definite_eigen(c, neurons, covariance)?;
    Ok(spectral(&values.iter().map(|value| value.sqrt()).collect::<Vec<_>>(), &vectors))
}

/// The covariance of context `c`, whose inverse whitening matrix M = `C_ss`^½ is this symmetric matrix.
fn definite_square(c: usize, root: &Matrix) -> Result<Matrix> {
    let covariance = square(root);
    definite_eigen(c, root.rows(), &covariance)?;
    Ok(covariance)
}

/// Checks that there is room for so many covariances, their roots, and axes that they may be made of.
fn require_stack(neurons: usize, interneurons: usize, contexts: usize) -> Result<()> {
    let squares = contexts.saturating_mul(3).saturating_add(12);
    Work { squares, weights: 3, ..Work::of("neurons", neurons, interneurons) }.require()?;
    require_memory("contexts", contexts.saturating_mul(interneurons.saturating_add(16)).saturating_mul(2))
}

/// The first and the last of ascending eigenvalues.
fn extremes(ascending: &[f64]) -> (f64, f64) {
    (ascending.first().copied().unwrap_or(0.0), ascending.last().copied().unwrap_or(0.0))
}

/// Q diag(values) Qᵀ, symmetric to the last bit.
fn spectral(values: &[f64], vectors: &Matrix) -> Matrix {
    let scaled = Matrix::from_fn(vectors.rows(), vectors.columns(), |i, j| vectors[(i, j)] * values[j]);
    mirrored(&product(scaled.view(), vectors.view().transposed()))
}

/// The square of a symmetric matrix, symmetric to the last bit.
fn square(root: &Matrix) -> Matrix {
    mirrored(&product(root.view(), root.view()))
}

/// The lower triangle, and its mirror image above it.
fn mirrored(matrix: &Matrix) -> Matrix {
    Matrix::from_fn(matrix.rows(), matrix.columns(), |i, j| matrix[(i.max(j), i.min(j))])
}

fn require_probability(argument: &'static str, value: f64) -> Result<()> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Error::out_of_range(argument, "a number between 0 and 1", value))
}

fn require_some(argument: &'static str, count: usize) -> Result<()> {
    if count > 0 {
        return Ok(());
    }
    Err(Error::out_of_range(argument, "1 or more", 0.0))
}

/// A range 0 ≤ least ≤ most to draw from.
fn require_range(argument: &'static str, [least, most]: [f64; 2]) -> Result<()> {
    let found = if least.is_finite() && least >= 0.0 { most } else { least };
    if found == most && most.is_finite() && most >= least {
        return Ok(());
    }
    let expected = "two finite numbers, the first 0 or more and the second no less";
    Err(Error::out_of_range(argument, expected, found))
}
