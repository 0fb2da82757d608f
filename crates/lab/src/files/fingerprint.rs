//! Knows bytes again: by a number that stands for all of them, also of a file that grows.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// A number that stands for these bytes (FNV-1a), the same on every machine; random streams begin with it.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Digits that no other bytes will have.
pub fn digest(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// The first bytes of a file: how many, and digits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// How many bytes.
    pub length: u64,
    digits: String,
}

const CHUNK: usize = 1 << 20;

/// Follows a file that grows, or is read on.
pub struct PrefixHash {
    file: File,
    hash: Box<Xxh3>,
    at: u64,
}

impl PrefixHash {
    /// Of a file of which nobody else uses this handle. The bytes before `start` do not count: a header that is written
    /// again once the rest is known.
    pub fn new(file: File, start: u64) -> Self {
        Self { file, hash: Box::default(), at: start }
    }

    /// The first bytes, so many; no fewer than in an earlier call.
    ///
    /// # Errors
    /// When the file is shorter or cannot be read.
    pub fn up_to(&mut self, length: u64) -> io::Result<Prefix> {
        feed(&mut self.file, self.at..length, &mut self.hash)?;
        self.at = self.at.max(length);
        Ok(Prefix { length, digits: format!("{:032x}", self.hash.digest128()) })
    }
}

/// Reads this range of a file into a hash.
fn feed(file: &mut File, range: std::ops::Range<u64>, hash: &mut Xxh3) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    file.seek(SeekFrom::Start(range.start))?;
    let mut left = range.end - range.start;
    let mut chunk = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
    while left > 0 {
        let wanted = chunk.len().min(usize::try_from(left).unwrap_or(CHUNK));
        let got = match file.read(&mut chunk[..wanted]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            outcome => outcome?,
        };
        if got == 0 {
            let complaint = format!("it ends at byte {}, before byte {}", range.end - left, range.end);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, complaint));
        }
        hash.update(&chunk[..got]);
        left -= got as u64;
    }
    Ok(())
}
