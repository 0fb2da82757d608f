//! Reads rows that follow one another in a fixed number of bytes, as in raw files and most arrays of numpy.

use anyhow::{Result, ensure};

use super::source::Bytes;
use super::{Layout, Place, Reader, Rows, SampleType};

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    LowFirst,
    HighFirst,
}

/// How a number lies in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    pub sample_type: SampleType,
    pub order: ByteOrder,
}

impl Encoding {
    /// Appends the numbers that the bytes stand for.
    pub fn decode(self, bytes: &[u8], values: &mut Vec<f64>) {
        match (self.sample_type, self.order) {
            (SampleType::Int16, ByteOrder::LowFirst) => append(bytes, values, i16::from_le_bytes),
            (SampleType::Int16, ByteOrder::HighFirst) => append(bytes, values, i16::from_be_bytes),
            (SampleType::Int32, ByteOrder::LowFirst) => append(bytes, values, i32::from_le_bytes),
            (SampleType::Int32, ByteOrder::HighFirst) => append(bytes, values, i32::from_be_bytes),
            (SampleType::Float32, ByteOrder::LowFirst) => append(bytes, values, f32::from_le_bytes),
            (SampleType::Float32, ByteOrder::HighFirst) => append(bytes, values, f32::from_be_bytes),
            (SampleType::Float64, ByteOrder::LowFirst) => append(bytes, values, f64::from_le_bytes),
            (SampleType::Float64, ByteOrder::HighFirst) => append(bytes, values, f64::from_be_bytes),
        }
    }
}

fn append<const SIZE: usize, T: Into<f64>>(bytes: &[u8], values: &mut Vec<f64>, number: fn([u8; SIZE]) -> T) {
    values.extend(bytes.as_chunks().0.iter().map(|&bytes| number(bytes).into()));
}

/// How many bytes are read at once, or a row if that is more.
const CHUNK: usize = 1 << 18;

pub(super) struct FixedRows {
    bytes: Bytes,
    encoding: Encoding,
    layout: Layout,
    /// Where row 0 begins.
    start: u64,
    row: u64,
    chunk: Vec<u8>,
    /// How many bytes of a row that has not come in full are at the start of the chunk; only of a pipe.
    held: usize,
}

impl FixedRows {
    /// Rows that begin where the bytes stand.
    pub fn new(bytes: Bytes, encoding: Encoding, layout: Layout) -> Result<Self> {
        let start = bytes.at();
        let mut reader = Self { bytes, encoding, layout, start, row: 0, chunk: Vec::new(), held: 0 };
        reader.require_whole_rows()?;
        Ok(reader)
    }

    fn row_bytes(&self) -> usize {
        self.layout.channels * self.encoding.sample_type.size()
    }

    /// Checks at once, for a file, that its bytes are whole rows, and counts them.
    fn require_whole_rows(&mut self) -> Result<()> {
        let Some(length) = self.bytes.length() else { return Ok(()) };
        let row_bytes = self.row_bytes() as u64;
        let (there, over) = ((length - self.start) / row_bytes, (length - self.start) % row_bytes);
        let promised = self.layout.rows.unwrap_or(there);
        ensure!(there >= promised, self.cut_short(there, over));
        let end = self.start + promised * row_bytes;
        ensure!(self.layout.rows.is_none() || end == length, self.too_long(end, Some(length - end)));
        ensure!(over == 0, self.left_over(there, over));
        self.layout.rows = Some(there);
        Ok(())
    }

    fn cut_short(&self, there: u64, over: u64) -> String {
        let rows = self.layout.rows.unwrap_or(0);
        let byte = self.start + there * self.row_bytes() as u64 + over;
        format!("cut short: its header states {rows} rows, but it ends in row {there}, at byte {byte}")
    }

    fn too_long(&self, end: u64, over: Option<u64>) -> String {
        let rows = self.layout.rows.unwrap_or(0);
        let more = over.map_or("more".to_owned(), |over| format!("{over} more"));
        format!(
            "expected its end after the {rows} rows its header states, at byte {end}, but {more} bytes follow"
        )
    }

    fn left_over(&self, there: u64, over: u64) -> String {
        let (row_bytes, channels) = (self.row_bytes(), self.layout.channels);
        let byte = self.start + there * row_bytes as u64;
        let sample_type = self.encoding.sample_type;
        format!(
            "expected whole rows of {row_bytes} bytes ({channels} channels of {sample_type}), \
             but {over} bytes are left over in row {there}, at byte {byte}"
        )
    }

    /// Reads up to so many rows at once; of a pipe those that have arrived, at least one. Says how many; none at the end.
    fn read_chunk(&mut self, most: usize, rows: &mut Rows) -> Result<usize> {
        let row_bytes = self.row_bytes();
        let wanted = most.min((CHUNK / row_bytes).max(1));
        self.chunk.resize(wanted * row_bytes, 0);
        let enough = if self.bytes.is_pipe() { row_bytes } else { self.chunk.len() };
        let mut got = self.held;
        while got < enough {
            match self.bytes.some(&mut self.chunk[got..])? {
                0 => break,
                more => got += more,
            }
        }
        let (whole, over) = (got / row_bytes, got % row_bytes);
        if got < enough {
            let there = self.row + whole as u64;
            ensure!(self.layout.rows.is_none(), self.cut_short(there, over as u64));
            ensure!(over == 0, self.left_over(there, over as u64));
            ensure!(there > 0, "empty: expected at least one row");
        }
        self.encoding.decode(&self.chunk[..got - over], &mut rows.values);
        self.chunk.copy_within(got - over..got, 0);
        self.held = over;
        self.row += whole as u64;
        Ok(whole)
    }
}

impl Reader for FixedRows {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, rows: &mut Rows) -> Result<()> {
        rows.clear();
        let left = self.layout.rows.map_or(u64::MAX, |rows| rows - self.row);
        if left == 0 && self.bytes.length().is_none() {
            ensure!(self.bytes.some(&mut [0])? == 0, self.too_long(self.bytes.at() - 1, None));
        }
        let mut left = most.min(usize::try_from(left).unwrap_or(usize::MAX));
        while left > 0 {
            match self.read_chunk(left, rows)? {
                0 => break,
                _ if self.bytes.is_pipe() => break,
                got => left -= got,
            }
        }
        Ok(())
    }

    fn place(&self) -> Place {
        Place { row: self.row, byte: self.start + self.row * self.row_bytes() as u64 }
    }

    fn go_to(&mut self, place: Place) -> Result<()> {
        place.require_within(self.layout.rows)?;
        let byte = (self.row_bytes() as u64).saturating_mul(place.row).saturating_add(self.start);
        ensure!(byte == place.byte, "expected row {} at byte {byte}, got byte {}", place.row, place.byte);
        self.bytes.go_to(byte)?;
        self.row = place.row;
        Ok(())
    }
}
