//! Whitens groups of channels apart from one another: a composition of whiteners.

use super::Whitener;
use crate::circuit::require_rows;
use crate::error::{Error, Result, require_length};
use crate::real::Real;

/// Several whiteners, each for some of the channels: for electrodes on separate probes, or sensors of several kinds.
///
/// Each has its own mean, scale, gains and status; a bad sample in one group leaves the others alone.
///
/// ```
/// use leukos::{GroupedWhitener, Matrix, Whitener, WhitenerSettings};
///
/// let whitener = |channels| Whitener::<f64>::new(Matrix::identity(channels), WhitenerSettings::default());
/// // Channels 0 and 2 belong together, and 1 is on its own.
/// let mut whitener = GroupedWhitener::new(vec![(vec![0, 2], whitener(2)?), (vec![1], whitener(1)?)])?;
/// let mut responses = [0.0; 6];
/// whitener.whiten(&[1.0, f64::NAN, 2.0, -1.0, 0.5, 0.0], &mut responses)?;
/// assert!(responses[1].is_nan() && responses[0].is_finite());
/// # Ok::<(), leukos::Error>(())
/// ```
pub struct GroupedWhitener<T: Real = f64> {
    groups: Vec<Group<T>>,
    channels: usize,
}

struct Group<T: Real> {
    channels: Vec<usize>,
    whitener: Whitener<T>,
    stimuli: Vec<T>,
    responses: Vec<T>,
}

/// Whiteners see so many rows of their channels at a time.
const ROWS: usize = 256;

impl<T: Real> GroupedWhitener<T> {
    /// Puts whiteners together, each with the channels that it is for, in its own order.
    ///
    /// # Errors
    /// When there is no group, a whitener is not for as many channels as its group has, or the groups do not hold
    /// each of the channels 0, 1, 2, … once.
    pub fn new(groups: Vec<(Vec<usize>, Whitener<T>)>) -> Result<Self> {
        let channels = groups.iter().map(|(channels, _)| channels.len()).sum();
        let mut seen = vec![false; channels];
        for (index, (own, whitener)) in groups.iter().enumerate() {
            require_length(
                format!("groups[{index}]"),
                own,
                whitener.channels(),
                "one for each of its channels",
            )?;
            for &channel in own {
                let free = seen.get_mut(channel).filter(|seen| !**seen);
                *free.ok_or_else(|| misplaced(index, channel, channels))? = true;
            }
        }
        if channels == 0 {
            return Err(Error::shape("groups", "at least one group", "none"));
        }
        let group = |(channels, whitener): (Vec<usize>, Whitener<T>)| {
            let buffer = vec![T::ZERO; channels.len() * ROWS];
            Group { channels, whitener, stimuli: buffer.clone(), responses: buffer }
        };
        Ok(Self { groups: groups.into_iter().map(group).collect(), channels })
    }

    /// The number of channels of all groups.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The whiteners, in the order in which they were given.
    pub fn whiteners(&self) -> impl Iterator<Item = &Whitener<T>> {
        self.groups.iter().map(|group| &group.whitener)
    }

    /// The same, to be paused or asked for their status.
    pub fn whiteners_mut(&mut self) -> impl Iterator<Item = &mut Whitener<T>> {
        self.groups.iter_mut().map(|group| &mut group.whitener)
    }

    /// Whitens rows of all channels, each group by itself. Nothing is allocated.
    ///
    /// # Errors
    /// As for [`Whitener::whiten`]; the groups before the one that fails have then taken the rows in, and `responses` is
    /// not complete.
    pub fn whiten(&mut self, stimuli: &[T], responses: &mut [T]) -> Result<()> {
        self.apply("stimuli", stimuli, responses, Whitener::whiten)
    }

    /// Turns the responses of an adapting run back into its stimuli; see [`Whitener::unwhiten`].
    ///
    /// # Errors
    /// As for [`Whitener::unwhiten`].
    pub fn unwhiten(&mut self, responses: &[T], stimuli: &mut [T]) -> Result<()> {
        self.apply("responses", responses, stimuli, Whitener::unwhiten)
    }

    fn apply(
        &mut self,
        argument: &'static str,
        from: &[T],
        to: &mut [T],
        map: impl Fn(&mut Whitener<T>, &[T], &mut [T]) -> Result<()>,
    ) -> Result<()> {
        require_rows(argument, from.len(), self.channels)?;
        require_length("output", to, from.len(), "one for each number of the input")?;
        let block = ROWS * self.channels;
        for (from, to) in from.chunks(block).zip(to.chunks_mut(block)) {
            for group in &mut self.groups {
                group.apply(self.channels, from, to, &map)?;
            }
        }
        Ok(())
    }
}

impl<T: Real> Group<T> {
    fn apply(
        &mut self,
        all: usize,
        from: &[T],
        to: &mut [T],
        map: &impl Fn(&mut Whitener<T>, &[T], &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let own = self.channels.len();
        let length = from.len() / all * own;
        let (stimuli, responses) = (&mut self.stimuli[..length], &mut self.responses[..length]);
        for (row, stimulus) in from.chunks_exact(all).zip(stimuli.chunks_exact_mut(own)) {
            stimulus.iter_mut().zip(&self.channels).for_each(|(s, &channel)| *s = row[channel]);
        }
        map(&mut self.whitener, stimuli, responses)?;
        for (row, response) in to.chunks_exact_mut(all).zip(responses.chunks_exact(own)) {
            response.iter().zip(&self.channels).for_each(|(&r, &channel)| row[channel] = r);
        }
        Ok(())
    }
}

fn misplaced(group: usize, channel: usize, channels: usize) -> Error {
    let expected = format!("each of the channels 0 to {} once in all groups", channels - 1);
    Error::shape(format!("groups[{group}]"), expected, format!("channel {channel} too large or once more"))
}
