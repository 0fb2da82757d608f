//! Reads arrays of numpy, rows by channels, without holding more of them than a block.

mod columns;
mod header;

use anyhow::{Context, Result, bail, ensure};

use super::fixed_rows::FixedRows;
use super::slabs::SlabReader;
use super::source::Bytes;
use super::{Layout, Reader, require_channels};
use columns::Columns;
pub(super) use header::header_bytes;
use header::{Header, MemoryOrder};

/// Opens an array of shape (rows, channels), or (rows,) for one channel, in either memory order and byte order.
pub(super) fn open(mut bytes: Bytes, sample_rate: Option<f64>) -> Result<Box<dyn Reader>> {
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
        sample_rate,
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
