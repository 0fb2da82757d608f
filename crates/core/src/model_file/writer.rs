//! Writes the state of a whitener as tensors and one JSON text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use safetensors::{Dtype, View, serialize};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Model;
use super::header::{FORMAT, Header, KEY, Kind, Precision, VERSION, countable};
use super::seal;
use crate::archive::{Archive, damaged};
use crate::error::Result;
use crate::real::Real;

/// Collects the parts that it visits.
#[derive(Default)]
pub(super) struct Writer {
    /// What all names begin with.
    pub prefix: String,
    tensors: BTreeMap<String, Tensor>,
    state: BTreeMap<String, Value>,
}

/// Doubles, the last index running fastest.
struct Tensor {
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    fn new<T: Real>(shape: Vec<usize>, values: impl Iterator<Item = T>) -> Self {
        Self { shape, bytes: values.flat_map(|x| x.to_f64().to_le_bytes()).collect() }
    }
}

impl View for &Tensor {
    fn dtype(&self) -> Dtype {
        Dtype::F64
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

impl Writer {
    /// The bytes of the file. Maps are sorted and there is one entry of metadata, so equal states give equal bytes.
    pub fn finish<T: Real>(self, model: &Model<T>, kind: Kind) -> Result<Vec<u8>> {
        let settings = model.whitener.whiteners().map(|whitener| serde_json::to_value(whitener.settings()));
        let settings =
            settings.collect::<serde_json::Result<_>>().map_err(|error| damaged(error.to_string()))?;
        let header = Header {
            format: FORMAT.into(),
            version: VERSION,
            checksum: Some(seal::BLANK.into()),
            written_by: concat!("leukos ", env!("CARGO_PKG_VERSION")).into(),
            kind,
            precision: Precision::of::<T>(),
            groups: match model.whitener.single() {
                Some(_) => None,
                None => Some(model.whitener.groups().map(|(channels, _)| channels.to_vec()).collect()),
            },
            settings,
            state: self.state,
            channel_names: model.channel_names.clone(),
            notes: model.notes.clone(),
        };
        let text = serde_json::to_string(&header).map_err(|error| damaged(error.to_string()))?;
        let metadata = [(KEY.to_string(), text)].into_iter().collect();
        let bytes = serialize(&self.tensors, Some(metadata)).map_err(|error| damaged(error.to_string()))?;
        seal::seal(bytes)
    }

    fn keep<T: Real>(&mut self, name: &str, shape: Vec<usize>, values: impl Iterator<Item = T>) {
        self.tensors.insert(format!("{}{name}", self.prefix), Tensor::new(shape, values));
    }
}

impl Archive for Writer {
    const READS: bool = false;

    fn value<V: Serialize + DeserializeOwned>(&mut self, name: &str, value: &mut V) -> Result<()> {
        let value = serde_json::to_value(value).map_err(|error| damaged(format!("{name}: {error}")))?;
        self.state.insert(format!("{}{name}", self.prefix), countable(value));
        Ok(())
    }

    fn vector<T: Real>(&mut self, name: &str, length: usize, values: &mut Vec<T>) -> Result<()> {
        self.keep(name, vec![length], values.iter().copied());
        Ok(())
    }

    fn matrix<T: Real>(
        &mut self,
        name: &str,
        (rows, columns): (usize, usize),
        values: &mut Vec<T>,
    ) -> Result<()> {
        let entries = (0..rows).flat_map(|i| (0..columns).map(move |j| j * rows + i));
        self.keep(name, vec![rows, columns], entries.map(|place| values[place]));
        Ok(())
    }

    fn rows(&mut self, name: &str, (_, width): (usize, usize), values: &mut Vec<f64>) -> Result<()> {
        self.keep(name, vec![values.len() / width, width], values.iter().copied());
        Ok(())
    }
}
