//! Samples patches of an image: where each lies, and the luminances of its pixels.

use std::ops::ControlFlow;

use leukos::contexts::{Patch, Pcg64};
use leukos::size::require_moments;
use leukos::{Error, Matrix, Moments};
use rand::RngExt;

use super::image::Image;

/// How the patches of an image are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// So many, each anywhere in the image, whatever the others.
    Independent(usize),
    /// So many, each near the one before: it moves by up to `step` pixels up or down and left or right, and is
    /// reflected by the image's edges, so that no place is favoured in the long run.
    Walk {
        /// The number of patches.
        samples: usize,
        /// How far it moves at most.
        step: usize,
    },
    /// One at every place, row by row.
    Every,
}

/// How many patches are summed up together.
const BLOCK: usize = 256;
/// How many samples are taken between two checks whether to stop.
const PAUSE: usize = 4096;

/// Why there is no covariance.
#[derive(Clone, Debug, PartialEq)]
pub enum NoCovariance {
    /// The image has no room for the patch.
    TooSmall,
    /// The work was stopped from outside.
    BrokenOff,
    /// The patches have none.
    Unusable(Error),
}

/// The covariance of an image's patches about their mean; pixel (y, x) of a patch is row y · width + x.
///
/// # Errors
/// When the image is too small for the patch, or `watch`, which is asked now and then, says to break off.
pub fn patch_covariance(
    image: &Image,
    patch: Patch,
    sampling: Sampling,
    rng: Pcg64,
    mut watch: impl FnMut() -> ControlFlow<()>,
) -> Result<Matrix, NoCovariance> {
    let room = room(image, patch).ok_or(NoCovariance::TooSmall)?;
    let pixels = patch.height * patch.width;
    require_moments(pixels, 1).map_err(NoCovariance::Unusable)?;
    let mut moments = Moments::new(pixels);
    let mut patches = Vec::with_capacity(BLOCK * pixels);
    for (i, [top, left]) in Corners::new(room, sampling, rng).enumerate() {
        if i % PAUSE == 0 && watch().is_break() {
            return Err(NoCovariance::BrokenOff);
        }
        patches.extend((0..pixels).map(|p| {
            let (y, x) = (p / patch.width, p % patch.width);
            image.luminance(top + patch.spacing * y, left + patch.spacing * x)
        }));
        if patches.len() == BLOCK * pixels {
            moments.update(&patches).map_err(NoCovariance::Unusable)?;
            patches.clear();
        }
    }
    moments.update(&patches).map_err(NoCovariance::Unusable)?;
    // The mean is that of the same patches.
    let degrees = (moments.count().max(2) - 1) as f64;
    Ok(Matrix::from_fn(pixels, pixels, |i, j| moments.comoments()[(i, j)] / degrees))
}

/// How many rows and columns the upper left pixel of a patch may lie in; `None` where the image is too small.
fn room(image: &Image, patch: Patch) -> Option<[usize; 2]> {
    let room = |image: usize, patch: usize, spacing: usize| {
        let beyond = patch.checked_sub(1)?.checked_mul(spacing)?;
        image.checked_sub(beyond).filter(|&room| room > 0)
    };
    Some([
        room(image.height(), patch.height, patch.spacing)?,
        room(image.width(), patch.width, patch.spacing)?,
    ])
}

/// The upper left pixels (row, column) of the patches, one after another.
struct Corners {
    room: [usize; 2],
    sampling: Sampling,
    rng: Pcg64,
    given: usize,
    last: [usize; 2],
}

impl Corners {
    fn new(room: [usize; 2], sampling: Sampling, rng: Pcg64) -> Self {
        Self { room, sampling, rng, given: 0, last: [0; 2] }
    }

    fn anywhere(&mut self) -> [usize; 2] {
        self.room.map(|room| self.rng.random_range(0..room))
    }

    fn nearby(&mut self, step: usize) -> [usize; 2] {
        let [row, column] = self.last;
        [(row, self.room[0]), (column, self.room[1])].map(|(at, room)| {
            // Counted from `step` pixels before the edge, so that no number is negative.
            let moved = at + self.rng.random_range(0..=2 * step);
            reflect(moved, step, room)
        })
    }
}

impl Iterator for Corners {
    type Item = [usize; 2];

    fn next(&mut self) -> Option<[usize; 2]> {
        let (i, [rows, columns]) = (self.given, self.room);
        self.given += 1;
        self.last = match self.sampling {
            Sampling::Independent(samples) if i < samples => self.anywhere(),
            Sampling::Walk { samples, .. } if i == 0 && samples > 0 => self.anywhere(),
            Sampling::Walk { samples, step } if i < samples => self.nearby(step),
            Sampling::Every if i < rows * columns => [i / columns, i % columns],
            _ => return None,
        };
        Some(self.last)
    }
}

/// The place that a walk comes to when mirrors stand before the first and behind the last of `room` places; `moved`
/// counts from `before` places ahead of the first.
fn reflect(moved: usize, before: usize, room: usize) -> usize {
    let period = 2 * room;
    let at = (moved + (period - before % period)) % period;
    if at < room { at } else { period - 1 - at }
}
