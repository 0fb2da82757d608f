//! Whitens so that it can be undone although responses are rounded when they are written to a file: the whitener learns
//! from the responses as written.
//!
//! [`Whitener::unwhiten`] has only the written responses to learn from. A whitener that learned from the exact ones would
//! soon have another map, so this one answers a row, lets it be rounded and clipped, and then takes exactly the step that
//! undoing will take.

use super::answering::fill_bad;
use super::inverse::Undoing;
use super::screen::Row;
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
        let before = self.screen.clone();
        let (verdict, revived) = self.screen.screen(s, self.limit());
        let after = std::mem::replace(&mut self.screen, before);
        if let Row::Bad { channel } = verdict {
            fill_bad(self.settings.bad_samples, &self.last, out);
            write(out);
            return Some(channel);
        }
        if revived > 0 {
            let mut returned = self.clone();
            returned.screen = after;
            returned.change_channels();
            returned.answer_alone(s, out);
            write(out);
            // When the run is undone, a response that is not zero shows that a channel has come back.
            let seen = |j: usize| self.live[j] || !returned.live[j] || out[j] != T::ZERO;
            if (0..s.len()).all(seen) {
                return None;
            }
        }
        self.answer_alone(s, out);
        write(out);
        None
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
