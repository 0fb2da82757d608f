//! Writes raw recordings and arrays of numpy, which differ in a header alone.

use anyhow::{Result, bail, ensure};

use super::write::{Output, OutputShape};
use super::{Format, Misfits, Rows, SampleType, Writer, rounding::Fitting};
use crate::usage::Usage;

pub(super) struct BinaryWriter {
    output: Output,
    fitting: Fitting,
    shape: OutputShape,
    rows: u64,
    chunk: Vec<u8>,
}

impl BinaryWriter {
    /// Begins with the header that numpy needs.
    pub fn begin(output: Output, shape: &OutputShape) -> Result<Self> {
        let mut writer = Self::new(output, shape, 0);
        if shape.format == Format::Npy {
            if shape.rows.is_none() && !writer.output.is_file() {
                let complaint = "npy: expected a file, got a pipe; the header needs the number of rows, which is known only at the end";
                bail!(Usage(complaint.into()));
            }
            let header = shape.header(shape.rows.unwrap_or(0));
            writer.output.write(&header)?;
        }
        Ok(writer)
    }

    /// Goes on behind so many rows.
    pub fn new(output: Output, shape: &OutputShape, rows: u64) -> Self {
        Self { output, fitting: shape.fitting(), shape: shape.clone(), rows, chunk: Vec::new() }
    }
}

impl Writer for BinaryWriter {
    fn write(&mut self, rows: &Rows) -> Result<()> {
        let (fitting, chunk) = (&mut self.fitting, &mut self.chunk);
        chunk.clear();
        let values = rows.values.iter().copied();
        match self.shape.sample_type {
            SampleType::Int16 => chunk.extend(values.flat_map(|x| fitting.int16(x).to_le_bytes())),
            SampleType::Int32 => chunk.extend(values.flat_map(|x| fitting.int32(x).to_le_bytes())),
            SampleType::Float32 => chunk.extend(values.flat_map(|x| fitting.float32(x).to_le_bytes())),
            SampleType::Float64 => chunk.extend(values.flat_map(f64::to_le_bytes)),
        }
        self.output.write(chunk)?;
        self.rows += (rows.values.len() / self.shape.channels) as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<u64> {
        self.output.flush()
    }

    fn misfits(&self) -> Misfits {
        self.fitting.misfits
    }

    /// Fills in the number of rows.
    fn finish(&mut self) -> Result<()> {
        if self.shape.format == Format::Npy && self.output.is_file() {
            let header = self.shape.header(self.rows);
            self.output.rewrite_start(&header)?;
        }
        self.output.flush()?;
        let (promised, rows) = (self.shape.rows.unwrap_or(self.rows), self.rows);
        let as_promised = self.shape.format != Format::Npy || self.output.is_file() || rows == promised;
        ensure!(as_promised, "expected {promised} rows as in the header, got {rows}");
        Ok(())
    }
}
