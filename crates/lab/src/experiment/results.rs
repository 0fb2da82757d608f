//! Writes the results: `results.json` with every number, `panels.json` with the series behind the pictures.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Origins, Scale, Source, Summary};
use crate::files::write_atomically;

/// The file with every number.
pub const RESULTS: &str = "results.json";
/// The file with curves, filters, traces and values of single starts.
pub const PANELS: &str = "panels.json";

/// Everything a call of `reproduce` found out.
#[derive(Debug, Serialize)]
pub struct Results {
    /// The version.
    pub leukos: &'static str,
    /// The commit it was built from, where known.
    pub commit: Option<&'static str>,
    /// How much of the work was done.
    pub scale: Scale,
    /// The seed all random numbers come from.
    pub seed: u64,
    /// The processor, if the system tells.
    pub processor: Option<String>,
    /// The number of threads.
    pub jobs: usize,
    /// The time taken, without runs that an earlier call had finished.
    pub seconds: f64,
    /// The figures by name.
    pub figures: BTreeMap<&'static str, Reported>,
}

/// What is reported about one figure.
#[derive(Debug, Serialize)]
pub struct Reported {
    contexts: String,
    sources: BTreeMap<String, Source>,
    variants: BTreeMap<String, Value>,
    #[serde(skip)]
    panels: BTreeMap<String, Value>,
}

impl Reported {
    /// A figure's numbers and where its contexts come from.
    pub fn new(origins: &Origins, summary: Summary) -> Self {
        let Summary { variants, panels } = summary;
        Self { contexts: origins.words(), sources: origins.sources(), variants, panels }
    }
}

impl Results {
    /// Writes both files into a directory.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let panels = |(name, figure): (&&'static str, &Reported)| {
            (*name, json!({ "contexts": figure.contexts, "variants": figure.panels }))
        };
        let panels: BTreeMap<_, _> = self.figures.iter().map(panels).collect();
        let panels = json!({
            "leukos": self.leukos, "scale": self.scale, "seed": self.seed, "figures": panels,
        });
        // Compact, because most of it is long rows of numbers.
        write_atomically(&directory.join(PANELS), &serde_json::to_vec(&panels)?)?;
        write_json(&directory.join(RESULTS), self)
    }
}

/// Writes a value as indented JSON, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    write_atomically(path, &bytes)
}
