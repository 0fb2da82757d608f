//! Turns a whitener into bytes and back, so that it goes on with the same bits: the model file.
//!
//! The file is in the safetensors format: arrays as tensors of doubles, which hold either precision exactly, and one
//! entry of metadata, `leukos`, with a JSON text for all the rest. Equal whiteners make equal bytes.

mod header;
mod no_repeats;
mod reader;
mod writer;

use std::collections::BTreeMap;

pub use self::header::Precision;
use self::reader::Reader;
use self::writer::Writer;
use crate::archive::damaged;
use crate::error::{Error, Result};
use crate::real::Real;
use crate::whitener::Whitener;

/// What a model file holds: a whitener, trained or in the middle of a stream, and what people want to know about it.
///
/// ```
/// use leukos::{Matrix, Model, Whitener, WhitenerSettings};
///
/// let whitener = Whitener::<f64>::new(Matrix::identity(2), WhitenerSettings::default())?;
/// let mut model = Model::from(whitener);
/// model.notes.insert("subject".into(), "rabbit 3".into());
/// let mut again: Model = Model::from_bytes(&model.to_bytes()?)?;
/// assert_eq!(again.notes["subject"], "rabbit 3");
/// assert_eq!(again.whitener.status(), model.whitener.status());
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone)]
pub struct Model<T: Real = f64> {
    /// The whitener.
    pub whitener: Whitener<T>,
    /// A name for each channel, if they have names.
    pub channel_names: Option<Vec<String>>,
    /// Anything worth keeping, such as where the recording came from.
    pub notes: BTreeMap<String, String>,
}

impl<T: Real> From<Whitener<T>> for Model<T> {
    fn from(whitener: Whitener<T>) -> Self {
        Self { whitener, channel_names: None, notes: BTreeMap::new() }
    }
}

impl<T: Real> Model<T> {
    /// The bytes of the model file.
    ///
    /// # Errors
    /// When there is not one name for each channel, or names and notes are so long that other programs would refuse
    /// the file (100 MB).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.require_names()?;
        let mut writer = Writer::default();
        self.whitener.clone().archive(&mut writer)?;
        writer.finish(self)
    }

    /// Reads a model file, also one that was written in the other precision.
    ///
    /// Whoever wrote the bytes, they make a sound whitener or an error, and take memory in proportion to their number.
    ///
    /// # Errors
    /// When the bytes are not a model file of this version, or not one that a whitener could have written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).map_err(|error| match error {
            Error::ModelFile { .. } => error,
            other => damaged(other.to_string()),
        })
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let (mut reader, about) = Reader::open(bytes)?;
        let mut whitener = Whitener::blank(reader.size()?, about.settings)?;
        whitener.archive(&mut reader)?;
        reader.require_all_read()?;
        let model = Self { whitener, channel_names: about.channel_names, notes: about.notes };
        model.require_names()?;
        Ok(model)
    }

    fn require_names(&self) -> Result<()> {
        let (names, channels) = (self.channel_names.as_ref(), self.whitener.channels());
        match names.map(Vec::len).filter(|names| *names != channels) {
            None => Ok(()),
            Some(names) => Err(Error::shape(
                "channel_names",
                format!("{channels} names (one for each channel)"),
                format!("{names} names"),
            )),
        }
    }
}
