//! Draws the paper's synthetic contexts, M = αI + V Λ Vᵀ, which a circuit with W = V whitens by its gains alone.

use std::ops::ControlFlow;

use rand::{Rng, RngExt};

use super::{Contexts, definite_square, require_probability, require_range, require_some, require_stack};
use crate::error::{Error, Result, require_positive};
use crate::matrix::Matrix;
use crate::starts;

/// How often a draw that must satisfy a condition is repeated before it counts as hopeless.
const TRIES: usize = 100_000;

/// The synthetic family of section 5.1: its parameters, checked when contexts are drawn.
///
/// ```
/// use leukos::contexts::{Axes, Synthetic, stream};
///
/// let family = Synthetic { axes: Axes::NonNegative, ..Synthetic::published() };
/// let drawn = family.draw(&mut stream(0, 0))?;
/// assert_eq!(drawn.contexts.len(), 64);
/// assert!(drawn.axes.as_slice().iter().all(|&v| v >= 0.0));
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// The number of primary neurons N, the rows of V.
    pub neurons: usize,
    /// The number of columns of V.
    pub interneurons: usize,
    /// The number of contexts.
    pub contexts: usize,
    /// How V is drawn.
    pub axes: Axes,
    /// The probability that a λ is zero.
    pub sparsity: f64,
    /// The range a λ is uniform on when it is not zero.
    pub strengths: [f64; 2],
    /// What to do with contexts in which every λ is zero.
    pub blank: Blank,
    /// The leak α the contexts are built with, above 0.
    pub leak: f64,
}

/// The law of the axes V. The sign of a column changes no context.
#[derive(Clone, Debug, PartialEq)]
pub enum Axes {
    /// Columns uniform on the unit sphere (the circle for N = 2).
    Sphere,
    /// The same, drawn again until the acute angle between any two columns lies in this range, in degrees.
    Angles {
        /// The smallest angle.
        least: f64,
        /// The largest angle, 90 at most.
        most: f64,
    },
    /// Columns uniform on the part of the unit sphere without negative entries.
    NonNegative,
    /// Columns of a random orthogonal matrix (Haar measure).
    Orthogonal,
    /// These columns (N × K), as they are.
    Given(Matrix),
}

/// What to do with a context in which every λ is zero, so that M = αI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blank {
    /// It is kept, as the paper's text has it.
    Kept,
    /// It is drawn again, as in the authors' code.
    Redrawn,
}

/// Contexts drawn from the synthetic family, and what they were made of.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticContexts {
    /// The contexts; their roots are M = αI + V Λ Vᵀ.
    pub contexts: Contexts,
    /// The axes V (N × K).
    pub axes: Matrix,
    /// The strengths λ (K × contexts): column c holds the diagonal of context c's Λ.
    pub strengths: Matrix,
}

impl Synthetic {
    /// As the text has it: N = 2, two axes uniform on the circle, 64 contexts, λ zero with probability ½ and else
    /// uniform on \[0, 4\], leak 1, contexts without any λ kept.
    pub fn published() -> Self {
        Self {
            neurons: 2,
            interneurons: 2,
            contexts: 64,
            axes: Axes::Sphere,
            sparsity: 0.5,
            strengths: [0.0, 4.0],
            blank: Blank::Kept,
            leak: 1.0,
        }
    }

    /// As in the authors' code: the axes are 40° to 80° apart, and contexts without any λ are drawn again.
    pub fn released() -> Self {
        let axes = Axes::Angles { least: 40.0, most: 80.0 };
        Self { axes, blank: Blank::Redrawn, ..Self::published() }
    }

