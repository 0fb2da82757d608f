//! Sums up a stream incrementally, by context; the result is the same to the last bit however the stream is cut.

use std::collections::HashMap;

use crate::circuit::require_rows;
use crate::error::{Error, Result};
use crate::moments::{BLOCK, Moments};
use crate::real::Real;
use crate::size::{out_of_memory, require_moments};

/// [`Moments`] of rows that arrive incrementally: the same, to the last bit, as those of one call with all rows.
///
/// ```
/// use leukos::{Moments, RunningMoments};
///
/// let rows: Vec<f64> = (0..3000).map(|i| f64::from(i * 7919 % 1000)).collect();
/// let (mut whole, mut running) = (Moments::new(2), RunningMoments::new(2));
/// whole.update(&rows)?;
/// rows.chunks(14).try_for_each(|rows| running.update(rows))?;
/// assert_eq!(running.finish()?, whole);
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RunningMoments {
    moments: Moments,
    /// Rows that do not fill a block yet.
    waiting: Vec<f64>,
}

impl RunningMoments {
    /// Of no samples of so many channels yet; see [`Moments::new`].
    pub fn new(channels: usize) -> Self {
        Self { moments: Moments::new(channels), waiting: Vec::new() }
    }

    /// Goes on from [`Self::parts`].
    ///
    /// # Errors
    /// When `waiting` is not a whole number of rows, less than a block of 256.
    pub fn resume(moments: Moments, waiting: Vec<f64>) -> Result<Self> {
        let rows = require_rows("waiting", waiting.len(), moments.channels().max(1))?;
        if rows >= BLOCK {
            return Err(Error::shape("waiting", format!("fewer than {BLOCK} rows"), rows.to_string()));
        }
        Ok(Self { moments, waiting })
    }

    /// The moments of all rows in complete blocks, and the rows that do not fill one yet.
    pub fn parts(&self) -> (&Moments, &[f64]) {
        (&self.moments, &self.waiting)
    }

    /// Takes in rows of samples.
    ///
    /// # Errors
    /// When `samples` is not a whole number of rows, or there is no memory for the moments of a block.
    pub fn update<T: Real>(&mut self, samples: &[T]) -> Result<()> {
        let channels = self.moments.channels();
        if channels == 0 {
            return Err(Error::shape("channels", "at least one", "none"));
        }
        require_rows("samples", samples.len(), channels)?;
        let block = channels * BLOCK;
        let mut rest = samples;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(block - self.waiting.len()));
            self.waiting.try_reserve(now.len()).map_err(|_| out_of_memory("samples", block))?;
            self.waiting.extend(now.iter().map(|s| s.to_f64()));
            if self.waiting.len() == block {
                self.moments.update(&self.waiting)?;
                self.waiting.clear();
            }
            rest = later;
        }
        Ok(())
    }

    /// The moments of all rows.
    ///
    /// # Errors
    /// Never, as far as we know: the rows have been checked.
    pub fn finish(mut self) -> Result<Moments> {
        if !self.waiting.is_empty() {
            self.moments.update(&self.waiting)?;
        }
        Ok(self.moments)
    }
}

/// Moments of each context of a stream, in the order in which the contexts first appeared.
///
/// ```
/// use leukos::ContextMoments;
///
/// let mut moments = ContextMoments::new(1);
/// moments.update("asleep", &[1.0, 3.0])?;
/// moments.update("awake", &[10.0])?;
/// moments.update("asleep", &[5.0])?;
/// let contexts = moments.finish()?;
/// assert_eq!((contexts[0].0.as_str(), contexts[0].1.mean()), ("asleep", &[3.0][..]));
/// assert_eq!((contexts[1].0.as_str(), contexts[1].1.count()), ("awake", 1));
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ContextMoments {
    channels: usize,
    contexts: Vec<(String, RunningMoments)>,
    places: HashMap<String, usize>,
}

impl ContextMoments {
    /// Of no context of so many channels yet.
    pub fn new(channels: usize) -> Self {
        Self { channels, contexts: Vec::new(), places: HashMap::new() }
    }

    /// Goes on from [`Self::contexts`].
    ///
    /// # Errors
    /// When one has another number of channels, or two have the same name.
    pub fn resume(channels: usize, contexts: Vec<(String, RunningMoments)>) -> Result<Self> {
        let places = contexts.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
        let resumed = Self { channels, contexts, places };
        let widths = resumed.contexts.iter().map(|(_, running)| running.moments.channels());
        if let Some(other) = widths.into_iter().find(|&found| found != channels) {
            return Err(Error::shape("moments", format!("{channels} channels"), format!("{other} channels")));
        }
        if resumed.places.len() < resumed.contexts.len() {
            return Err(Error::shape("contexts", "each name once", "one of them twice"));
        }
        Ok(resumed)
    }

    /// The contexts so far, in the order in which they first appeared.
    pub fn contexts(&self) -> impl ExactSizeIterator<Item = (&str, &RunningMoments)> {
        self.contexts.iter().map(|(name, running)| (name.as_str(), running))
    }

    /// Takes in rows of samples of one context.
    ///
    /// # Errors
    /// When `samples` is not a whole number of rows, or there are too many channels, or contexts, for the memory.
    pub fn update<T: Real>(&mut self, context: &str, samples: &[T]) -> Result<()> {
        let place = match self.places.get(context) {
            Some(&place) => place,
            None => self.begin(context)?,
        };
        self.contexts[place].1.update(samples)
    }

    /// The place of a context that is new.
    fn begin(&mut self, context: &str) -> Result<usize> {
        require_moments(self.channels, 1)?;
        let place = self.contexts.len();
        self.places.insert(context.to_owned(), place);
        self.contexts.push((context.to_owned(), RunningMoments::new(self.channels)));
        Ok(place)
    }

    /// The contexts with the moments of all their rows.
    ///
    /// # Errors
    /// Never, as far as we know: the rows have been checked.
    pub fn finish(self) -> Result<Vec<(String, Moments)>> {
        self.contexts.into_iter().map(|(name, moments)| Ok((name, moments.finish()?))).collect()
    }
}
