//! Plans the work: which figures, with which specs, contexts and random numbers.

use std::cell::Cell;

use anyhow::Result;
use leukos::contexts::{Contexts, Pcg64, stream};
use serde::Serialize;

use super::{Experiment, Figure, Scale, Spec};
use crate::data::Stack;
use crate::files::fingerprint;

/// What the caller has chosen for all figures.
#[derive(Debug)]
pub struct Setting {
    /// How much is computed.
    pub scale: Scale,
    /// The seed all random numbers come from.
    pub seed: u64,
    /// The stacks of covariances to use in place of generated ones.
    pub stacks: Vec<GivenStack>,
}

/// A stack of covariances, for one figure or for all it fits.
#[derive(Debug)]
pub struct GivenStack {
    figure: Option<Figure>,
    stack: Stack,
    used: Cell<bool>,
}

impl GivenStack {
    /// A stack for this figure, or for all whose N it has.
    pub fn new(figure: Option<Figure>, stack: Stack) -> Self {
        Self { figure, stack, used: Cell::new(false) }
    }

    /// A stack that no figure of the plan can use, in words.
    pub fn complaint(&self) -> Option<String> {
        let n = self.stack.contexts.neurons();
        let complaint = match self.figure {
            Some(figure) => {
                format!("the figure {} does not use natural contexts; name one that does", figure.name())
            }
            None => {
                format!("its N = {n} is not that of any figure asked for; write FIGURE=FILE to use it anyway")
            }
        };
        (!self.used.get()).then(|| format!("contexts {}: {complaint}", self.stack.path.display()))
    }
}

/// Which stacks a set of natural contexts can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSize {
    /// Only those with this N.
    Exactly(usize),
    /// Those with this N, and any that is given for the figure by name and is not of size `other`.
    Any {
        /// The N of the spec.
        usual: usize,
        /// The N of the figure's other set.
        other: usize,
    },
}

impl Setting {
    /// The random numbers of a figure.
    pub fn draws(&self, figure: Figure) -> Draws {
        Draws { seed: self.seed, figure }
    }

    /// The stack that was given for a set of natural contexts of a figure.
    pub fn stack_for(&self, figure: Figure, size: StackSize) -> Option<&Stack> {
        let neurons = |given: &GivenStack| given.stack.contexts.neurons();
        let named = |given: &&GivenStack| {
            given.figure == Some(figure)
                && match size {
                    StackSize::Exactly(n) => neurons(given) == n,
                    StackSize::Any { other, .. } => neurons(given) != other,
                }
        };
        let fitting = |given: &&GivenStack| {
            let (StackSize::Exactly(n) | StackSize::Any { usual: n, .. }) = size;
            given.figure.is_none() && neurons(given) == n
        };
        let given = self.stacks.iter().find(named).or_else(|| self.stacks.iter().find(fitting))?;
        given.used.set(true);
        Some(&given.stack)
    }
}

/// A source of random generators, one for each purpose and start of a figure.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    seed: u64,
    figure: Figure,
}

impl Draws {
    /// The generator for what all starts share.
    pub fn shared(self, purpose: &str) -> Pcg64 {
        self.named(purpose, "shared")
    }

    /// The generator of one start.
    pub fn start(self, purpose: &str, start: usize) -> Pcg64 {
        self.named(purpose, &start.to_string())
    }

    fn named(self, purpose: &str, start: &str) -> Pcg64 {
        let name = format!("{}/{purpose}/{start}", self.figure.name());
        stream(self.seed, fingerprint(name.as_bytes()))
    }
}

/// A number that stands for a stack's covariances.
pub fn fingerprint_of(contexts: &Contexts) -> u64 {
    let numbers = contexts.covariances().iter().flat_map(leukos::Matrix::as_slice);
    let bytes: Vec<u8> = numbers.flat_map(|x| x.to_le_bytes()).collect();
    fingerprint(&bytes)
}

/// A figure that is to be rerun.
pub struct Planned {
    pub figure: Figure,
    pub experiment: Box<dyn Experiment>,
    /// What its runs belong to.
    pub key: String,
}

/// What runs belong to. As long as all of it is the same, a finished run need not be done again.
#[derive(Clone, Serialize)]
struct Belonging {
    version: &'static str,
    commit: &'static str,
    /// A number that stands for the sources the program was built from: those that were changed and not committed too.
    sources: &'static str,
    spec: String,
    scale: Scale,
    seed: u64,
    /// A number that stands for contexts from a file.
    contexts: u64,
}

impl Belonging {
    fn of(spec: String, contexts: u64, setting: &Setting) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("LEUKOS_COMMIT"),
            sources: env!("LEUKOS_SOURCES"),
            spec,
            scale: setting.scale,
            seed: setting.seed,
            contexts,
        }
    }

    fn key(&self) -> Result<String> {
        Ok(format!("{:016x}", fingerprint(&serde_json::to_vec(self)?)))
    }
}

/// All the work of a call.
pub struct Plan {
    pub(super) figures: Vec<Planned>,
}

impl Plan {
    /// Plans the figures that the specs are for.
    ///
    /// # Errors
    /// When contexts cannot be drawn with a spec's parameters.
    pub fn new(specs: Vec<Spec>, setting: &Setting) -> Result<Self> {
        let planned = |spec: Spec| {
            let experiment = spec.experiment(setting)?;
            let key = Belonging::of(spec.settings().to_owned(), experiment.fingerprint(), setting).key()?;
            Ok(Planned { figure: spec.figure(), experiment, key })
        };
        Ok(Self { figures: specs.into_iter().map(planned).collect::<Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

    use super::*;

    #[test]
    fn runs_of_other_sources_have_another_key() {
        let setting = Setting { scale: Scale::Quick, seed: 1, stacks: Vec::new() };
        let now = Belonging::of("spec".into(), 2, &setting);
        assert_eq!(now.sources.len(), 16, "the build script has left a number");
        let others = [
            Belonging { version: "0.0.0", ..now.clone() },
            Belonging { commit: "another", ..now.clone() },
            Belonging { sources: "0123456789abcdef", ..now.clone() },
            Belonging { spec: "other".into(), ..now.clone() },
            Belonging { scale: Scale::Paper, ..now.clone() },
            Belonging { seed: 2, ..now.clone() },
            Belonging { contexts: 3, ..now.clone() },
        ];
        let mut keys: Vec<String> = others.iter().map(|other| other.key().unwrap()).collect();
        keys.extend([now.key().unwrap(), now.clone().key().unwrap()]);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), others.len() + 1);
    }
}
