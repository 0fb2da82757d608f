//! Sums rows of recordings up into the moments of their contexts.

use leukos::size::require_moments;
use leukos::{ContextMoments, Moments, Result, RunningMoments, mark_unusable};

use super::recordings::Division;
use crate::recording::Rows;

/// What has been summed up of recordings.
pub struct Sums {
    channels: usize,
    division: Division,
    /// Values this large count as bad.
    saturation: Option<f64>,
    named: ContextMoments,
    /// Contexts of recordings that have come to their end, where they are divided into segments.
    finished: Vec<(String, Moments)>,
    segments: Segments,
    /// How many rows there were.
    pub rows: u64,
    /// How many had no label, and so belong to no context.
    pub unlabelled: u64,
}

impl Sums {
    /// Of nothing yet.
    ///
    /// # Errors
    /// When there are too many channels for any memory, or for this one.
    pub fn new(channels: usize, division: Division, saturation: Option<f64>) -> Result<Self> {
        Ok(Self {
            channels,
            division,
            saturation,
            named: ContextMoments::new(channels),
            finished: Vec::new(),
            segments: Segments::new(channels, division.length())?,
            rows: 0,
            unlabelled: 0,
        })
    }

    /// Takes in some rows of the recording of this name; values that cannot be used become NaN.
    ///
    /// # Errors
    /// When they are not whole rows.
    pub fn update(&mut self, recording: &str, rows: &mut Rows) -> Result<()> {
        self.rows += (rows.values.len() / self.channels) as u64;
        mark_unusable(&mut rows.values, self.channels, self.saturation);
        match self.division {
            Division::Files => self.named.update(recording, &rows.values),
            Division::Segments(_) => self.segments.update(&rows.values),
            Division::Labels => self.update_labelled(rows),
        }
    }

    fn update_labelled(&mut self, rows: &Rows) -> Result<()> {
        let mut rest = rows.values.as_slice();
        for run in rows.labels.chunk_by(|one, next| one == next) {
            let (values, later) = rest.split_at(run.len() * self.channels);
            rest = later;
            if run[0].is_empty() {
                self.unlabelled += run.len() as u64;
            } else {
                self.named.update(&run[0], values)?;
            }
        }
        Ok(())
    }

    /// Says that the recording of this name has come to its end; the next one begins a new segment.
    ///
    /// # Errors
    /// When moments cannot be summed up.
    pub fn end_recording(&mut self, recording: &str) -> Result<()> {
        let Division::Segments(length) = self.division else { return Ok(()) };
        let segments = std::mem::replace(&mut self.segments, Segments::new(self.channels, length)?);
        for (i, moments) in segments.finish().into_iter().enumerate() {
            self.finished.push((format!("{recording}, segment {i}"), moments.finish()?));
        }
        Ok(())
    }

    /// The contexts by name, in the order in which they appeared.
    ///
    /// # Errors
    /// When moments cannot be summed up.
    pub fn finish(self) -> Result<Vec<(String, Moments)>> {
        Ok([self.finished, self.named.finish()?].concat())
    }
}

/// Segments of one recording.
struct Segments {
    channels: usize,
    length: u64,
    done: Vec<RunningMoments>,
    current: RunningMoments,
    /// How many rows the current one has.
    filled: u64,
    /// The last complete one with the rows of the current one: until that has half its length, it
    /// may become a segment or join the one before, so its rows are summed up both ways.
    prolonged: Option<RunningMoments>,
}

impl Segments {
    fn new(channels: usize, length: u64) -> Result<Self> {
        require_moments(channels, 1)?;
        let current = RunningMoments::new(channels);
        Ok(Self { channels, length, done: Vec::new(), current, filled: 0, prolonged: None })
    }

    fn update(&mut self, mut values: &[f64]) -> Result<()> {
        while !values.is_empty() {
            if self.filled == self.length {
                self.close()?;
            }
            let taken = ((values.len() / self.channels) as u64).min(self.length - self.filled);
            let (now, later) = values.split_at(taken as usize * self.channels);
            self.current.update(now)?;
            if let Some(prolonged) = &mut self.prolonged {
                prolonged.update(now)?;
            }
            self.filled += taken;
            if self.filled >= self.length - self.filled {
                self.prolonged = None;
            }
            values = later;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        require_moments(self.channels, 2)?;
        let complete = std::mem::replace(&mut self.current, RunningMoments::new(self.channels));
        self.prolonged = Some(complete.clone());
        self.done.push(complete);
        self.filled = 0;
        Ok(())
    }

    fn finish(mut self) -> Vec<RunningMoments> {
        match (self.prolonged, self.done.last_mut()) {
            (Some(prolonged), Some(last)) => *last = prolonged,
            _ => self.done.push(self.current),
        }
        self.done
    }
}
