//! Writes raw recordings and arrays of numpy, which differ in a header alone.

use anyhow::{Result, bail, ensure};

use super::write::{Output, OutputShape};
use super::{Misfits, Rows, SampleType, Writer, rounding::Fitting};
use crate::usage::Usage;

struct BinaryWriter {
    output: Output,
    fitting: Fitting,
    shape: OutputShape,
    rows: u64,
    chunk: Vec<u8>,
}

/// Begins with the header, where the format has one.
pub(super) fn begin(mut output: Output, shape: &OutputShape) -> Result<Box<dyn Writer>> {
    let header = shape.header(shape.rows.unwrap_or(0));
    if !header.is_empty() && shape.rows.is_none() && !output.is_file() {
        let format = shape.format;
        bail!(Usage(format!(
            "{format}: expected a file, got a pipe; the header needs the number of rows, which is known only at the end"
        )));
    }
    output.write(&header)?;
    Ok(go_on(output, shape, 0))
}

/// Goes on behind so many rows.
pub(super) fn go_on(output: Output, shape: &OutputShape, rows: u64) -> Box<dyn Writer> {
    let (fitting, shape) = (shape.fitting(), shape.clone());
    Box::new(BinaryWriter { output, fitting, shape, rows, chunk: Vec::new() })
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
        let header = self.shape.header(self.rows);
        if !header.is_empty() && self.output.is_file() {
            self.output.rewrite_start(&header)?;
        }
        self.output.flush()?;
        let (promised, rows) = (self.shape.rows.unwrap_or(self.rows), self.rows);
        let as_promised = header.is_empty() || self.output.is_file() || rows == promised;
        ensure!(as_promised, "expected {promised} rows as in the header, got {rows}");
        Ok(())
    }
}
