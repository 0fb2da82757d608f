//! Writes files whole or not at all, and gives names their numbers.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a file so that whoever looks, also after the power has failed, finds the old one or the new one, whole.
///
/// # Errors
/// When it cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let name = path.file_name().context("expected the name of a file")?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.partial"));
        let put = |bytes| -> io::Result<()> {
            let mut file = File::create(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, path)
        };
        put(bytes).inspect_err(|_| {
            // What could not be put in place is of no use to anyone.
            let _ = fs::remove_file(&temporary);
        })?;
        Ok(())
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}

/// A number that stands for these bytes (FNV-1a), the same on every machine.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
