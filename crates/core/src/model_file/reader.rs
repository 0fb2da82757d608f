//! Reads the state of a whitener from bytes that cannot be trusted.

use std::collections::{BTreeMap, BTreeSet};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::header::{Header, KEY};
use super::no_repeats::require_no_repeats;
use super::seal;
use crate::archive::{Archive, damaged};
use crate::error::Result;
use crate::real::Real;

/// Hands out the parts of a file, and remembers which have not been asked for.
pub(super) struct Reader<'a> {
    /// What all names begin with.
    pub prefix: String,
    tensors: SafeTensors<'a>,
    state: BTreeMap<String, Value>,
    unread: BTreeSet<String>,
}

/// Where the header begins, after its length.
const HEADER: usize = 8;

impl<'a> Reader<'a> {
    /// Checks that the bytes are a model file of this version. Returns also its header, without the state.
    pub fn open(bytes: &'a [u8]) -> Result<(Self, Header)> {
        let broken = |problem: String| damaged(format!("not a whole safetensors file: {problem}"));
        let (length, metadata) =
            SafeTensors::read_metadata(bytes).map_err(|error| broken(error.to_string()))?;
        let text =
            str::from_utf8(&bytes[HEADER..HEADER + length]).map_err(|error| broken(error.to_string()))?;
        require_no_repeats(text).map_err(|error| broken(error.to_string()))?;
        let text = metadata.metadata().as_ref().and_then(|entries| entries.get(KEY));
        let text =
            text.ok_or_else(|| damaged(format!("no metadata {KEY:?}: not written by this program")))?;
        let mut header = Header::parse(text)?;
        header.checksum.as_deref().map_or(Ok(()), |checksum| seal::require(bytes, checksum))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| broken(error.to_string()))?;
        let unread = tensors.names().into_iter().map(String::from).collect();
        let state = std::mem::take(&mut header.state);
        Ok((Self { prefix: String::new(), tensors, state, unread }, header))
    }

    /// The number of channels N and of interneurons K, after a check that the file holds arrays of all sizes for which
    /// memory will be allocated.
    pub fn size(&self) -> Result<(usize, usize)> {
        let (n, k) = match self.tensor("synapses")?.shape() {
            [n, k] => (*n, *k),
            other => return Err(damaged(format!("synapses: expected a matrix, got the shape {other:?}"))),
        };
        if n == 0 {
            return Err(damaged("synapses: expected at least one channel, got none"));
        }
        self.shaped("learned.covariance", &[n, n])?;
        Ok((n, k))
    }

    /// The same in versions 1 and 2.
    pub fn size_before_kinds(&self) -> Result<(usize, usize)> {
        let length = |name: &str| match self.tensor(name)?.shape() {
            [length] => Ok(*length),
            other => Err(damaged(format!("{name}: expected a vector, got the shape {other:?}"))),
        };
        let (n, k) = (length("mean")?, length("gains")?);
        self.shaped("synapses", &[n, k])?;
        self.shaped("responses.moments", &[n, n])?;
        Ok((n, k))
    }

    /// Fails if the file has parts that were not asked for.
    pub fn require_all_read(&self) -> Result<()> {
        match self.unread.first().or(self.state.keys().next()) {
            None => Ok(()),
            Some(name) => Err(damaged(format!("{name}: it does not belong in such a file"))),
        }
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'a>> {
        let name = self.full(name);
        let tensor = self.tensors.tensor(&name).map_err(|_| damaged(format!("{name}: no such tensor")))?;
        match tensor.dtype() {
            Dtype::F64 => Ok(tensor),
            other => Err(damaged(format!("{name}: expected numbers of the type F64, got {other}"))),
        }
    }

    fn shaped(&self, name: &str, shape: &[usize]) -> Result<TensorView<'a>> {
        let tensor = self.tensor(name)?;
        if tensor.shape() == shape {
            return Ok(tensor);
        }
        Err(damaged(format!("{name}: expected the shape {shape:?}, got {:?}", tensor.shape())))
    }

    /// The numbers of a tensor, all of them finite in this precision.
    fn numbers<T: Real>(&mut self, name: &str, tensor: &TensorView<'a>) -> Result<Vec<T>> {
        self.unread.remove(&self.full(name));
        let (chunks, _) = tensor.data().as_chunks();
        let number = |(index, bytes): (usize, &[u8; 8])| {
            let (number, value) = (f64::from_le_bytes(*bytes), T::from_f64(f64::from_le_bytes(*bytes)));
            let problem =
                || damaged(format!("{name}: expected finite numbers, got {number} at position {index}"));
            if value.is_finite() { Ok(value) } else { Err(problem()) }
        };
        chunks.iter().enumerate().map(number).collect()
    }
}

impl Archive for Reader<'_> {
    const READS: bool = true;

    fn value<V: Serialize + DeserializeOwned>(&mut self, name: &str, value: &mut V) -> Result<()> {
        let name = self.full(name);
        let found = self.state.remove(&name).ok_or_else(|| damaged(format!("{name}: not in the state")))?;
        *value = serde_json::from_value(found).map_err(|error| damaged(format!("{name}: {error}")))?;
        Ok(())
    }

    fn vector<T: Real>(&mut self, name: &str, length: usize, values: &mut Vec<T>) -> Result<()> {
        let tensor = self.shaped(name, &[length])?;
        *values = self.numbers(name, &tensor)?;
        Ok(())
    }

    fn matrix<T: Real>(
        &mut self,
        name: &str,
        (rows, columns): (usize, usize),
        values: &mut Vec<T>,
    ) -> Result<()> {
        let tensor = self.shaped(name, &[rows, columns])?;
        let entries: Vec<T> = self.numbers(name, &tensor)?;
        values.clear();
        values.extend(
            (0..columns).flat_map(|j| (0..rows).map(move |i| i * columns + j)).map(|place| entries[place]),
        );
        Ok(())
    }

    fn rows(&mut self, name: &str, (most, width): (usize, usize), values: &mut Vec<f64>) -> Result<()> {
        let tensor = self.tensor(name)?;
        match tensor.shape() {
            [rows, columns] if *columns == width && *rows <= most => {
                values.clear();
                values.extend(self.numbers::<f64>(name, &tensor)?);
                Ok(())
            }
            other => Err(damaged(format!(
                "{name}: expected rows of {width} numbers, {most} at most, got the shape {other:?}"
            ))),
        }
    }
}
