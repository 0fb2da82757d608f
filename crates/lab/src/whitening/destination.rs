//! Writes an output under a name of its own until it is whole.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::recording::{Misfits, OutputShape, Place, Rows, Sink, Writer, continue_writing, writer};

/// Where an output goes; on the command line `-` is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "output {}", path.display()),
            Self::Stdout => f.write_str("standard output"),
        }
    }
}

impl Destination {
    /// Begins to write.
    pub(super) fn begin(&self, shape: &OutputShape) -> Result<(Begun, Box<dyn Writer>)> {
        let Self::File(path) = self else { return Ok((Begun(None), writer(Sink::Stdout, shape)?)) };
        let partial = partial(path);
        let begin = || -> Result<(Begun, Box<dyn Writer>)> {
            let file = File::create(&partial).context("the file cannot be written")?;
            let begun = Begun(Some(Growing {
                target: path.clone(),
                partial: partial.clone(),
                file: file.try_clone()?,
            }));
            match writer(Sink::File(file), shape) {
                Ok(writer) => Ok((begun, writer)),
                Err(error) => {
                    begun.give_up(false);
                    Err(error)
                }
            }
        };
        begin().with_context(|| format!("output {}", partial.display()))
    }

    /// Goes on at a place of an output that was begun before.
    pub(super) fn go_on(
        &self,
        shape: &OutputShape,
        place: Place,
        complete: bool,
    ) -> Result<(Begun, Box<dyn Writer>)> {
        let Self::File(path) = self else { return self.begin(shape) };
        let partial = partial(path);
        let is_whole = || path.metadata().is_ok_and(|file| file.len() == place.byte);
        if complete && !partial.exists() && is_whole() {
            return Ok((Begun(None), Box::new(Written(place.byte))));
        }
        let go_on = || -> Result<(Begun, Box<dyn Writer>)> {
            let file = OpenOptions::new().read(true).write(true).open(&partial);
            let file = file.context("expected what was written before, but the file cannot be opened")?;
            let growing = Growing { target: path.clone(), partial: partial.clone(), file: file.try_clone()? };
            Ok((Begun(Some(growing)), continue_writing(file, shape, place)?))
        };
        go_on().with_context(|| format!("output {}", partial.display()))
    }
}

/// An output that was already whole: there is nothing more to write.
struct Written(u64);

impl Writer for Written {
    fn write(&mut self, _: &Rows) -> Result<()> {
        bail!("expected no more rows, because the output is whole");
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

/// The name of a file that is not whole yet.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

/// An output that is being written; a pipe needs no care.
pub(super) struct Begun(Option<Growing>);

struct Growing {
    target: PathBuf,
    partial: PathBuf,
    file: File,
}

impl Begun {
    /// Waits until everything is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |growing| growing.file.sync_data()).context("the disk did not take it")
    }

    /// Puts what is now whole in its place.
    pub fn finish(&self) -> Result<()> {
        let Some(Growing { target, partial, .. }) = &self.0 else { return Ok(()) };
        fs::rename(partial, target).with_context(|| format!("{} cannot take its place", partial.display()))
    }

    /// Leaves what cannot be finished, for a later call or for nobody.
    pub fn give_up(&self, keep: bool) {
        if let (Some(growing), false) = (&self.0, keep) {
            // There is nothing more to be done if it will not go.
            let _ = fs::remove_file(&growing.partial);
        }
    }
}
