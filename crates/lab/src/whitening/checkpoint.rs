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
pub struct Checkpoint {
    pub(super) original: Original,
    /// Where the next row of the input begins.
    pub(super) input: Place,
    /// The bytes of the output that belong to the rows before.
    pub(super) output: u64,
    /// The row of output that is held where nothing adapts.
    pub(super) held: Vec<f64>,
    /// The label of the last row.
    pub(super) label: Option<String>,
    pub(super) misfits: Misfits,
    /// Whether all is written.
    pub(super) complete: bool,
    /// The model file itself, without this note.
    #[serde(skip)]
    pub(super) model: Vec<u8>,
}

impl Checkpoint {
    /// Reads a checkpoint, if there is one.
    ///
    /// # Errors
    /// When the file is there and is no checkpoint.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let read = || -> Result<Option<Self>> {
            let bytes = match std::fs::read(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                outcome => outcome.context("the file cannot be read")?,
            };
            // Doubles hold either precision.
            let precision = leukos::Precision::in_file(&bytes)?;
            let (note, model) = match precision {
                leukos::Precision::Single => without_note::<f32>(&bytes)?,
                leukos::Precision::Double => without_note::<f64>(&bytes)?,
            };
            let note = note.context("expected a checkpoint, but it is a model that was not made by one")?;
            let saved: Self = serde_json::from_str(&note).context("its note cannot be read")?;
            Ok(Some(Self { model, ..saved }))
        };
        read().with_context(|| format!("checkpoint {}", path.display()))
    }

    /// Writes a checkpoint, whole or not at all.
    pub(super) fn write<T: Real>(&self, path: &Path, model: &Model<T>) -> Result<()> {
        let mut model = model.clone();
        model.notes.insert(NOTE.into(), serde_json::to_string(self)?);
        write_atomically(path, &model.to_bytes()?)
    }

    pub(super) fn require_same(&self, now: &Original) -> Result<()> {
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

fn without_note<T: Real>(bytes: &[u8]) -> Result<(Option<String>, Vec<u8>)> {
    let mut model: Model<T> = Model::from_bytes(bytes)?;
    let note = model.notes.remove(NOTE);
    Ok((note, model.to_bytes()?))
}
