//! Sets a figure's numbers beside those of the paper and of the authors' code, and says whether they agree.

use std::fmt::Write;

use super::page::prose;
use crate::experiment::Figure;
use crate::findings::{Findings, Measured};
use crate::references::{Reference, Row};

/// How a number of the run stands to that of the authors' code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Agrees,
    Lower,
    Higher,
    /// The run's contexts are generated, so the two are not comparable.
    OtherContexts,
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::OtherContexts => "other contexts",
        }
    }
}

/// The variant that a number belongs to.
fn variant(row: &Row) -> &str {
    row.number.split('.').next().unwrap_or("")
}

/// Compares a number with the authors' code; `None` where one of the two is missing.
pub fn verdict(findings: &Findings, figure: Figure, row: &Row) -> Option<Verdict> {
    let authors = row.authors.as_ref()?;
    let here = findings.measured(figure, &row.number)?;
    if findings.is_generated(figure, variant(row)) {
        return Some(Verdict::OtherContexts);
    }
    let (value, reference) = (here.value?, *authors.first()?);
    let tolerance = match authors.get(1) {
        Some(spread) => spread.hypot(here.spread.unwrap_or(0.0)),
        None => (0.1 * reference.abs()).max(here.spread.unwrap_or(0.0)),
    };
    Some(match value - reference {
        gap if gap.abs() <= tolerance => Verdict::Agrees,
        gap if gap < 0.0 => Verdict::Lower,
        _ => Verdict::Higher,
    })
}

/// The table of a figure.
pub fn table(findings: &Findings, figure: Figure, reference: &Reference) -> String {
    let name = figure.name();
    let mut html = format!(
        "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{name}-numbers\">\n<table>\n\
         <caption id=\"{name}-numbers\">Numbers of {name}: mean ± standard deviation over starts</caption>\n\
         <thead><tr><th scope=\"col\">number</th><th scope=\"col\">reading</th><th scope=\"col\">paper</th>\
         <th scope=\"col\">authors’ code</th><th scope=\"col\">here</th><th scope=\"col\">starts</th>\
         <th scope=\"col\">failed</th><th scope=\"col\">against authors’ code</th></tr></thead>\n<tbody>\n"
    );
    for row in &reference.rows {
        line(&mut html, findings, figure, row);
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    html
}

fn line(html: &mut String, findings: &Findings, figure: Figure, row: &Row) {
    let here = findings.measured(figure, &row.number).map_or("not rerun".to_owned(), |here| here.text());
    let authors = match (&row.authors_says, &row.authors) {
        (Some(says), _) => says.clone(),
        (None, Some(numbers)) => authors_text(numbers),
        (None, None) => "–".to_owned(),
    };
    let starts = findings.numbers(figure, variant(row))["seeds"].as_u64();
    let [starts, failed] = [starts, findings.failed(figure, &row.number)]
        .map(|count| count.map_or("–".to_owned(), |count| count.to_string()));
    let verdict = verdict(findings, figure, row).map_or("–", Verdict::words);
    let cells =
        [variant(row), row.paper.as_deref().unwrap_or("–"), &authors, &here, &starts, &failed, verdict];
    let _ = write!(html, "<tr><th scope=\"row\">{}</th>", prose(&row.what));
    for cell in cells {
        let _ = write!(html, "<td>{}</td>", prose(cell));
    }
    html.push_str("</tr>\n");
}

fn authors_text(numbers: &[f64]) -> String {
    let value = numbers.first().copied().unwrap_or(f64::NAN);
    Measured { value: Some(value), spread: numbers.get(1).copied() }.text()
}
