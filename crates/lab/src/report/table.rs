//! Sets a figure's numbers beside those of the paper and of the authors' code, and says whether they agree.

use std::fmt::Write;

use super::page::prose;
use crate::experiment::Figure;
use crate::findings::{Findings, Measured};
use crate::references::{Reference, Row};

/// How a number of the run stands to that of the authors' code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It differs by this many joint standard errors, no more than chance explains.
    Agrees(f64),
    /// It differs by this many, above or below.
    Differs(f64),
    /// The run's contexts are not those of the paper, so the two are not comparable.
    OtherContexts,
    /// The run has too few independent draws for a standard error.
    OneDraw,
}

/// Up to how many joint standard errors two numbers agree: chance alone puts one pair in twenty further apart.
pub const AGREEMENT: f64 = 2.0;

impl Verdict {
    fn words(self) -> String {
        match self {
            Self::Agrees(apart) => format!("agrees ({apart:+.1})"),
            Self::Differs(apart) if apart < 0.0 => format!("lower ({apart:+.1})"),
            Self::Differs(apart) => format!("higher ({apart:+.1})"),
            Self::OtherContexts => "other contexts".to_owned(),
            Self::OneDraw => "too few draws".to_owned(),
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
    if !findings.source(figure, variant(row))?.is_the_papers() {
        return Some(Verdict::OtherContexts);
    }
    let (value, reference) = (here.value?, *authors.first()?);
    let Some((error, draws)) = here.error else { return Some(Verdict::OneDraw) };
    let theirs = their_error(row, &here, error * (draws as f64).sqrt());
    let apart = (value - reference) / error.hypot(theirs).hypot(rounding(reference, row.digits));
    Some(if apart.abs() <= AGREEMENT { Verdict::Agrees(apart) } else { Verdict::Differs(apart) })
}

/// The standard error of the authors' number. Where it is over one draw, or its spread is not known, a draw of theirs is
/// taken to vary as one of ours does.
fn their_error(row: &Row, here: &Measured, of_one_draw: f64) -> f64 {
    let starts = f64::from(row.starts.unwrap_or(1)).sqrt();
    match row.authors.as_ref().and_then(|authors| authors.get(1)) {
        _ if row.drawn_once => of_one_draw,
        // Theirs is the spread of single starts, which says how well a mean is known, but not a median.
        Some(spread) if here.spread.is_some() => spread / starts,
        _ => of_one_draw / starts,
    }
}

/// The standard deviation of what was lost when a number was rounded to so many significant digits.
fn rounding(number: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(number.abs().max(f64::MIN_POSITIVE).log10().floor() as i32 + 1 - digits);
    unit / 12_f64.sqrt()
}

/// What the cells of a line are called in the style sheet, which sets them differently on narrow screens.
const CLASSES: [&str; 7] = ["reading", "paper", "authors", "here", "starts", "failed", "verdict"];

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
    let authors = match (&row.authors_says, &row.authors) {
        (Some(says), _) => says.clone(),
        (None, Some(numbers)) => authors_text(numbers),
        (None, None) => "–".to_owned(),
    };
    let starts = findings.numbers(figure, variant(row))["seeds"].as_u64();
    let failed = findings.failed(figure, &row.number);
    let here = match findings.measured(figure, &row.number) {
        Some(here) => here.text(),
        None if starts.is_some() && failed == starts => "every start failed".to_owned(),
        None => "not rerun".to_owned(),
    };
    let [starts, failed] =
        [starts, failed].map(|count| count.map_or("–".to_owned(), |count| count.to_string()));
    let verdict = verdict(findings, figure, row).map_or("–".to_owned(), Verdict::words);
    let cells =
        [variant(row), row.paper.as_deref().unwrap_or("–"), &authors, &here, &starts, &failed, &verdict];
    let _ = write!(html, "<tr><th scope=\"row\">{}</th>", prose(&row.what));
    for (class, cell) in CLASSES.into_iter().zip(cells) {
        let _ = write!(html, "<td class=\"{class}\">{}</td>", prose(cell));
    }
    html.push_str("</tr>\n");
}

fn authors_text(numbers: &[f64]) -> String {
    let value = numbers.first().copied().unwrap_or(f64::NAN);
    Measured { value: Some(value), spread: numbers.get(1).copied(), error: None }.text()
}
