//! Lays out the page: head, summary, a section for each figure, and how the run was made.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;

use super::explore::{Explorers, SCRIPT};
use super::policy::policy;
use super::summary::summary;
use super::table::table;
use crate::figures::{Picture, Style, escape};
use crate::findings::{Findings, short};
use crate::references::{Reference, References};

const STYLE: &str = include_str!("page.css");
const TITLE: &str = "Adaptive whitening with fast gain modulation and slow synaptic plasticity, rerun";

/// The whole page.
pub fn page(findings: &Findings, references: &References, pictures: &[Picture]) -> Result<String> {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{TITLE}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        policy(STYLE, SCRIPT)
    );
    let explorers = Explorers::of(findings)?;
    html.push_str(&header(findings, references)?);
    let _ = write!(
        html,
        "<main>\n<section id=\"summary\" aria-labelledby=\"summary-title\">\n\
         <h2 id=\"summary-title\">Summary</h2>\n{}</section>\n",
        summary(findings, references)?
    );
    for figure in findings.figures() {
        let picture =
            pictures.iter().find(|picture| picture.figure == figure && picture.style == Style::Light);
        let picture = picture.with_context(|| format!("there is no picture of {}", figure.name()))?;
        html.push_str(&section(findings, references.of(figure)?, picture, &explorers.under(figure)));
    }
    html.push_str("</main>\n");
    html.push_str(&footer());
    html.push_str(&explorers.script());
    html.push_str("</body>\n</html>\n");
    Ok(html)
}

fn header(findings: &Findings, references: &References) -> Result<String> {
    let mut html = format!(
        "<header>\n<h1>{TITLE}</h1>\n\
         <p>L. R. Duong, E. P. Simoncelli, D. B. Chklovskii and D. Lipshutz, NeurIPS 2023. \
         Every number below was measured by one call of <code>leukos reproduce</code>.</p>\n{}</header>\n\
         <nav aria-label=\"Figures\">\n<ul>\n<li><a href=\"#summary\">Summary</a></li>\n",
        circumstances(findings)
    );
    for figure in findings.figures() {
        let title = prose(&references.of(figure)?.title);
        let _ = writeln!(html, "<li><a href=\"#{}\">{title}</a></li>", figure.name());
    }
    html.push_str("</ul>\n</nav>\n");
    Ok(html)
}

/// How the run was made.
fn circumstances(findings: &Findings) -> String {
    let text = |key: &str| match findings.about(key) {
        Value::String(text) => text.clone(),
        Value::Null => "not known".to_owned(),
        other => other.to_string(),
    };
    let seconds = findings.about("seconds").as_f64().unwrap_or(f64::NAN);
    let time = if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{} min", short((seconds / 6.0).round() / 10.0, 1e2))
    };
    let facts = [
        ("version", format!("{} (commit {})", text("leukos"), text("commit"))),
        ("scale", text("scale")),
        ("seed", text("seed")),
        ("processor", text("processor")),
        ("threads", text("jobs")),
        ("time", format!("{time}, not counting runs finished by an earlier call")),
    ];
    let mut html = "<dl>\n".to_owned();
    for (term, fact) in facts {
        let _ = writeln!(html, "<div><dt>{term}</dt><dd>{}</dd></div>", escape(&fact));
    }
    html + "</dl>\n"
}

fn section(findings: &Findings, reference: &Reference, picture: &Picture, explorers: &str) -> String {
    let figure = picture.figure;
    let name = figure.name();
    let mut html = format!(
        "<section id=\"{name}\" aria-labelledby=\"{name}-title\">\n<h2 id=\"{name}-title\">{}</h2>\n\
         <figure>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Picture of {name}\">\n{}</div>\n\
         <figcaption>\n",
        prose(&reference.title),
        picture.svg
    );
    for line in reference.caption.trim().lines() {
        let _ = writeln!(html, "<p>{}</p>", prose(line));
    }
    let _ =
        writeln!(html, "<p>Contexts: {}.</p>\n</figcaption>\n</figure>", origin(findings.contexts(figure)));
    html.push_str(explorers);
    html.push_str(&table(findings, figure, reference));
    if !reference.differs.is_empty() {
        html.push_str("<h3>What differs, and why</h3>\n<ul>\n");
        for difference in &reference.differs {
            let _ = writeln!(html, "<li>{}</li>", prose(difference));
        }
        html.push_str("</ul>\n");
    }
    html + "</section>\n"
}

fn footer() -> String {
    "<footer>\n<p>A start is one run from its own random starting weights. “Here” is mean ± standard deviation over \
     starts, or the median where a line says so. Failed starts are left out of means and count as infinite in \
     medians; a start fails when it diverges or, where V is known, ends further than 0.1 from it. \
     “Authors’ code” lists numbers from running the code that the authors released, or ports of it.</p>\n</footer>\n"
        .to_owned()
}

/// Where contexts come from, with the names of files but not where they lie on someone's machine.
fn origin(contexts: &str) -> String {
    let short = |word: &str| match word.strip_prefix('(').and_then(|word| word.rsplit_once('/')) {
        Some((_, file)) => format!("({file}"),
        None => word.to_owned(),
    };
    escape(&contexts.split(' ').map(short).collect::<Vec<_>>().join(" "))
}

/// Text as HTML: `W_0` with a low 0, `code` in backticks, and a panel's letter in bold.
pub fn prose(text: &str) -> String {
    let mut html = String::new();
    for (i, part) in escape(text).split('`').enumerate() {
        if i % 2 == 1 {
            let _ = write!(html, "<code>{part}</code>");
        } else {
            html.push_str(&lowered(part));
        }
    }
    match html.split_once(") ") {
        Some((letters, rest)) if is_panel(letters) => format!("<b>{letters}</b> {rest}"),
        _ => html,
    }
}

/// Whether these are letters of panels, as at the beginning of a caption's line.
fn is_panel(letters: &str) -> bool {
    letters.split(", ").all(|letter| letter.len() == 1 && letter.chars().all(|c| c.is_ascii_uppercase()))
}

/// Puts what follows an underscore low.
fn lowered(text: &str) -> String {
    let mut parts = text.split('_');
    let mut html = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '∗').unwrap_or(part.len());
        let (low, rest) = part.split_at(end);
        let _ = write!(html, "<sub>{low}</sub>{rest}");
    }
    html
}
