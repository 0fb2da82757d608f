//! Runs the command-line laboratory.

use std::process::ExitCode;

fn main() -> ExitCode {
    leukos_lab::cli::run()
}
