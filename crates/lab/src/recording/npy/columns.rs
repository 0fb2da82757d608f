//! Reads an array whose columns follow one another (Fortran order), some rows of all columns at a time.

use anyhow::{Context, Result, ensure};

use crate::recording::fixed_rows::Encoding;
use crate::recording::slabs::Slabs;
use crate::recording::source::Bytes;

/// How many numbers are held at once, or a row if that is more.
const SLAB: u64 = 1 << 18;

pub(super) struct Columns {
    bytes: Bytes,
    encoding: Encoding,
    start: u64,
    rows: u64,
    channels: u64,
    column: Vec<f64>,
    chunk: Vec<u8>,
}

impl Columns {
    /// An array of this shape that begins where the bytes of a file stand.
    pub fn new(bytes: Bytes, encoding: Encoding, [rows, channels]: [u64; 2]) -> Result<Self> {
        let columns = Self {
            start: bytes.at(),
            bytes,
            encoding,
            rows,
            channels,
            column: Vec::new(),
            chunk: Vec::new(),
        };
        columns.require_all()?;
        Ok(columns)
    }

    fn require_all(&self) -> Result<()> {
        let (rows, channels, size) = (self.rows, self.channels, self.size());
        let there = self.bytes.length().context("expected a file")? - self.start;
        let whole = there.checked_div(rows.saturating_mul(size)).unwrap_or(channels);
        ensure!(
            whole >= channels,
            "cut short: its header states {channels} columns of {rows} rows, but it ends in column {whole}, row {}, at byte {}",
            there / size % rows.max(1),
            self.start + there
        );
        let needed = rows * channels * size;
        ensure!(
            there == needed,
            "expected its end after the {rows} rows its header states, at byte {}, but {} more bytes follow",
            self.start + needed,
            there - needed
        );
        Ok(())
    }

    fn size(&self) -> u64 {
        self.encoding.sample_type.size() as u64
    }

    fn read_column(&mut self, channel: u64, row: u64, count: usize) -> Result<()> {
        self.bytes.go_to(self.start + (channel * self.rows + row) * self.size())?;
        self.chunk.resize(count * self.size() as usize, 0);
        let got = self.bytes.fill(&mut self.chunk)?;
        ensure!(got == self.chunk.len(), "cut short in column {channel}, at byte {}", self.bytes.at());
        self.column.clear();
        self.encoding.decode(&self.chunk, &mut self.column);
        Ok(())
    }
}

impl Slabs for Columns {
    fn fetch(&mut self, row: u64, values: &mut Vec<f64>) -> Result<u64> {
        let count = (SLAB / self.channels).max(1).min(self.rows - row) as usize;
        let channels = self.channels as usize;
        values.clear();
        values.resize(count * channels, 0.0);
        for channel in 0..channels {
            self.read_column(channel as u64, row, count)?;
            let places = values[channel.min(count * channels)..].iter_mut().step_by(channels);
            places.zip(&self.column).for_each(|(place, &value)| *place = value);
        }
        Ok(row)
    }

    fn go_to(&mut self, _row: u64) -> Result<()> {
        Ok(())
    }

    /// As if the rows followed one another, so that it grows with the row.
    fn byte(&self, row: u64) -> u64 {
        row.saturating_mul(self.channels * self.size()).saturating_add(self.start)
    }

    fn is_pipe(&self) -> bool {
        false
    }
}
