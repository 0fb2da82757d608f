//! Lists the settings of a whitener and of its fit: one table for the core, the command line and Python.
//!
//! A setting has the same name, the same values and the same explanation everywhere. How values are written (2s on the
//! command line, a list of lists in Python) is the business of each face, and so is how a default is shown.

use std::fmt;
use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::whitener::MOST_TOGETHER;

/// A setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name: of the field, of Python's parameter, in config files, and with dashes of the flag.
    pub name: &'static str,
    /// What it does, without a full stop.
    pub about: &'static str,
    /// The words that it takes, each with the rest of a sentence that begins with it.
    pub words: &'static [(&'static str, &'static str)],
    /// What it takes besides words.
    pub values: Values,
    /// What it is where it is not given.
    pub default: Value,
    /// The same in Python, where that differs.
    pub default_in_python: Option<Value>,
}

/// What a setting takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Nothing but its words.
    Words,
    /// A number in a range.
    Number(RangeInclusive<f64>),
    /// A number above 0.
    Positive,
    /// A time within [`TIMES`].
    Time,
    /// A number of samples.
    Samples(RangeInclusive<usize>),
    /// A number of interneurons.
    Interneurons,
    /// The seed of a random generator.
    Seed,
    /// Synapses, one column for each interneuron.
    Synapses,
    /// Lists of channels.
    Groups,
}

