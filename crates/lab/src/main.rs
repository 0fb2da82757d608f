//! Runs the command-line laboratory.

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Adaptive whitening with fast gain modulation and slow synaptic plasticity.
#[derive(Parser)]
#[command(name = "leukos", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print a completion script for a shell
    ///
    /// For example `leukos completions bash > ~/.local/share/bash-completion/completions/leukos`.
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    match Cli::parse().verb {
        Verb::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "leukos", &mut io::stdout());
        }
    }
    ExitCode::SUCCESS
}
