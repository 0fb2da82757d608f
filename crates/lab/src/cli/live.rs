//! Shows a stream on a page while it is whitened, or a toy to play with: `leukos live`.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};
use clap::Args;
use leukos::WhitenerSettings;

use super::interruption::stop_or_say;
use super::progress::{Shown, say_line};
use super::settings::{Memory, Reading, explained};
use super::whiten::{interrupted, is_closed_pipe, report};
use super::{End, Usage};
use crate::files::Paths;
use crate::live::{Show, show_stream, show_toy};
use crate::outlook::Outlook;
use crate::recording::Source;
use crate::whitening::{Destination, Mode, ModelSource, Request};

/// Watch a stream being whitened, on a page in the browser
///
/// Serves one page on this machine, prints its address on standard output (on standard error if the output goes there),
/// and opens it in a browser. The page shows correlations before and after, the whitening error, the gains, changes of
/// context, and the state of each channel. It only watches: what --out gets is byte for byte what `leukos whiten`
/// writes. Whoever has the address can see the page; nobody else can, and no other machine.
///
/// A file passes at the speed at which it was recorded, if its sample rate is known, and the page stays until Ctrl-C. A
/// pipe passes as it comes, and the page ends with it. Without MODEL the whitener begins with nothing and learns from
/// the first rows, so its output cannot be reproduced with a model and --out is refused.
///
/// --toy is the paper's circuit of two neurons to play with: drag the ellipse of a context, and see gains, responses and
/// the cone of Fig. 2 follow.
///
/// Examples:
///   leukos live --toy
///   leukos live model.safetensors day.edf
///   leukos live day.csv --sample-rate 250 --speed 10                          without a model, ten times as fast
///   amplifier | leukos live model.safetensors - --format raw --channels 8 --dtype float32 --out - | sorter
///   leukos live model.safetensors day.edf --control --save adapted.safetensors
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "leukos live [OPTIONS] [MODEL] INPUT\n       leukos live [OPTIONS] --toy"
)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag.
pub struct Live {
    /// INPUT, or MODEL and INPUT: a model that `leukos fit` wrote, and the recording, which is a CSV, TSV, .npy, EDF, BDF or raw file, or `-` for standard input
    #[arg(value_name = "FILE", num_args = 1..=2, required_unless_present = "toy", conflicts_with = "toy")]
    names: Vec<String>,
    /// Play with two neurons and two interneurons
    #[arg(long)]
    toy: bool,
    /// Write the responses as `leukos whiten` does: CSV, TSV, .npy or raw, or `-` for standard output
    #[arg(long, value_name = "OUTPUT", conflicts_with = "toy")]
    out: Option<String>,
    /// How many times faster than recorded a file passes; `max` for as fast as it can be whitened [default: 1]
    #[arg(long, value_name = "TIMES|max", value_parser = speed, conflicts_with = "toy")]
    speed: Option<Speed>,
    /// End when the recording ends, instead of keeping the page until Ctrl-C
    #[arg(long, conflicts_with = "toy")]
    end: bool,
    /// The port of the page on this machine; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Do not open a browser
    #[arg(long)]
    no_browser: bool,
    /// Let the page begin a new context, stop and start adaptation, and save the model; each is noted with its row
    #[arg(long, conflicts_with = "toy")]
    control: bool,
    /// Where the page may save the model with its running state; `leukos whiten` goes on from there
    #[arg(long, value_name = "MODEL", requires = "control")]
    save: Option<PathBuf>,
    /// The seed of the toy's stimuli
    #[arg(long, value_name = "S", default_value_t = 0, requires = "toy")]
    seed: u64,
    /// Print nothing but the address and errors
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    beginning: Beginning,
    #[command(flatten)]
    reading: Reading,
}

/// How a whitener adapts that begins with nothing.
#[derive(Args)]
#[command(next_help_heading = "Adaptation without MODEL", mut_args = explained)]
struct Beginning {
    #[arg(long, conflicts_with = "toy")]
    time_constant: Option<Memory>,
    #[arg(long, conflicts_with = "toy")]
    saturation: Option<f64>,
}

/// How fast a file passes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speed {
    Times(f64),
    Max,
}

