//! Gives sources a number that stands for them: it is another one when any file is changed, added, renamed or gone.
//!
//! The build script uses it, and tests do.

use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// The number of what is at these places below a folder, files and whole folders. A place where nothing is counts as
/// such: a packaged crate has no workspace around it.
///
/// # Errors
/// When something is there and cannot be read.
pub fn number_of(root: &Path, places: &[&str]) -> io::Result<u64> {
    let mut hash = Xxh3::new();
    for place in places {
        let mut files = Vec::new();
        collect(&root.join(place), &mut files)?;
        files.sort();
        for file in files {
            let (name, bytes) = (relative(&file, root), std::fs::read(&file)?);
            // Lengths keep the end of one thing from being taken for the beginning of the next.
            for piece in [name.as_bytes(), &bytes] {
                hash.update(&(piece.len() as u64).to_le_bytes());
                hash.update(piece);
            }
        }
    }
    Ok(hash.digest())
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if place.is_dir() {
        for entry in std::fs::read_dir(place)? {
            collect(&entry?.path(), files)?;
        }
    } else if place.is_file() {
        files.push(place.into());
    }
    Ok(())
}

/// The path below the root, the same on every system and wherever the root is.
fn relative(file: &Path, root: &Path) -> String {
    let below = file.strip_prefix(root).unwrap_or(file);
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