/// The value of a setting that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// None, which means this.
    None(&'static str),
    /// One of its words.
    Word(&'static str),
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(u32),
}

/// Times in samples: a double can count no further one by one.
pub const TIMES: RangeInclusive<f64> = 1.0..=1e15;

/// Makes the documentation of each setting its explanation everywhere, and lists them all.
macro_rules! settings {
    ($($(#[doc = $about:literal])+ $constant:ident { $($field:ident: $value:expr),+ $(,)? })+) => {
        $($(#[doc = $about])+
        pub const $constant: Setting = Setting { about: concat!($($about),+).trim_ascii(), $($field: $value),+ };)+

        /// All settings, in the order in which they are shown.
        pub const SETTINGS: &[Setting] = &[$($constant),+];
    };
}

settings! {
    /// K, the number of interneurons, of each group if there are groups. The map does not depend on it: fewer explain
    /// only the directions they reach, more give the synapses a frame to choose from
    N_INTERNEURONS {
        name: "n_interneurons",
        words: &[],
        values: Values::Interneurons,
        default: Value::None("as many as there are channels"),
        default_in_python: None,
    }

    /// The synapses to start from; with several contexts they are then learned
    SYNAPSES {
        name: "synapses",
        words: &[
            ("eigenbasis", "takes the eigenvectors of the contexts' mean covariance"),
            ("random", "takes random orthonormal columns"),
        ],
        values: Values::Synapses,
        default: Value::Word("eigenbasis"),
        default_in_python: None,
    }

    /// What is signal and what is context, as the length of the shortest memory. What changes faster is signal and is
    /// left alone; a new context is believed when it has been there for about as long
    TIME_CONSTANT {
        name: "time_constant",
        words: &[(
            "auto",
            "takes about two samples for each channel, and lets the samples themselves show how long to remember",
        )],
        values: Values::Time,
        default: Value::Word("auto"),
        default_in_python: None,
    }

    /// How long the synapses remember while the whitener adapts; use a hundred time constants or more, because synapses
    /// that follow one context forget the others
    SYNAPSE_TIME_CONSTANT {
        name: "synapse_time_constant",
        words: &[],
        values: Values::Time,
        default: Value::None("the synapses do not change"),
        default_in_python: None,
    }

    /// How strongly to whiten: 0 only centres and scales, 1 whitens fully. Values between keep some of the
    /// correlations, and amplify weak directions less
    STRENGTH {
        name: "strength",
        words: &[],
        values: Values::Number(0.0..=1.0),
        default: Value::Number(1.0),
        default_in_python: None,
    }

    /// The answer to a sample with a NaN, an infinity or a saturated value, which is never learned from
    BAD_SAMPLES {
        name: "bad_samples",
        words: &[
            ("mark", "gives a row of NaN"),
            ("hold", "gives the row before it once more"),
            ("zero", "gives a row of zeros"),
            ("error", "stops with an error"),
        ],
        values: Values::Words,
        default: Value::Word("mark"),
        // Who calls a function wants to hear of a NaN; who leaves a program running wants it to go on.
        default_in_python: Some(Value::Word("error")),
    }

    /// Groups of channels, numbered from 0, that are whitened separately; each channel is in one group
    GROUPS {
        name: "groups",
        words: &[],
        values: Values::Groups,
        default: Value::None("one group of all channels"),
        default_in_python: None,
    }

    /// The seed of random synapses, and of those beyond the number of channels
    RANDOM_STATE {
        name: "random_state",
        words: &[],
        values: Values::Seed,
        default: Value::Whole(0),
        // As in all of scikit-learn.
        default_in_python: Some(Value::None("a seed from numpy's own generator")),
    }

    /// What the whitener follows while it adapts
    FOLLOW {
        name: "follow",
        words: &[
            ("contexts", "follows the covariance in force, whatever it changes with"),
            ("nothing", "lets all stay as it was fitted"),
        ],
        values: Values::Words,
        default: Value::Word("contexts"),
        default_in_python: None,
    }

    /// Values of this size or larger, of either sign, count as saturated and therefore bad
    SATURATION {
        name: "saturation",
        words: &[],
        values: Values::Positive,
        default: Value::None("no limit"),
        default_in_python: None,
    }

    /// Directions with a smaller standard deviation than this, relative to the scale of the input, count as empty and
    /// are not amplified to one; a smaller floor amplifies weaker ones, and their noise
    FLOOR {
        name: "floor",
        words: &[],
        values: Values::Number(1e-6..=0.5),
        default: Value::Number(1e-3),
        default_in_python: None,
    }

    /// The number of samples between two updates. More is cheaper, and delays adaptation by as much; every sample is
    /// answered at once all the same
    UPDATE_EVERY {
        name: "update_every",
        words: &[],
        values: Values::Samples(1..=MOST_TOGETHER),
        default: Value::None("a third of the number of channels, 128 at most"),
        default_in_python: None,
    }

    /// Samples with a channel further from its mean than so many of its standard deviations are answered, but not
    /// learned from unless they go on
    EXCLUDE_ABOVE {
        name: "exclude_above",
        words: &[],
        values: Values::Number(2.0..=1e6),
        default: Value::None("no limit, but wild samples are left out"),
        default_in_python: None,
    }
}

impl Setting {
    /// The default in Python.
    pub fn python_default(&self) -> Value {
        self.default_in_python.unwrap_or(self.default)
    }

    /// What one of its words means; the words are those of the model file.
    #[cfg(feature = "model-file")]
    pub fn meaning<M: serde::de::DeserializeOwned>(&self, word: &str) -> Option<M> {
        use serde::de::IntoDeserializer;
        let (word, _) = self.words.iter().find(|(own, _)| *own == word)?;
        M::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(*word)).ok()
    }

    /// What is expected of its values, as errors say it.
    pub fn expected(&self) -> String {
        match &self.values {
            Values::Words => one_of(self.words),
            Values::Number(range) => format!("a number from {}", from_to(range)),
            Values::Positive => "a finite number above 0".into(),
            Values::Time => format!("a time of {} samples", from_to(&TIMES)),
            Values::Samples(range) => format!("{} to {} samples", range.start(), range.end()),
            Values::Interneurons | Values::Seed => "a whole number of 0 or more".into(),
            Values::Synapses => "an array of shape (channels, K)".into(),
            Values::Groups => "lists of channels".into(),
        }
    }

    /// Refuses a number that is not among its values.
    pub(crate) fn require(&self, found: f64) -> Result<()> {
        let holds = match &self.values {
            Values::Number(range) => range.contains(&found),
            Values::Positive => found > 0.0 && found.is_finite(),
            Values::Time => TIMES.contains(&found),
            Values::Samples(range) => (*range.start() as f64..=*range.end() as f64).contains(&found),
            Values::Interneurons | Values::Seed => found >= 0.0 && found.fract() == 0.0,
            Values::Words | Values::Synapses | Values::Groups => false,
        };
        if holds {
            return Ok(());
        }
        Err(Error::out_of_range(self.name, self.expected(), found))
    }
}

impl Value {
    /// The number that it is. For constants alone: the compiler fails where it is none.
    pub(crate) const fn number(self) -> f64 {
        match self {
            Self::Number(number) => number,
            _ => panic!("expected a default that is a number"),
        }
    }
}

/// As the command line shows it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None(text) | Self::Word(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Whole(number) => write!(f, "{number}"),
        }
    }
}

/// A range in words: 1e-6 to 0.5.
pub fn from_to(range: &RangeInclusive<f64>) -> String {
    format!("{} to {}", brief(*range.start()), brief(*range.end()))
}

/// A number, with an exponent where that is shorter.
pub fn brief(number: f64) -> String {
    let (plain, with_exponent) = (format!("{number}"), format!("{number:e}"));
    if with_exponent.len() < plain.len() { with_exponent } else { plain }
}

/// mark, hold, zero or error.
fn one_of(words: &[(&'static str, &'static str)]) -> String {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    match &words[..] {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        alone => alone.concat(),
    }
}
