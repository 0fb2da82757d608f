//! Draws contexts that behave like natural images: covariances of patches of 1/fᵃ Gaussian fields.
//!
//! A field on a periodic grid of 256 × 256 pixels has the power spectrum |Af|⁻ᵃ, where A stretches one direction by e
//! and shrinks the other by as much, and no power at f = 0. Its autocovariance at the few lags inside a patch is the
//! real part of the inverse Fourier transform there, a sum of cosines. By symmetry a quadrant of the frequencies
//! f = (k, l) is enough: with P₊ and P₋ the powers at (k, l) and (k, −l), and in units of 2π/256,
//!
//! R(x, y) ∝ Σ u(k) u(l) \[(P₊ + P₋) cos(kx) cos(ly) − (P₊ − P₋) sin(kx) sin(ly)\], k and l from 0 to 128,
//!
//! where u is ½ at 0 and 128, which the quadrant shares with its neighbours (128 and −128 are one frequency on the
//! grid), and 1 elsewhere.

use std::f64::consts::{PI, TAU};
use std::ops::ControlFlow;

use rand::{Rng, RngExt};

use super::{
    Contexts, definite_root, extremes, require_probability, require_range, require_some, require_stack,
};
use crate::error::{Error, Result, require_positive};
use crate::linalg::symmetric_eigenvalues;
use crate::matrix::Matrix;

/// The grid's pixels in each direction, and its highest frequency.
const GRID: usize = 256;
const NYQUIST: usize = GRID / 2;
/// How many fields are drawn for each context wanted before the condition counts as hopeless.
const TRIES: usize = 100;

/// The pixels that a stimulus consists of, row by row: pixel (y, x) is neuron y · width + x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The number of rows.
    pub height: usize,
    /// The number of columns.
    pub width: usize,
    /// The distance between neighbours, in pixels of the field.
    pub spacing: usize,
}

/// One Gaussian field: power |Af|⁻ᵃ at unit variance, plus white noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// The exponent a of the power spectrum.
    pub exponent: f64,
    /// log e: frequencies along the angle are stretched by e, those across it shrunk by as much.
    pub log_stretch: f64,
    /// The angle of the stretch against the x axis, in radians; 0 for an upright field.
    pub angle: f64,
    /// The variance of the white noise.
    pub noise: f64,
}

/// A family of fields: its parameters, checked when contexts are drawn.
///
/// ```
/// use leukos::contexts::{Fields, stream};
///
/// let drawn = Fields::two_dimensional().draw(&mut stream(0, 0))?;
/// assert_eq!((drawn.contexts.len(), drawn.contexts.neurons()), (56, 25));
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fields {
    /// The number of contexts.
    pub contexts: usize,
    /// The pixels of a stimulus.
    pub patch: Patch,
    /// The range the exponent is uniform on.
    pub exponents: [f64; 2],
    /// The largest |log e|; log e is uniform up to it.
    pub log_stretch: f64,
    /// The probability that the stretch lies along the axes and not at an angle uniform on the circle.
    pub upright: f64,
    /// The range the noise's variance is uniform on.
    pub noise: [f64; 2],
    /// The condition number below which a covariance is kept.
    pub condition: f64,
    /// The spectral norm each covariance is scaled to.
    pub norm: f64,
}

/// Contexts drawn from fields, and the fields they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldContexts {
    /// The contexts.
    pub contexts: Contexts,
    /// The field of each context.
    pub fields: Vec<Field>,
    /// How many fields were drawn in all; those above the condition number were dropped.
    pub drawn: usize,
}

impl Fields {
    /// 56 contexts of 5 × 5 pixels, like the paper's natural images.
    pub fn two_dimensional() -> Self {
        Self {
            contexts: 56,
            patch: Patch { height: 5, width: 5, spacing: 1 },
            exponents: [0.6, 1.8],
            log_stretch: 0.5,
            upright: 0.7,
            noise: [0.1, 0.5],
            condition: 20.0,
            norm: 10.0,
        }
    }

    /// 56 contexts of 16 pixels in a row, like the paper's one-dimensional patches.
    pub fn one_dimensional() -> Self {
        Self { patch: Patch { height: 1, width: 16, spacing: 1 }, ..Self::two_dimensional() }
    }

