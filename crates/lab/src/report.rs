//! Writes the report: one HTML file with every figure, the numbers of the paper and of the authors' code, and a summary.

mod explore;
mod page;
mod policy;
mod summary;
mod table;

use std::path::Path;

use anyhow::Result;

use crate::figures::Picture;
use crate::files::write_atomically;
use crate::findings::Findings;
use crate::references::References;

/// The file within the directory of results.
pub const REPORT: &str = "report.html";

/// Writes the report of a run into its directory.
///
/// # Errors
/// When it cannot be written.
pub fn write(
    findings: &Findings,
    references: &References,
    pictures: &[Picture],
    directory: &Path,
) -> Result<()> {
    let page = page::page(findings, references, pictures)?;
    write_atomically(&directory.join(REPORT), page.as_bytes())
}
