//! Reads raw recordings: numbers without a header, of which the user says what they are.

use anyhow::{Result, bail, ensure};

use super::binary_writer;
use super::fixed_rows::{ByteOrder, Encoding, FixedRows};
use super::format::{Definition, Writing};
use super::source::Bytes;
use super::{Layout, ReadOptions, Reader, require_channels};
use crate::usage::Usage;

pub(super) const DEFINITION: Definition = Definition {
    needs_shape: true,
    tells_sample_rate: false,
    is_text: false,
    open,
    is_scattered: |_| Ok(false),
    writing: Some(Writing { begin: binary_writer::begin, go_on: binary_writer::go_on, header: None }),
};

fn open(bytes: Bytes, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    let (Some(channels), Some(sample_type)) = (options.channels, options.sample_type) else {
        bail!(Usage("--channels, --dtype: expected both for a raw recording".into()));
    };
    let channels =
        require_channels(channels as u64).map_err(|error| Usage(format!("--channels: {error}")))?;
    ensure!(bytes.length() != Some(0), "empty: expected at least one row");
    let layout = Layout { channels, names: None, sample_type, sample_rate: options.sample_rate, rows: None };
    let encoding = Encoding { sample_type, order: ByteOrder::LowFirst };
    Ok(Box::new(FixedRows::new(bytes, encoding, layout)?))
}
