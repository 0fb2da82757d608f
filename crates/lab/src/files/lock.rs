//! Keeps two processes from writing the same file, by a lock that is released when its process ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::identity::{Identity, followed};
use super::replacement::{folder_of, prefix};
use super::temporaries;

/// The exclusive right of this process to write an output.
pub(super) struct Lock {
    /// None where the file system has no locks.
    file: Option<File>,
    path: PathBuf,
}

/// The name of the lock of an output.
pub(super) fn lock_path(target: &Path) -> Result<PathBuf> {
    Ok(folder_of(target).join(format!("{}lock", prefix(target)?)))
}

impl Lock {
    /// Takes the lock of an output, or fails if another process has it.
    pub fn take(output: &Path) -> Result<Self> {
        let target = followed(output)?;
        fs::create_dir_all(folder_of(&target))?;
        let path = lock_path(&target)?;
        loop {
            let file =
                open(&path).with_context(|| format!("its lock file {} cannot be created", path.display()))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => bail!("another leukos process is writing it"),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    drop(fs::remove_file(&path));
                    return Ok(Self { file: None, path });
                }
                Err(TryLockError::Error(error)) => return Err(error).context("it cannot be locked"),
            }
            // The previous owner may have removed the file after we opened it and before we locked it.
            if is_still_there(&file, &path) {
                temporaries::remember(&path);
                return Ok(Self { file: Some(file), path });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only a file that we created: a user's file of this name is not empty.
        if self.file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|file| file.len() == 0)) {
            let _ = fs::remove_file(&self.path);
        }
        temporaries::forget(&self.path);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    options.open(path)
}

#[cfg(unix)]
fn is_still_there(file: &File, path: &Path) -> bool {
    let own = Identity::of_open(file).map(|(identity, _)| identity);
    own.is_ok_and(|own| Identity::of(path).is_ok_and(|named| named == own))
}

#[cfg(not(unix))]
fn is_still_there(_: &File, path: &Path) -> bool {
    path.exists()
}
