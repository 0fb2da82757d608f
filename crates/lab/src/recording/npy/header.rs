//! Reads and writes the header of a `.npy` file.

use anyhow::{Context, Result, bail, ensure};

use crate::recording::SampleType;
use crate::recording::fixed_rows::{ByteOrder, Encoding};
use crate::recording::shortened;
use crate::recording::source::Bytes;

/// What comes first in a row of numbers: those of a row, or those of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryOrder {
    Rows,
    Columns,
}

pub(super) struct Header {
    pub encoding: Encoding,
    pub order: MemoryOrder,
    pub shape: Vec<u64>,
}

const MAGIC: &[u8] = b"\x93NUMPY";
/// Numpy refuses longer ones too, unless told to trust the file.
const LONGEST: usize = 10_000;

impl Header {
    /// Reads a header of version 1, 2 or 3, and nothing beyond it.
    pub fn read(bytes: &mut Bytes) -> Result<Self> {
        let mut start = [0; 8];
        let got = bytes.fill(&mut start)?;
        ensure!(got > 0, "empty: expected a .npy file");
        ensure!(
            got == 8 && start.starts_with(MAGIC),
            "expected a .npy file, but its first bytes are not those of one"
        );
        let mut length = [0; 4];
        let field = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => bail!("expected version 1, 2 or 3 of the .npy format, got {version}"),
        };
        ensure!(
            bytes.fill(&mut length[..field])? == field,
            "cut short in its header, at byte {}",
            bytes.at()
        );
        let length = u32::from_le_bytes(length) as usize;
        ensure!(length <= LONGEST, "expected a header of up to {LONGEST} bytes, got {length}");
        let mut text = vec![0; length];
        ensure!(bytes.fill(&mut text)? == length, "cut short in its header, at byte {}", bytes.at());
        let text = String::from_utf8_lossy(&text);
        Self::parse(&text).with_context(|| format!("header {}", shortened(text.trim())))
    }

    /// Understands the text of a dictionary with the keys descr, fortran_order and shape, in any order.
    fn parse(text: &str) -> Result<Self> {
        let order = match value(text, "fortran_order")? {
            word if word.starts_with("False") => MemoryOrder::Rows,
            word if word.starts_with("True") => MemoryOrder::Columns,
            other => bail!("fortran_order: expected True or False, got {}", shortened(other)),
        };
        Ok(Self { encoding: encoding(value(text, "descr")?)?, order, shape: shape(value(text, "shape")?)? })
    }

    pub fn shape_in_words(&self) -> String {
        let lengths = self.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let comma = if self.shape.len() == 1 { "," } else { "" };
        format!("({lengths}{comma})")
    }
}

/// What stands behind a key and its colon.
fn value<'a>(text: &'a str, key: &str) -> Result<&'a str> {
    let quoted = ['\'', '"'].map(|quote| format!("{quote}{key}{quote}"));
    let behind =
        quoted.iter().find_map(|key| text.split_once(key.as_str())).map(|(_, behind)| behind.trim_start());
    behind
        .and_then(|behind| behind.strip_prefix(':'))
        .map(str::trim_start)
        .with_context(|| format!("expected the key {key} and its value"))
}

fn encoding(descr: &str) -> Result<Encoding> {
    let word = descr.strip_prefix(['\'', '"']).and_then(|rest| rest.split(['\'', '"']).next());
    let (order, kind) = match word.and_then(|word| word.split_at_checked(1)) {
        Some(("<", kind)) => (ByteOrder::LowFirst, kind),
        Some((">", kind)) => (ByteOrder::HighFirst, kind),
        _ => (ByteOrder::LowFirst, ""),
    };
    let sample_type = match kind {
        "i2" => SampleType::Int16,
        "i4" => SampleType::Int32,
        "f4" => SampleType::Float32,
        "f8" => SampleType::Float64,
        _ => bail!(
            "expected int16, int32, float32 or float64 numbers, got dtype {}",
            shortened(word.unwrap_or(descr))
        ),
    };
    Ok(Encoding { sample_type, order })
}

fn shape(tuple: &str) -> Result<Vec<u64>> {
    let inside = tuple.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inside, _)| inside);
    let inside =
        inside.with_context(|| format!("shape: expected (rows, channels), got {}", shortened(tuple)))?;
    let lengths = inside.split(',').map(str::trim).filter(|length| !length.is_empty());
    let length = |word: &str| {
        // Python 2 wrote long integers with an L.
        let number = word.strip_suffix('L').unwrap_or(word).parse();
        number.with_context(|| format!("shape: expected whole numbers, got {}", shortened(word)))
    };
    lengths.map(length).collect()
}

/// The length of the headers made here, whatever the number of rows, so that it can be filled in when it is known.
const HEADER_BYTES: usize = 128;

/// The first bytes of a file with an array of so many rows in C order.
pub(crate) fn header_bytes(sample_type: SampleType, channels: usize, rows: u64) -> Vec<u8> {
    let kind = match sample_type {
        SampleType::Int16 => "<i2",
        SampleType::Int32 => "<i4",
        SampleType::Float32 => "<f4",
        SampleType::Float64 => "<f8",
    };
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {channels}), }}");
    let width = HEADER_BYTES - 10;
    let mut bytes = [MAGIC, &[1, 0, width as u8, 0]].concat();
    bytes.extend(format!("{text:<padded$}\n", padded = width - 1).bytes());
    bytes
}
