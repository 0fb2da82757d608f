//! Looks numbers of a run up by name and puts them into sentences.
//!
//! A name is VARIANT.KEY with more keys after further points; `@n`, `@n-1`, `@4n`, `@24` picks an entry of a list by what
//! the figure varies (K, a leak, a length), and `~` at the end asks for the median. A plain number stands for itself.

use serde_json::Value;

use super::Findings;
use crate::experiment::{Figure, Statistic};

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Its value; `None` when too many starts failed for there to be one.
    pub value: Option<f64>,
    /// Its standard deviation over starts, where it is a mean.
    pub spread: Option<f64>,
    /// Its standard error, and over how many independent draws it is.
    pub error: Option<(f64, usize)>,
}

impl Measured {
    /// As a reader would write it.
    pub fn text(&self) -> String {
        match (self.value, self.spread) {
            (None, _) => "not measurable".to_owned(),
            (Some(value), None) => short(value, value),
            (Some(value), Some(spread)) => {
                let (value, spread) = (short(value, value), short(spread, value));
                // A spread that rounds to nothing is small, not absent.
                let tiny = spread.starts_with("0.") && !spread.contains(|digit| ('1'..='9').contains(&digit));
                let spread = if tiny { format!("<{}1", &spread[..spread.len() - 1]) } else { spread };
                format!("{value} ± {spread}")
            }
        }
    }
}

/// A number with the digits that suit numbers as large as `like`.
#[allow(clippy::cast_sign_loss)] // Clamped to 0 and above.
pub fn short(x: f64, like: f64) -> String {
    let size = like.abs().max(f64::MIN_POSITIVE).log10().floor();
    if x == like && x.fract() == 0.0 && x.abs() < 1e6 {
        return format!("{x:.0}");
    }
    if size < -3.0 {
        let mantissa = x / 10_f64.powf(size);
        return format!("{mantissa:.1} × 10{}", superscript(size as i32));
    }
    let decimals = (2.0 - size).clamp(0.0, 4.0) as usize;
    format!("{x:.decimals$}")
}

fn superscript(number: i32) -> String {
    let raise = |digit: char| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    };
    number.to_string().chars().map(raise).collect()
}

impl Findings {
    /// The number of this name; `None` where the run has none.
    pub fn measured(&self, figure: Figure, name: &str) -> Option<Measured> {
        if let Ok(constant) = name.parse() {
            return Some(Measured { value: Some(constant), spread: None, error: None });
        }
        let (name, median) = name.strip_suffix('~').map_or((name, false), |name| (name, true));
        let (name, entry) = name.split_once('@').map_or((name, None), |(name, entry)| (name, Some(entry)));
        let (variant, keys) = name.split_once('.')?;
        let numbers = self.numbers(figure, variant);
        if keys == "diverged.count" && numbers.get("diverged")?.is_null() {
            return Some(Measured { value: Some(0.0), spread: None, error: None });
        }
        let mut found = keys.split('.').try_fold(numbers, |value, key| value.get(key))?;
        if let Some(entry) = entry {
            found = found.get(position(numbers, entry)?)?;
        }
        measured(found, median)
    }

    /// How many starts failed or diverged of those that a number is over.
    pub fn failed(&self, figure: Figure, name: &str) -> Option<u64> {
        let (name, entry) = name.split_once('@').unwrap_or((name, ""));
        let (variant, key) = name.split_once('.')?;
        let numbers = self.numbers(figure, variant);
        if let Some(failures) = numbers.get("failures") {
            return failures.as_u64();
        }
        // Where a variant has several cases, each has its own: natural_train and natural_diverged.
        let case = key.split('_').next().unwrap_or(key);
        let diverged = numbers.get("diverged").or_else(|| numbers.get(format!("{case}_diverged")))?;
        let diverged = match diverged.as_array() {
            Some(cases) => cases.get(position(numbers, entry.trim_end_matches('~'))?)?,
            None => diverged,
        };
        Some(diverged["count"].as_u64().unwrap_or(0))
    }

    /// A text in which every `{name}` is replaced by its number.
    pub fn fill(&self, figure: Figure, template: &str) -> String {
        let mut parts = template.split('{');
        let mut text = parts.next().unwrap_or("").to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap_or((part, ""));
            let number =
                self.measured(figure, name).map_or("not measured".to_owned(), |number| number.text());
            text.push_str(&number);
            text.push_str(rest);
        }
        text
    }
}

fn measured(value: &Value, median: bool) -> Option<Measured> {
    if value.is_number() {
        return Some(Measured { value: value.as_f64(), spread: None, error: None });
    }
    let statistic: Statistic = serde_json::from_value(value.clone()).ok()?;
    Some(if median {
        let error = statistic.median_standard_error.map(|error| (error, statistic.draws));
        Measured { value: statistic.median, spread: None, error }
    } else {
        let error = statistic.standard_error.map(|error| (error, statistic.draws));
        Measured { value: statistic.mean, spread: statistic.std, error }
    })
}

/// Where in a variant's lists an entry stands.
fn position(numbers: &Value, entry: &str) -> Option<usize> {
    let n = numbers["n"].as_f64();
    let wanted = match entry {
        "n" => n?,
        "n-1" => n? - 1.0,
        other => match other.strip_suffix('n') {
            Some(times) => times.parse::<f64>().ok()? * n?,
            None => other.parse().ok()?,
        },
    };
    let place =
        |list: &str| numbers.get(list)?.as_array()?.iter().position(|value| value.as_f64() == Some(wanted));
    VARIED.iter().find_map(|list| place(list))
}

/// What figures vary: lists beside which others stand entry by entry.
const VARIED: [&str; 6] = ["k", "leak", "length", "bits", "noise", "iterations"];
