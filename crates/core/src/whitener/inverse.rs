//! Gives the matrices of a whitener, and turns the responses of an adapting run back into stimuli.

use super::{BadSamples, Whitener};
use crate::circuit::require_rows;
use crate::error::{Error, Result, require_length};
use crate::kernels::{all_finite, inner, recurrent};
use crate::linalg::{Cholesky, weighted_gram};
use crate::matrix::Matrix;
use crate::real::Real;

/// What is kept from row to row while responses become stimuli again.
pub(super) struct Undoing<T> {
    /// The dewhitening matrix, as long as it holds.
    matrix: Option<Matrix>,
    echo: Vec<T>,
    row: usize,
}

impl<T: Real> Undoing<T> {
    pub fn new(channels: usize) -> Self {
        Self { matrix: None, echo: vec![T::ZERO; channels], row: 0 }
    }
}

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

    /// Turns the responses of an adapting run back into its stimuli, by adapting in the same way: the whitener must be as
    /// it was when the run began. Rows of NaN, which mark bad samples, stay so.
    ///
    /// # Errors
    /// When the sizes do not fit, the whitener has no mean and scale yet (it must have been trained), or bad samples are held or set to
    /// zero, which cannot be told from responses.
    pub fn unwhiten(&mut self, responses: &[T], stimuli: &mut [T]) -> Result<()> {
        let n = self.channels();
        let rows = require_rows("responses", responses.len(), n)?;
        require_length("stimuli", stimuli, responses.len(), "one for each of the responses")?;
        self.require_replay()?;
        let mut undoing = Undoing::new(n);
        for row in 0..rows {
            self.undo_row(&responses[row * n..][..n], &mut stimuli[row * n..][..n], &mut undoing)?;
        }
        Ok(())
    }

    /// Computes the stimulus of a response, and learns from it as the run did.
    pub(super) fn undo_row(
        &mut self,
        response: &[T],
        stimulus: &mut [T],
        undoing: &mut Undoing<T>,
    ) -> Result<()> {
        let whole = all_finite(response);
        let revived = if whole { self.channels.revive(|j| response[j] != T::ZERO) } else { 0 };
        self.welcome(revived);
        if revived > 0 || self.block.rows == 0 {
            undoing.matrix = None;
        }
        if whole {
            self.invert_row(response, &mut undoing.matrix, stimulus)?;
        } else {
            stimulus.fill(T::from_f64(f64::NAN));
        }
        // The run goes on as it did: the echo is the response that was given.
        self.take_in(stimulus, &mut undoing.echo, undoing.row)?;
        undoing.row += 1;
        Ok(())
    }

    pub(super) fn require_replay(&self) -> Result<()> {
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
