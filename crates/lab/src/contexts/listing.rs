//! Lists, in words and in a table, which images gave a context and why others did not.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Made, Reason};

/// How many names a line of words has at most.
const NAMES: usize = 5;

impl Reason {
    /// The reason in a few words, for a table.
    fn words(&self) -> String {
        match self {
            Self::Condition(condition) if condition.is_infinite() => "singular".into(),
            Self::Condition(_) => "condition too high".into(),
            Self::TooSmall { width, height } => format!("too small for the patch: {width} x {height} pixels"),
            Self::Constant => "constant".into(),
            Self::Unusable(why) => format!("unusable: {why}"),
        }
    }
}

/// A table with a line for each image: its name, which context of the stack it is, why it is none, its condition
/// number and its largest eigenvalue before it was scaled.
pub fn listing(all: &[Made]) -> String {
    let (mut table, mut context) = (String::from("file,context,left out,condition,largest eigenvalue\n"), 0);
    for Made { name, outcome } in all {
        let name = quoted(name);
        // Writing to a string cannot fail.
        let _ = match outcome {
            Ok(made) => {
                let (condition, most) = (made.spectrum.condition(), made.spectrum.most);
                context += 1;
                writeln!(table, "{name},{},,{condition},{most}", context - 1)
            }
            Err(Reason::Condition(condition)) if condition.is_finite() => {
                writeln!(table, "{name},,{},{condition},", Reason::Condition(*condition).words())
            }
            Err(reason) => writeln!(table, "{name},,{},,", quoted(&reason.words())),
        };
    }
    table
}

/// A cell of a table; quoted where a comma, a quotation mark or a new line would end it.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into()
    }
}

/// A line for each reason why images were left out, with the images it holds for.
pub fn left_out(all: &[Made], limit: f64) -> Vec<String> {
    let reasons = || all.iter().filter_map(|made| Some((made.name.as_str(), made.outcome.as_ref().err()?)));
    let names = |fits: fn(&Reason) -> bool| reasons().filter(move |(_, why)| fits(why)).map(|(name, _)| name);
    let mut lines = Vec::new();
    let mut conditions: Vec<f64> = reasons().filter_map(|(_, why)| finite_condition(why)).collect();
    conditions.sort_unstable_by(f64::total_cmp);
    if let [least, ..] = conditions[..] {
        let (count, median) = (conditions.len(), conditions[conditions.len() / 2]);
        lines.push(format!(
            "{count} with a condition number of {limit} or more (lowest {least:.1}, median {median:.0})"
        ));
    }
    lines.extend(line(
        "singular: samples do not vary in every direction",
        names(|why| *why == Reason::Condition(f64::INFINITY)),
    ));
    lines.extend(line("too small for the patch", names(|why| matches!(why, Reason::TooSmall { .. }))));
    lines.extend(line("constant", names(|why| *why == Reason::Constant)));
    let mut complaints: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in reasons() {
        if let Reason::Unusable(why) = why {
            complaints.entry(why).or_default().push(name);
        }
    }
    lines.extend(complaints.iter().map(|(why, names)| format!("{}: {why}", some_names(names))));
    lines
}

fn finite_condition(reason: &Reason) -> Option<f64> {
    match reason {
        Reason::Condition(condition) if condition.is_finite() => Some(*condition),
        _ => None,
    }
}

fn line<'a>(reason: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| format!("{} {reason} ({})", names.len(), some_names(&names)))
}

/// The first few names, and how many there are beyond them.
pub fn some_names<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES).map(AsRef::as_ref).collect();
    let beyond = names.len() - shown.len();
    let more = if beyond > 0 { format!(" and {beyond} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
