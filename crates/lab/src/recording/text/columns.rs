//! Decides which columns of a text are channels and which one is the label, from its first line and from --label.

use anyhow::{Result, bail, ensure};

use super::cells::number;
use crate::recording::shortened;
use crate::usage::Usage;

/// The columns of a text.
pub(super) struct Columns {
    pub count: usize,
    /// The names of all columns, where there is a header.
    pub names: Option<Vec<String>>,
    /// Which one holds the labels.
    pub label: Option<usize>,
}

impl Columns {
    /// The columns of a text with this first line. It is a header if any cell outside the label column is not a number.
    pub fn new(first: Vec<String>, label: Option<&str>) -> Result<Self> {
        let by_number = label.and_then(|label| label.parse().ok());
        let mut channels = first.iter().enumerate().filter(|&(column, _)| Some(column) != by_number);
        let header = channels.any(|(_, cell)| number(cell).is_none());
        let count = first.len();
        let names = header.then_some(first);
        let label = label.map(|label| label_column(label, names.as_deref(), count)).transpose()?;
        ensure!(count > usize::from(label.is_some()), "expected a channel, got the label column alone");
        Ok(Self { count, names, label })
    }

    pub fn channels(&self) -> usize {
        self.count - usize::from(self.label.is_some())
    }

    pub fn channel_names(&self) -> Option<Vec<String>> {
        let names = self.names.iter().flatten().enumerate();
        let channels = names.filter(|&(column, _)| Some(column) != self.label).map(|(_, name)| name.clone());
        self.names.is_some().then(|| channels.collect())
    }

    /// A column with its name, for a message.
    pub fn in_words(&self, column: usize) -> String {
        match self.names.as_ref().and_then(|names| names.get(column)) {
            Some(name) => format!("column {column} ({})", shortened(name)),
            None => format!("column {column}"),
        }
    }

    /// Whether these cells are the header once more.
    pub fn are_named<'a>(&self, mut cells: impl Iterator<Item = &'a str>) -> bool {
        self.names.as_ref().is_some_and(|names| names.iter().all(|name| cells.next() == Some(name)))
    }
}

/// The column with this name or, if there is none, with this number.
fn label_column(label: &str, names: Option<&[String]>, count: usize) -> Result<usize> {
    let names = names.unwrap_or_default();
    let mut named = (0..names.len()).filter(|&column| names[column] == label);
    match (named.next(), named.next(), label.parse()) {
        (Some(first), Some(second), _) => {
            bail!(Usage(format!("--label {label}: columns {first} and {second} both have this name")))
        }
        (Some(column), None, _) => Ok(column),
        (None, _, Ok(column)) if column < count => Ok(column),
        _ if names.is_empty() => bail!(Usage(format!(
            "--label {label}: expected a number from 0 to {}, because there is no header with names",
            count - 1
        ))),
        _ => bail!(Usage(format!(
            "--label {label}: expected one of {}, or a number from 0 to {}",
            shortened(&names.join(", ")),
            count - 1
        ))),
    }
}
