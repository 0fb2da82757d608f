//! Reads arrays of numpy, rows by channels, without holding more of them than a block.

mod columns;
mod header;

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::fixed_rows::FixedRows;
use super::format::{Definition, Writing};
use super::slabs::SlabReader;
use super::source::Bytes;
use super::{Layout, ReadOptions, Reader, binary_writer, require_channels};
use columns::Columns;
use header::{Header, MemoryOrder, header_bytes};

pub(super) const DEFINITION: Definition = Definition {
    needs_shape: false,
    tells_sample_rate: false,
    is_text: false,
    open,
    is_scattered,
    writing: Some(Writing {
        begin: binary_writer::begin,
        go_on: binary_writer::go_on,
        header: Some(|shape, rows| header_bytes(shape.sample_type, shape.channels, rows)),
    }),
};

/// Opens an array of shape (rows, channels), or (rows,) for one channel, in either memory order and byte order.
fn open(mut bytes: Bytes, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    let header = Header::read(&mut bytes)?;
    let (rows, channels) = match header.shape[..] {
        [rows] => (rows, 1),
        [rows, channels] => (rows, channels),
        _ => bail!("expected shape (rows, channels), got {}", header.shape_in_words()),
    };
    let channels = require_channels(channels).with_context(|| {
        format!("shape {}: expected (rows, channels), rows being samples", header.shape_in_words())
    })?;
    let layout = Layout {
        channels,
        names: None,
        sample_type: header.encoding.sample_type,
        sample_rate: options.sample_rate,
        rows: Some(rows),
    };
    if header.order == MemoryOrder::Rows || channels == 1 {
        return Ok(Box::new(FixedRows::new(bytes, header.encoding, layout)?));
    }
    ensure!(
        bytes.length().is_some(),
        "expected an array in C order, because columns (Fortran order) cannot be read from a pipe; \
         numpy.ascontiguousarray makes one"
    );
    let columns = Columns::new(bytes, header.encoding, [rows, channels as u64])?;
    Ok(Box::new(SlabReader::new(columns, layout)))
}

/// An array of columns is; so is one that cannot be made sense of, and is refused later.
fn is_scattered(path: &Path) -> Result<bool> {
    let header = Header::read(&mut Bytes::of_file(File::open(path)?)?);
    Ok(header.map_or(true, |header| header.order != MemoryOrder::Rows))
}
