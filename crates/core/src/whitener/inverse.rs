//! Gives the matrices of a whitener, and turns the responses of an adapting run back into stimuli.

use super::{BadSamples, Whitener};
use crate::circuit::require_rows;
use crate::error::{Error, Result, require_length};
use crate::kernels::{all_finite, inner};
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
    /// F_s = (1 − s) I/σ + s C^−½, which takes centred stimuli to responses, with zeros for channels that are left out.
    ///
    /// # Errors
    /// When nothing has varied yet.
    pub fn whitening_matrix(&self) -> Result<Matrix> {
        self.require_map()?;
        Ok(Self::in_units_of_the_input(self.map.whitening(), 1.0 / self.unit))
    }

    /// The inverse of [`Self::whitening_matrix`] on the channels that take part.
    ///
    /// # Errors
    /// When nothing has varied yet.
    pub fn dewhitening_matrix(&self) -> Result<Matrix> {
        self.require_map()?;
        Ok(Self::in_units_of_the_input(self.map.dewhitening(), self.unit))
    }

    fn in_units_of_the_input(mut matrix: Matrix, unit: f64) -> Matrix {
        matrix.as_mut_slice().iter_mut().for_each(|entry| *entry *= unit);
        matrix
    }

    fn require_map(&self) -> Result<()> {
        if self.map.scale > 0.0 {
            return Ok(());
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
        let revived = if whole { self.screen.revive(|j| response[j] != T::ZERO) } else { 0 };
        self.welcome(revived);
        if revived > 0 || self.block.rows == 0 {
            undoing.matrix = None;
        }
        if whole {
            self.invert_row(response, &mut undoing.matrix, stimulus);
        } else {
            stimulus.fill(T::from_f64(f64::NAN));
        }
        // The run goes on as it did: the echo is the response that was given.
        self.take_in(stimulus, &mut undoing.echo, undoing.row)?;
        undoing.row += 1;
        Ok(())
    }

    pub(super) fn require_replay(&self) -> Result<()> {
        if !self.started {
            let reason = "replay needs a whitener that was trained; this one begins with its stream";
            return Err(Error::Incompatible { argument: "whitener".into(), reason });
        }
        if matches!(self.settings.bad_samples, BadSamples::Hold | BadSamples::Zero) {
            let reason =
                "replay cannot tell rows that were held or set to zero from responses; use mark or error";
            return Err(Error::Incompatible { argument: "bad_samples".into(), reason });
        }
        Ok(())
    }

    /// s = (F⁻¹ y + mean) unit; the inverse is good until the map moves. A channel that is left out rests where it was.
    fn invert_row(&self, y: &[T], matrix: &mut Option<Matrix>, s: &mut [T]) {
        let matrix = matrix.get_or_insert_with(|| self.map.dewhitening());
        let y: Vec<f64> = y.iter().map(|y| y.to_f64()).collect();
        for (j, s) in s.iter_mut().enumerate() {
            let restored = (inner(matrix.column(j), &y) + self.map.mean[j]) * self.unit;
            *s = T::from_f64(if self.live[j] { restored } else { self.screen.reference(j) });
        }
    }
}
