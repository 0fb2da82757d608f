//! Tells whether two paths are the same file: by its device and inode or, if it does not exist yet, by its place.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

/// A file, independent of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// A file that exists.
    File(Inode),
    /// A file that does not exist: the nearest existing folder above it, and the rest of the path.
    Nothing { within: Inode, rest: PathBuf },
}

/// Where the system keeps a file: device and number.
#[cfg(unix)]
pub(super) type Inode = (u64, u64);
/// The one name of a file that has no links in it.
#[cfg(not(unix))]
pub(super) type Inode = PathBuf;

impl Identity {
    /// Of the file at this path, whether it exists or not. Links are followed, even to files that do not exist.
    pub fn of(path: &Path) -> io::Result<Self> {
        let path = &followed(path)?;
        if let Some(inode) = inode(path)? {
            return Ok(Self::File(inode));
        }
        let mut rest = PathBuf::new();
        for folder in path.ancestors().skip(1) {
            let name = path.strip_prefix(folder).unwrap_or(path);
            rest = normal(name);
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            if let Some(within) = inode(folder)? {
                return Ok(Self::Nothing { within, rest });
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("no folder of {} exists", rest.display())))
    }

    /// Of an open file, such as standard input.
    #[cfg(unix)]
    pub fn of_open(file: &impl std::os::fd::AsFd) -> io::Result<(Self, Metadata)> {
        let metadata = fs::File::from(file.as_fd().try_clone_to_owned()?).metadata()?;
        Ok((Self::File(number(&metadata)), metadata))
    }
}

/// Without `.` and, as far as that can be told from names, `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = normal.pop(),
            other => normal.push(other),
        }
    }
    normal
}

/// The end of a chain of symbolic links, which need not be there.
pub(super) fn followed(path: &Path) -> io::Result<PathBuf> {
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let to = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(to);
            }
            _ => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(unix)]
fn number(metadata: &Metadata) -> Inode {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

fn inode(path: &Path) -> io::Result<Option<Inode>> {
    match fs::metadata(path) {
        #[cfg(unix)]
        Ok(metadata) => Ok(Some(number(&metadata))),
        #[cfg(not(unix))]
        Ok(_) => path.canonicalize().map(Some),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
