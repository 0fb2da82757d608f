//! Whitens a recording with a model, or undoes it: `leukos whiten`.

use std::io;
use std::path::PathBuf;

use anyhow::{Error, Result};
use clap::Args;
use leukos::BadSamples;

use super::interruption::stop_or_say;
use super::progress::Shown;
use super::settings::{Reading, bad_samples};
use super::{End, NOTHING_WRITTEN};
use crate::outlook::Outlook;
use crate::recording::{Format, Misfits, SampleType, Source};
use crate::whitening::{Destination, Mode, Request, Tally, whiten};

/// Whiten a recording with a model, adapting as it goes
///
/// Rows are answered one after another; the gains follow what comes, and a change of context is noticed. The output has
/// as many rows as the input and the same kind of numbers. Whole numbers are responses times --scale, rounded, and
/// clipped where they do not fit, with a count.
///
/// The output grows in a hidden file beside OUTPUT and gets its name when it is whole. With --checkpoint a run that was
/// killed, at whatever moment, goes on with --resume to the very bytes it would have written; the checkpoint is a model
/// file, and at the end it holds the model as it has adapted.
///
/// --inverse gives a recording back. Whole numbers are rounded, so an adapting run can be undone from them only if it
/// learned from them as they were written: with --reversible, both ways.
///
/// Examples:
///   leukos whiten model.safetensors day.csv --out white.csv
///   leukos whiten model.safetensors white.csv --inverse --out again.csv        the recording comes back
///   leukos whiten model.safetensors probe.npy --reversible --out white.npy     so does one of int16 numbers
///   leukos whiten model.safetensors day.edf --frozen --out white.npy           with the model as it stands
///   leukos whiten model.safetensors probe.raw --channels 64 --dtype int16 --out white.raw \
///       --checkpoint state.safetensors --every 1000000 --resume
///   amplifier | leukos whiten model.safetensors - --format raw --channels 8 --dtype float32 --out - | sorter
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Whiten {
    /// A model that `leukos fit` wrote, or a checkpoint
    model: PathBuf,
    /// The recording: a CSV, TSV, .npy, EDF, BDF or raw file, or `-` for standard input
    input: Source,
    /// Where the output goes: a CSV, TSV, .npy or raw file, or `-` for standard output
    #[arg(long, value_name = "OUTPUT")]
    out: String,
    /// From 0, which only centres and scales, to 1, which whitens [default: the model's]
    #[arg(long, value_name = "0..1", allow_negative_numbers = true)]
    strength: Option<f64>,
    /// What becomes of a sample with a NaN, an infinity or a saturated value: `mark` makes its row NaN (zeros among
    /// whole numbers, counted), `hold` repeats the one before, `zero` makes it zeros, `error` stops [default: the model's]
    #[arg(long, value_name = "mark|hold|zero|error", value_parser = bad_samples)]
    bad_samples: Option<BadSamples>,
    /// Write whitening_mat.npy and whitening_mat_inv.npy, as they are at the end, into this folder
    #[arg(long, value_name = "DIR")]
    export_matrix: Option<PathBuf>,
    /// Say nothing but errors
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
    /// Whiten with the model as it stands: nothing adapts
    #[arg(long)]
    frozen: bool,
    /// Turn responses back into stimuli: of a run that adapted from this MODEL, or with --frozen of one that did not
    #[arg(long)]
    inverse: bool,
    /// Learn from the responses as they are written, rounded and clipped, so that --inverse --reversible gives the
    /// recording back; takes about twice as long
    #[arg(long)]
    reversible: bool,
}

/// What the output looks like.
#[derive(Args)]
#[command(next_help_heading = "What the output looks like")]
struct Output {
    /// The format of the output, where its name does not say it
    #[arg(long, value_enum)]
    out_format: Option<Format>,
    /// The numbers of the output [default: those of the input]
    #[arg(long, value_enum)]
    out_dtype: Option<SampleType>,
    /// What a response of one is as a whole number [default: 200 for int16, 1000000 for int32]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    scale: Option<f64>,
}

/// How the state is saved.
#[derive(Args)]
#[command(next_help_heading = "How nothing is lost")]
struct Saving {
    /// Save the state into this file from time to time
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// After how many samples each time
    #[arg(long, value_name = "SAMPLES", requires = "checkpoint", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Go on from the checkpoint if there is one, and else from the beginning
    #[arg(long, requires = "checkpoint")]
    resume: bool,
}

impl Whiten {
    pub fn run(self) -> Result<End> {
        let quiet = self.quiet;
        let request = self.request();
        let (stop, outlook) = (stop_or_say(interrupted(&request)), Shown::new(quiet));
        let tally = match whiten(&request, stop, &outlook) {
            // Whoever has closed the pipe wants no more.
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
            model: self.model,
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

fn is_closed_pipe(error: &Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>().map(io::Error::kind));
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// What becomes of a run that is ended early.
fn interrupted(request: &Request) -> String {
    match &request.checkpoint {
        Some((path, _)) => format!("interrupted: --resume goes on from {}", path.display()),
        None if request.output.is_stream() => "interrupted".into(),
        None => NOTHING_WRITTEN.into(),
    }
}

/// Says how it went.
fn report(tally: &Tally, request: &Request, outlook: &dyn Outlook) {
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
        outlook.say(&format!("{not_numbers} numbers are NaN and were written as 0"));
    }
    outlook.say(&format!("{}: {rows} rows written, {bad} of them from bad samples", request.output));
}
