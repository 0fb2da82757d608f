//! Says what reproduces, what does not as printed and what is better here: sentences that hang on numbers of the run.

use std::fmt::Write;

use anyhow::Result;

use super::page::prose;
use super::table::{Verdict, verdict};
use crate::experiment::Figure;
use crate::findings::Findings;
use crate::references::{Claim, Kind, References};

/// The sentences about a run, each with the figure it is about.
#[derive(Default)]
struct Summary {
    reproduces: Vec<(Figure, String)>,
    does_not: Vec<(Figure, String)>,
    better: Vec<(Figure, String)>,
    unknown: Vec<(Figure, String)>,
}

impl Summary {
    fn of(findings: &Findings, references: &References) -> Result<Self> {
        let mut summary = Self::default();
        for figure in findings.figures() {
            for claim in &references.of(figure)?.claims {
                summary.add(findings, figure, claim);
            }
        }
        Ok(summary)
    }

    /// Puts a claim where the numbers say it belongs.
    fn add(&mut self, findings: &Findings, figure: Figure, claim: &Claim) {
        let number = |name| findings.measured(figure, name).and_then(|number| number.value);
        let (list, template) = match (number(&claim.smaller), number(&claim.larger)) {
            (Some(smaller), Some(larger)) => match (claim.kind, smaller < claim.factor * larger) {
                (Kind::Paper, true) => (&mut self.reproduces, &claim.holds),
                (Kind::Printed, true) => (&mut self.does_not, &claim.holds),
                (Kind::Ours, true) => (&mut self.better, &claim.holds),
                (Kind::Printed, false) => (&mut self.reproduces, &claim.fails),
                (Kind::Paper | Kind::Ours, false) => (&mut self.does_not, &claim.fails),
            },
            _ => (&mut self.unknown, &claim.holds),
        };
        let variant = claim.larger.split('.').next().unwrap_or("");
        let mut sentence = findings.fill(figure, template);
        if findings.is_generated(figure, variant) {
            sentence.insert_str(0, "With generated contexts, not images: ");
        }
        list.push((figure, sentence));
    }
}

/// The summary as HTML.
pub fn summary(findings: &Findings, references: &References) -> Result<String> {
    let summary = Summary::of(findings, references)?;
    let mut html = format!("<p>{}</p>\n", agreement(findings, references)?);
    if let Some(note) = generated(findings) {
        let _ = writeln!(html, "<p class=\"note\">{note}</p>");
    }
    let lists = [
        ("What reproduces", &summary.reproduces),
        ("What does not, or not as printed", &summary.does_not),
        ("What is better or new here", &summary.better),
    ];
    for (title, sentences) in lists {
        let _ = writeln!(html, "<h3>{title}</h3>\n<ul>");
        for (figure, sentence) in sentences {
            let (text, name) = (prose(sentence), figure.name());
            let _ = writeln!(html, "<li>{text} <a href=\"#{name}\">{name}</a></li>");
        }
        if sentences.is_empty() {
            html.push_str("<li>Nothing in this run.</li>\n");
        }
        html.push_str("</ul>\n");
    }
    if !summary.unknown.is_empty() {
        let names: Vec<&str> = summary.unknown.iter().map(|(figure, _)| figure.name()).collect();
        let _ = writeln!(
            html,
            "<p>{} more sentences could not be decided, because this run has not all the numbers: {}.</p>",
            names.len(),
            names.join(", ")
        );
    }
    Ok(html)
}

/// How many numbers agree with those of the authors' code.
fn agreement(findings: &Findings, references: &References) -> Result<String> {
    let mut counts = [0, 0];
    for figure in findings.figures() {
        for row in &references.of(figure)?.rows {
            match verdict(findings, figure, row) {
                Some(Verdict::Agrees) => counts[0] += 1,
                Some(Verdict::Lower | Verdict::Higher) => counts[1] += 1,
                Some(Verdict::OtherContexts) | None => {}
            }
        }
    }
    let [agree, differ] = counts;
    Ok(match agree + differ {
        0 => "No number of this run can be compared with one of the authors' code.".to_owned(),
        all => format!(
            "{agree} of the {all} numbers that can be compared with the authors' code agree with it: they differ by \
             no more than the joint standard deviation over starts, or by a tenth where no spread is known."
        ),
    })
}

/// Says which figures have contexts from the generator.
fn generated(findings: &Findings) -> Option<String> {
    let generated = |figure: &Figure| findings.contexts(*figure).contains("generator");
    let names: Vec<&str> = findings.figures().into_iter().filter(generated).map(Figure::name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Some or all natural contexts of {} come from a generator of 1/f fields, not from images; it is easier \
             than photographs, and its numbers are not compared with the authors'.",
            names.join(", ")
        )
    })
}
