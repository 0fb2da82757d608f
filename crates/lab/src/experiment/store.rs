//! Keeps the records of finished tasks, so that an interrupted call can be continued.
//!
//! A figure has one file, `DIR/runs/FIGURE.jsonl`: a first line that says what the runs belong to, and then one line
//! for each task, written at once when the task is done. Each line begins with a checksum of the rest of it, and that of
//! a task also of what it belongs to. So a line that was cut off by a crash, damaged by a disk or written for other runs
//! is never used; it is dropped, and counted.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{RecordMap, Task};
use crate::files::write_atomically;

/// The file of one figure's records.
pub struct Store {
    path: PathBuf,
    key: String,
    file: Mutex<File>,
}

/// What was found when a store was opened.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    pub records: RecordMap,
    /// Whether there were records that belong to something else, now gone.
    pub outdated: bool,
    /// How many lines were damaged or cut off, now gone.
    pub damaged: usize,
}

#[derive(Serialize, Deserialize)]
struct Header {
    belongs_to: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    task: Task,
    record: Value,
}

impl Store {
    /// Opens the records at `path` that belong to `key`, or begins anew.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn open(path: &Path, key: &str) -> Result<(Self, Found)> {
        let open = || -> Result<(Self, Found)> {
            let found = match fs::read(path) {
                Ok(bytes) => parse(&bytes, key),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Found::default(),
                Err(error) => return Err(error.into()),
            };
            rewrite(path, key, &found.records)?;
            let file = OpenOptions::new().append(true).open(path)?;
            Ok((Self { path: path.into(), key: key.into(), file: Mutex::new(file) }, found))
        };
        open().with_context(|| format!("runs {}", path.display()))
    }

    /// Adds the record of a task.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&self, task: &Task, record: &Value) -> Result<()> {
        let line = line(&Line { task: task.clone(), record: record.clone() }, &self.key)?;
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(&line)
            .with_context(|| format!("runs {}: a finished run cannot be saved", self.path.display()))
    }
}

/// The records that belong to `key`, without those of damaged lines.
fn parse(bytes: &[u8], key: &str) -> Found {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let mut found = Found::default();
    match checked(first, NOBODY).and_then(|body| serde_json::from_slice::<Header>(&body).ok()) {
        Some(Header { belongs_to }) if belongs_to == key => {}
        Some(_) => return Found { outdated: true, ..found },
        None if is_unsealed(first) => return Found { outdated: true, ..found },
        // Each line says again what it belongs to.
        None => found.damaged += 1,
    }
    for line in lines {
        match checked(line, key).and_then(|body| serde_json::from_slice::<Line>(&body).ok()) {
            Some(Line { task, record }) => _ = found.records.insert(task, record),
            None => found.damaged += 1,
        }
    }
    found
}

/// Whether a first line was written by an old version without checksums.
fn is_unsealed(line: &[u8]) -> bool {
    line.starts_with(b"{\"belongs_to\":") && serde_json::from_slice::<Header>(line).is_ok()
}

/// Puts the file in place with all of its good lines and nothing else.
fn rewrite(path: &Path, key: &str, records: &RecordMap) -> Result<()> {
    let mut bytes = line(&Header { belongs_to: key.to_owned() }, NOBODY)?;
    for (task, record) in records {
        bytes.extend(line(&Line { task: task.clone(), record: record.clone() }, key)?);
    }
    write_atomically(path, &bytes)
}

/// What a line begins with; then come the digits of its checksum and [`CLOSING`].
const OPENING: &[u8] = b"{\"xxh3\":\"";
const CLOSING: &[u8] = b"\",";
/// What the first line belongs to.
const NOBODY: &str = "";

/// A line: an object whose first member is the checksum of the others.
fn line(value: &impl Serialize, key: &str) -> Result<Vec<u8>> {
    let body = serde_json::to_vec(value)?;
    let digits = digits(&body, key);
    Ok([OPENING, digits.as_bytes(), CLOSING, &body[1..], b"\n"].concat())
}

/// The object in a line without its checksum, if that is right.
fn checked(line: &[u8], key: &str) -> Option<Vec<u8>> {
    let rest = line.strip_prefix(OPENING)?.strip_suffix(b"\n")?;
    let (found, rest) = rest.split_at_checked(DIGITS)?;
    let body = [b"{", rest.strip_prefix(CLOSING)?].concat();
    (digits(&body, key).as_bytes() == found).then_some(body)
}

const DIGITS: usize = 16;

fn digits(body: &[u8], key: &str) -> String {
    format!("{:016x}", xxh3_64_with_seed(body, xxh3_64(key.as_bytes())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

    use leukos::contexts::stream;
    use rand::RngExt;
    use serde_json::json;

    use super::*;

    const KEY: &str = "0123456789abcdef";

    fn records() -> RecordMap {
        let record = |start| {
            let task = Task { variant: "authors".into(), case: format!("case {}", start % 3), start };
            (task, json!({ "errors": [0.1 * start as f64, 1e-300], "diverged": null, "step": start }))
        };
        (0..12).map(record).collect()
    }

    fn bytes(records: &RecordMap) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figure.jsonl");
        rewrite(&path, KEY, records).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn what_is_kept_comes_back() {
        let found = parse(&bytes(&records()), KEY);
        assert_eq!(found, Found { records: records(), outdated: false, damaged: 0 });
    }

    #[test]
    fn no_damaged_byte_is_believed() {
        let (records, mut rng) = (records(), stream(std::process::id().into(), 0));
        let whole = bytes(&records);
        for _ in 0..100_000 {
            let (at, fault) = (rng.random_range(0..whole.len()), rng.random_range(1..=255_u8));
            let mut damaged = whole.clone();
            damaged[at] ^= fault;
            let found = parse(&damaged, KEY);
            assert!(found.damaged > 0 && !found.outdated, "byte {at} with {fault:#x} in it");
            assert!(
                found.records.iter().all(|(task, record)| records.get(task) == Some(record)),
                "byte {at} with {fault:#x} in it"
            );
            assert!(
                found.records.len() + 2 >= records.len(),
                "a fault costs its line, and at most the next one"
            );
        }
    }

    #[test]
    fn a_file_cut_anywhere_keeps_its_whole_lines() {
        let (records, whole) = (records(), bytes(&records()));
        for length in 1..whole.len() {
            let found = parse(&whole[..length], KEY);
            let lines = whole[..length].split_inclusive(|&byte| byte == b'\n');
            let lines = lines.filter(|line| line.ends_with(b"\n")).count();
            assert_eq!(found.records.len(), lines.saturating_sub(1), "{length} bytes");
            assert!(found.records.iter().all(|(task, record)| records.get(task) == Some(record)));
            assert_eq!(found.damaged, usize::from(whole[length - 1] != b'\n'), "{length} bytes");
        }
    }

    #[test]
    fn runs_of_something_else_are_not_believed() {
        let (records, whole) = (records(), bytes(&records()));
        assert_eq!(parse(&whole, "another"), Found { outdated: true, ..Found::default() });
        // Not even under a header that is another's.
        let mut mixed = line(&Header { belongs_to: "another".into() }, NOBODY).unwrap();
        mixed.extend(whole.split_inclusive(|&byte| byte == b'\n').skip(1).flatten());
        let found = parse(&mixed, "another");
        assert_eq!((found.records.len(), found.damaged), (0, records.len()));
        let unsealed = b"{\"belongs_to\":\"0123456789abcdef\"}\n{\"task\":1}\n";
        assert_eq!(parse(unsealed, KEY), Found { outdated: true, ..Found::default() });
    }
}
