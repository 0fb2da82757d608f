//! Reads config files: the flags in TOML, under the same names with underscores. The command line takes precedence.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Args, Command};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Table;

use super::super::Usage;

/// What a config file says.
#[derive(Clone, Debug, Default)]
pub struct Config {
    table: Table,
    /// The names of all flags known so far.
    known: Vec<String>,
}

impl Config {
    /// Reads a config file.
    ///
    /// # Errors
    /// When it cannot be read or is not TOML.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).context("the file cannot be read")?;
        let table = text.parse::<Table>().map_err(|error| Usage(format!("expected TOML: {error}")))?;
        Ok(Self { table, known: Vec::new() })
    }

    /// The flags as given, completed by those of the file.
    ///
    /// # Errors
    /// When a value of the file is not what its flag takes: wrong usage.
    pub fn complete<F: Args + Serialize + DeserializeOwned>(&mut self, flags: &F) -> Result<F> {
        let names = names::<F>();
        let mut all = self.table.clone();
        all.retain(|name, _| names.iter().any(|known| known == name));
        all.extend(Table::try_from(flags).context("flags cannot be put into a table")?);
        self.known.extend(names);
        F::deserialize(all).map_err(|error| Usage(error.to_string().trim_end().to_owned()).into())
    }

    /// Refuses names that belong to no flag.
    ///
    /// # Errors
    /// When the file has a name that is not that of a flag: wrong usage.
    pub fn require_known(&self) -> Result<()> {
        match self.table.keys().find(|name| !self.known.iter().any(|known| known == *name)) {
            None => Ok(()),
            Some(name) => {
                let known = self.known.join(", ");
                Err(Usage(format!("{name}: expected one of the settings {known}")).into())
            }
        }
    }
}

/// The names of flags, with underscores.
fn names<F: Args>() -> Vec<String> {
    let command = F::augment_args(Command::new("names"));
    command.get_arguments().map(|argument| argument.get_id().to_string()).collect()
}
