//! Visits everything that is saved in a model file, so that writing and reading always agree.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::real::Real;

/// Writes or reads a state, part by part, with the same code: a writer copies each part that it visits, a reader
/// overwrites it. Names are those in the file.
pub(crate) trait Archive {
    /// Whether this one reads: then everything that depends on the parts is checked and rebuilt.
    const READS: bool;

    /// A number, a switch, or a small set of them.
    fn value<V: Serialize + DeserializeOwned>(&mut self, name: &str, value: &mut V) -> Result<()>;

    /// A vector of a known length.
    fn vector<T: Real>(&mut self, name: &str, length: usize, values: &mut Vec<T>) -> Result<()>;

    /// A matrix of a known size, here column after column.
    fn matrix<T: Real>(&mut self, name: &str, size: (usize, usize), values: &mut Vec<T>) -> Result<()>;

    /// Any number of rows of a known length up to a limit, one after another.
    fn rows(&mut self, name: &str, limit: (usize, usize), values: &mut Vec<f64>) -> Result<()>;

    /// Something that may be absent: says whether it is there, and visits it if it is.
    fn optional<V>(
        &mut self,
        name: &str,
        slot: &mut Option<V>,
        blank: impl FnOnce() -> V,
        visit: impl FnOnce(&mut Self, &mut V) -> Result<()>,
    ) -> Result<()> {
        let mut there = slot.is_some();
        self.value(name, &mut there)?;
        if there {
            return visit(self, slot.get_or_insert_with(blank));
        }
        *slot = None;
        Ok(())
    }
}

/// Something in a model file that no whitener could have written.
pub(crate) fn damaged(problem: impl Into<String>) -> Error {
    Error::ModelFile { problem: problem.into() }
}

/// Checks what has been read.
pub(crate) fn require(name: &str, holds: bool, expected: &str, found: impl Display) -> Result<()> {
    if holds { Ok(()) } else { Err(damaged(format!("{name}: expected {expected}, got {found}"))) }
}

/// Checks numbers that have been read, and names the first that does not fit.
pub(crate) fn require_all(
    name: &str,
    values: &[f64],
    expected: &str,
    fits: impl Fn(f64) -> bool,
) -> Result<()> {
    match values.iter().enumerate().find(|(_, value)| !fits(**value)) {
        None => Ok(()),
        Some((index, value)) => {
            Err(damaged(format!("{name}: expected {expected}, got {value} at position {index}")))
        }
    }
}

/// Writes NaN, which stands for a number that is not known yet, as JSON's null.
pub(crate) mod nan_as_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Some(*value).filter(|value| !value.is_nan()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
    }
}
