//! Reads reference numbers and the texts about each figure from `experiments/references.toml`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::experiment::Figure;

/// What goes with each figure, by its name.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct References(BTreeMap<String, Reference>);

/// What goes with a figure: words, and numbers of others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Its heading.
    pub title: String,
    /// What stands under the picture, a line for each panel.
    pub caption: String,
    /// A description of the picture for those who cannot see it.
    pub alt: String,
    /// Where this program, the paper and the authors' code differ, and why.
    pub differs: Vec<String>,
    /// The lines of its table.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// The sentences of the summary about it.
    #[serde(default)]
    pub claims: Vec<Claim>,
}

/// A number of the run beside those of others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What it is.
    pub what: String,
    /// Which number of the run.
    pub number: String,
    /// What the paper says.
    pub paper: Option<String>,
    /// What the authors' code gives, and its standard deviation over starts where it is known.
    pub authors: Option<Vec<f64>>,
    /// Over how many starts that is.
    pub starts: Option<u32>,
    /// To how many significant digits that is given.
    #[serde(default = "three")]
    pub digits: i32,
    /// Whether those starts shared contexts, controls or a split that were drawn once.
    #[serde(default)]
    pub drawn_once: bool,
    /// The same where it is not a number.
    pub authors_says: Option<String>,
}

fn three() -> i32 {
    3
}

/// A sentence that is tied to numbers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Where it belongs.
    pub kind: Kind,
    /// It holds if this number is below
    pub smaller: String,
    /// this one
    pub larger: String,
    /// times this factor.
    pub factor: f64,
    /// What is said if so.
    pub holds: String,
    /// What is said if not.
    pub fails: String,
}

/// What a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A finding of the paper.
    Paper,
    /// A problem with the paper as printed.
    Printed,
    /// Something that the paper does not have.
    Ours,
}

impl References {
    /// Those that are built in.
    ///
    /// # Errors
    /// When the file is damaged, which a test rules out.
    pub fn embedded() -> Result<Self> {
        let text = include_str!("../experiments/references.toml");
        toml::from_str(text).context("the embedded references")
    }

    /// What goes with a figure.
    ///
    /// # Errors
    /// When nothing does, which a test rules out.
    pub fn of(&self, figure: Figure) -> Result<&Reference> {
        self.0
            .get(figure.name())
            .with_context(|| format!("the references have nothing for {}", figure.name()))
    }
}
