//! Turns a model file into one of version 1, which has no checksum: nearly all that the fuzzer changes in a sealed one is
//! found at once, and what lies behind the seal would never be tried.

use std::error::Error;

use serde_json::Value;

/// The same file, without its seal.
pub fn unsealed(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let length = bytes.first_chunk().map(|length| u64::from_le_bytes(*length)).ok_or("too short")?;
    let end = 8 + usize::try_from(length)?;
    let mut header: Value = serde_json::from_slice(&bytes[8..end])?;
    let text = header.pointer_mut("/__metadata__/leukos").ok_or("no metadata")?;
    let mut about: Value = serde_json::from_str(text.as_str().ok_or("no text")?)?;
    about["version"] = 1.into();
    about.as_object_mut().ok_or("no object")?.remove("checksum");
    *text = about.to_string().into();
    let header = serde_json::to_vec(&header)?;
    Ok([&(header.len() as u64).to_le_bytes(), &header[..], &bytes[end..]].concat())
}
