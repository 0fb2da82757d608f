//! Whitens a recording with a model, or undoes it: `leukos whiten`.

use std::io;
use std::path::PathBuf;

use anyhow::{Error, Result};
use clap::Args;
use leukos::BadSamples;

use super::interruption::stop_or_say;
use super::progress::Shown;
use super::settings::{Reading, bad_samples, explained_for_a_model};
use super::{End, NOTHING_WRITTEN};
use crate::outlook::Outlook;
use crate::recording::{Format, Misfits, SampleType, Source};
use crate::whitening::{Destination, Mode, ModelSource, Request, Tally, whiten};

/// Whiten a recording with a model, adapting as it goes
///
/// Rows are whitened one after another, with the covariance in force, which follows the data. The output has as many
/// rows as the input and the same type of numbers. As int16 or int32 it holds responses times --scale, rounded,
/// and clipped where they are too large; the number of clipped values is reported. Rows of NaN are rows of zeros there.
///
/// The output is written to a hidden file beside OUTPUT, and renamed when it is complete. With --checkpoint, a run that
/// was killed at any moment can continue with --resume, and writes exactly the bytes that it would have written
/// uninterrupted. A checkpoint is a model with its running state: given as MODEL, it goes on from there.
///
/// --inverse restores the recording from the output. Rounded output of an adapting run (int16, int32) can be undone only
/// if the run was made with --reversible; then give --reversible with --inverse as well.
///
/// Examples:
///   leukos whiten model.safetensors day.csv --out white.csv
///   leukos whiten model.safetensors white.csv --inverse --out again.csv        restore the recording
///   leukos whiten model.safetensors probe.npy --reversible --out white.npy     int16 that can be undone later
///   leukos whiten model.safetensors day.edf --frozen --out white.npy           without adapting
///   leukos whiten model.safetensors probe.raw --channels 64 --dtype int16 --out white.raw \
///       --checkpoint state.safetensors --every 1000000 --resume
///   amplifier | leukos whiten model.safetensors - --format raw --channels 8 --dtype float32 --out - | sorter
#[derive(Args)]
#[command(verbatim_doc_comment, mut_args = explained_for_a_model)]
pub struct Whiten {
    /// A model that `leukos fit` wrote, or a checkpoint
    model: PathBuf,
    /// The recording: a CSV, TSV, .npy, EDF, BDF or raw file, or `-` for standard input
    input: Source,
    /// The file to write: CSV, TSV, .npy or raw, or `-` for standard output
    #[arg(long, value_name = "OUTPUT")]
    out: String,
    #[arg(long, allow_negative_numbers = true)]
    strength: Option<f64>,
    #[arg(long, value_parser = bad_samples)]
    bad_samples: Option<BadSamples>,
    /// Write the final whitening matrix and its inverse into this folder: whitening_mat.npy, whitening_mat_inv.npy
    #[arg(long, value_name = "DIR")]
    export_matrix: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    saving: Saving,
    #[command(flatten)]
    reading: Reading,
}

/// Which way, and whether anything adapts.
#[derive(Args)]
struct Way {
    /// Do not adapt: whiten with the model exactly as it is
    #[arg(long)]
    frozen: bool,
    /// Turn responses back into stimuli: of a run that started from this MODEL and adapted, or with --frozen of one that
    /// did not adapt
    #[arg(long)]
    inverse: bool,
    /// Learn from the responses as written, rounded and clipped, so that --inverse --reversible can restore the
    /// recording; takes about twice as long
    #[arg(long)]
    reversible: bool,
}

/// What the output looks like.
#[derive(Args)]
#[command(next_help_heading = "Output format")]
struct Output {
    /// The format of the output, if the file name does not tell
    #[arg(long, value_enum)]
    out_format: Option<Format>,
    /// The type of the numbers in the output [default: that of the input]
    #[arg(long, value_enum)]
    out_dtype: Option<SampleType>,
    /// The factor that responses are multiplied by before rounding to int16 or int32 [default: 200 for int16, 1000000
    /// for int32]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    scale: Option<f64>,
}

/// How the state is saved.
#[derive(Args)]
#[command(next_help_heading = "Checkpointing")]
struct Saving {
    /// Save the state of the run into this file at regular intervals
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The number of samples between two checkpoints
    #[arg(long, value_name = "SAMPLES", requires = "checkpoint", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Continue from the checkpoint if there is one, otherwise start from the beginning
    #[arg(long, requires = "checkpoint")]
    resume: bool,
}

impl Whiten {
    pub fn run(self) -> Result<End> {
        let quiet = self.quiet;
        let request = self.request();
        let (stop, outlook) = (stop_or_say(interrupted(&request)), Shown::new(quiet));
        let tally = match whiten(&request, stop, &outlook) {
            // The reader closed the pipe because it has enough: not a failure.
            Err(error) if request.output.is_stream() && is_closed_pipe(&error) => {
                return Ok(End::Done);
            }
            tally => tally?,
        };
        report(&tally, &request, &outlook);
        Ok(if tally.interrupted { End::Interrupted } else { End::Done })
    }

    fn request(self) -> Request {
        let Saving { checkpoint, every, resume } = self.saving;
        Request {
            options: self.reading.options(),
            model: ModelSource::File(self.model),
            input: self.input,
            output: if self.out == "-" { Destination::Stdout } else { Destination::File(self.out.into()) },
            out_format: self.output.out_format,
            out_type: self.output.out_dtype,
            scale: self.output.scale,
            mode: match (self.way.inverse, self.way.frozen) {
                (false, false) => Mode::Adapt,
                (false, true) => Mode::Frozen,
                (true, false) => Mode::Inverse,
                (true, true) => Mode::FrozenInverse,
            },
            reversible: self.way.reversible,
            strength: self.strength,
            bad_samples: self.bad_samples,
            checkpoint: checkpoint.map(|path| (path, every)),
            resume,
            export_matrix: self.export_matrix,
        }
    }
}

pub(super) fn is_closed_pipe(error: &Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>().map(io::Error::kind));
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// What to say of a run that is ended early.
pub(super) fn interrupted(request: &Request) -> String {
    match &request.checkpoint {
        Some((path, _)) => format!("interrupted: --resume continues from {}", path.display()),
        None if request.output.is_stream() => "interrupted".into(),
        None => NOTHING_WRITTEN.into(),
    }
}

/// Says how it went.
pub(super) fn report(tally: &Tally, request: &Request, outlook: &dyn Outlook) {
    let Tally { rows, bad, misfits: Misfits { clipped, not_numbers }, interrupted, status, .. } = tally;
    if *interrupted {
        outlook.say(&format!("{} after {rows} rows", self::interrupted(request)));
        return;
    }
    outlook.say(status);
    if *clipped > 0 {
        outlook
            .say(&format!("{clipped} numbers were too large for the output and were clipped; see --scale"));
    }
    if *not_numbers > 0 {
        outlook.say(&format!("{not_numbers} numbers were NaN and were written as 0"));
    }
    outlook.say(&format!("{}: {rows} rows written, {bad} of them from bad samples", request.output));
}
