//! Saves how far a stream has come: a model file whose notes say where in the input and the output it stands.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use leukos::{Model, Real};
use serde::{Deserialize, Serialize};

use super::Order;
use crate::data::{fingerprint, write_atomically};
use crate::recording::{Misfits, Place, Source};

/// The note of a model that makes it a checkpoint.
const NOTE: &str = "checkpoint";
/// So much of the input is hashed to know it again.
const HEAD: u64 = 1 << 16;

/// What must not have changed when a stream goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Original {
    /// The length of the input in bytes, and a hash of its first ones.
    input_length: u64,
    input_head: u64,
    /// Hashes of the model file and of the options.
    model: u64,
    options: u64,
}

impl Original {
    pub fn of(order: &Order, model: &[u8]) -> Result<Self> {
        let (mut head, mut input_length) = (Vec::new(), 0);
        if let (Source::File(path), true) = (&order.input, order.checkpoint.is_some()) {
            let file = File::open(path).with_context(|| order.input.to_string())?;
            input_length = file.metadata().with_context(|| order.input.to_string())?.len();
            file.take(HEAD).read_to_end(&mut head).with_context(|| order.input.to_string())?;
        }
        let options = fingerprint(order.words().as_bytes());
        Ok(Self { input_length, input_head: fingerprint(&head), model: fingerprint(model), options })
    }
}

/// How far a stream has come.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    pub original: Original,
    /// Where the next row of the input begins.
    pub input: Place,
    /// The bytes of the output that belong to the rows before.
    pub output: u64,
    /// The row of output that is held where nothing adapts.
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
    /// When the file is there and is no checkpoint.
    pub fn read<T: Real>(path: &Path) -> Result<Option<(Self, Model<T>)>> {
        let read = || -> Result<Option<(Self, Model<T>)>> {
            let bytes = match std::fs::read(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                outcome => outcome.context("the file cannot be read")?,
            };
            let mut model: Model<T> = Model::from_bytes(&bytes)?;
            let note = model.notes.remove(NOTE);
            let note = note.context("expected a checkpoint or no file, came a model that is none")?;
            Ok(Some((serde_json::from_str(&note).context("its note cannot be read")?, model)))
        };
        read().with_context(|| format!("checkpoint {}", path.display()))
    }

    /// Writes a checkpoint, whole or not at all.
    pub fn write<T: Real>(&self, path: &Path, model: &Model<T>) -> Result<()> {
        let mut model = model.clone();
        model.notes.insert(NOTE.into(), serde_json::to_string(self)?);
        write_atomically(path, &model.to_bytes()?)
    }

    pub fn require_same(&self, now: &Original) -> Result<()> {
        let Original { input_length, input_head, model, options } = &self.original;
        ensure!(
            now.input_length == *input_length,
            "the input has changed: it had {input_length} bytes, and has {}",
            now.input_length
        );
        ensure!(now.input_head == *input_head, "the input has changed: it does not begin as it did");
        ensure!(now.model == *model, "the model is another one than the stream was begun with");
        ensure!(now.options == *options, "the options are others than the stream was begun with");
        Ok(())
    }
}

impl Order {
    /// Where the stream stands, if it was begun before and is to go on. A new stream takes the place of a checkpoint,
    /// but of nothing else.
    pub(super) fn saved<T: Real>(&self, original: &Original) -> Result<Option<(Checkpoint, Model<T>)>> {
        let Some((path, _)) = &self.checkpoint else { return Ok(None) };
        let saved = Checkpoint::read(path)?;
        if let (Some((checkpoint, _)), true) = (&saved, self.resume) {
            checkpoint.require_same(original).with_context(|| format!("checkpoint {}", path.display()))?;
        } else if saved.is_some() {
            std::fs::remove_file(path).with_context(|| format!("checkpoint {}", path.display()))?;
        }
        Ok(saved.filter(|_| self.resume))
    }
}
