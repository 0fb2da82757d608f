//! Whitens groups of channels separately: a composition of whiteners.

use super::{BadSamples, Whitener};
use crate::circuit::require_rows;
use crate::error::{Error, Result, require_length};
use crate::matrix::Matrix;
use crate::real::Real;

/// Several whiteners, each for some of the channels: for electrodes on separate probes, or sensors of several kinds.
///
/// Each has its own mean, scale, gains and status; a bad sample in one group leaves the others alone. One whitener for
/// all channels is the ordinary case, and costs nothing more.
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
#[derive(Clone)]
pub struct GroupedWhitener<T: Real = f64> {
    groups: Vec<Group<T>>,
    channels: usize,
    scratch: Scratch<T>,
}

#[derive(Clone)]
struct Group<T: Real> {
    channels: Vec<usize>,
    whitener: Whitener<T>,
}

/// The rows of one group by themselves, on their way in and out.
#[derive(Clone, Default)]
pub(super) struct Scratch<T> {
    from: Vec<T>,
    to: Vec<T>,
}

/// Whiteners see so many rows of their channels at a time.
const ROWS: usize = 256;

impl<T: Real> From<Whitener<T>> for GroupedWhitener<T> {
    fn from(whitener: Whitener<T>) -> Self {
        let channels = whitener.channels();
        Self::of(vec![Group { channels: (0..channels).collect(), whitener }], channels)
    }
}

impl<T: Real> GroupedWhitener<T> {
    /// Puts whiteners together, each with the channels that it is for, in its own order.
    ///
    /// # Errors
    /// When there is no group, a whitener is not for as many channels as its group has, or the groups do not hold
    /// each of the channels 0, 1, 2, … once.
    pub fn new(groups: Vec<(Vec<usize>, Whitener<T>)>) -> Result<Self> {
        for (index, (own, whitener)) in groups.iter().enumerate() {
            let argument = format!("groups[{index}]");
            require_length(argument, own, whitener.channels(), "one for each of its channels")?;
        }
        let channels = require_partition(groups.iter().map(|(own, _)| own.as_slice()))?;
        let group = |(channels, whitener)| Group { channels, whitener };
        Ok(Self::of(groups.into_iter().map(group).collect(), channels))
    }

    fn of(groups: Vec<Group<T>>, channels: usize) -> Self {
        let mut whole = Self { groups, channels, scratch: Scratch::default() };
        if whole.single().is_none() {
            let most = whole.groups.iter().map(|group| group.channels.len()).max().unwrap_or(0);
            whole.scratch.reserve(most * ROWS);
        }
        whole
    }

