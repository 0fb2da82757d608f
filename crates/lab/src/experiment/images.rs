//! Supplies natural contexts: a stack of covariances that the user gives, or else the generator of 1/f fields.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use anyhow::{Context, Result};
use leukos::contexts::{Contexts, Fields, Patch, Split};
use leukos::{Matrix, cosine_basis, cosine_basis_2d, eigenbasis};
use serde::{Deserialize, Serialize};

use super::Figure;
use super::plan::{Fit, Setting, fingerprint_of};

/// Which natural contexts a figure uses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImagesSpec {
    /// Height and width of a patch of pixels; N is their product.
    patch: [NonZeroUsize; 2],
    /// How many contexts to generate where no stack is given.
    generate: NonZeroUsize,
    /// Which contexts of a stack with `test_of` contexts to keep back for testing. Of another stack, and of generated
    /// contexts, a tenth is drawn from the seed.
    #[serde(default)]
    test: Vec<usize>,
    #[serde(default)]
    test_of: usize,
}

/// Natural contexts, divided into those to learn from and those to test with.
pub struct Images {
    pub contexts: Contexts,
    pub split: Split,
    /// The eigenvectors Q* of the mean covariance of all contexts.
    pub eigenbasis: Matrix,
    /// The cosine basis of patches of this size.
    pub cosines: Matrix,
    /// Height and width of a patch.
    pub patch: [usize; 2],
    /// Where the contexts come from, in words.
    pub origin: String,
    /// A number that stands for contexts from a file.
    pub fingerprint: u64,
}

impl ImagesSpec {
    /// N.
    pub fn neurons(&self) -> usize {
        self.patch[0].get() * self.patch[1].get()
    }

    /// The contexts for a figure that has no other set, or whose other set has another N.
    pub fn contexts(&self, figure: Figure, setting: &Setting, fit: Fit) -> Result<Images> {
        let (contexts, origin, given) = match setting.stack_for(figure, fit) {
            Some(stack) => {
                let (count, n) = (stack.contexts.len(), stack.contexts.neurons());
                let origin = format!("stack of {count} covariances, N = {n} ({})", stack.path.display());
                (stack.contexts.clone(), origin, true)
            }
            None => (self.generate(figure, setting)?, self.describe(), false),
        };
        let split = if given && contexts.len() == self.test_of {
            contexts.split(&self.test).context("images.test")?
        } else {
            contexts.random_split(&mut setting.draws(figure).shared("split"))?
        };
        let patch = self.patch_of(contexts.neurons());
        Ok(Images {
            eigenbasis: eigenbasis(&contexts.mean_covariance())?,
            cosines: if patch[0] == 1 { cosine_basis(patch[1]) } else { cosine_basis_2d(patch[0], patch[1]) },
            patch,
            fingerprint: if given { fingerprint_of(&contexts) } else { 0 },
            contexts,
            split,
            origin,
        })
    }

    fn generate(&self, figure: Figure, setting: &Setting) -> Result<Contexts> {
        let [height, width] = self.patch.map(NonZeroUsize::get);
        let patch = Patch { height, width, spacing: 1 };
        let fields = Fields { contexts: self.generate.get(), patch, ..Fields::two_dimensional() };
        Ok(fields.draw(&mut setting.draws(figure).shared("fields")).context("images")?.contexts)
    }

    fn describe(&self) -> String {
        let ([height, width], count) = (self.patch, self.generate);
        format!("1/f generator, not images: {count} contexts of {height} x {width} pixels")
    }

    /// Height and width of patches with N pixels: the spec's where they fit, else a square, else a row.
    fn patch_of(&self, neurons: usize) -> [usize; 2] {
        let side = neurons.isqrt();
        if neurons == self.neurons() {
            self.patch.map(NonZeroUsize::get)
        } else if self.patch[0].get() > 1 && side * side == neurons {
            [side, side]
        } else {
            [1, neurons]
        }
    }
}

/// The contexts of figures that have a set for each variant, 5 × 5 pixels in one and 16 × 1 in another.
pub fn all_images<'a>(
    specs: impl Iterator<Item = (&'a String, &'a ImagesSpec)> + Clone,
    figure: Figure,
    setting: &Setting,
) -> Result<BTreeMap<String, Images>> {
    let others = specs.clone();
    let images = |(name, spec): (&'a String, &'a ImagesSpec)| {
        let usual = spec.neurons();
        // A stack of yet another size can only stand for one of the sets: the first, which is the 5 × 5 one.
        let other = others.clone().map(|(_, other)| other.neurons()).find(|&other| other != usual);
        let first = others.clone().next().is_some_and(|(first, _)| first == name);
        let fit = if first { Fit::Any { usual, other: other.unwrap_or(0) } } else { Fit::Exactly(usual) };
        Ok((name.clone(), spec.contexts(figure, setting, fit)?))
    };
    specs.map(images).collect()
}

/// Where the contexts of every set come from, in words.
pub fn describe_all(images: &BTreeMap<String, Images>) -> String {
    let describe = |(name, images): (&String, &Images)| format!("{name}: {}", images.origin);
    images.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// A number that stands for the contexts that come from files.
pub fn fingerprint_all(images: &BTreeMap<String, Images>) -> u64 {
    images.values().fold(0, |all, images| all.rotate_left(7) ^ images.fingerprint)
}
