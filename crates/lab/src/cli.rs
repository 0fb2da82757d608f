//! Parses the command line and hands each verb to its file.

mod contexts;
mod fit;
mod inspect;
mod interruption;
mod live;
mod man;
mod progress;
mod reproduce;
mod settings;
mod whiten;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::Result;
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
    Live(Box<live::Live>),
    Inspect(Box<inspect::Inspect>),
    Contexts(Box<contexts::Contexts>),
    /// Print a completion script for a shell
    ///
    /// For example `leukos completions bash > ~/.local/share/bash-completion/completions/leukos`.
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
    Man(man::Manual),
}

/// Printed when a command was interrupted and has written nothing.
const NOTHING_WRITTEN: &str = "interrupted: nothing was written";

/// How a verb ended when nothing failed.
pub(crate) enum End {
    Done,
    /// Ctrl-C.
    Interrupted,
}

/// Writes to standard output. It is not a failure if the reader has closed it.
fn print(bytes: &[u8]) -> Result<End> {
    match io::stdout().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(End::Done),
    }
}

/// The most threads: more help on no machine, and a thread that cannot be started would be a panic.
const MOST_JOBS: usize = 256;

/// The number of threads asked for, or one for each core.
fn jobs(given: Option<NonZeroUsize>) -> usize {
    given.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get).min(MOST_JOBS)
}

/// Does what the command line says: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
pub fn run() -> ExitCode {
    let verb = Cli::parse().verb;
    let ended = interruption::listen().and_then(|()| verb.run());
    match ended {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Interrupted) => ExitCode::from(130),
        Err(error) => {
            progress::say_line(format_args!("error: {error:#}"));
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

impl Verb {
    fn run(self) -> Result<End> {
        match self {
            Self::Reproduce(verb) => verb.run(),
            Self::Fit(verb) => verb.run(),
            Self::Whiten(verb) => verb.run(),
            Self::Live(verb) => verb.run(),
            Self::Inspect(verb) => verb.run(),
            Self::Contexts(verb) => verb.run(),
            Self::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "leukos", &mut script);
                print(&script)
            }
            Self::Man(verb) => verb.run(Cli::command()),
        }
    }
}
