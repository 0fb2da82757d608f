//! Supplies natural contexts: a stack of covariances that the user gives, or else the generator of 1/f fields.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use anyhow::{Context, Result};
use leukos::contexts::{Contexts, Fields, Patch, Split};
use leukos::{Matrix, cosine_basis, cosine_basis_2d, eigenbasis};
use serde::{Deserialize, Serialize};

use super::plan::{Draws, Setting, StackSize, fingerprint_of};
use super::{Figure, Origin, Origins, Source};
use crate::data::Stack;

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
    /// How often the contexts to keep back are drawn.
    #[serde(default)]
    split: SplitSpec,
}

/// How often the contexts to keep back are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SplitSpec {
    /// Once, for all starts: `test`, or a tenth.
    #[default]
    Once,
    /// A tenth anew for each start, as in the authors' code for panel E.
    EachStart,
}

/// Natural contexts, divided into those to learn from and those to test with.
pub struct Images {
    pub contexts: Contexts,
    /// The split that all starts share; see [`Self::split_of`].
    pub split: Split,
    drawn: SplitSpec,
    /// The eigenvectors Q* of the mean covariance of all contexts.
    pub eigenbasis: Matrix,
    /// The cosine basis of patches of this size.
    pub cosines: Matrix,
    /// Height and width of a patch.
    pub patch: [usize; 2],
    /// Where the contexts come from.
    pub origin: Origin,
    /// A number that stands for contexts from a file.
    pub fingerprint: u64,
}

impl ImagesSpec {
    /// N.
    pub fn neurons(&self) -> usize {
        self.patch[0].get() * self.patch[1].get()
    }

    /// The contexts for a figure that has no other set, or whose other set has another N.
    pub fn contexts(&self, figure: Figure, setting: &Setting, size: StackSize) -> Result<Images> {
        let given = setting.stack_for(figure, size);
        let contexts = match given {
            Some(stack) => stack.contexts.clone(),
            None => self.generate(figure, setting)?,
        };
        let fingerprint = if given.is_some() { fingerprint_of(&contexts) } else { 0 };
        let origin = given.map_or_else(|| self.origin(), |stack| origin_of(stack, fingerprint));
        let whose = || match given {
            Some(stack) => format!("contexts {}", stack.path.display()),
            None => "images.generate".to_owned(),
        };
        let split = if given.is_some() && contexts.len() == self.test_of {
            contexts.split(&self.test).context("images.test")
        } else {
            let split = contexts.random_split(&mut setting.draws(figure).shared("split"));
            split.context("a tenth of the contexts is kept back for testing")
        };
        let split = split.with_context(whose)?;
        let patch = self.patch_of(contexts.neurons());
        Ok(Images {
            eigenbasis: eigenbasis(&contexts.mean_covariance())?,
            cosines: if patch[0] == 1 { cosine_basis(patch[1]) } else { cosine_basis_2d(patch[0], patch[1]) },
            patch,
            fingerprint,
            contexts,
            split,
            drawn: self.split,
            origin,
        })
    }

    fn generate(&self, figure: Figure, setting: &Setting) -> Result<Contexts> {
        let [height, width] = self.patch.map(NonZeroUsize::get);
        let patch = Patch { height, width, spacing: 1 };
        let fields = Fields { contexts: self.generate.get(), patch, ..Fields::two_dimensional() };
        Ok(fields.draw(&mut setting.draws(figure).shared("fields")).context("images")?.contexts)
    }

    fn origin(&self) -> Origin {
        let ([height, width], count) = (self.patch, self.generate);
        let words = format!("1/f generator, not images: {count} contexts of {height} x {width} pixels");
        Origin { source: Source::Generated, words }
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

impl Images {
    /// The contexts that a start learns from and those kept back from it.
    pub fn split_of(&self, start: usize, draws: Draws) -> leukos::Result<Cow<'_, Split>> {
        match self.drawn {
            SplitSpec::Once => Ok(Cow::Borrowed(&self.split)),
            SplitSpec::EachStart => {
                self.contexts.random_split(&mut draws.start("split", start)).map(Cow::Owned)
            }
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
        // A stack of yet another size can only stand for one size of patches: the first, which is 5 × 5.
        let other = others.clone().map(|(_, other)| other.neurons()).find(|&other| other != usual);
        let first = others.clone().next().is_some_and(|(_, first)| first.neurons() == usual);
        let size = if first {
            StackSize::Any { usual, other: other.unwrap_or(0) }
        } else {
            StackSize::Exactly(usual)
        };
        Ok((name.clone(), spec.contexts(figure, setting, size)?))
    };
    specs.map(images).collect()
}

/// What stands for the 56 covariances that the authors released (5 × 5 pixels of van Hateren's images).
const PAPERS_COVARIANCES: u64 = 0x3939_c15c_62f7_20fe;

/// Where the contexts of a stack come from.
fn origin_of(stack: &Stack, fingerprint: u64) -> Origin {
    let (count, n) = (stack.contexts.len(), stack.contexts.neurons());
    let source = if fingerprint == PAPERS_COVARIANCES { Source::Paper } else { Source::Stack };
    let words = format!("stack of {count} covariances, N = {n} ({})", stack.path.display());
    Origin { source, words }
}

/// Where the contexts of every set come from.
pub fn origins_of_all(images: &BTreeMap<String, Images>) -> Origins {
    images.iter().map(|(name, images)| (name.clone(), images.origin.clone())).collect()
}

/// A number that stands for the contexts that come from files.
pub fn fingerprint_all(images: &BTreeMap<String, Images>) -> u64 {
    images.values().fold(0, |all, images| all.rotate_left(7) ^ images.fingerprint)
}
