//! Uses a whitener as it stands, and turns responses back into stimuli.

use super::answering::{fill_bad, unusable};
use super::{BadSamples, Whitener};
use crate::circuit::require_rows;
use crate::error::{Error, Result, require_length};
use crate::kernels::{all_finite, inner, recurrent};
use crate::linalg::{Cholesky, weighted_gram};
use crate::matrix::Matrix;
use crate::real::Real;

impl<T: Real> Whitener<T> {
    /// F_s = \[(1 − s) I + s M⁻¹\]/σ, which takes centred stimuli to responses, with zeros for channels that are left out.
    ///
    /// # Errors
    /// When the whitener has no scale yet.
    pub fn whitening_matrix(&self) -> Result<Matrix> {
        let scale = self.require_scale()?;
        let s = self.settings.strength;
        let inverse =
            Cholesky::new(self.inverse_matrix()).map_err(|test| self.circuit().invalid(test))?.inverse();
        let n = self.channels();
        let live = |i, j| self.channels.is_live(i) && self.channels.is_live(j);
        Ok(Matrix::from_fn(n, n, |i, j| {
            let own = if i == j { 1.0 - s } else { 0.0 };
            if live(i, j) { (own + s * inverse[(i, j)]) / scale } else { 0.0 }
        }))
    }

    /// The inverse of [`Self::whitening_matrix`] on the channels that take part.
    ///
    /// # Errors
    /// When the whitener has no scale yet.
    pub fn dewhitening_matrix(&self) -> Result<Matrix> {
        let whitening = self.whitening_matrix()?;
        let n = self.channels();
        let live: Vec<usize> = (0..n).filter(|&j| self.channels.is_live(j)).collect();
        let block = Matrix::from_fn(live.len(), live.len(), |i, j| whitening[(live[i], live[j])]);
        let inverse = Cholesky::new(block).map_err(|test| self.circuit().invalid(test))?.inverse();
        let mut whole = Matrix::zeros(n, n);
        for (j, &column) in live.iter().enumerate() {
            for (i, &row) in live.iter().enumerate() {
                whole[(row, column)] = inverse[(i, j)];
            }
        }
        Ok(whole)
    }

    /// M in double precision, from the gains in double precision.
    fn inverse_matrix(&self) -> Matrix {
        let weights = self.circuit().synapses().feedback().cast();
        weighted_gram(&weights, self.gains(), self.settings.leak)
    }

    fn require_scale(&self) -> Result<f64> {
        if self.calibration.scale > 0.0 {
            return Ok(self.calibration.scale);
        }
        let reason = "the whitener has no scale yet; let it see varying input first, or train it";
        Err(Error::Incompatible { argument: "whitener".into(), reason })
    }

    /// Whitens rows with everything as it stands: no row changes anything, and none is counted.
    ///
    /// # Errors
    /// As for [`Self::whiten`], and when the whitener has no scale yet.
    pub fn whiten_frozen(&self, stimuli: &[T], responses: &mut [T]) -> Result<()> {
        let matrix = self.whitening_matrix()?;
        let rows = Frozen { whitener: self, matrix: &matrix, before: self.mean(), after: None };
        rows.apply("stimuli", stimuli, responses)
    }

    /// Turns responses of a frozen whitener back into stimuli. A channel that is left out gives its last value.
    ///
    /// # Errors
    /// As for [`Self::whiten`], and when the whitener has no scale yet.
    pub fn unwhiten_frozen(&self, responses: &[T], stimuli: &mut [T]) -> Result<()> {
        let matrix = self.dewhitening_matrix()?;
        let n = self.channels();
        let rest = |j| if self.channels.is_live(j) { self.mean()[j] } else { self.channels.reference(j) };
        let (zeros, rests) = (vec![0.0; n], (0..n).map(rest).collect::<Vec<_>>());
        let rows = Frozen { whitener: self, matrix: &matrix, before: &zeros, after: Some(&rests) };
        rows.apply("responses", responses, stimuli)
    }

