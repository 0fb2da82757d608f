//! Begins a recording in any format that is written, or goes on with one.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Stdout, Write};

use anyhow::{Context, Result, bail, ensure};

use super::rounding::{Fitting, Rounding};
use super::{Format, Misfits, Place, SampleType, Writer};
use crate::usage::Usage;

/// Where a recording is written to.
#[derive(Debug)]
pub enum Sink {
    /// A file, from its beginning; the caller knows its name and adds it to errors.
    File(File),
    /// A pipe or a device, which cannot be rewound.
    Pipe(File),
    /// Standard output.
    Stdout,
}

/// What a written recording looks like.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputShape {
    /// Its format.
    pub format: Format,
    /// The number of channels.
    pub channels: usize,
    /// Their names; only text has a place for them.
    pub names: Option<Vec<String>>,
    /// The name of the label column, where rows have labels; only text has a place for them.
    pub label: Option<String>,
    /// The type of its numbers.
    pub sample_type: SampleType,
    /// The number of rows, where it is known beforehand.
    pub rows: Option<u64>,
    /// What a response of one becomes where numbers are whole.
    pub scale: f64,
}

impl OutputShape {
    fn require_sense(&self) -> Result<()> {
        let scale = self.scale;
        let complaint = || Usage(format!("--scale: expected a positive number, got {scale}"));
        ensure!(scale > 0.0 && scale.is_finite(), complaint());
        let names = self.names.as_ref().map_or(self.channels, Vec::len);
        ensure!(names == self.channels, "expected {} channel names, got {names}", self.channels);
        Ok(())
    }

    /// The bytes that a file of so many rows begins with, where they depend on that number; they are written last.
    pub fn header(&self, rows: u64) -> Vec<u8> {
        let writing = self.format.definition().writing.as_ref();
        writing.and_then(|writing| writing.header).map_or_else(Vec::new, |header| header(self, rows))
    }

    /// What becomes of responses that are written so and read again.
    pub fn rounding(&self) -> Rounding {
        Rounding::new(self.fitting(), self.sample_type, self.format)
    }

    pub(super) fn fitting(&self) -> Fitting {
        Fitting { scale: self.scale, misfits: Misfits::default() }
    }
}

/// Begins a recording; its header, if its format has one, is written at once.
///
/// # Errors
/// When it cannot be written; [`Usage`] when it makes no sense.
pub fn writer(sink: Sink, shape: &OutputShape) -> Result<Box<dyn Writer>> {
    let writing = shape.format.writing()?;
    shape.require_sense()?;
    (writing.begin)(Output::new(sink), shape)
}

/// Goes on with a file at a place that [`Writer::flush`] and the number of rows gave; what lies behind it is cut off.
/// Its misfits are counted from here.
///
/// # Errors
/// When the file is shorter or cannot be written.
pub fn continue_writing(file: File, shape: &OutputShape, place: Place) -> Result<Box<dyn Writer>> {
    let writing = shape.format.writing()?;
    shape.require_sense()?;
    Ok((writing.go_on)(Output::at(file, place.byte)?, shape, place.row))
}

enum Target {
    File(File),
    Pipe(File),
    Stdout(Stdout),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) | Self::Pipe(file) => file.write(bytes),
            Self::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) | Self::Pipe(file) => file.flush(),
            Self::Stdout(stdout) => stdout.flush(),
        }
    }
}

/// Bytes on their way out, counted.
pub(super) struct Output {
    target: BufWriter<Target>,
    written: u64,
}

const BUFFER: usize = 1 << 18;
const FAILED: &str = "the recording cannot be written";

impl Output {
    fn new(sink: Sink) -> Self {
        let target = match sink {
            Sink::File(file) => Target::File(file),
            Sink::Pipe(file) => Target::Pipe(file),
            Sink::Stdout => Target::Stdout(io::stdout()),
        };
        Self { target: BufWriter::with_capacity(BUFFER, target), written: 0 }
    }

    /// The end of a file that is cut off at this byte.
    fn at(mut file: File, byte: u64) -> Result<Self> {
        let length = file.metadata().context(FAILED)?.len();
        ensure!(length >= byte, "expected at least the {byte} bytes that were written before, got {length}");
        file.set_len(byte).context(FAILED)?;
        file.seek(SeekFrom::Start(byte)).context(FAILED)?;
        Ok(Self { written: byte, ..Self::new(Sink::File(file)) })
    }

    pub fn is_file(&self) -> bool {
        matches!(self.target.get_ref(), Target::File(_))
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.target.write_all(bytes).context(FAILED)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Hands everything to the system; says how many bytes that is.
    pub fn flush(&mut self) -> Result<u64> {
        self.target.flush().context(FAILED)?;
        Ok(self.written)
    }

    /// Writes over the first bytes of a file.
    pub fn rewrite_start(&mut self, bytes: &[u8]) -> Result<()> {
        self.flush()?;
        let Target::File(file) = self.target.get_mut() else { bail!("expected a file to write over") };
        file.rewind().and_then(|()| file.write_all(bytes)).context(FAILED)?;
        file.seek(SeekFrom::Start(self.written)).context(FAILED)?;
        Ok(())
    }
}
