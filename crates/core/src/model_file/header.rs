//! Lays out the JSON text in the metadata of a model file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::no_repeats::require_no_repeats;
use crate::archive::damaged;
use crate::error::{Error, Result};
use crate::real::Real;

/// The only key in the metadata of the file.
pub(super) const KEY: &str = "leukos";
/// The kind of file.
pub(super) const FORMAT: &str = "whitener";
/// Increases with every change that makes new files unreadable for older programs. Version 1 is version
/// 2 without a checksum; both hold a whitener whose gains adapted, of which version 3 keeps what had been learned.
pub(super) const VERSION: u64 = 3;
const OLDEST: u64 = 1;

/// The precision a whitener runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

impl Precision {
    pub(super) fn of<T: Real>() -> Self {
        if size_of::<T>() == size_of::<f32>() { Self::Single } else { Self::Double }
    }

    /// The precision that the whitener in a model file ran in.
    ///
    /// # Errors
    /// When the bytes are not a model file of this version.
    pub fn in_file(bytes: &[u8]) -> Result<Self> {
        super::reader::Reader::open(bytes).map(|(_, about)| about.precision)
    }
}

/// All that is not an array.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub format: String,
    pub version: u64,
    /// Of all bytes of the file, from version 2 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The program that wrote the file, for information.
    pub written_by: String,
    /// Whether there is a running state beside what was learned; in versions 1 and 2 that was one.
    #[serde(default)]
    pub kind: Kind,
    pub precision: Precision,
    /// The channels of each whitener; none where there is one for all channels in their order.
    pub groups: Option<Vec<Vec<usize>>>,
    /// Those of each whitener.
    pub settings: Vec<Value>,
    /// Numbers and switches of the state, by name.
    pub state: BTreeMap<String, Value>,
    pub channel_names: Option<Vec<String>>,
    pub notes: BTreeMap<String, String>,
}

/// From this version on models and checkpoints are two things.
pub(super) const FIRST_WITH_KINDS: u64 = 3;
/// From this version on files have a checksum.
const SEALED: u64 = 2;

/// What a file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// What was learned, and settings.
    #[default]
    Model,
    /// The running state as well.
    Checkpoint,
}

/// The fields that the header of every version has.
#[derive(Deserialize)]
struct Preamble {
    format: String,
    version: u64,
}

impl Header {
    pub fn parse(text: &str) -> Result<Self> {
        require_no_repeats(text).map_err(|error| unreadable(&error))?;
        let Preamble { format, version } = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if format != FORMAT {
            return Err(damaged(format!("expected a file of the format {FORMAT:?}, got {format:?}")));
        }
        if !(OLDEST..=VERSION).contains(&version) {
            let read = format!("this program reads versions {OLDEST} to {VERSION}");
            return Err(damaged(format!("its version is {version}; {read}")));
        }
        let header: Self = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if version < FIRST_WITH_KINDS && header.kind != Kind::Model {
            return Err(damaged(format!("kind: a file of version {version} has none")));
        }
        if header.checksum.is_some() != (version >= SEALED) {
            let expected = if version >= SEALED { "32 digits, got none" } else { "none, got one" };
            return Err(damaged(format!("checksum: of a file of version {version} expected {expected}")));
        }
        header.state.iter().try_for_each(|(name, value)| require_countable(name, value))?;
        Ok(header)
    }
}

fn unreadable(error: &serde_json::Error) -> Error {
    damaged(format!("metadata {KEY:?}: {error}"))
}

/// The largest count: more could overflow, and a double could not hold it exactly.
const MOST: u64 = 1 << 53;

fn require_countable(name: &str, value: &Value) -> Result<()> {
    match value {
        Value::Number(number) if number.as_u64().is_some_and(|count| count > MOST) => {
            Err(damaged(format!("{name}: expected counts up to 2^53, got {number}")))
        }
        Value::Array(values) => values.iter().try_for_each(|value| require_countable(name, value)),
        Value::Object(values) => values.values().try_for_each(|value| require_countable(name, value)),
        _ => Ok(()),
    }
}

/// The same with counts limited to that, so that every file that is written can be read.
pub(super) fn countable(value: Value) -> Value {
    match value {
        Value::Number(number) if number.as_u64().is_some_and(|count| count > MOST) => MOST.into(),
        Value::Array(values) => values.into_iter().map(countable).collect(),
        Value::Object(values) => values.into_iter().map(|(name, value)| (name, countable(value))).collect(),
        other => other,
    }
}