    /// Turns the responses of an adapting run back into its stimuli, by adapting along: the whitener must stand as
    /// it did when the run began. Rows of NaN, which mark bad samples, stay so.
    ///
    /// # Errors
    /// When the sizes do not fit, the whitener has no mean and scale yet (it must have been trained), or bad samples are held or set to
    /// zero, which cannot be told from responses.
    pub fn unwhiten(&mut self, responses: &[T], stimuli: &mut [T]) -> Result<()> {
        let n = self.channels();
        let rows = require_rows("responses", responses.len(), n)?;
        require_length("stimuli", stimuli, responses.len(), "one for each of the responses")?;
        self.require_replay()?;
        let mut echo = vec![T::ZERO; n];
        let mut matrix = None;
        for row in 0..rows {
            let (response, stimulus) = (&responses[row * n..][..n], &mut stimuli[row * n..][..n]);
            let whole = all_finite(response);
            let revived = if whole { self.channels.revive(|j| response[j] != T::ZERO) } else { 0 };
            self.welcome(revived);
            if revived > 0 {
                matrix = None;
            }
            if self.block.rows == 0 {
                matrix = None;
            }
            if whole {
                self.invert_row(response, &mut matrix, stimulus)?;
            } else {
                stimulus.fill(T::from_f64(f64::NAN));
            }
            // The run goes on as it did: the echo is the response that was given.
            self.take_in(stimulus, &mut echo, row)?;
        }
        Ok(())
    }

    fn require_replay(&self) -> Result<()> {
        if self.gathering.is_some() {
            let reason = "replay needs a mean and a scale from training; this one takes them from its stream";
            return Err(Error::Incompatible { argument: "whitener".into(), reason });
        }
        if matches!(self.settings.bad_samples, BadSamples::Hold | BadSamples::Zero) {
            let reason =
                "replay cannot tell rows that were held or set to zero from responses; use mark or error";
            return Err(Error::Incompatible { argument: "bad_samples".into(), reason });
        }
        Ok(())
    }

    /// s = σ M y + mean; by the explicit inverse where that is not all, which is good until the circuit moves.
    fn invert_row(&self, y: &[T], matrix: &mut Option<Matrix>, s: &mut [T]) -> Result<()> {
        let n = y.len();
        let mut x = vec![T::ZERO; n];
        if self.settings.strength == 1.0 && self.channels.live_count() == n {
            recurrent(self.circuit().parts(), y, &mut vec![T::ZERO; self.gains().len()], &mut x);
        } else {
            let matrix = match matrix {
                Some(known) => known,
                None => matrix.insert(self.dewhitening_matrix()?),
            };
            let y: Vec<f64> = y.iter().map(|y| y.to_f64()).collect();
            for (i, x) in x.iter_mut().enumerate() {
                *x = T::from_f64(inner(matrix.column(i), &y) / self.calibration.scale);
            }
        }
        self.calibration.restore(&x, &self.channels, s);
        Ok(())
    }
}

/// A fixed affine map of rows: out = matrix · (in − before) + after.
struct Frozen<'a, T: Real> {
    whitener: &'a Whitener<T>,
    matrix: &'a Matrix,
    before: &'a [f64],
    after: Option<&'a [f64]>,
}

impl<T: Real> Frozen<'_, T> {
    fn apply(&self, argument: &'static str, from: &[T], to: &mut [T]) -> Result<()> {
        let n = self.whitener.channels();
        let rows = require_rows(argument, from.len(), n)?;
        require_length("output", to, from.len(), "one for each number of the input")?;
        let mut last = vec![T::ZERO; n];
        let mut centred = vec![0.0; n];
        for row in 0..rows {
            let (input, out) = (&from[row * n..][..n], &mut to[row * n..][..n]);
            if let Some(channel) = self.bad_channel(input) {
                if self.whitener.settings.bad_samples == BadSamples::Error {
                    return Err(unusable(row * n + channel, input[channel].to_f64()));
                }
                fill_bad(self.whitener.settings.bad_samples, &last, out);
                continue;
            }
            self.map_row(input, &mut centred, out);
            last.copy_from_slice(out);
        }
        Ok(())
    }

    /// The first channel that takes part and has no usable number.
    fn bad_channel(&self, row: &[T]) -> Option<usize> {
        let whitener = self.whitener;
        // Saturation is a matter of stimuli, not of responses.
        let saturation = if self.after.is_none() { whitener.settings.saturation } else { None };
        let limit = saturation.unwrap_or(f64::INFINITY);
        (0..row.len()).find(|&j| whitener.channels.is_live(j) && !(row[j].to_f64().abs() < limit))
    }

    fn map_row(&self, row: &[T], centred: &mut [f64], out: &mut [T]) {
        for (j, centred) in centred.iter_mut().enumerate() {
            let live = self.whitener.channels.is_live(j);
            *centred = if live { row[j].to_f64() - self.before[j] } else { 0.0 };
        }
        for (i, out) in out.iter_mut().enumerate() {
            // The matrix is symmetric: its columns are its rows.
            let value = inner(self.matrix.column(i), centred);
            *out = T::from_f64(value + self.after.map_or(0.0, |after| after[i]));
        }
    }
}
