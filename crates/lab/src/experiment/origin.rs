//! Describes where contexts come from: in words, and by kind, so that only comparable numbers are compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What kind of contexts a number was measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Drawn from a family that the paper describes.
    Synthetic,
    /// From the generator of 1/f fields, in place of images.
    Generated,
    /// A stack of covariances that the user gave.
    Stack,
    /// The covariances that the paper's authors released, recognised by their numbers.
    Paper,
}

impl Source {
    /// Whether the paper's numbers were measured on such contexts.
    pub fn is_the_papers(self) -> bool {
        matches!(self, Self::Synthetic | Self::Paper)
    }
}

/// Where the contexts of a variant come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Of what kind they are.
    pub source: Source,
    /// The same for people.
    pub words: String,
}

/// Where the contexts of each variant of a figure come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, Origin>);

impl FromIterator<(String, Origin)> for Origins {
    fn from_iter<I: IntoIterator<Item = (String, Origin)>>(origins: I) -> Self {
        Self(origins.into_iter().collect())
    }
}

impl Origins {
    /// The same contexts for all of these variants.
    pub fn shared<'a>(variants: impl Iterator<Item = &'a String>, origin: &Origin) -> Self {
        variants.map(|name| (name.clone(), origin.clone())).collect()
    }

    /// All of them in words; each with its variant where they are not the same.
    pub fn words(&self) -> String {
        let mut different: Vec<&str> = self.0.values().map(|origin| origin.words.as_str()).collect();
        different.dedup();
        if let [only] = different[..] {
            return only.to_owned();
        }
        let named = |(name, origin): (&String, &Origin)| format!("{name}: {}", origin.words);
        self.0.iter().map(named).collect::<Vec<_>>().join("; ")
    }

    /// The kind of each variant's contexts.
    pub fn sources(&self) -> BTreeMap<String, Source> {
        self.0.iter().map(|(name, origin)| (name.clone(), origin.source)).collect()
    }
}
