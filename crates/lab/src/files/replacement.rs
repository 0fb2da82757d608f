//! Writes a file beside its target under a random name, and renames it when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::identity::{Identity, followed};
use super::temporaries;

/// A file that is being written and will take the place of another, or of none.
///
/// Unless it is [finished](Replacement::finish) or [kept](Replacement::keep), it is removed when the process ends, except
/// when the process is killed.
pub struct Replacement {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Removed,
    Kept,
}

/// The part of a temporary name that is random.
const RANDOM: usize = 12;
/// How many bytes of a name a temporary name keeps; file systems allow 255 bytes.
const LONGEST: usize = 200;
const ENDING: &str = ".partial";

impl Replacement {
    /// Begins a file that will replace `path`, or the target of a link at `path`, with the permissions of the file that
    /// is there.
    ///
    /// # Errors
    /// When `path` is a folder, or its folder cannot be written to.
    pub fn begin(path: &Path) -> Result<Self> {
        let target = followed(path)?;
        ensure!(!target.is_dir(), "expected a file, got a folder");
        fs::create_dir_all(folder_of(&target))?;
        let prefix = prefix(&target)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(ENDING).rand_bytes(RANDOM);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let made = builder.make_in(folder_of(&target), |path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            options.open(path).inspect(|_| temporaries::remember(path))
        })?;
        let (file, temporary) = made.keep().map_err(|error| error.error)?;
        let replacement = Self { file, temporary, target, fate: Fate::Removed };
        replacement.resemble_target()?;
        Ok(replacement)
    }

    /// Continues a file that an earlier process kept under this name.
    ///
    /// # Errors
    /// When it is not there or is not a plain file.
    pub fn go_on(path: &Path, name: &str) -> Result<Self> {
        let target = followed(path)?;
        let temporary = folder_of(&target).join(name);
        ensure!(is_partial_of(&target, name), "expected a partial file of the output, got {name}");
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
        let file = options.open(&temporary)?;
        ensure!(file.metadata()?.is_file(), "expected a plain file");
        Ok(Self { file, temporary, target, fate: Fate::Kept })
    }

    /// The file, for writing.
    ///
    /// # Errors
    /// When the system has no more handles.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Where it is now.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// What it is called now, in the folder of its target.
    pub fn name(&self) -> String {
        self.temporary.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Waits until its bytes are on the disk.
    ///
    /// # Errors
    /// When that fails.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Keeps the file from now on, whatever happens, so that a later process can [continue](Self::go_on) it.
    ///
    /// # Errors
    /// When its name cannot be written to the disk.
    pub fn keep(&mut self) -> io::Result<()> {
        if self.fate == Fate::Removed {
            sync_folder(&self.target)?;
            self.fate = Fate::Kept;
            temporaries::forget(&self.temporary);
        }
        Ok(())
    }

    /// Renames it to its target, and waits until that is on the disk.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.target)?;
        self.fate = Fate::Kept;
        temporaries::forget(&self.temporary);
        sync_folder(&self.target)
    }

    #[cfg(unix)]
    fn resemble_target(&self) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, fchown};
        let Ok(old) = fs::metadata(&self.target) else { return Ok(()) };
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
            // Only root may change the owner; for others the new file is their own, as if they had copied it.
            let _ = fchown(&self.file, Some(old.uid()), Some(old.gid()));
        }
        self.file.set_permissions(old.permissions())
    }

    #[cfg(not(unix))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)]
    fn resemble_target(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if self.fate == Fate::Removed {
            // If it cannot be removed, nothing more can be done.
            let _ = fs::remove_file(&self.temporary);
            temporaries::forget(&self.temporary);
        }
    }
}

/// Writes a file so that a reader finds either the old one or the new one, complete, even after a power failure. A pipe
/// or a device is written to directly.
///
/// # Errors
/// When it cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> Result<()> {
        if is_stream(path)? {
            let mut stream = open_stream(path)?;
            return Ok(stream.write_all(bytes).and_then(|()| stream.flush())?);
        }
        let replacement = Replacement::begin(path)?;
        (&replacement.file).write_all(bytes)?;
        Ok(replacement.finish()?)
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}

/// Whether a path leads to a pipe or a device, which can be written into but not replaced.
///
/// # Errors
/// When it leads to something that should not be written at all, such as a disk.
pub fn is_stream(path: &Path) -> Result<bool> {
    let Ok(found) = fs::metadata(path) else { return Ok(false) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = found.file_type();
        ensure!(
            !kind.is_block_device() && !kind.is_socket(),
            "expected a file or a pipe, got a disk or a socket"
        );
        Ok(kind.is_fifo() || kind.is_char_device())
    }
    #[cfg(not(unix))]
    Ok(!found.is_file() && !found.is_dir())
}

/// Opens a pipe or a device for writing.
///
/// # Errors
/// When it cannot be opened.
pub fn open_stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The beginning of the names of a file's lock and partial files; they are hidden.
pub(super) fn prefix(target: &Path) -> Result<String> {
    let name = target.file_name().context("expected the name of a file")?.to_string_lossy();
    let mut length = name.len().min(LONGEST);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    Ok(format!(".{}.", &name[..length]))
}

/// Whether a name in the folder of `target` is one that [`Replacement::begin`] gives.
pub(super) fn is_partial_of(target: &Path, name: &str) -> bool {
    let Ok(prefix) = prefix(target) else { return false };
    let random = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(ENDING));
    random.is_some_and(|random| random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Removes the partial files of this output that killed processes left, except the one named `keep` and files that this
/// command reads.
pub(super) fn remove_orphans(output: &Path, keep: Option<&str>, read: &[Identity]) {
    let Ok(target) = followed(output) else { return };
    let Ok(entries) = fs::read_dir(folder_of(&target)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_partial_of(&target, name)) else { continue };
        let plain = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_read = Identity::of(&entry.path()).is_ok_and(|identity| read.contains(&identity));
        if plain && !is_read && keep != Some(name) {
            // A leftover file that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Waits until the names in the folder of this file are on the disk.
fn sync_folder(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder_of(file))?.sync_all()?;
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}
