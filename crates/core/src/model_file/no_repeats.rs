//! Refuses JSON in which a key occurs twice, because readers differ in which of the two they use.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Checks a JSON text throughout.
pub(super) fn require_no_repeats(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<NoRepeats>(text).map(|_| ())
}

/// Any JSON in which no object has a key twice.
struct NoRepeats;

impl<'de> Deserialize<'de> for NoRepeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for NoRepeats {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while values.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some((key, _)) = entries.next_entry::<String, Self>()? {
            if let Some(key) = keys.replace(key) {
                return Err(A::Error::custom(format!("the key {key:?} stands twice")));
            }
        }
        Ok(self)
    }
}
