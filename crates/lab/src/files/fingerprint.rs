//! Recognises bytes by a hash, also those of a growing file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// A hash of these bytes (FNV-1a), the same on every machine; random streams are seeded with it.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A 128-bit hash in hexadecimal digits: other bytes have another one.
pub fn digest(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// The first bytes of a file: how many, and their hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// How many bytes.
    pub length: u64,
    digits: String,
}

const CHUNK: usize = 1 << 20;

/// Computes the hash of a file incrementally, as the file grows or is read.
pub struct PrefixHash {
    file: File,
    hash: Box<Xxh3>,
    at: u64,
}

impl PrefixHash {
    /// For a file whose handle nobody else uses. The bytes before `start` do not count: they are a header, which is
    /// written again at the end.
    pub fn new(file: File, start: u64) -> Self {
        Self { file, hash: Box::default(), at: start }
    }

    /// The first `length` bytes; no fewer than in an earlier call.
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
