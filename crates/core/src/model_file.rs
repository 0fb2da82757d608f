//! Turns a whitener into bytes and back: a *model* is what was learned, with the settings, and opens in every later
//! version; a *checkpoint* is the running state as well, so that a stream continues exactly where it was, and opens in
//! its own version only.
//!
//! The file is in the safetensors format: arrays as tensors of doubles, which hold either precision exactly, and one
//! entry of metadata, `leukos`, with a JSON text for all the rest, among it a checksum of every byte. Equal whiteners
//! make equal bytes.

mod header;
mod migration;
mod no_repeats;
mod reader;
mod seal;
mod writer;

use std::collections::BTreeMap;

pub use self::header::Precision;
use self::header::{FIRST_WITH_KINDS, Header, Kind, VERSION};
use self::reader::Reader;
use self::writer::Writer;
use crate::archive::damaged;
use crate::error::{Error, Result};
use crate::real::Real;
use crate::size::{require_memory, require_whitener};
use crate::whitener::{GroupedWhitener, Whitener};

/// The content of a model file: a whitener, trained or in the middle of a stream, and information about it.
///
/// ```
/// use leukos::{Matrix, Model, Whitener, WhitenerSettings};
///
/// let whitener = Whitener::<f64>::new(Matrix::identity(2), WhitenerSettings::default())?;
/// let mut model = Model::from(whitener);
/// model.notes.insert("subject".into(), "rabbit 3".into());
/// let again: Model = Model::from_bytes(&model.to_bytes()?)?;
/// assert_eq!(again.notes["subject"], "rabbit 3");
/// assert_eq!(again.whitener.channels(), 2);
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone)]
pub struct Model<T: Real = f64> {
    /// The whitener: one for all channels, or one for each of several groups of them.
    pub whitener: GroupedWhitener<T>,
    /// A name for each channel, if they have names.
    pub channel_names: Option<Vec<String>>,
    /// Anything worth keeping, such as where the recording came from.
    pub notes: BTreeMap<String, String>,
}

impl<T: Real> From<Whitener<T>> for Model<T> {
    fn from(whitener: Whitener<T>) -> Self {
        GroupedWhitener::from(whitener).into()
    }
}

impl<T: Real> From<GroupedWhitener<T>> for Model<T> {
    fn from(whitener: GroupedWhitener<T>) -> Self {
        Self { whitener, channel_names: None, notes: BTreeMap::new() }
    }
}

impl<T: Real> Model<T> {
    /// The bytes of the model: what was learned, and the settings. A whitener that began with its stream has learned
    /// what is in force there.
    ///
    /// # Errors
    /// When there is not one name for each channel, or names and notes are so long that other programs would refuse
    /// the file (100 MB).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.write(Kind::Model)
    }

    /// The bytes of a checkpoint: the model with its running state, which continues to the last bit.
    ///
    /// # Errors
    /// As for [`Self::to_bytes`].
    pub fn to_checkpoint(&self) -> Result<Vec<u8>> {
        self.write(Kind::Checkpoint)
    }

    fn write(&self, kind: Kind) -> Result<Vec<u8>> {
        self.require_names()?;
        for whitener in self.whitener.whiteners() {
            require_whitener(whitener.channels(), whitener.interneurons())?;
        }
        let mut writer = Writer::default();
        for (index, whitener) in self.whitener.whiteners().enumerate() {
            writer.prefix = prefix(self.whitener.single().is_some(), index);
            let mut copy = whitener.clone();
            match kind {
                Kind::Model => {
                    copy.settle_what_was_learned();
                    copy.archive_learned(&mut writer)?;
                }
                Kind::Checkpoint => {
                    copy.archive_learned(&mut writer)?;
                    copy.archive_state(&mut writer)?;
                }
            }
        }
        writer.finish(self, kind)
    }

    /// Reads a model, also one of an earlier version, or a checkpoint, either also in the other precision.
    ///
    /// Any bytes, even malicious ones, give either a valid whitener or an error, and use memory in proportion to their number.
    ///
    /// # Errors
    /// When the bytes are not a model file of this version, or not one that a whitener could have written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes, &[Kind::Model, Kind::Checkpoint])
    }

    /// Reads a checkpoint, with which a stream goes on where it was. Only the version that wrote one can do that.
    ///
    /// # Errors
    /// As for [`Self::from_bytes`], and when the bytes are a model.
    pub fn from_checkpoint(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes, &[Kind::Checkpoint])
    }

    fn read(bytes: &[u8], kinds: &[Kind]) -> Result<Self> {
        Self::read_checked(bytes, kinds).map_err(|error| match error {
            Error::ModelFile { .. } | Error::OutOfMemory { .. } => error,
            other => damaged(other.to_string()),
        })
    }

    fn read_checked(bytes: &[u8], kinds: &[Kind]) -> Result<Self> {
        // Each number of the file takes the memory of a few numbers at most.
        require_memory("model file", bytes.len())?;
        let (mut reader, about) = Reader::open(bytes)?;
        if !kinds.contains(&about.kind) {
            let found = format!("a model of version {}", about.version);
            return Err(damaged(format!("expected a checkpoint of version {VERSION}, got {found}")));
        }
        let groups = about.groups.as_ref().map_or(1, Vec::len);
        if about.settings.len() != groups {
            let found = about.settings.len();
            return Err(damaged(format!("settings: expected one for each of {groups} groups, got {found}")));
        }
        let mut whiteners = Vec::with_capacity(groups);
        for index in 0..groups {
            reader.prefix = prefix(about.groups.is_none(), index);
            whiteners.push(read_whitener(&mut reader, &about, index)?);
        }
        if about.version >= FIRST_WITH_KINDS {
            reader.require_all_read()?;
        }
        let whitener = match (about.groups, whiteners.pop()) {
            (None, Some(whitener)) => whitener.into(),
            (groups, last) => {
                let whiteners = whiteners.into_iter().chain(last);
                GroupedWhitener::new(groups.into_iter().flatten().zip(whiteners).collect())?
            }
        };
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

fn read_whitener<T: Real>(reader: &mut Reader<'_>, about: &Header, index: usize) -> Result<Whitener<T>> {
    let settings = about.settings[index].clone();
    if about.version < FIRST_WITH_KINDS {
        return migration::read(reader, settings);
    }
    let settings = serde_json::from_value(settings).map_err(|error| damaged(format!("settings: {error}")))?;
    let size = reader.size()?;
    require_whitener(size.0, size.1)?;
    let mut whitener = Whitener::blank(size, settings)?;
    whitener.archive_learned(reader)?;
    match about.kind {
        Kind::Model => whitener.refreshed(),
        Kind::Checkpoint => {
            whitener.archive_state(reader)?;
            Ok(whitener)
        }
    }
}

/// What the names of the parts of a whitener begin with: nothing where there is only one.
fn prefix(single: bool, index: usize) -> String {
    if single { String::new() } else { format!("{index}.") }
}
