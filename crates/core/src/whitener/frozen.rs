//! Uses whiteners without adapting, in either direction: a fixed affine map of rows.

use super::answering::fill_bad;
use super::groups::Scratch;
use super::screen::usable;
use super::{BadSamples, GroupedWhitener, Whitener};
use crate::circuit::require_rows;
use crate::error::{Error, Result, require_length};
use crate::kernels::inner;
use crate::matrix::Matrix;
use crate::real::Real;

/// Whiteners that do not learn: no row changes them, except that the last good row of output is kept for
/// [`BadSamples::Hold`]. Creating one costs one matrix, and then each row costs one product with it.
///
/// ```
/// use leukos::{GroupedWhitener, Matrix, Whitener, WhitenerSettings};
///
/// let mut whitener = GroupedWhitener::from(Whitener::<f64>::new(Matrix::identity(1), WhitenerSettings::default())?);
/// let stimuli: Vec<f64> = (0..1000).map(|i| f64::from(i * 7919 % 1000)).collect();
/// whitener.whiten(&stimuli, &mut vec![0.0; 1000])?;
/// let (mut response, mut stimulus) = ([0.0], [0.0]);
/// whitener.frozen()?.map(&[700.0], &mut response)?;
/// whitener.frozen_inverse()?.map(&response, &mut stimulus)?;
/// assert!((stimulus[0] - 700.0).abs() < 1e-9);
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone)]
pub struct FrozenWhitener<T: Real = f64> {
    groups: Vec<(Vec<usize>, Affine<T>)>,
    channels: usize,
    scratch: Scratch<T>,
}

impl<T: Real> FrozenWhitener<T> {
    fn of(whitener: &GroupedWhitener<T>, affine: impl Fn(&Whitener<T>) -> Result<Affine<T>>) -> Result<Self> {
        let group =
            |(channels, whitener): (&[usize], &Whitener<T>)| Ok((channels.to_vec(), affine(whitener)?));
        let groups = whitener.groups().map(group).collect::<Result<_>>()?;
        Ok(Self { groups, channels: whitener.channels(), scratch: Scratch::default() })
    }

    /// How many rows had a number that cannot be used, in the group that had most of them.
    pub fn bad(&self) -> u64 {
        self.groups.iter().map(|(_, affine)| affine.bad).max().unwrap_or(0)
    }

    /// The last good row of output, which [`BadSamples::Hold`] repeats.
    pub fn held(&self) -> Vec<T> {
        let mut row = vec![T::ZERO; self.channels];
        for (channels, affine) in &self.groups {
            channels.iter().zip(&affine.last).for_each(|(&channel, &value)| row[channel] = value);
        }
        row
    }

    /// Sets the last good row of output.
    ///
    /// # Errors
    /// When it does not have a number for each channel.
    pub fn hold(&mut self, row: &[T]) -> Result<()> {
        require_length("row", row, self.channels, "one for each channel")?;
        for (channels, affine) in &mut self.groups {
            affine.last.iter_mut().zip(channels).for_each(|(value, channel)| *value = row[*channel]);
        }
        Ok(())
    }

    /// Maps rows of all channels into as many rows.
    ///
    /// # Errors
    /// When the sizes do not fit; under [`BadSamples::Error`] also at the first bad sample.
    pub fn map(&mut self, from: &[T], to: &mut [T]) -> Result<()> {
        let rows = require_rows("rows", from.len(), self.channels)?;
        require_length("output", to, from.len(), "one for each number of the input")?;
        for (channels, affine) in &mut self.groups {
            self.scratch.reserve(rows * channels.len());
            self.scratch.with((channels, self.channels), from, to, |from, to| affine.map(from, to))?;
        }
        Ok(())
    }
}

impl<T: Real> GroupedWhitener<T> {
    /// A frozen copy that whitens with the present mean, gains and synapses.
    ///
    /// # Errors
    /// When a whitener has no scale yet.
    pub fn frozen(&self) -> Result<FrozenWhitener<T>> {
        FrozenWhitener::of(self, Whitener::whitening)
    }

