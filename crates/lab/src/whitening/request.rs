//! Describes what to whiten, how, and where the output goes; refuses combinations that make no sense.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use leukos::{BadSamples, Matrix, Model, Whitener, WhitenerSettings};

use super::{Destination, MATRICES, Mode};
use crate::files::{Paths, Secured, is_stream};
use crate::recording::{Format, Layout, OutputShape, ReadOptions, Reader, SampleType, Source, open};
use crate::usage::Usage;

/// What to whiten, how, and where the output goes.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model that it begins with.
    pub model: ModelSource,
    /// The recording.
    pub input: Source,
    /// What the user says about it.
    pub options: ReadOptions,
    /// Where the output goes.
    pub output: Destination,
    /// Its format, where its name does not say it.
    pub out_format: Option<Format>,
    /// The type of its numbers; without it that of the input.
    pub out_type: Option<SampleType>,
    /// What a response of one is as a whole number.
    pub scale: Option<f64>,
    /// Which way, and whether it adapts.
    pub mode: Mode,
    /// Whether to learn from the responses as written, so that the run can be undone; or to undo such a run.
    pub reversible: bool,
    /// Another strength than the model's.
    pub strength: Option<f64>,
    /// Another treatment of bad samples than the model's.
    pub bad_samples: Option<BadSamples>,
    /// Where the state is saved, and after how many samples each time.
    pub checkpoint: Option<(PathBuf, u64)>,
    /// Whether to continue from the checkpoint, if there is one.
    pub resume: bool,
    /// The folder that the whitening matrix and its inverse go into at the end.
    pub export_matrix: Option<PathBuf>,
}

/// What a stream is whitened with at first.
#[derive(Clone, Debug)]
pub enum ModelSource {
    /// A model file.
    File(PathBuf),
    /// A whitener that knows nothing yet: it begins with the first rows, and has an interneuron for each channel and
    /// each pair of channels, so that its gains can explain whatever it answers with.
    Empty(Box<WhitenerSettings>),
}

/// Beyond so many channels there would be too many pairs.
const MOST_CHANNELS_WITHOUT_MODEL: usize = 32;

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "model {}", path.display()),
            Self::Empty(_) => f.write_str("a whitener without a model"),
        }
    }
}

impl ModelSource {
    /// The bytes of the model file.
    pub(super) fn bytes(&self, layout: &Layout) -> Result<Vec<u8>> {
        let settings = match self {
            Self::File(path) => return std::fs::read(path).context("the file cannot be read"),
            Self::Empty(settings) => WhitenerSettings {
                sample_rate: settings.sample_rate.or(layout.sample_rate),
                ..settings.as_ref().clone()
            },
        };
        let n = layout.channels;
        ensure!(
            n <= MOST_CHANNELS_WITHOUT_MODEL,
            Usage(format!(
                "expected a MODEL for more than {MOST_CHANNELS_WITHOUT_MODEL} channels, got {n} channels and none; \
                 `leukos fit` makes one"
            ))
        );
        let mut model = Model::from(Whitener::<f64>::new(all_pairs(n), settings)?);
        model.channel_names.clone_from(&layout.names);
        Ok(model.to_bytes()?)
    }
}

/// A column for each channel, and one for each pair.
fn all_pairs(n: usize) -> Matrix {
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
    Matrix::from_fn(n, pairs.len(), |row, column| {
        let (i, j) = pairs[column];
        if row == i || row == j { 1.0 } else { 0.0 }
    })
}

/// The error for whole numbers when an adapting run is to be undone.
pub(super) const CANNOT_BE_UNDONE: &str = "--inverse: expected the exact responses of the run, got whole numbers, \
     which are rounded; an adapting run can be undone from float32 or float64 responses, or from whole numbers that \
     `whiten --reversible` wrote, with `whiten --inverse --reversible` (and the same --scale, if they are text)";
/// Whole numbers leave room for responses of 163 standard deviations at 16 bits; spike sorters use the same scale.
const INT16_SCALE: f64 = 200.0;
/// And of 2147 at 32 bits.
const INT32_SCALE: f64 = 1e6;

impl Request {
    pub(super) fn require_sense(&self) -> Result<()> {
        let piped = !self.input.is_plain_file() || self.output.is_stream();
        if piped && (self.checkpoint.is_some() || self.resume) {
            let flag = if self.resume { "--resume" } else { "--checkpoint" };
            bail!(Usage(format!(
                "{flag}: expected plain files, got a pipe, which cannot be read or written again from an earlier place"
            )));
        }
        if self.resume && self.checkpoint.is_none() {
            bail!(Usage("--resume: expected --checkpoint FILE as well, to continue from".into()));
        }
        if let Some((checkpoint, _)) = &self.checkpoint {
            let complaint = "--checkpoint: expected a plain file, got a pipe or a device";
            ensure!(!is_stream(checkpoint)?, Usage(complaint.into()));
        }
        if self.reversible && matches!(self.mode, Mode::Frozen | Mode::FrozenInverse) {
            let complaint =
                "--reversible: expected a run that adapts, got --frozen, which can be undone without it";
            bail!(Usage(complaint.into()));
        }
        Ok(())
    }

