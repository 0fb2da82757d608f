//! Makes contexts: a covariance from the patches of each image in a folder, kept or left out for a stated reason;
//! and moments from recordings, by file, by label or by segments.
//!
//! The context of an image depends only on the image, its name and the settings, so the number of threads and the other
//! images in the folder change no bit of it.

mod listing;
mod recordings;
mod spectrum;
mod sums;
mod thumbnail;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use leukos::Matrix;
use leukos::contexts::{Patch, stream};

use crate::data::{Image, LargeImages, NoCovariance, Sampling, file_name, patch_covariance, read_image};
use crate::files::fingerprint;
use crate::outlook::Outlook;
use crate::threads::side_by_side;

pub use listing::{left_out, listing, some_names};
pub use recordings::{Division, Recordings};
pub use spectrum::{Scaling, Spectrum};
pub use sums::Sums;
pub use thumbnail::Thumbnail;

/// What is made of each image.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// The pixels of a stimulus.
    pub patch: Patch,
    /// How patches are chosen.
    pub sampling: Sampling,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Which covariances are kept.
    pub filter: Filter,
}

/// Which covariances are kept, and how large they become.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// The condition number below which a context is kept; infinite for any covariance that is not singular.
    pub condition: f64,
    /// What becomes of the scale of a covariance.
    pub scaling: Scaling,
}

/// An image, or a part of a recording, and its context, or why it has none.
#[derive(Clone, Debug)]
pub struct Made {
    /// The file's name, or that of the context.
    pub name: String,
    /// A context, or the reason why there is none.
    pub outcome: Result<Context, Reason>,
}

/// An image that gave a context.
#[derive(Clone, Debug)]
pub struct Context {
    /// The covariance, scaled as asked.
    pub covariance: Matrix,
    /// Its extreme eigenvalues before it was scaled.
    pub spectrum: Spectrum,
    /// The image, small; none of a recording.
    pub thumbnail: Option<Thumbnail>,
}

/// Why an image gave no context.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The covariance's condition number is too high; infinite where it is singular.
    Condition(f64),
    /// The image has no room for a patch.
    TooSmall {
        /// Its number of columns.
        width: usize,
        /// Its number of rows.
        height: usize,
    },
    /// All patches are the same.
    Constant,
    /// The file is damaged or is no image of a kind that has a luminance.
    Unusable(String),
}

/// How the work is done.
pub struct Workshop<'a> {
    /// The number of threads.
    pub jobs: usize,
    /// Where progress is reported.
    pub outlook: &'a dyn Outlook,
    /// Set from outside to end the work early.
    pub stop: &'a AtomicBool,
}

/// Makes a context of each image that allows it, in their order. `None` when it was stopped before the end.
pub fn make_contexts(images: &[PathBuf], making: &Making, workshop: &Workshop<'_>) -> Option<Vec<Made>> {
    let (next, large) = (AtomicUsize::new(0), LargeImages::default());
    let all_made = Mutex::new(Vec::with_capacity(images.len()));
    workshop.outlook.begin(images.len() as u64);
    side_by_side(workshop.jobs.min(images.len()), || {
        while let Some((i, path)) = take(images, &next)
            && let Some(made) = making.make(path, &large, workshop.stop)
        {
            workshop.outlook.done(&made.name, 1);
            all_made.lock().unwrap_or_else(PoisonError::into_inner).push((i, made));
        }
    });
    workshop.outlook.end();
    let mut all_made = all_made.into_inner().unwrap_or_else(PoisonError::into_inner);
    all_made.sort_unstable_by_key(|(i, _)| *i);
    let whole = all_made.len() == images.len();
    whole.then(|| all_made.into_iter().map(|(_, made)| made).collect())
}

fn take<'a>(images: &'a [PathBuf], next: &AtomicUsize) -> Option<(usize, &'a PathBuf)> {
    let i = next.fetch_add(1, Ordering::Relaxed);
    images.get(i).map(|path| (i, path))
}

impl Making {
    /// The outcome of one image; `None` when stopped.
    fn make(&self, path: &Path, large: &LargeImages, stop: &AtomicBool) -> Option<Made> {
        let name = file_name(path);
        let read = read_image(path, large, |image| self.context(&name, &image, stop));
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let outcome = read.unwrap_or_else(|error| Err(Reason::Unusable(format!("{error:#}"))));
        Some(Made { name, outcome })
    }

    fn context(&self, name: &str, image: &Image, stop: &AtomicBool) -> Result<Context, Reason> {
        let rng = stream(self.seed, fingerprint(name.as_bytes()));
        let watch =
            || if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let sampled = patch_covariance(image, self.patch, self.sampling, rng, watch);
        let covariance = sampled.map_err(|missing| match missing {
            NoCovariance::TooSmall => Reason::TooSmall { width: image.width(), height: image.height() },
            NoCovariance::BrokenOff => Reason::Unusable("interrupted".into()),
            NoCovariance::Unusable(error) => Reason::Unusable(error.to_string()),
        })?;
        let context = self.filter.apply(covariance)?;
        Ok(Context { thumbnail: Some(Thumbnail::of(image)), ..context })
    }
}

impl Filter {
    /// Keeps a covariance, scaled, or says why not.
    ///
    /// # Errors
    /// When it is constant, its condition number is too high, or a number is not finite.
    pub fn apply(&self, mut covariance: Matrix) -> Result<Context, Reason> {
        let spectrum = Spectrum::of(&covariance).map_err(|error| Reason::Unusable(error.to_string()))?;
        if !(spectrum.most > 0.0) {
            return Err(Reason::Constant);
        }
        if !(spectrum.condition() < self.condition) {
            return Err(Reason::Condition(spectrum.condition()));
        }
        self.scaling.apply(&mut covariance, spectrum);
        Ok(Context { covariance, spectrum, thumbnail: None })
    }
}
