//! Protects a model file with a checksum of all its bytes, so that any change is detected.
//!
//! The checksum is XXH3 with 128 bits, in hexadecimal digits, of the file with zeros in place of these digits.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use crate::archive::damaged;
use crate::error::Result;

/// The placeholder for the checksum.
pub(super) const BLANK: &str = "00000000000000000000000000000000";
/// What the digits follow: a key of the JSON text that is a text within the JSON text of the header.
const KEY: &[u8] = br#"\"checksum\":\""#;

/// The file with its checksum.
pub(super) fn seal(mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let digits = place(&bytes)?;
    let checksum = checksum(&bytes, &digits);
    bytes[digits].copy_from_slice(checksum.as_bytes());
    Ok(bytes)
}

/// Checks that the bytes are those that were sealed with this checksum.
pub(super) fn require(bytes: &[u8], expected: &str) -> Result<()> {
    let found = checksum(bytes, &place(bytes)?);
    if found == expected {
        return Ok(());
    }
    Err(damaged(format!("its bytes have changed: expected the checksum {expected}, got {found}")))
}

fn place(bytes: &[u8]) -> Result<Range<usize>> {
    let key = bytes.windows(KEY.len()).position(|window| window == KEY);
    let start = key.map(|key| key + KEY.len());
    let digits = start.map(|start| start..start + BLANK.len()).filter(|digits| digits.end <= bytes.len());
    digits.ok_or_else(|| damaged("checksum: its digits are not where they should be"))
}

fn checksum(bytes: &[u8], digits: &Range<usize>) -> String {
    let mut hash = Xxh3::new();
    hash.update(&bytes[..digits.start]);
    hash.update(BLANK.as_bytes());
    hash.update(&bytes[digits.end..]);
    format!("{:032x}", hash.digest128())
}
