//! Reads and writes models, and the synapses that a new one may begin with.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use leukos::{Matrix, Model, Real};
use npyz::{NpyFile, Order};

use super::covariances::{numbers, require_floats};
use crate::files::write_atomically;
use crate::recording::Layout;

/// Reads a model file.
///
/// # Errors
/// When it cannot be read or is not a model.
pub fn read_model<T: Real>(path: &Path) -> Result<Model<T>> {
    let read = || -> Result<Model<T>> {
        let bytes = std::fs::read(path).context("the file cannot be read")?;
        Ok(Model::from_bytes(&bytes)?)
    };
    read().with_context(|| format!("model {}", path.display()))
}

/// Writes a model file, completely or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_model<T: Real>(path: &Path, model: &Model<T>) -> Result<()> {
    write_atomically(path, &model.to_bytes()?)
}

/// Writes a model file with the running state, completely or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_checkpoint<T: Real>(path: &Path, model: &Model<T>) -> Result<()> {
    write_atomically(path, &model.to_checkpoint()?)
}

/// Whether a file is a model, by its name or by how it begins: the length of a JSON text, and the text.
pub fn is_model(path: &Path) -> bool {
    let begins = || -> Option<bool> {
        // Bytes that are read from a pipe cannot be read again.
        path.is_file().then_some(())?;
        let mut head = Vec::new();
        File::open(path).ok()?.take(4096).read_to_end(&mut head).ok()?;
        let (length, text) = head.split_first_chunk::<8>()?;
        let text = &text[..text.len().min(usize::try_from(u64::from_le_bytes(*length)).ok()?)];
        Some(text.starts_with(b"{") && text.windows(8).any(|word| word == b"\"leukos\""))
    };
    path.extension().is_some_and(|ending| ending == "safetensors") || begins() == Some(true)
}

/// Checks that a recording has the channels of a model, under their names, and its sample rate, where they say so.
///
/// # Errors
/// When a recording of this layout does not belong to the model.
pub fn require_fit<T: Real>(model: &Model<T>, layout: &Layout) -> Result<()> {
    let channels = model.whitener.channels();
    ensure!(layout.channels == channels, "expected the model's {channels} channels, got {}", layout.channels);
    if let (Some(expected), Some(got)) = (&model.channel_names, &layout.names)
        && let Some(j) = (0..channels).find(|&j| expected[j] != got[j])
    {
        bail!("expected channel {j} to be {:?} as in the model, got {:?}", expected[j], got[j]);
    }
    let rate = model.whitener.whiteners().find_map(|whitener| whitener.settings().sample_rate);
    if let (Some(expected), Some(got)) = (rate, layout.sample_rate)
        && (expected - got).abs() > 1e-9 * expected
    {
        bail!("expected a sample rate of {expected} Hz as in the model, got {got} Hz");
    }
    Ok(())
}

/// Reads synapses from a `.npy` array of shape (channels, interneurons), or from a model.
///
/// # Errors
/// When the file cannot be read, is neither, or is a model of several groups of channels.
pub fn read_synapses(path: &Path) -> Result<Matrix> {
    if is_model(path) {
        let model: Model = read_model(path)?;
        let single = model.whitener.single().map(|whitener| whitener.synapses().clone());
        return single.with_context(|| {
            format!(
                "model {}: expected one group of all channels to take synapses from, got several",
                path.display()
            )
        });
    }
    let read = || -> Result<Matrix> {
        let bytes = std::fs::read(path).context("the file cannot be read")?;
        matrix_of(&bytes)
    };
    read().with_context(|| format!("synapses {}", path.display()))
}

fn matrix_of(bytes: &[u8]) -> Result<Matrix> {
    let file =
        NpyFile::new(bytes).context("expected a model or a .npy file, but its header cannot be read")?;
    let &[rows, columns] = file.header().shape() else {
        bail!("expected two dimensions (channels, interneurons), got shape {:?}", file.header().shape());
    };
    let (order, single) = (file.header().order(), require_floats(file.header())?);
    let [rows, columns] = [usize::try_from(rows)?, usize::try_from(columns)?];
    let numbers = numbers(file, rows.saturating_mul(columns), single)?;
    Ok(Matrix::from_fn(rows, columns, |i, j| match order {
        Order::C => numbers[i * columns + j],
        Order::Fortran => numbers[i + j * rows],
    }))
}