fn speed(word: &str) -> Result<Speed, String> {
    if word == "max" {
        return Ok(Speed::Max);
    }
    let times = word.parse().ok().filter(|times: &f64| *times > 0.0 && times.is_finite());
    times.map(Speed::Times).ok_or_else(|| format!("expected a positive number or max, got {word}"))
}

impl Live {
    pub fn run(self) -> Result<End> {
        if self.toy {
            let stop = stop_or_say("");
            show_toy(self.port, self.seed, stop, |address| announce(address, false, !self.no_browser))?;
            return Ok(End::Done);
        }
        let request = self.request()?;
        let show = Show {
            port: self.port,
            control: self.control,
            save: self.save,
            speed: match self.speed {
                None => Some(1.0),
                Some(Speed::Times(times)) => Some(times),
                Some(Speed::Max) => None,
            },
            end_with_recording: self.end,
        };
        let writes_to_stdout = request.output == Destination::Stdout;
        let (stop, outlook) = (stop_or_say(interrupted(&request)), Shown::new(self.quiet));
        let opened = |address: &str| announce(address, writes_to_stdout, !self.no_browser);
        let tally = match show_stream(&request, &show, stop, &outlook, opened) {
            Err(error) if request.output.is_stream() && is_closed_pipe(&error) => return Ok(End::Done),
            tally => tally?,
        };
        if request.output == Destination::Nowhere {
            outlook.say(&tally.status);
        } else {
            report(&tally, &request, &outlook);
        }
        // The page of a recording that has ended is closed by Ctrl-C.
        Ok(if tally.interrupted { End::Interrupted } else { End::Done })
    }

    fn request(&self) -> Result<Request> {
        let (model, input) = match &self.names[..] {
            [input] => (None, input),
            [model, input] => (Some(PathBuf::from(model)), input),
            _ => bail!(Usage("expected [MODEL] INPUT, or --toy".into())),
        };
        let input: Source = input.parse()?;
        let options = self.reading.options();
        let Beginning { time_constant, saturation } = &self.beginning;
        let foreign = [("--time-constant", time_constant.is_some()), ("--saturation", saturation.is_some())];
        if model.is_some() {
            for (flag, given) in foreign {
                ensure!(!given, Usage(format!("{flag}: expected no MODEL, which has its own, got one")));
            }
        }
        ensure!(
            model.is_some() || self.out.is_none(),
            Usage("--out: expected a MODEL, got none; responses of a whitener that begins with nothing cannot be \
                   computed again, so they are only shown (`leukos fit` makes a model)".into())
        );
        if let (Some(save), Some(model)) = (&self.save, &model) {
            Paths::default().read("the model", model).write("--save", save).secure()?;
        }
        let model = match model {
            Some(path) => ModelSource::File(path),
            None => ModelSource::Empty(Box::new(self.settings(options.sample_rate))),
        };
        Ok(Request {
            model,
            input,
            options,
            output: match self.out.as_deref() {
                None => Destination::Nowhere,
                Some("-") => Destination::Stdout,
                Some(path) => Destination::File(path.into()),
            },
            out_format: None,
            out_type: None,
            scale: None,
            mode: Mode::Adapt,
            reversible: false,
            strength: None,
            bad_samples: None,
            checkpoint: None,
            resume: false,
            export_matrix: None,
        })
    }

    fn settings(&self, sample_rate: Option<f64>) -> WhitenerSettings {
        let Beginning { time_constant, saturation } = self.beginning;
        let time_constant = time_constant.unwrap_or_default().span();
        WhitenerSettings { sample_rate, time_constant, saturation, ..WhitenerSettings::default() }
    }
}

/// Prints the address, alone on a line, and opens it.
fn announce(address: &str, stdout_is_taken: bool, browse: bool) {
    if stdout_is_taken {
        say_line(address);
    } else {
        // Nobody reads it: the page is there all the same.
        let mut stdout = std::io::stdout();
        let _ = writeln!(stdout, "{address}").and_then(|()| stdout.flush());
    }
    if browse {
        open_browser(address);
    }
}

/// Opens the address with what the system has for it; it was printed in any case.
fn open_browser(address: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let silent = Command::new(opener)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Ok(mut browser) = silent {
        std::thread::spawn(move || browser.wait());
    }
}