    /// Refuses what can be refused before the first row is read; otherwise what is known of the recording by then.
    ///
    /// # Errors
    /// When the recording or the model cannot be used.
    pub(crate) fn require_start(&self) -> Result<Layout> {
        let reader = open(&self.input, &self.options)?;
        self.model.bytes(reader.layout()).with_context(|| self.model.to_string())?;
        Ok(reader.layout().clone())
    }

    /// Everything that is read and written.
    pub(super) fn paths(&self) -> Paths {
        let mut paths = Paths::default();
        if let ModelSource::File(model) = &self.model {
            paths.read("the model", model);
        }
        paths.read_source("the input", &self.input);
        match &self.output {
            Destination::File(path) => _ = paths.write("--out", path),
            Destination::Stdout => _ = paths.write_stdout(),
            Destination::Nowhere => {}
        }
        if let Some((path, _)) = &self.checkpoint {
            paths.write("--checkpoint", path);
        }
        if let Some(folder) = &self.export_matrix {
            MATRICES.iter().for_each(|name| _ = paths.write("--export-matrix", folder.join(name)));
        }
        paths
    }

    /// Removes the partial files of killed processes, except the one that this call continues.
    pub(super) fn remove_orphans(&self, secured: &Secured, partial: Option<&str>) {
        if let Destination::File(path) = &self.output {
            secured.remove_orphans(path, partial);
        }
        if let Some((path, _)) = &self.checkpoint {
            secured.remove_orphans(path, None);
        }
        if let Some(folder) = &self.export_matrix {
            MATRICES.iter().for_each(|name| secured.remove_orphans(&folder.join(name), None));
        }
    }

    /// Refuses to undo an adapting run from rounded numbers that it did not learn from.
    pub(super) fn require_undoable(&self, sample_type: SampleType) -> Result<()> {
        let whole = matches!(sample_type, SampleType::Int16 | SampleType::Int32);
        if self.mode == Mode::Inverse && whole && !self.reversible {
            bail!(Usage(CANNOT_BE_UNDONE.into()));
        }
        Ok(())
    }

    /// Whether the input must be checked for whole numbers: it is text, which does not tell, and rounding would matter.
    pub(super) fn suspects_whole(&self) -> Result<bool> {
        let text = self.options.format_of(&self.input)?.is_text();
        let undoes_exact = self.mode == Mode::Inverse && !self.reversible;
        Ok(text && undoes_exact)
    }

    /// The options that a later call must share with this one to continue its output.
    pub(super) fn words(&self) -> String {
        let Self { options, out_format, out_type, scale, mode, reversible, strength, bad_samples, .. } = self;
        format!(
            "{options:?} {out_format:?} {out_type:?} {scale:?} {mode:?} {reversible} {strength:?} {bad_samples:?}"
        )
    }

    pub(super) fn scale(&self, sample_type: SampleType) -> f64 {
        self.scale.unwrap_or(match sample_type {
            SampleType::Int16 => INT16_SCALE,
            SampleType::Int32 => INT32_SCALE,
            SampleType::Float32 | SampleType::Float64 => 1.0,
        })
    }

    /// The format of the output.
    pub(super) fn format(&self) -> Result<Format> {
        Ok(match (self.out_format, &self.output) {
            (Some(format), _) => format,
            (None, Destination::File(path)) => {
                Format::of_name(path).map_err(|error| as_out_format(&error))?
            }
            (None, Destination::Stdout | Destination::Nowhere) => self.options.format_of(&self.input)?,
        })
    }

    pub(super) fn shape(&self, reader: &dyn Reader, names: Option<Vec<String>>) -> Result<OutputShape> {
        let layout = reader.layout();
        let format = self.format()?;
        let sample_type = self.out_type.unwrap_or(layout.sample_type);
        let label = self.options.label.as_ref().map(|label| match label.parse::<usize>() {
            Ok(_) => "label".to_owned(),
            Err(_) => label.clone(),
        });
        Ok(OutputShape {
            format,
            channels: layout.channels,
            names: layout.names.clone().or(names),
            label,
            sample_type,
            rows: layout.rows,
            scale: if self.mode.is_inverse() { 1.0 } else { self.scale(sample_type) },
        })
    }
}

fn as_out_format(error: &Usage) -> Usage {
    Usage(error.0.replace("--format", "--out-format"))
}
