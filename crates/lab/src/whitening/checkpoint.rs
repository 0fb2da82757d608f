//! Saves how far a stream has come: a model file whose note says how far the input was read and the output written, with
//! hashes by which both are recognised.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use leukos::{Model, Real};
use serde::{Deserialize, Serialize};

use super::destination::Earlier;
use super::{Destination, Request};
use crate::data::write_checkpoint;
use crate::files::{Prefix, PrefixHash, digest};
use crate::recording::{Format, Misfits, Place, Source};

/// The note of a model that makes it a checkpoint.
const NOTE: &str = "checkpoint";

/// What must not have changed when a stream continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Original {
    /// The length of the input in bytes.
    input_length: u64,
    /// Hashes of the model file and of the options.
    model: String,
    options: String,
    /// The output, as a path relative to the folder of the checkpoint if it lies in it, and its format.
    output: PathBuf,
    format: Format,
}

impl Original {
    /// `None` if nothing will be saved.
    pub fn of(request: &Request, model: &[u8]) -> Result<Option<Self>> {
        let (Some((checkpoint, _)), Source::File(input), Destination::File(output)) =
            (&request.checkpoint, &request.input, &request.output)
        else {
            return Ok(None);
        };
        Ok(Some(Self {
            input_length: input.metadata().with_context(|| request.input.to_string())?.len(),
            model: digest(model),
            options: digest(request.words().as_bytes()),
            output: seen_from(checkpoint, output).with_context(|| request.output.to_string())?,
            format: request.format()?,
        }))
    }
}

/// A path relative to the folder of another, so that the folder can be moved as a whole.
fn seen_from(from: &Path, path: &Path) -> Result<PathBuf> {
    let folder = |path: &Path| -> Result<PathBuf> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(folder.unwrap_or(Path::new(".")).canonicalize()?)
    };
    let path = folder(path)?.join(path.file_name().context("expected the name of a file")?);
    Ok(path.strip_prefix(folder(from)?).map_or_else(|_| path.clone(), Path::to_owned))
}

/// How far a stream has come.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checkpoint {
    pub original: Original,
    /// Where the next row of the input begins.
    pub input: Place,
    /// The bytes of the input that have been read.
    pub read: Prefix,
    /// The name of the partial output, in the folder of the output.
    pub partial: String,
    /// The bytes of the output that belong to the rows before.
    pub written: Prefix,
    /// The row of output that `hold` would repeat, where nothing adapts.
    pub held: Vec<f64>,
    /// The label of the last row.
    pub label: Option<String>,
    /// How many rows could not be used.
    pub bad: u64,
    pub misfits: Misfits,
    /// Whether all is written.
    pub complete: bool,
}

impl Checkpoint {
    /// Reads a checkpoint with its model, if there is one.
    ///
    /// # Errors
    /// When the file exists and is not a checkpoint.
    pub fn read<T: Real>(path: &Path) -> Result<Option<(Self, Model<T>)>> {
        let read = || -> Result<Option<(Self, Model<T>)>> {
            let bytes = match std::fs::read(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                outcome => outcome.context("the file cannot be read")?,
            };
            let mut model: Model<T> = Model::from_checkpoint(&bytes)?;
            let note = model.notes.remove(NOTE);
            let note = note.context("expected a checkpoint of `leukos whiten`, got a model without one; give the name of a new file, or of a checkpoint")?;
            let old = "its note cannot be read: only the version of leukos that wrote a checkpoint can continue from it";
            Ok(Some((serde_json::from_str(&note).context(old)?, model)))
        };
        read().with_context(|| format!("checkpoint {}", path.display()))
    }

    /// Writes a checkpoint, whole or not at all.
    pub fn write<T: Real>(&self, path: &Path, model: &Model<T>) -> Result<()> {
        let mut model = model.clone();
        model.notes.insert(NOTE.into(), serde_json::to_string(self)?);
        write_checkpoint(path, &model)
    }

    /// What the output should begin with.
    pub fn earlier(&self) -> Earlier<'_> {
        let Self { partial, written, input, complete, .. } = self;
        Earlier { partial, written, rows: input.row, complete: *complete }
    }

    fn require_same(&self, now: &Original) -> Result<()> {
        let Original { input_length, model, options, output, format } = &self.original;
        ensure!(
            now.input_length == *input_length,
            "the input has changed: expected {input_length} bytes, got {}",
            now.input_length
        );
        ensure!(now.model == *model, "expected the model that the run was started with, got another one");
        ensure!(now.options == *options, "expected the options that the run was started with, got others");
        ensure!(
            now.output == *output,
            "expected the output that the run was started with, {}, got {}",
            output.display(),
            now.output.display()
        );
        let got = now.format;
        ensure!(
            got == *format,
            "expected the output format that the run was started with, {format}, got {got}"
        );
        Ok(())
    }
}

impl Request {
    /// The saved state, if there is one and the stream is to continue from it. A new stream replaces an old checkpoint,
    /// but no other file.
    pub(super) fn saved<T: Real>(&self, original: &Original) -> Result<Option<(Checkpoint, Model<T>)>> {
        let Some((path, _)) = &self.checkpoint else { return Ok(None) };
        let saved = Checkpoint::read(path)?;
        let name = || format!("checkpoint {}", path.display());
        if let (Some((checkpoint, _)), true) = (&saved, self.resume) {
            checkpoint.require_same(original).with_context(name)?;
        } else if saved.is_some() {
            std::fs::remove_file(path).with_context(name)?;
        }
        Ok(saved.filter(|_| self.resume))
    }
}

/// Hashes the input and the output incrementally, for checkpoints.
pub(super) struct Tracks {
    input: PrefixHash,
    /// The length of an input whose rows are not stored one after another: then all of it is hashed.
    whole: Option<u64>,
    output: Option<PrefixHash>,
}

impl Tracks {
    pub fn new(request: &Request) -> Result<Self> {
        let Source::File(path) = &request.input else {
            bail!("expected a file, got a pipe, which cannot be read again")
        };
        let open = || -> Result<Self> {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            let scattered = request.options.format_of(&request.input)?.is_scattered(path)?;
            Ok(Self { input: PrefixHash::new(file, 0), whole: scattered.then_some(length), output: None })
        };
        open().with_context(|| request.input.to_string())
    }

    /// The bytes of the input that the rows before this place came from.
    pub fn read(&mut self, place: Place) -> Result<Prefix> {
        Ok(self.input.up_to(self.whole.unwrap_or(place.byte))?)
    }

    /// Checks that the beginning of the input is unchanged.
    pub fn require_input(&mut self, saved: &Checkpoint, request: &Request) -> Result<()> {
        let length = saved.read.length;
        let found = self.input.up_to(length).with_context(|| request.input.to_string())?;
        ensure!(
            found == saved.read,
            "{}: the input has changed: its first {length} bytes are not those that were read before",
            request.input
        );
        Ok(())
    }

    /// The first `length` bytes of the partial output without its header.
    pub fn written(&mut self, partial: &Path, header: usize, length: u64) -> Result<Prefix> {
        let hash = match &mut self.output {
            Some(hash) => hash,
            None => self.output.insert(PrefixHash::new(File::open(partial)?, header as u64)),
        };
        Ok(hash.up_to(length)?)
    }
}
