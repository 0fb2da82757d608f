//! Reads times, groups of channels and sources of synapses, on the command line and in config files alike.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use leukos::settings::{BAD_SAMPLES, FOLLOW, Setting};
use leukos::{BadSamples, Follow, Span};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A stretch of time: a number of samples, or a number with a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time(pub Span);

/// The units of time, in seconds.
const UNITS: [(&str, f64); 5] = [("ms", 1e-3), ("us", 1e-6), ("min", 60.0), ("s", 1.0), ("h", 3600.0)];

impl FromStr for Time {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let unit = UNITS.iter().find_map(|&(unit, seconds)| Some((given.strip_suffix(unit)?, seconds)));
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
        let span = match unit {
            Some((amount, seconds)) => number(amount).map(|amount| Span::Seconds(amount * seconds)),
            None => number(given).map(Span::Samples),
        };
        span.map(Self).ok_or_else(|| {
            "expected a number of samples above 0, such as 1000, or a time such as 2s, 500ms or 5min".into()
        })
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Span::Samples(samples) => write!(f, "{samples}"),
            Span::Seconds(seconds) => write!(f, "{seconds}s"),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Span::Samples(samples) => serializer.serialize_f64(samples),
            Span::Seconds(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number_or_text(deserializer)
    }
}

/// Reads a number as the text that it would be on the command line.
fn number_or_text<'de, D: Deserializer<'de>, V: FromStr<Err = String>>(
    deserializer: D,
) -> Result<V, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number of samples, or a time such as \"2s\"")]
    enum Given {
        Number(f64),
        Text(String),
    }
    match Given::deserialize(deserializer)? {
        Given::Number(samples) => samples.to_string().parse().map_err(D::Error::custom),
        Given::Text(text) => text.parse().map_err(D::Error::custom),
    }
}

/// How long a whitener remembers at least.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Memory {
    /// As the number of channels says, and then as the samples themselves show.
    #[default]
    Auto,
    /// So long.
    Of(Time),
}

impl Memory {
    /// The length, where it was given.
    pub fn span(self) -> Option<Span> {
        match self {
            Self::Auto => None,
            Self::Of(time) => Some(time.0),
        }
    }
}

impl FromStr for Memory {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        match given {
            "auto" => Ok(Self::Auto),
            time => time.parse().map(Self::Of).map_err(|expected: String| format!("{expected}; or auto")),
        }
    }
}

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Of(time) => time.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number_or_text(deserializer)
    }
}

/// Where the synapses of a fitted whitener come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The eigenvectors of the mean covariance of the contexts.
    #[default]
    Eigenbasis,
    /// Random orthonormal columns.
    Random,
    /// A `.npy` array, or another model.
    File(PathBuf),
}

impl From<String> for Start {
    fn from(word: String) -> Self {
        match word.as_str() {
            "eigenbasis" => Self::Eigenbasis,
            "random" => Self::Random,
            _ => Self::File(word.into()),
        }
    }
}

impl FromStr for Start {
    type Err = std::convert::Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(word.to_owned().into())
    }
}

impl Serialize for Start {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Eigenbasis => serializer.serialize_str("eigenbasis"),
            Self::Random => serializer.serialize_str("random"),
            Self::File(path) => serializer.serialize_str(&path.to_string_lossy()),
        }
    }
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Into::into)
    }
}

/// Groups of channels, by number from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Groups(pub Vec<Vec<usize>>);

/// No recording has more channels; it keeps `0-99999999999` from filling the memory.
const MOST_CHANNELS: usize = 1 << 16;

impl FromStr for Groups {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let groups = given.split(',').map(|group| {
            let pieces: Option<Vec<_>> = group.split('+').map(piece).collect();
            pieces.map(|pieces| pieces.into_iter().flatten().collect())
        });
        groups.collect::<Option<_>>().map(Self).ok_or_else(|| {
            "expected channel numbers counted from 0, with commas between groups and plus signs inside a group, \
             such as 0-3,4-7 or 0-2+6,3-5"
                .into()
        })
    }
}

/// A channel, or a range of channels.
fn piece(text: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let channel = |text: &str| text.trim().parse().ok().filter(|&channel: &usize| channel < MOST_CHANNELS);
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (channel(from)?, channel(to)?);
    (from <= to).then_some(from..=to)
}

/// What to do with bad samples.
pub fn bad_samples(word: &str) -> Result<BadSamples, String> {
    meaning(&BAD_SAMPLES, word)
}

/// What to follow.
pub fn follow(word: &str) -> Result<Follow, String> {
    meaning(&FOLLOW, word)
}

fn meaning<M: DeserializeOwned>(setting: &Setting, word: &str) -> Result<M, String> {
    setting.meaning(word).ok_or_else(|| format!("expected {}", setting.expected()))
}
