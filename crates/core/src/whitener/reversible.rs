//! Whitens so that it can be undone although responses are rounded when they are written to a file: the whitener learns
//! from the responses as written.
//!
//! [`Whitener::unwhiten`] has only the written responses to learn from. A whitener that learned from the exact ones would
//! soon have other gains, so this one answers a row, lets it be rounded and clipped, and then takes exactly the step that
//! undoing will take.

use super::answering::fill_bad;
use super::channels::{Limits, Row};
use super::inverse::Undoing;
use super::{BadSamples, GroupedWhitener, Whitener};
use crate::circuit::require_rows;
use crate::error::{Error, Result, require_length};
use crate::real::Real;

impl<T: Real> Whitener<T> {
    /// Whitens rows as [`Self::whiten`] does, but learns from the responses as written: `write` gets each row and changes
    /// it to what a reader of the file will find, rounded or clipped or both.
    ///
    /// [`Self::unwhiten`] of these rows, by a whitener in the same state as this one was, takes exactly the same steps,
    /// and restores every stimulus up to the rounding of its row multiplied by M.
    ///
    /// # Errors
    /// As for [`Self::whiten`] and [`Self::unwhiten`].
    pub fn whiten_written(
        &mut self,
        stimuli: &[T],
        responses: &mut [T],
        write: &mut dyn FnMut(&mut [T]),
    ) -> Result<()> {
        let n = self.channels();
        require_rows("stimuli", stimuli.len(), n)?;
        require_length("responses", responses, stimuli.len(), "one for each of the stimuli")?;
        self.require_replay()?;
        let (mut undoing, mut undone) = (Undoing::new(n), vec![T::ZERO; n]);
        for (row, (s, out)) in stimuli.chunks_exact(n).zip(responses.chunks_exact_mut(n)).enumerate() {
            let bad = self.answer_and_write(s, out, write);
            if let (Some(channel), BadSamples::Error) = (bad, self.settings.bad_samples) {
                return Err(Error::BadSample { index: row * n + channel, value: s[channel].to_f64() });
            }
            self.undo_row(out, &mut undone, &mut undoing)?;
        }
        Ok(())
    }

    /// Answers a row without learning, and writes the answer. Returns the first channel that cannot be used, if any.
    fn answer_and_write(&mut self, s: &[T], out: &mut [T], write: &mut dyn FnMut(&mut [T])) -> Option<usize> {
        let channels = self.channels.clone();
        let limits = Limits::new::<T>(&self.settings, &self.calibration);
        let (verdict, revived) = self.channels.screen(s, &limits);
        if let Row::Bad { channel } = verdict {
            self.channels = channels;
            fill_bad(self.settings.bad_samples, &self.block.last, out);
            write(out);
            return Some(channel);
        }
        self.answer_alone(s, out);
        write(out);
        // When the run is undone, a response that is not zero shows that a channel has come back.
        let seen = |j: usize| channels.is_live(j) || !self.channels.is_live(j) || out[j] != T::ZERO;
        let all_seen = revived == 0 || (0..s.len()).all(seen);
        self.channels = channels;
        if !all_seen {
            self.answer_alone(s, out);
            write(out);
        }
        None
    }

    /// The response to a row, without learning.
    fn answer_alone(&mut self, s: &[T], out: &mut [T]) {
        let (n, k) = (s.len(), self.gains().len());
        self.block.begin(1);
        self.circuit.reserve(1);
        self.calibration.condition(s, &self.channels, &mut self.block.x[..n]);
        let (x, r, z) = (&self.block.x[..n], &mut self.block.r[..n], &mut self.block.z[..k]);
        self.circuit.respond(x, r, z);
        self.mix(0, out);
    }
}

impl<T: Real> GroupedWhitener<T> {
    /// Whitens rows and learns from what is written of the responses; see [`Whitener::whiten_written`]. `write` gets
    /// the rows of each group, one after another.
    ///
    /// # Errors
    /// As for [`Whitener::whiten_written`].
    pub fn whiten_written(
        &mut self,
        stimuli: &[T],
        responses: &mut [T],
        write: &mut dyn FnMut(&mut [T]),
    ) -> Result<()> {
        self.adapt("stimuli", stimuli, responses, |whitener, from, to| {
            whitener.whiten_written(from, to, write)
        })
    }
}
