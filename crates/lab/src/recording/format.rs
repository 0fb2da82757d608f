//! Lists the formats of recordings, one entry each, and names the types of their numbers as numpy does.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::source::Bytes;
use super::write::{Output, OutputShape};
use super::{ReadOptions, Reader, SampleType, Writer, edf, npy, raw, text};
use crate::usage::Usage;

/// Everything in which one format differs from another.
pub(super) struct Definition {
    /// Whether it has no header, so that the user must say how many channels of which type there are.
    pub needs_shape: bool,
    /// Whether its header has the sampling rate.
    pub tells_sample_rate: bool,
    /// Whether it is text, which has a place for names and labels and does not tell the types of its numbers.
    pub is_text: bool,
    /// Opens bytes; the options make sense for the format.
    pub open: fn(Bytes, &ReadOptions) -> Result<Box<dyn Reader>>,
    /// Whether a row of this file does not lie between the row before it and the row after it.
    pub is_scattered: fn(&Path) -> Result<bool>,
    /// How it is written; none where it is only read.
    pub writing: Option<Writing>,
}

/// How a format is written.
pub(super) struct Writing {
    /// Begins a recording.
    pub begin: fn(Output, &OutputShape) -> Result<Box<dyn Writer>>,
    /// Goes on behind so many rows.
    pub go_on: fn(Output, &OutputShape, u64) -> Box<dyn Writer>,
    /// The bytes that a file of so many rows begins with, where they depend on that number.
    pub header: Option<fn(&OutputShape, u64) -> Vec<u8>>,
}

/// Makes the formats from their entries: a name, the endings of its files, and its definition.
macro_rules! formats {
    ($($(#[$documentation:meta])* $format:ident = $name:literal, $endings:expr, $definition:expr;)*) => {
        /// How a recording lies in its file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
        pub enum Format {
            $($(#[$documentation])* #[serde(rename = $name)] #[value(name = $name)] $format,)*
        }

        impl Format {
            /// The name on the command line and in files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$format => $name,)* }
            }

            fn endings(self) -> &'static [&'static str] {
                match self { $(Self::$format => &$endings,)* }
            }

            pub(super) fn definition(self) -> &'static Definition {
                match self { $(Self::$format => const { &$definition },)* }
            }
        }
    };
}

formats! {
    /// Numbers without a header, row after row, little-endian.
    Raw = "raw", ["raw", "bin", "dat"], raw::DEFINITION;
    /// A NumPy array.
    Npy = "npy", ["npy"], npy::DEFINITION;
    /// Text, values separated by commas.
    Csv = "csv", ["csv"], text::definition::<','>();
    /// Text, values separated by tabs.
    Tsv = "tsv", ["tsv", "tab"], text::definition::<'\t'>();
    /// European Data Format, 16-bit samples.
    Edf = "edf", ["edf"], edf::EDF;
    /// BioSemi's variant of EDF, 24-bit samples.
    Bdf = "bdf", ["bdf"], edf::BDF;
}

impl Format {
    /// The format that the ending of a file's name stands for, in capitals or not.
    ///
    /// # Errors
    /// When the ending stands for none; the error lists those that do.
    pub fn of_name(path: &Path) -> Result<Self, Usage> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let all = Self::value_variants();
        let stands_for = |format: &&Self| ending.as_deref().is_some_and(|it| format.endings().contains(&it));
        all.iter().find(stands_for).copied().ok_or_else(|| {
            let got = ending.as_ref().map_or("no ending".to_owned(), |ending| format!(".{ending}"));
            let endings: Vec<&str> = all.iter().flat_map(|format| format.endings()).copied().collect();
            let names: Vec<&str> = all.iter().map(|format| format.name()).collect();
            Usage(format!(
                "{}: expected a file name that ends in .{}, or --format with one of {}, got {got}",
                path.display(),
                endings.join(", ."),
                names.join(", ")
            ))
        })
    }

    /// How it is written.
    ///
    /// # Errors
    /// When it is only read; the error lists those that are written.
    pub(super) fn writing(self) -> Result<&'static Writing, Usage> {
        self.definition().writing.as_ref().ok_or_else(|| {
            let all = Self::value_variants().iter();
            let written = all.filter(|format| format.definition().writing.is_some()).map(|it| it.name());
            let written = written.collect::<Vec<_>>().join(", ");
            Usage(format!(
                "expected one of {written} as the output format, got {self}, which leukos only reads"
            ))
        })
    }

    /// Whether it is text, which has a place for names and labels and does not tell the types of its numbers.
    pub fn is_text(self) -> bool {
        self.definition().is_text
    }

    /// Whether a row of this file does not lie between the row before it and the row after it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn is_scattered(self, path: &Path) -> Result<bool> {
        (self.definition().is_scattered)(path)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
