//! Opens the source of a recording, a file or standard input, and counts the bytes that are read.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

/// What a recording is read from; on the command line `-` is standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, or something else that has a name in the file system.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(if word == "-" { Self::Stdin } else { Self::File(word.into()) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "recording {}", path.display()),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}

impl Source {
    /// Whether it can be read again from any place.
    pub fn is_plain_file(&self) -> bool {
        // A missing file is reported when it is opened.
        matches!(self, Self::File(path) if std::fs::metadata(path).map_or(true, |found| found.is_file()))
    }

    /// How many bytes it has; none where it is a pipe.
    pub fn size(&self) -> Option<u64> {
        let Self::File(path) = self else { return None };
        std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
    }

    pub(super) fn bytes(&self) -> Result<Bytes> {
        let Self::File(path) = self else { return Ok(Bytes::of_pipe(io::stdin().lock())) };
        let file = File::open(path).context("the file cannot be read")?;
        let kind = file.metadata().context("the file cannot be read")?;
        ensure!(!kind.is_dir(), "expected a file, got a folder");
        // A named pipe is a pipe as well.
        Ok(if kind.is_file() { Bytes::of_file(file)? } else { Bytes::of_pipe(file) })
    }
}

trait Seekable: Read + Seek {}

impl<T: Read + Seek> Seekable for T {}

enum Stream {
    File { stream: Box<dyn Seekable>, length: u64 },
    Pipe(Box<dyn Read>),
}

/// Bytes that are read in order and counted. A file has a length and can be read again from any place; a pipe cannot.
pub struct Bytes {
    stream: Stream,
    at: u64,
}

impl Bytes {
    /// Bytes that can be read again from any place.
    ///
    /// # Errors
    /// When their number cannot be determined.
    pub fn of_file(mut stream: impl Read + Seek + 'static) -> Result<Self> {
        let length = stream.seek(SeekFrom::End(0)).context("its length cannot be determined")?;
        stream.rewind().context("its length cannot be determined")?;
        Ok(Self { stream: Stream::File { stream: Box::new(stream), length }, at: 0 })
    }

    /// Bytes that come once.
    pub fn of_pipe(stream: impl Read + 'static) -> Self {
        Self { stream: Stream::Pipe(Box::new(stream)), at: 0 }
    }

    /// How many have been read.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// How many there are, of a file.
    pub(super) fn length(&self) -> Option<u64> {
        match self.stream {
            Stream::File { length, .. } => Some(length),
            Stream::Pipe(_) => None,
        }
    }

    /// Whether more bytes may come at any time.
    pub(super) fn is_pipe(&self) -> bool {
        matches!(self.stream, Stream::Pipe(_))
    }

    /// Goes on at this byte.
    pub(super) fn go_to(&mut self, byte: u64) -> Result<()> {
        let Stream::File { stream, length } = &mut self.stream else {
            bail!("expected a file, got a pipe, which cannot be read from another place");
        };
        ensure!(byte <= *length, "expected a place up to its end at byte {length}, got byte {byte}");
        stream.seek(SeekFrom::Start(byte)).with_context(|| format!("cannot seek to byte {byte}"))?;
        self.at = byte;
        Ok(())
    }

    /// Reads what is there, at least a byte; none at the end.
    pub(super) fn some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let outcome = match &mut self.stream {
                Stream::File { stream, .. } => stream.read(buffer),
                Stream::Pipe(stream) => stream.read(buffer),
            };
            match outcome {
                Ok(got) => {
                    self.at += got as u64;
                    return Ok(got);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("reading failed at byte {}", self.at));
                }
            }
        }
    }

    /// Reads until the buffer is full or the bytes end; returns how many were read.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut got = 0;
        while got < buffer.len() {
            match self.some(&mut buffer[got..])? {
                0 => break,
                more => got += more,
            }
        }
        Ok(got)
    }
}
