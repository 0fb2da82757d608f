//! Writes the manual pages, from the same texts as `--help`: `leukos man`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_mangen::Man;

use super::End;
use crate::files::write_atomically;

/// Write the manual pages: leukos.1, and one for each command
///
/// For example `leukos man --out ~/.local/share/man/man1`; then `man leukos-fit`.
#[derive(Args)]
pub struct Manual {
    /// The folder that they go to; it is made where it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Manual {
    /// Writes a page for the program and one for each of its commands.
    pub fn run(self, program: Command) -> Result<End> {
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("the folder {} cannot be made", self.out.display()))?;
        let mut program = program.disable_help_subcommand(true);
        // A command knows the name of its page, leukos-fit, only after this.
        program.build();
        for command in program.get_subcommands().chain([&program]) {
            let page = Man::new(command.clone());
            let mut text = Vec::new();
            page.render(&mut text)?;
            write_atomically(&self.out.join(page.get_filename()), &text)?;
        }
        Ok(End::Done)
    }
}
