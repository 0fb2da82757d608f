//! Parses the command line and hands each verb to its file.

mod contexts;
mod fit;
mod inspect;
mod progress;
mod reproduce;
mod settings;
mod whiten;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};

use crate::usage::Usage;

/// Adaptive whitening with fast gain modulation and slow synaptic plasticity.
#[derive(Parser)]
#[command(name = "leukos", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Reproduce(reproduce::Reproduce),
    Fit(Box<fit::Fit>),
    Whiten(Box<whiten::Whiten>),
    Inspect(Box<inspect::Inspect>),
    Contexts(Box<contexts::Contexts>),
    /// Print a completion script for a shell
    ///
    /// For example `leukos completions bash > ~/.local/share/bash-completion/completions/leukos`.
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

/// How a verb ended when nothing failed.
pub(crate) enum End {
    Done,
    /// Ctrl-C.
    Interrupted,
}

/// Writes to standard output; whoever has closed it wants no more, which is not a failure.
fn print(bytes: &[u8]) -> Result<End> {
    match io::stdout().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(End::Done),
    }
}

/// More threads than this are of use on no machine, and one that cannot be started would be a panic.
const MOST_JOBS: usize = 256;

/// The number of threads asked for, or one for each core.
fn jobs(given: Option<NonZeroUsize>) -> usize {
    given.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get).min(MOST_JOBS)
}

/// A flag that Ctrl-C sets; a second Ctrl-C ends the program at once.
fn stop_on_interrupt() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("Ctrl-C cannot be listened to")?;
    Ok(stop)
}

/// Does what the command line says: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
pub fn run() -> ExitCode {
    let ended = match Cli::parse().verb {
        Verb::Reproduce(verb) => verb.run(),
        Verb::Fit(verb) => verb.run(),
        Verb::Whiten(verb) => verb.run(),
        Verb::Inspect(verb) => verb.run(),
        Verb::Contexts(verb) => verb.run(),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "leukos", &mut script);
            print(&script)
        }
    };
    match ended {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}
