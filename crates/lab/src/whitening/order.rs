//! Says what is to be whitened, how, and where to; and refuses what makes no sense.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use leukos::BadSamples;

use super::{Destination, Mode};
use crate::recording::{Format, OutputShape, ReadOptions, Reader, SampleType, Source};
use crate::usage::Usage;

/// What is to be whitened, how, and where to.
#[derive(Clone, Debug)]
pub struct Order {
    /// The model file.
    pub model: PathBuf,
    /// The recording.
    pub input: Source,
    /// What the user says of it.
    pub options: ReadOptions,
    /// Where the output goes.
    pub output: Destination,
    /// Its format, where its name does not say it.
    pub out_format: Option<Format>,
    /// The type of its numbers; that of the input where nothing is said.
    pub out_type: Option<SampleType>,
    /// What a response of one is as a whole number.
    pub scale: Option<f64>,
    /// Which way, and whether it adapts.
    pub mode: Mode,
    /// Another strength than the model's.
    pub strength: Option<f64>,
    /// Another treatment of bad samples than the model's.
    pub bad_samples: Option<BadSamples>,
    /// Where the state is saved, and after how many samples each time.
    pub checkpoint: Option<(PathBuf, u64)>,
    /// Whether to go on from the checkpoint, if there is one.
    pub resume: bool,
    /// The folder that the whitening matrix and its inverse go into at the end.
    pub export_matrix: Option<PathBuf>,
}

/// Whole numbers leave room for responses of 163 standard deviations at 16 bits; spike sorters use the same scale.
const INT16_SCALE: f64 = 200.0;
/// And of 2147 at 32 bits.
const INT32_SCALE: f64 = 1e6;

impl Order {
    pub(super) fn require_sense(&self) -> Result<()> {
        let piped = self.input == Source::Stdin || self.output == Destination::Stdout;
        if piped && (self.checkpoint.is_some() || self.resume) {
            let flag = if self.resume { "--resume" } else { "--checkpoint" };
            bail!(Usage(format!("{flag}: expected files, because nothing can be gone back to in a pipe")));
        }
        if self.resume && self.checkpoint.is_none() {
            bail!(Usage("--resume: expected --checkpoint FILE as well, to go on from".into()));
        }
        self.require_other_files()
    }

    /// Nothing that is read may be written over, and no two things into one file.
    fn require_other_files(&self) -> Result<()> {
        let mut read = vec![("the model", &self.model)];
        if let Source::File(input) = &self.input {
            read.push(("the input", input));
        }
        let out = match &self.output {
            Destination::File(output) => Some(("--out", output)),
            Destination::Stdout => None,
        };
        let saved = self.checkpoint.as_ref().map(|(path, _)| ("--checkpoint", path));
        for (flag, path) in out.into_iter().chain(saved) {
            for (what, other) in &read {
                ensure!(!is_same(path, other), Usage(format!("{flag}: expected another file than {what}")));
            }
        }
        if let (Some((_, output)), Some((_, checkpoint))) = (out, saved) {
            let complaint = "--checkpoint: expected another file than --out";
            ensure!(output != checkpoint && !is_same(output, checkpoint), Usage(complaint.into()));
        }
        Ok(())
    }

    /// What a later call must have in common with this one to go on with its output.
    pub(super) fn words(&self) -> String {
        let Self { options, out_format, out_type, scale, mode, strength, bad_samples, .. } = self;
        format!("{options:?} {out_format:?} {out_type:?} {scale:?} {mode:?} {strength:?} {bad_samples:?}")
    }

    pub(super) fn scale(&self, sample_type: SampleType) -> f64 {
        self.scale.unwrap_or(match sample_type {
            SampleType::Int16 => INT16_SCALE,
            SampleType::Int32 => INT32_SCALE,
            SampleType::Float32 | SampleType::Float64 => 1.0,
        })
    }

    pub(super) fn shape(&self, reader: &dyn Reader, names: Option<Vec<String>>) -> Result<OutputShape> {
        let layout = reader.layout();
        let format = match (self.out_format, &self.output, &self.input) {
            (Some(format), ..) => format,
            (None, Destination::File(path), _) => {
                Format::of_name(path).map_err(|error| as_out_format(&error))?
            }
            (None, Destination::Stdout, _) => self.options.format_of(&self.input)?,
        };
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

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn as_out_format(error: &Usage) -> Usage {
    Usage(error.0.replace("--format", "--out-format"))
}
