//! Reads the results that `reproduce` wrote, from which figures and report are made.

mod measured;

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::experiment::{Figure, PANELS, RESULTS, Source};
pub use measured::{Measured, short};

/// The numbers and series of a call, as its two files hold them.
#[derive(Debug)]
pub struct Findings {
    results: Value,
    panels: Value,
}

impl Findings {
    /// From the two files in a directory.
    ///
    /// # Errors
    /// When one of them is missing or is no JSON.
    pub fn read(directory: &Path) -> Result<Self> {
        let read = |name| {
            let path = directory.join(name);
            let read = || Ok::<Value, anyhow::Error>(serde_json::from_slice(&std::fs::read(&path)?)?);
            read()
                .with_context(|| format!("{}: expected a file written by `leukos reproduce`", path.display()))
        };
        Ok(Self { results: read(RESULTS)?, panels: read(PANELS)? })
    }

    /// Something about the call as a whole; null where it is not known.
    pub fn about(&self, key: &str) -> &Value {
        &self.results[key]
    }

    /// The figures that were rerun, in the order of the paper.
    pub fn figures(&self) -> Vec<Figure> {
        let rerun = |figure: &&Figure| self.results["figures"].get(figure.name()).is_some();
        Figure::ALL.iter().filter(rerun).copied().collect()
    }

    /// Where a figure's contexts come from, in words.
    pub fn contexts(&self, figure: Figure) -> &str {
        self.results["figures"][figure.name()]["contexts"].as_str().unwrap_or("")
    }

    /// What kind of contexts a variant's numbers were measured on; `None` where there is no such variant.
    pub fn source(&self, figure: Figure, variant: &str) -> Option<Source> {
        let source = self.results["figures"][figure.name()]["sources"].get(variant)?;
        Source::deserialize(source).ok()
    }

    /// The names of a figure's variants.
    pub fn variants(&self, figure: Figure) -> Vec<&str> {
        let variants = self.results["figures"][figure.name()]["variants"].as_object();
        variants.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// The variant of this name, or the first there is: a spec of one's own may have others.
    pub fn variant_or_first<'a>(&'a self, figure: Figure, name: &'a str) -> Option<&'a str> {
        let variants = self.variants(figure);
        if variants.contains(&name) { Some(name) } else { variants.first().copied() }
    }

    /// A variant's numbers; null where there is no such variant.
    pub fn numbers(&self, figure: Figure, variant: &str) -> &Value {
        &self.results["figures"][figure.name()]["variants"][variant]
    }

    /// The series behind a variant's pictures.
    ///
    /// # Errors
    /// When they are not what a figure of this kind has.
    pub fn series<T: DeserializeOwned>(&self, figure: Figure, variant: &str) -> Result<T> {
        let series = &self.panels["figures"][figure.name()]["variants"][variant];
        T::deserialize(series).with_context(|| {
            format!("{PANELS}: the series of {}, variant {variant}, are not as expected", figure.name())
        })
    }
}