    /// Draws the axes V and then the strengths of one context after another.
    ///
    /// # Errors
    /// When a parameter is out of range, or no axes or no strengths can be found that satisfy its conditions.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> Result<SyntheticContexts> {
        let drawn = self.draw_watched(rng, || ControlFlow::Continue(()))?;
        // It cannot have been stopped.
        drawn
            .ok_or_else(|| Error::Incompatible { argument: "contexts".into(), reason: "they were not drawn" })
    }

    /// The same, but `watch` is called again and again and can stop the drawing; then the result is `None`.
    ///
    /// # Errors
    /// As for [`Self::draw`].
    pub fn draw_watched(
        &self,
        rng: &mut (impl Rng + ?Sized),
        mut watch: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Option<SyntheticContexts>> {
        self.validate()?;
        require_stack(self.neurons, self.interneurons, self.contexts)?;
        let Some(axes) = self.draw_axes(rng, &mut watch)? else { return Ok(None) };
        let mut strengths = Matrix::zeros(self.interneurons, self.contexts);
        let (mut roots, mut covariances) = (Vec::new(), Vec::new());
        for c in 0..self.contexts {
            if watch().is_break() {
                return Ok(None);
            }
            self.draw_strengths(strengths.column_mut(c), rng)?;
            roots.push(inverse_whitening_matrix(&axes, strengths.column(c), self.leak));
            covariances.push(definite_square(c, &roots[c])?);
        }
        let contexts = Contexts { covariances: covariances.into(), roots: roots.into() };
        Ok(Some(SyntheticContexts { contexts, axes, strengths }))
    }

    fn validate(&self) -> Result<()> {
        require_some("neurons", self.neurons)?;
        require_some("contexts", self.contexts)?;
        require_probability("sparsity", self.sparsity)?;
        require_range("strengths", self.strengths)?;
        require_positive("leak", self.leak)?;
        match &self.axes {
            Axes::Given(axes) => {
                axes.require_shape("axes", self.neurons, self.interneurons)?;
                axes.require_finite("axes")
            }
            &Axes::Angles { least, most } => require_angles(least, most),
            Axes::Sphere | Axes::NonNegative | Axes::Orthogonal => Ok(()),
        }
    }

    fn draw_axes(
        &self,
        rng: &mut (impl Rng + ?Sized),
        watch: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Matrix>> {
        let (n, k) = (self.neurons, self.interneurons);
        match &self.axes {
            Axes::Sphere => Ok(Some(starts::on_sphere(n, k, rng))),
            Axes::NonNegative => Ok(Some(starts::non_negative(n, k, rng))),
            Axes::Orthogonal => Ok(Some(starts::orthogonal(n, k, rng))),
            Axes::Given(axes) => Ok(Some(axes.clone())),
            &Axes::Angles { least, most } => self.draw_apart([least, most], rng, watch),
        }
    }

    /// Axes whose angles are in a range.
    fn draw_apart(
        &self,
        [least, most]: [f64; 2],
        rng: &mut (impl Rng + ?Sized),
        mut watch: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Matrix>> {
        for _ in 0..TRIES {
            let axes = starts::on_sphere(self.neurons, self.interneurons, rng);
            if angles_within(&axes, least, most) {
                return Ok(Some(axes));
            }
            if watch().is_break() {
                return Ok(None);
            }
        }
        let reason = "100000 draws had two columns at an angle outside the range; widen the range";
        Err(Error::Incompatible { argument: "axes".into(), reason })
    }

    fn draw_strengths(&self, strengths: &mut [f64], rng: &mut (impl Rng + ?Sized)) -> Result<()> {
        for _ in 0..TRIES {
            for strength in &mut *strengths {
                *strength = self.draw_strength(rng);
            }
            if self.blank == Blank::Kept || strengths.iter().any(|&strength| strength > 0.0) {
                return Ok(());
            }
        }
        let reason = "100000 draws gave only contexts without any strength; keep such contexts, or change \
                      sparsity, strengths or interneurons";
        Err(Error::Incompatible { argument: "blank".into(), reason })
    }

    fn draw_strength(&self, rng: &mut (impl Rng + ?Sized)) -> f64 {
        let [least, most] = self.strengths;
        if rng.random_bool(self.sparsity) { 0.0 } else { rng.random_range(least..=most) }
    }
}

fn require_angles(least: f64, most: f64) -> Result<()> {
    require_range("angles", [least, most])?;
    if most <= 90.0 {
        return Ok(());
    }
    let expected = "at most 90 degrees, as columns count without their sign";
    Err(Error::out_of_range("angles", expected, most))
}

/// Whether the acute angle between any two unit columns lies between `least` and `most` degrees.
fn angles_within(axes: &Matrix, least: f64, most: f64) -> bool {
    let columns: Vec<&[f64]> = (0..axes.columns()).map(|j| axes.column(j)).collect();
    columns.iter().enumerate().all(|(j, a)| {
        columns[..j].iter().all(|b| {
            let overlap: f64 = a.iter().zip(*b).map(|(a, b)| a * b).sum();
            (least..=most).contains(&overlap.abs().min(1.0).acos().to_degrees())
        })
    })
}

/// M = αI + V diag(λ) Vᵀ, symmetric to the last bit.
fn inverse_whitening_matrix(axes: &Matrix, strengths: &[f64], leak: f64) -> Matrix {
    Matrix::from_fn(axes.rows(), axes.rows(), |i, j| {
        let spread: f64 =
            strengths.iter().enumerate().map(|(k, strength)| strength * (axes[(i, k)] * axes[(j, k)])).sum();
        if i == j { leak + spread } else { spread }
    })
}
