//! Reads and writes recordings: rows of samples, one number for each channel, in files of several formats.

mod binary_writer;
mod edf;
mod fixed_rows;
mod format;
mod npy;
mod raw;
mod read;
mod rounding;
mod slabs;
mod source;
mod text;
mod text_writer;
mod write;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use format::Format;
pub use read::{ReadOptions, open, open_bytes};
pub use rounding::Rounding;
pub use source::{Bytes, Source};
pub use write::{OutputShape, Sink, continue_writing, writer};

/// What kind of numbers a recording holds, named as numpy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleType {
    /// 16-bit integers.
    Int16,
    /// 32-bit integers.
    Int32,
    /// 32-bit floating-point numbers.
    Float32,
    /// 64-bit floating-point numbers; text is read as these.
    Float64,
}

/// What is known of a recording before its first row.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The number of channels, a label column not counted.
    pub channels: usize,
    /// The names of the channels, where the file has them.
    pub names: Option<Vec<String>>,
    /// The kind of its numbers.
    pub sample_type: SampleType,
    /// Samples a second, where the file or the user says so.
    pub sample_rate: Option<f64>,
    /// The number of rows, where it can be told without reading them.
    pub rows: Option<u64>,
}

/// Some rows of a recording. Doubles hold every sample type exactly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The numbers, row after row.
    pub values: Vec<f64>,
    /// The label of each row; empty where the recording has no label column.
    pub labels: Vec<String>,
}

impl Rows {
    fn clear(&mut self) {
        self.values.clear();
        self.labels.clear();
    }
}

/// A place between two rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// How many rows come before it.
    pub row: u64,
    /// How many bytes come before it.
    pub byte: u64,
}

impl Place {
    fn require_within(self, rows: Option<u64>) -> Result<()> {
        let rows = rows.unwrap_or(u64::MAX);
        ensure!(self.row <= rows, "expected a place up to its end after {rows} rows, got row {}", self.row);
        Ok(())
    }
}

/// The most channels a recording may have; far above it lie arrays with rows and columns exchanged.
const MOST_CHANNELS: u64 = 1 << 16;

fn require_channels(channels: u64) -> Result<usize> {
    let expected = 1..=MOST_CHANNELS;
    ensure!(expected.contains(&channels), "expected 1 to {MOST_CHANNELS} channels, got {channels}");
    Ok(channels as usize)
}

/// A piece of a file for a message: in quotation marks, on one line, and not too long.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let begin: String = text.chars().take(MOST).collect();
    if begin.len() < text.len() { format!("{begin:?}...") } else { format!("{text:?}") }
}

/// Reads a recording from its beginning, in blocks.
pub trait Reader {
    /// What was known before the first row.
    fn layout(&self) -> &Layout;

    /// Replaces `rows` by the next ones, `most` of them unless the recording ends; none at the end. A pipe gives what has
    /// arrived, at least one row, so that nobody waits for rows that come later.
    ///
    /// # Errors
    /// When the recording cannot be read or is damaged; the error gives the row or byte and the column, and says what was
    /// expected and what was found.
    fn read(&mut self, most: usize, rows: &mut Rows) -> Result<()>;

    /// Where the next row begins.
    fn place(&self) -> Place;

    /// Goes on at a place that [`Reader::place`] gave for the same recording.
    ///
    /// # Errors
    /// When the recording comes from a pipe, or the place lies beyond its end.
    fn go_to(&mut self, place: Place) -> Result<()>;
}

/// Writes a recording, in blocks.
pub trait Writer {
    /// Appends rows.
    ///
    /// # Errors
    /// When they cannot be written.
    fn write(&mut self, rows: &Rows) -> Result<()>;

    /// Hands everything written so far to the system, and says how many bytes that is.
    ///
    /// # Errors
    /// When it cannot be written.
    fn flush(&mut self) -> Result<u64>;

    /// How many numbers did not fit into the sample type and were clipped, or were NaN and became zero.
    fn misfits(&self) -> Misfits;

    /// Writes what a format needs at its end or, once the number of rows is known, at its beginning.
    ///
    /// # Errors
    /// When it cannot be written.
    fn finish(&mut self) -> Result<()>;
}

/// How many numbers could not be written as they were, because the sample type has no room for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfits {
    /// Too large, of either sign: the largest there is was written.
    pub clipped: u64,
    /// NaN: zero was written.
    pub not_numbers: u64,
}