    /// The number of channels of all groups.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The groups, in the order in which they were given: their channels and their whitener.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[usize], &Whitener<T>)> {
        self.groups.iter().map(|group| (group.channels.as_slice(), &group.whitener))
    }

    /// The whiteners, in the order in which they were given.
    pub fn whiteners(&self) -> impl ExactSizeIterator<Item = &Whitener<T>> {
        self.groups.iter().map(|group| &group.whitener)
    }

    /// The same, to be paused or asked for their status.
    pub fn whiteners_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Whitener<T>> {
        self.groups.iter_mut().map(|group| &mut group.whitener)
    }

    /// The whitener, where there is one for all channels in their order.
    pub fn single(&self) -> Option<&Whitener<T>> {
        match self.groups.as_slice() {
            [group] if group.is_natural() => Some(&group.whitener),
            _ => None,
        }
    }

    /// The same, to be used on its own.
    pub fn single_mut(&mut self) -> Option<&mut Whitener<T>> {
        match self.groups.as_mut_slice() {
            [group] if group.is_natural() => Some(&mut group.whitener),
            _ => None,
        }
    }

    /// Whitens rows of all channels, each group by itself. Nothing is allocated.
    ///
    /// # Errors
    /// As for [`Whitener::whiten`]; the groups before the one that fails have then taken the rows in, and `responses` is
    /// not complete.
    pub fn whiten(&mut self, stimuli: &[T], responses: &mut [T]) -> Result<()> {
        self.adapt("stimuli", stimuli, responses, Whitener::whiten)
    }

    /// Turns the responses of an adapting run back into its stimuli; see [`Whitener::unwhiten`].
    ///
    /// # Errors
    /// As for [`Whitener::unwhiten`].
    pub fn unwhiten(&mut self, responses: &[T], stimuli: &mut [T]) -> Result<()> {
        self.adapt("responses", responses, stimuli, Whitener::unwhiten)
    }

    /// Tells all of them that a new context begins; see [`Whitener::begin_context`].
    pub fn begin_context(&mut self) {
        self.whiteners_mut().for_each(Whitener::begin_context);
    }

    /// Takes over what another one of the same groups has learned; see [`Whitener::take_over`].
    ///
    /// # Errors
    /// When the other one has other groups.
    pub fn take_over<U: Real>(&mut self, other: &GroupedWhitener<U>) -> Result<()> {
        let same =
            self.groups().map(|(channels, _)| channels).eq(other.groups().map(|(channels, _)| channels));
        if !same {
            return Err(Error::shape("whitener", "the same groups of channels", "others"));
        }
        self.whiteners_mut().zip(other.whiteners()).try_for_each(|(own, other)| own.take_over(other))
    }

    /// Sets how strongly all of them whiten from now on; see [`Whitener::set_strength`].
    ///
    /// # Errors
    /// As for [`Whitener::set_strength`].
    pub fn set_strength(&mut self, strength: f64) -> Result<()> {
        self.whiteners_mut().try_for_each(|whitener| whitener.set_strength(strength))
    }

    /// Sets what to do with samples that cannot be used, from now on.
    pub fn set_bad_samples(&mut self, bad_samples: BadSamples) {
        self.whiteners_mut().for_each(|whitener| whitener.set_bad_samples(bad_samples));
    }

    /// How all of them are doing, for people to read.
    pub fn status(&mut self) -> String {
        if let Some(own) = self.single_mut() {
            return own.status().to_string();
        }
        let channels: Vec<String> = self.groups().map(|(channels, _)| format!("{channels:?}")).collect();
        let groups = self.whiteners_mut().zip(channels);
        let groups = groups.map(|(own, channels)| format!("group of channels {channels}\n{}", own.status()));
        groups.collect::<Vec<_>>().join("\n")
    }

    /// The running mean of every channel.
    pub fn mean(&self) -> Vec<f64> {
        self.gathered(Whitener::mean)
    }

    /// The whitening matrix of all channels; see [`Whitener::whitening_matrix`]. It has zeros between groups.
    ///
    /// # Errors
    /// As for [`Whitener::whitening_matrix`].
    pub fn whitening_matrix(&self) -> Result<Matrix> {
        self.assembled(Whitener::whitening_matrix)
    }

    /// The inverse of [`Self::whitening_matrix`] on the channels that take part.
    ///
    /// # Errors
    /// As for [`Whitener::dewhitening_matrix`].
    pub fn dewhitening_matrix(&self) -> Result<Matrix> {
        self.assembled(Whitener::dewhitening_matrix)
    }

    fn gathered(&self, of: impl Fn(&Whitener<T>) -> Vec<f64>) -> Vec<f64> {
        let mut all = vec![0.0; self.channels];
        for (channels, whitener) in self.groups() {
            channels.iter().zip(of(whitener)).for_each(|(&channel, value)| all[channel] = value);
        }
        all
    }

    fn assembled(&self, of: impl Fn(&Whitener<T>) -> Result<Matrix>) -> Result<Matrix> {
        let mut all = Matrix::zeros(self.channels, self.channels);
        for (channels, whitener) in self.groups() {
            let own = of(whitener)?;
            for (j, &column) in channels.iter().enumerate() {
                for (i, &row) in channels.iter().enumerate() {
                    all[(row, column)] = own[(i, j)];
                }
            }
        }
        Ok(all)
    }

    pub(super) fn adapt(
        &mut self,
        argument: &'static str,
        from: &[T],
        to: &mut [T],
        mut map: impl FnMut(&mut Whitener<T>, &[T], &mut [T]) -> Result<()>,
    ) -> Result<()> {
        if let Some(whitener) = self.single_mut() {
            return map(whitener, from, to);
        }
        require_rows(argument, from.len(), self.channels)?;
        require_length("output", to, from.len(), "one for each number of the input")?;
        let (all, block) = (self.channels, ROWS * self.channels);
        for (number, (from, to)) in from.chunks(block).zip(to.chunks_mut(block)).enumerate() {
            for Group { channels, whitener } in &mut self.groups {
                let outcome =
                    self.scratch.with((channels, all), from, to, |from, to| map(whitener, from, to));
                outcome.map_err(|error| match error {
                    Error::BadSample { index, value } => {
                        Error::BadSample { index: number * block + index, value }
                    }
                    other => other,
                })?;
            }
        }
        Ok(())
    }
}

impl<T: Real> Group<T> {
    /// Whether its channels are 0, 1, 2, …
    fn is_natural(&self) -> bool {
        self.channels.iter().enumerate().all(|(index, &channel)| index == channel)
    }
}

impl<T: Real> Scratch<T> {
    pub fn reserve(&mut self, length: usize) {
        self.from.resize(length.max(self.from.len()), T::ZERO);
        self.to.resize(length.max(self.to.len()), T::ZERO);
    }

    /// Takes some of all channels out of rows, maps them, and puts the outcome in their places.
    pub fn with(
        &mut self,
        (channels, all): (&[usize], usize),
        from: &[T],
        to: &mut [T],
        map: impl FnOnce(&[T], &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let own = channels.len();
        let length = from.len() / all * own;
        let (stimuli, responses) = (&mut self.from[..length], &mut self.to[..length]);
        for (row, stimulus) in from.chunks_exact(all).zip(stimuli.chunks_exact_mut(own)) {
            stimulus.iter_mut().zip(channels).for_each(|(s, &channel)| *s = row[channel]);
        }
        map(stimuli, responses).map_err(|error| match error {
            Error::BadSample { index, value } => {
                Error::BadSample { index: index / own * all + channels[index % own], value }
            }
            other => other,
        })?;
        for (row, response) in to.chunks_exact_mut(all).zip(responses.chunks_exact(own)) {
            response.iter().zip(channels).for_each(|(&r, &channel)| row[channel] = r);
        }
        Ok(())
    }
}

/// The number of channels of groups that hold each of the channels 0, 1, 2, … once.
pub(super) fn require_partition<'a>(groups: impl Iterator<Item = &'a [usize]> + Clone) -> Result<usize> {
    let channels = groups.clone().map(<[usize]>::len).sum();
    let mut seen = vec![false; channels];
    for (index, own) in groups.enumerate() {
        if own.is_empty() {
            return Err(Error::shape(format!("groups[{index}]"), "at least one channel", "none"));
        }
        for &channel in own {
            let free = seen.get_mut(channel).filter(|seen| !**seen);
            *free.ok_or_else(|| misplaced(index, channel, channels))? = true;
        }
    }
    if channels == 0 {
        return Err(Error::shape("groups", "at least one group", "none"));
    }
    Ok(channels)
}

fn misplaced(group: usize, channel: usize, channels: usize) -> Error {
    let expected = format!("each of the channels 0 to {} once in all groups", channels - 1);
    Error::shape(format!("groups[{group}]"), expected, format!("channel {channel} too large or once more"))
}