    /// Draws fields until enough of them have a well-conditioned covariance.
    ///
    /// # Errors
    /// When a parameter is out of range, or a hundred fields for each context wanted were not enough.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> Result<FieldContexts> {
        let drawn = self.draw_watched(rng, || ControlFlow::Continue(()))?;
        // It cannot have been stopped.
        drawn
            .ok_or_else(|| Error::Incompatible { argument: "contexts".into(), reason: "they were not drawn" })
    }

    /// The same, but `watch` is called before each field and can stop the drawing; then the result is `None`.
    ///
    /// # Errors
    /// As for [`Self::draw`].
    pub fn draw_watched(
        &self,
        rng: &mut (impl Rng + ?Sized),
        mut watch: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Option<FieldContexts>> {
        self.validate()?;
        let pixels = self.patch.height * self.patch.width;
        require_stack(pixels, 0, self.contexts)?;
        let (mut covariances, mut roots, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for drawn in 1..=TRIES.saturating_mul(self.contexts) {
            if watch().is_break() {
                return Ok(None);
            }
            let field = self.draw_field(rng);
            if let Some(covariance) = self.kept(field.covariance(self.patch)?) {
                roots.push(definite_root(fields.len(), pixels, &covariance)?);
                covariances.push(covariance);
                fields.push(field);
            }
            if fields.len() == self.contexts {
                let contexts = Contexts { covariances: covariances.into(), roots: roots.into() };
                return Ok(Some(FieldContexts { contexts, fields, drawn }));
            }
        }
        let reason = "a hundred fields for each context did not give enough below it; raise it, or choose \
                      smaller exponents or more noise";
        Err(Error::Incompatible { argument: "condition".into(), reason })
    }

    fn validate(&self) -> Result<()> {
        require_some("contexts", self.contexts)?;
        self.patch.validate()?;
        require_range("exponents", self.exponents)?;
        require_range("log_stretch", [0.0, self.log_stretch])?;
        require_probability("upright", self.upright)?;
        require_range("noise", self.noise)?;
        require_positive("norm", self.norm)?;
        if self.condition > 1.0 {
            return Ok(());
        }
        let (expected, found) = ("a number above 1", self.condition);
        Err(Error::out_of_range("condition", expected, found))
    }

    fn draw_field(&self, rng: &mut (impl Rng + ?Sized)) -> Field {
        let mut between = |[least, most]: [f64; 2]| rng.random_range(least..=most);
        let exponent = between(self.exponents);
        let log_stretch = between([-self.log_stretch, self.log_stretch]);
        let noise = between(self.noise);
        let angle = if rng.random_bool(self.upright) { 0.0 } else { rng.random_range(0.0..PI) };
        Field { exponent, log_stretch, angle, noise }
    }

    /// The covariance scaled to the norm, if its condition number is low enough.
    fn kept(&self, mut covariance: Matrix) -> Option<Matrix> {
        let (least, most) = extremes(&symmetric_eigenvalues(&covariance)?);
        if !(least > 0.0 && most < self.condition * least) {
            return None;
        }
        covariance.as_mut_slice().iter_mut().for_each(|x| *x *= self.norm / most);
        Some(covariance)
    }
}

impl Patch {
    fn validate(self) -> Result<()> {
        require_some("height", self.height)?;
        require_some("width", self.width)?;
        require_some("spacing", self.spacing)?;
        for (argument, size) in [("height", self.height), ("width", self.width)] {
            if (size - 1).saturating_mul(self.spacing) > NYQUIST {
                let expected = "a patch that spans half the grid of 256 pixels at most";
                return Err(Error::out_of_range(argument, expected, size as f64));
            }
        }
        Ok(())
    }
}

impl Field {
    /// The covariance of a patch: the field's autocovariance between each two pixels, plus the noise.
    /// The field alone has unit variance.
    ///
    /// # Errors
    /// When the patch is empty or spans more than half the grid, or the power spectrum cannot be held in double
    /// precision.
    pub fn covariance(&self, patch: Patch) -> Result<Matrix> {
        patch.validate()?;
        let [even, odd] = self.autocovariance(patch);
        let variance = even[(0, 0)];
        if !(variance.is_normal() && self.noise.is_finite()) {
            let reason =
                "its power cannot be held in double precision; choose a smaller exponent, stretch or noise";
            return Err(Error::Incompatible { argument: "field".into(), reason });
        }
        let pixels = patch.height * patch.width;
        Ok(Matrix::from_fn(pixels, pixels, |p, q| {
            let (y, x) = (p / patch.width, p % patch.width);
            let (v, u) = (q / patch.width, q % patch.width);
            let lag = (y.abs_diff(v), x.abs_diff(u));
            // The odd part changes its sign where one lag is positive and the other negative.
            let shared = if (y < v) == (x < u) { even[lag] - odd[lag] } else { even[lag] + odd[lag] };
            shared / variance + if p == q { self.noise } else { 0.0 }
        }))
    }

    /// The parts of the autocovariance, not normalised, that are even and odd in x and in y; by lags (y, x).
    fn autocovariance(&self, patch: Patch) -> [Matrix; 2] {
        let spectrum = Spectrum::of(self);
        let rows = Waves::new(patch.height, patch.spacing);
        let columns = Waves::new(patch.width, patch.spacing);
        let [mut even, mut odd] = [(); 2].map(|()| Matrix::zeros(patch.height, patch.width));
        for k in 0..=NYQUIST {
            let [sums, differences] = spectrum.column(k);
            for y in 0..patch.height {
                let (sum, difference) = (dot(rows.cosine(y), &sums), dot(rows.sine(y), &differences));
                for x in 0..patch.width {
                    even[(y, x)] += columns.cosine(x)[k] * sum;
                    odd[(y, x)] += columns.sine(x)[k] * difference;
                }
            }
        }
        [even, odd]
    }
}

/// The power spectrum |Af|⁻ᵃ of a field.
struct Spectrum {
    sine: f64,
    cosine: f64,
    stretch: f64,
    exponent: f64,
}

impl Spectrum {
    fn of(field: &Field) -> Self {
        let (sine, cosine) = field.angle.sin_cos();
        Self { sine, cosine, stretch: field.log_stretch.exp(), exponent: field.exponent }
    }

    /// P₊ + P₋ and P₊ − P₋ at one k and every l.
    fn column(&self, k: usize) -> [[f64; NYQUIST + 1]; 2] {
        let [mut sums, mut differences] = [[0.0; NYQUIST + 1]; 2];
        for l in usize::from(k == 0)..=NYQUIST {
            let plus = self.power(k as f64, l as f64);
            let minus = if self.sine == 0.0 { plus } else { self.power(k as f64, -(l as f64)) };
            (sums[l], differences[l]) = (plus + minus, plus - minus);
        }
        [sums, differences]
    }

    fn power(&self, k: f64, l: f64) -> f64 {
        let along = self.stretch * (self.cosine * k + self.sine * l);
        let across = (self.cosine * l - self.sine * k) / self.stretch;
        (along * along + across * across).powf(-0.5 * self.exponent)
    }
}

/// u(k) cos(kx) and u(k) sin(kx) for the frequencies of the quadrant, lag after lag.
struct Waves {
    cosines: Vec<f64>,
    sines: Vec<f64>,
}

impl Waves {
    fn new(lags: usize, spacing: usize) -> Self {
        let waves = (0..lags).flat_map(|lag| (0..=NYQUIST).map(move |k| (k, k * lag * spacing % GRID)));
        let (cosines, sines) = waves
            .map(|(k, phase)| {
                let share = if k == 0 || k == NYQUIST { 0.5 } else { 1.0 };
                let (sine, cosine) = (TAU * phase as f64 / GRID as f64).sin_cos();
                (share * cosine, share * sine)
            })
            .unzip();
        Self { cosines, sines }
    }

    fn cosine(&self, lag: usize) -> &[f64] {
        &self.cosines[lag * (NYQUIST + 1)..][..=NYQUIST]
    }

    fn sine(&self, lag: usize) -> &[f64] {
        &self.sines[lag * (NYQUIST + 1)..][..=NYQUIST]
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
