//! Lists every path that a command reads and writes, and refuses two names of the same file before anything is written.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::identity::Identity;
use super::lock::{Lock, lock_path};
use super::replacement::{is_stream, remove_orphans};
use crate::recording::Source;
use crate::usage::Usage;

/// What a command reads and writes.
#[derive(Default)]
pub struct Paths {
    read: Vec<Named>,
    written: Vec<Named>,
}

/// A file, and its role in the command.
struct Named {
    what: String,
    place: Place,
    held: Held,
}

/// Which lock keeps other processes from writing a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// A lock of its own.
    ByItself,
    /// The lock of another output of the same command.
    Along,
}

enum Place {
    Path(PathBuf),
    Stdin,
    Stdout,
}

/// The locked outputs: no other process writes them while this value lives.
pub struct Secured {
    outputs: Vec<PathBuf>,
    read: Vec<Identity>,
    _locks: Vec<Lock>,
}

impl Paths {
    /// The command reads this file.
    pub fn read(&mut self, what: impl Into<String>, path: impl Into<PathBuf>) -> &mut Self {
        push(&mut self.read, what, Place::Path(path.into()), Held::ByItself);
        self
    }

    /// The command reads this recording.
    pub fn read_source(&mut self, what: impl Into<String>, source: &Source) -> &mut Self {
        let place = match source {
            Source::File(path) => Place::Path(path.clone()),
            Source::Stdin => Place::Stdin,
        };
        push(&mut self.read, what, place, Held::ByItself);
        self
    }

    /// The command writes this file.
    pub fn write(&mut self, what: impl Into<String>, path: impl Into<PathBuf>) -> &mut Self {
        push(&mut self.written, what, Place::Path(path.into()), Held::ByItself);
        self
    }

    /// The command writes this file while it holds another output that the file goes with.
    pub fn write_along(&mut self, what: impl Into<String>, path: impl Into<PathBuf>) -> &mut Self {
        push(&mut self.written, what, Place::Path(path.into()), Held::Along);
        self
    }

    /// The command writes its output to standard output.
    pub fn write_stdout(&mut self) -> &mut Self {
        push(&mut self.written, "standard output", Place::Stdout, Held::Along);
        self
    }

    /// Checks that no file is both read and written, or written twice; then locks the outputs, and removes the partial
    /// files of processes that were killed.
    ///
    /// # Errors
    /// [`Usage`] when two names mean one file, or an output is a folder; else when an output cannot be written, or another
    /// process is writing it.
    pub fn secure(&self) -> Result<Secured> {
        let secured = self.lock()?;
        secured.outputs.iter().for_each(|output| secured.remove_orphans(output, None));
        Ok(secured)
    }

    /// The same without removing partial files; the caller does that with [`Secured::remove_orphans`].
    ///
    /// # Errors
    /// As [`Self::secure`].
    pub fn lock(&self) -> Result<Secured> {
        let read = self.require_apart()?;
        let (mut locks, mut outputs) = (Vec::new(), Vec::new());
        for Named { what, place, held } in &self.written {
            let Place::Path(path) = place else { continue };
            if is_stream(path)? {
                continue;
            }
            if *held == Held::ByItself {
                locks.push(Lock::take(path).with_context(|| format!("{what}: {}", path.display()))?);
            }
            outputs.push(path.clone());
        }
        Ok(Secured { outputs, read, _locks: locks })
    }

    /// Returns what is read.
    fn require_apart(&self) -> Result<Vec<Identity>> {
        let mut known: Vec<(String, Identity)> = Vec::new();
        for Named { what, place, .. } in &self.read {
            // A missing file is reported when it is opened.
            known.extend(place.identity().ok().flatten().map(|identity| (what.clone(), identity)));
        }
        let read = known.iter().map(|(_, identity)| identity.clone()).collect();
        for Named { what, place, held } in &self.written {
            for (what, place) in place.with_lock(what, *held)? {
                let Some(identity) = place.identity().with_context(|| what.clone())? else { continue };
                if let Some((other, _)) = known.iter().find(|(_, known)| *known == identity) {
                    bail!(Usage(format!("{what}: expected a different file from {other}, got the same")));
                }
                known.push((what, identity));
            }
        }
        Ok(read)
    }
}

fn push(list: &mut Vec<Named>, what: impl Into<String>, place: Place, held: Held) {
    list.push(Named { what: what.into(), place, held });
}

impl Place {
    /// The file itself and its lock.
    fn with_lock(&self, what: &str, held: Held) -> Result<Vec<(String, Place)>> {
        let own = |place| (what.to_owned(), place);
        let Self::Path(path) = self else { return Ok(vec![own(Self::Stdout)]) };
        let complaint = || Usage(format!("{what}: expected a file, got the folder {}", path.display()));
        ensure!(!path.is_dir(), complaint());
        let mut all = vec![own(Self::Path(path.clone()))];
        let stream = is_stream(path).with_context(|| format!("{what}: {}", path.display()))?;
        if held == Held::ByItself && !stream {
            let target = super::identity::followed(path)?;
            all.push((format!("the lock of {what}"), Self::Path(lock_path(&target)?)));
        }
        Ok(all)
    }

    /// `None` for what may be read and written at the same time, such as a terminal.
    fn identity(&self) -> io::Result<Option<Identity>> {
        match self {
            Self::Path(path) if is_terminal_like(path) => Ok(None),
            Self::Path(path) => Identity::of(path).map(Some),
            #[cfg(unix)]
            Self::Stdin => Ok(plain(Identity::of_open(&io::stdin()))),
            #[cfg(unix)]
            Self::Stdout => Ok(plain(Identity::of_open(&io::stdout()))),
            #[cfg(not(unix))]
            Self::Stdin | Self::Stdout => Ok(None),
        }
    }
}

/// Only plain files need protection, also those that standard input or output is redirected to.
#[cfg(unix)]
fn plain(open: io::Result<(Identity, std::fs::Metadata)>) -> Option<Identity> {
    open.ok().and_then(|(identity, metadata)| metadata.is_file().then_some(identity))
}

fn is_terminal_like(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        path.metadata().is_ok_and(|found| found.file_type().is_char_device())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

impl Secured {
    /// Removes the partial files of this output that killed processes left, except the one named `keep`.
    pub fn remove_orphans(&self, output: &Path, keep: Option<&str>) {
        if self.outputs.iter().any(|held| held == output) {
            remove_orphans(output, keep, &self.read);
        }
    }
}
