//! Tells the formats of recordings apart by name, and names the types of their numbers as numpy does.

use std::fmt;
use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::SampleType;
use crate::usage::Usage;

/// How a recording lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Numbers without a header, row after row, little-endian.
    Raw,
    /// A NumPy array.
    Npy,
    /// Text, values separated by commas.
    Csv,
    /// Text, values separated by tabs.
    Tsv,
    /// European Data Format, 16-bit samples.
    Edf,
    /// BioSemi's variant of EDF, 24-bit samples.
    Bdf,
}

/// All formats with the endings of their files.
const ENDINGS: [(Format, &[&str]); 6] = [
    (Format::Raw, &["raw", "bin", "dat"]),
    (Format::Npy, &["npy"]),
    (Format::Csv, &["csv"]),
    (Format::Tsv, &["tsv", "tab"]),
    (Format::Edf, &["edf"]),
    (Format::Bdf, &["bdf"]),
];

impl Format {
    /// The format that the ending of a file's name stands for, in capitals or not.
    ///
    /// # Errors
    /// When the ending stands for none; the error lists those that do.
    pub fn of_name(path: &Path) -> Result<Self, Usage> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let known = ENDINGS
            .into_iter()
            .find(|(_, endings)| ending.as_deref().is_some_and(|ending| endings.contains(&ending)));
        known.map(|(format, _)| format).ok_or_else(|| {
            let got = ending.map_or("no ending".to_owned(), |ending| format!(".{ending}"));
            let all: Vec<&str> = ENDINGS.iter().flat_map(|(_, endings)| endings.iter().copied()).collect();
            let names = Self::value_variants().iter().map(ToString::to_string).collect::<Vec<_>>();
            Usage(format!(
                "{}: expected a file name that ends in .{}, or --format with one of {}, got {got}",
                path.display(),
                all.join(", ."),
                names.join(", ")
            ))
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raw => "raw",
            Self::Npy => "npy",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Edf => "edf",
            Self::Bdf => "bdf",
        })
    }
}

impl SampleType {
    /// The bytes of a number.
    pub fn size(self) -> usize {
        match self {
            Self::Int16 => 2,
            Self::Int32 | Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }
}

impl fmt::Display for SampleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
        })
    }
}
