//! Keeps the records of finished tasks, so that an interrupted call can be continued.
//!
//! A figure has one file, `DIR/runs/FIGURE.jsonl`: a first line that says what the runs belong to, and then one line
//! for each task, written at once when the task is done. A line that a crash has cut off is dropped.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{RecordMap, Task};
use crate::files::write_atomically;

/// The file of one figure's records.
pub struct Store {
    file: Mutex<File>,
}

/// What was found when a store was opened.
pub struct Found {
    pub records: RecordMap,
    /// Whether there were records that belong to something else, now gone.
    pub outdated: bool,
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
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    Found { records: RecordMap::new(), outdated: false }
                }
                Err(error) => return Err(error.into()),
            };
            rewrite(path, key, &found.records)?;
            let file = OpenOptions::new().append(true).open(path)?;
            Ok((Self { file: Mutex::new(file) }, found))
        };
        open().with_context(|| format!("runs {}", path.display()))
    }

    /// Adds the record of a task.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&self, task: &Task, record: &Value) -> Result<()> {
        let line = line(&Line { task: task.clone(), record: record.clone() })?;
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(&line).context("a finished run cannot be kept")
    }
}

/// The records that belong to `key`, up to the first damaged line.
fn parse(bytes: &[u8], key: &str) -> Found {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let header = lines.next().and_then(|line| serde_json::from_slice::<Header>(line).ok());
    if header.is_none_or(|header| header.belongs_to != key) {
        return Found { records: RecordMap::new(), outdated: true };
    }
    let whole = lines.take_while(|line| line.ends_with(b"\n"));
    let parsed = whole.map_while(|line| serde_json::from_slice::<Line>(line).ok());
    Found { records: parsed.map(|line| (line.task, line.record)).collect(), outdated: false }
}

/// Puts the file in place with all of its good lines and nothing else.
fn rewrite(path: &Path, key: &str, records: &RecordMap) -> Result<()> {
    let mut bytes = line(&Header { belongs_to: key.to_owned() })?;
    for (task, record) in records {
        bytes.extend(line(&Line { task: task.clone(), record: record.clone() })?);
    }
    write_atomically(path, &bytes)
}

fn line(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