    /// Turns responses of a frozen whitener back into stimuli. A channel that is left out gives its last value.
    ///
    /// # Errors
    /// When a whitener has no scale yet.
    pub fn frozen_inverse(&self) -> Result<FrozenWhitener<T>> {
        FrozenWhitener::of(self, Whitener::unwhitening)
    }
}

impl<T: Real> Whitener<T> {
    /// Whitens rows without adapting: no row changes anything, and none is counted.
    ///
    /// # Errors
    /// As for [`Self::whiten`], and when the whitener has no scale yet.
    pub fn whiten_frozen(&self, stimuli: &[T], responses: &mut [T]) -> Result<()> {
        self.whitening()?.checked("stimuli", stimuli, responses)
    }

    /// Turns responses of a frozen whitener back into stimuli. A channel that is left out gives its last value.
    ///
    /// # Errors
    /// As for [`Self::whiten`], and when the whitener has no scale yet.
    pub fn unwhiten_frozen(&self, responses: &[T], stimuli: &mut [T]) -> Result<()> {
        self.unwhitening()?.checked("responses", responses, stimuli)
    }

    fn whitening(&self) -> Result<Affine<T>> {
        let limit = self.settings.saturation.unwrap_or(f64::INFINITY);
        let (before, after) = (self.mean(), vec![0.0; self.channels()]);
        Ok(Affine { before, after, limit, ..Affine::of(self, self.whitening_matrix()?) })
    }

    fn unwhitening(&self) -> Result<Affine<T>> {
        let mean = self.mean();
        let rest = |j| if self.live[j] { mean[j] } else { self.screen.reference(j) };
        let after = (0..self.channels()).map(rest).collect();
        Ok(Affine { after, ..Affine::of(self, self.dewhitening_matrix()?) })
    }
}

/// out = matrix · (in − before) + after, on the channels that take part.
#[derive(Clone)]
struct Affine<T> {
    matrix: Matrix,
    before: Vec<f64>,
    after: Vec<f64>,
    live: Vec<bool>,
    /// Numbers this large are bad; saturation is a matter of stimuli, not of responses.
    limit: f64,
    bad_samples: BadSamples,
    last: Vec<T>,
    bad: u64,
    centred: Vec<f64>,
}

impl<T: Real> Affine<T> {
    fn of(whitener: &Whitener<T>, matrix: Matrix) -> Self {
        let n = whitener.channels();
        Self {
            matrix,
            before: vec![0.0; n],
            after: vec![0.0; n],
            live: whitener.live.clone(),
            limit: f64::INFINITY,
            bad_samples: whitener.settings.bad_samples,
            last: vec![T::ZERO; n],
            bad: 0,
            centred: vec![0.0; n],
        }
    }

    fn checked(&mut self, argument: &'static str, from: &[T], to: &mut [T]) -> Result<()> {
        require_rows(argument, from.len(), self.live.len())?;
        require_length("output", to, from.len(), "one for each number of the input")?;
        self.map(from, to)
    }

    fn map(&mut self, from: &[T], to: &mut [T]) -> Result<()> {
        let n = self.live.len();
        for (row, (input, out)) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)).enumerate() {
            let Some(channel) = self.bad_channel(input) else {
                self.map_row(input, out);
                self.last.copy_from_slice(out);
                continue;
            };
            self.bad += 1;
            if self.bad_samples == BadSamples::Error {
                return Err(Error::BadSample { index: row * n + channel, value: input[channel].to_f64() });
            }
            fill_bad(self.bad_samples, &self.last, out);
        }
        Ok(())
    }

    /// The first channel that takes part and has no usable number.
    fn bad_channel(&self, row: &[T]) -> Option<usize> {
        (0..row.len()).find(|&j| self.live[j] && !usable(row[j].to_f64(), self.limit))
    }

    fn map_row(&mut self, row: &[T], out: &mut [T]) {
        for (j, centred) in self.centred.iter_mut().enumerate() {
            *centred = if self.live[j] { row[j].to_f64() - self.before[j] } else { 0.0 };
        }
        for (i, out) in out.iter_mut().enumerate() {
            // The matrix is symmetric: its columns are its rows.
            *out = T::from_f64(inner(self.matrix.column(i), &self.centred) + self.after[i]);
        }
    }
}
