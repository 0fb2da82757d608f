//! Writes an output under a temporary name until it is complete; a pipe is written directly.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::files::{Prefix, PrefixHash, Replacement, is_stream, open_stream};
use crate::recording::{Misfits, OutputShape, Place, Rows, Sink, Writer, continue_writing, writer};

/// Where an output goes; on the command line `-` is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file, or something else that has a name in the file system.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// Nowhere: the stream is only watched.
    Nowhere,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "output {}", path.display()),
            Self::Stdout => f.write_str("standard output"),
            Self::Nowhere => f.write_str("no output"),
        }
    }
}

/// What an earlier call has written.
pub(super) struct Earlier<'a> {
    /// The name of its partial file.
    pub partial: &'a str,
    /// The bytes that belong to its rows.
    pub written: &'a Prefix,
    pub rows: u64,
    /// Whether that was all.
    pub complete: bool,
}

impl Destination {
    /// Whether it is a pipe or a device: written directly, never rewound or replaced.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::File(path) => is_stream(path).unwrap_or(false),
            Self::Stdout => true,
            Self::Nowhere => false,
        }
    }

    /// Begins to write.
    pub(super) fn begin(&self, shape: &OutputShape) -> Result<(Begun, Box<dyn Writer>)> {
        let begin = |path: &Path| -> Result<(Begun, Box<dyn Writer>)> {
            if is_stream(path)? {
                return Ok((Begun(None), writer(Sink::Pipe(open_stream(path)?), shape)?));
            }
            let replacement = Replacement::begin(path).context("the file cannot be written")?;
            let writer = writer(Sink::File(replacement.file()?), shape)?;
            Ok((Begun(Some(replacement)), writer))
        };
        match self {
            Self::File(path) => begin(path).with_context(|| self.to_string()),
            Self::Stdout => Ok((Begun(None), writer(Sink::Stdout, shape)?)),
            Self::Nowhere => Ok((Begun(None), Box::new(Unwritten))),
        }
    }

    /// Continues the output of an earlier call.
    pub(super) fn go_on(&self, shape: &OutputShape, earlier: &Earlier) -> Result<(Begun, Box<dyn Writer>)> {
        let Self::File(path) = self else { return self.begin(shape) };
        let folder = path.parent().unwrap_or(Path::new(""));
        let partial = folder.join(earlier.partial);
        match Replacement::go_on(path, earlier.partial) {
            Ok(replacement) => {
                require_prefix(&partial, earlier.written, shape)?;
                earlier.go_on(replacement, shape).with_context(|| format!("output {}", partial.display()))
            }
            Err(error) if is_missing(&error) && path.exists() => {
                require_prefix(path, earlier.written, shape)
                    .with_context(|| format!("{} is gone", partial.display()))?;
                if earlier.complete && path.metadata()?.len() == earlier.written.length {
                    require_header(path, &shape.header(earlier.rows))?;
                    return Ok((Begun(None), Box::new(Written(earlier.written.length))));
                }
                // The output was renamed, but the checkpoint that records this did not reach the disk.
                let copy = earlier.copy(path).with_context(|| self.to_string())?;
                earlier.go_on(copy, shape).with_context(|| self.to_string())
            }
            Err(error) => {
                let complaint =
                    "expected the partial output of the earlier run, but the file cannot be opened";
                Err(error.context(complaint).context(format!("output {}", partial.display())))
            }
        }
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Checks that a complete file has the expected header.
fn require_header(path: &Path, expected: &[u8]) -> Result<()> {
    let mut found = Vec::new();
    Read::take(File::open(path)?, expected.len() as u64).read_to_end(&mut found)?;
    ensure!(
        found == expected,
        "output {}: its header is not the one that was written before",
        path.display()
    );
    Ok(())
}

/// Checks that a file has the bytes that it should begin with; its header is written last.
fn require_prefix(path: &Path, expected: &Prefix, shape: &OutputShape) -> Result<()> {
    let length = expected.length;
    let require = || -> Result<()> {
        let found = PrefixHash::new(File::open(path)?, shape.header(0).len() as u64).up_to(length)?;
        if found == *expected {
            return Ok(());
        }
        bail!("the first {length} bytes are not those that were written before");
    };
    require().with_context(|| {
        format!("output {}: expected the {length} bytes that were written before", path.display())
    })
}

impl Earlier<'_> {
    fn go_on(&self, replacement: Replacement, shape: &OutputShape) -> Result<(Begun, Box<dyn Writer>)> {
        let place = Place { row: self.rows, byte: self.written.length };
        let writer = continue_writing(replacement.file()?, shape, place)?;
        Ok((Begun(Some(replacement)), writer))
    }

    /// What was written, under a new partial name.
    fn copy(&self, path: &Path) -> Result<Replacement> {
        let copy = Replacement::begin(path)?;
        let mut from = Read::take(File::open(path)?, self.written.length);
        let mut to = copy.file()?;
        io::copy(&mut from, &mut to)?;
        to.flush()?;
        Ok(copy)
    }
}

/// Rows that nobody wants in a file.
struct Unwritten;

impl Writer for Unwritten {
    fn write(&mut self, _: &Rows) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> Result<u64> {
        Ok(0)
    }

    fn misfits(&self) -> Misfits {
        Misfits::default()
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// An output that was already complete: there is nothing more to write.
struct Written(u64);

impl Writer for Written {
    fn write(&mut self, _: &Rows) -> Result<()> {
        bail!("expected no more rows, because the output is complete");
    }

    fn flush(&mut self) -> Result<u64> {
        Ok(self.0)
    }

    fn misfits(&self) -> Misfits {
        Misfits::default()
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// An output that is being written; `None` for a pipe, or a file that is complete.
pub(super) struct Begun(Option<Replacement>);

impl Begun {
    /// Waits until everything is on the disk, and keeps it for a later call.
    pub fn keep(&mut self) -> Result<()> {
        let Some(replacement) = &mut self.0 else { return Ok(()) };
        replacement.sync().and_then(|()| replacement.keep()).context("it cannot be written to the disk")
    }

    /// The path of the partial file, and its name.
    pub fn partial(&self) -> Option<(&Path, String)> {
        self.0.as_ref().map(|replacement| (replacement.path(), replacement.name()))
    }

    /// Renames the complete file to its final name.
    pub fn finish(&mut self) -> Result<()> {
        self.0
            .take()
            .map_or(Ok(()), Replacement::finish)
            .context("the finished file cannot be renamed to its final name")
    }
}
