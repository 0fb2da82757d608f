//! Says what reproduces, what does not as printed and what is better here; each sentence depends on numbers of the run.

use std::fmt::Write;

use anyhow::Result;

use super::page::prose;
use super::table::{AGREEMENT, Verdict, verdict};
use crate::experiment::{Figure, Source};
use crate::findings::Findings;
use crate::references::{Claim, Kind, References};

/// The sentences about a run, each with the figure it is about.
#[derive(Default)]
struct Summary {
    reproduces: Vec<(Figure, String)>,
    does_not: Vec<(Figure, String)>,
    better: Vec<(Figure, String)>,
    /// Claims that another seed could decide the other way.
    open: Vec<(Figure, String)>,
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
        let (list, template) = match (claim.kind, holds(findings, figure, claim)) {
            (_, Truth::Unknown) => (&mut self.unknown, &claim.holds),
            (_, Truth::Open { holds }) => (&mut self.open, if holds { &claim.holds } else { &claim.fails }),
            (Kind::Paper, Truth::Holds) => (&mut self.reproduces, &claim.holds),
            (Kind::Printed, Truth::Holds) => (&mut self.does_not, &claim.holds),
            (Kind::Ours, Truth::Holds) => (&mut self.better, &claim.holds),
            (Kind::Printed, Truth::Fails) => (&mut self.reproduces, &claim.fails),
            (Kind::Paper | Kind::Ours, Truth::Fails) => (&mut self.does_not, &claim.fails),
        };
        let variant = claim.larger.split('.').next().unwrap_or("");
        let mut sentence = findings.fill(figure, template);
        match findings.source(figure, variant) {
            Some(Source::Generated) => sentence.insert_str(0, "With generated contexts, not images: "),
            Some(Source::Stack) => sentence.insert_str(0, "With contexts other than the paper's: "),
            Some(Source::Synthetic | Source::Paper) | None => {}
        }
        list.push((figure, sentence));
    }
}

/// What the numbers say about a claim.
enum Truth {
    Holds,
    Fails,
    /// The two sides are so close that another seed could decide the other way.
    Open {
        holds: bool,
    },
    /// The run does not have the numbers.
    Unknown,
}

fn holds(findings: &Findings, figure: Figure, claim: &Claim) -> Truth {
    let number = |name| {
        let number = findings.measured(figure, name)?;
        Some((number.value?, number.error.map_or(0.0, |(error, _)| error)))
    };
    let (Some((smaller, error)), Some((larger, other))) = (number(&claim.smaller), number(&claim.larger))
    else {
        return Truth::Unknown;
    };
    let (margin, error) = (claim.factor * larger - smaller, error.hypot(claim.factor * other));
    match margin > 0.0 {
        holds if margin.abs() <= AGREEMENT * error => Truth::Open { holds },
        true => Truth::Holds,
        false => Truth::Fails,
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
        ("What this run leaves open, because another seed could change the answer", &summary.open),
    ];
    let lists = lists.into_iter().filter(|(title, list)| !(list.is_empty() && title.contains("open")));
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
            "<p>{} more claims could not be tested, because this run does not have all their numbers: {}.</p>",
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
                Some(Verdict::Agrees(_)) => counts[0] += 1,
                Some(Verdict::Differs(_)) => counts[1] += 1,
                Some(Verdict::OtherContexts | Verdict::OneDraw) | None => {}
            }
        }
    }
    let [agree, differ] = counts;
    Ok(match agree + differ {
        0 => "No number of this run can be compared with one of the authors' code.".to_owned(),
        all => format!(
            "{agree} of the {all} numbers that can be compared with those of the authors' code agree with them: they differ by \
             no more than two joint standard errors, as 19 of 20 would by chance if nothing differed. Numbers are compared only where \
             the contexts are those of the paper: its synthetic families, or the covariances its authors released."
        ),
    })
}

/// Says which figures have contexts from the generator.
fn generated(findings: &Findings) -> Option<String> {
    let is_generated =
        |figure: Figure, variant: &&str| findings.source(figure, variant) == Some(Source::Generated);
    let generated =
        |figure: &Figure| findings.variants(*figure).iter().any(|variant| is_generated(*figure, variant));
    let names: Vec<&str> = findings.figures().into_iter().filter(generated).map(Figure::name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Some or all natural contexts of {} come from a generator of 1/f fields, not from images. They are easier to \
             whiten than photographs, and their numbers are not compared with the authors'.",
            names.join(", ")
        )
    })
}
