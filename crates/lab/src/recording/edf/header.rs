//! Reads and checks the header of EDF and BDF files.

use std::fmt;

use anyhow::{Context, Result, bail, ensure};

use crate::recording::source::Bytes;
use crate::recording::{require_channels, shortened};

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::recording) enum Kind {
    Edf,
    Bdf,
}

impl Kind {
    fn version(self) -> &'static [u8; 8] {
        match self {
            Self::Edf => b"0       ",
            Self::Bdf => b"\xFFBIOSEMI",
        }
    }

    pub fn sample_bytes(self) -> usize {
        match self {
            Self::Edf => 2,
            Self::Bdf => 3,
        }
    }

    fn limits(self) -> [f64; 2] {
        match self {
            Self::Edf => [-32_768.0, 32_767.0],
            Self::Bdf => [-8_388_608.0, 8_388_607.0],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Edf { "EDF" } else { "BDF" })
    }
}

/// The whole number in the two or three bytes of a sample, low byte first.
pub(super) fn digital(sample: &[u8]) -> f64 {
    let mut bytes = [0; 4];
    let shift = 4 - sample.len();
    bytes[shift..].copy_from_slice(sample);
    // The highest byte carries the sign, so it is put on top and brought down again.
    f64::from(i32::from_le_bytes(bytes) >> (8 * shift))
}

/// A channel of a recording.
#[derive(Debug)]
pub(super) struct Signal {
    pub label: String,
    /// Where in a record its samples begin.
    pub offset: usize,
    samples: usize,
    /// The smallest and the largest whole number, and what they stand for.
    digital: [f64; 2],
    physical: [f64; 2],
}

impl Signal {
    pub fn physical(&self, digital: f64) -> f64 {
        let unit = (self.physical[1] - self.physical[0]) / (self.digital[1] - self.digital[0]);
        self.physical[0] + (digital - self.digital[0]) * unit
    }

    fn require_sense(&self, kind: Kind) -> Result<()> {
        let ([low, high], [least, most]) = (self.digital, kind.limits());
        ensure!(
            least <= low && low < high && high <= most,
            "expected a digital minimum below its maximum, from {least} to {most}, got {low} and {high}"
        );
        let [low, high] = self.physical;
        ensure!(low != high, "expected a physical minimum other than its maximum, got {low} for both");
        Ok(())
    }
}

/// What a file says of itself.
#[derive(Debug)]
pub(super) struct Header {
    /// How many records there are, unless that is not known.
    pub records: Option<u64>,
    /// How many seconds a record lasts.
    pub duration: f64,
    pub record_bytes: usize,
    /// How many samples of each channel a record holds.
    pub samples: usize,
    /// The channels, annotations not among them.
    pub signals: Vec<Signal>,
}

/// The largest record, 64 MiB; the format itself asks for at most 61440 bytes.
const LARGEST_RECORD: usize = 1 << 26;
const FIXED: usize = 256;

impl Header {
    pub fn read(bytes: &mut Bytes, kind: Kind) -> Result<Self> {
        let fixed = Text(read(bytes, FIXED, kind)?);
        require_version(&fixed.0, kind)?;
        let count = fixed.whole(252, 4, "number of signals")?;
        let count = require_channels(u64::try_from(count).unwrap_or(0)).context("number of signals")?;
        let length = fixed.whole(184, 8, "number of bytes in the header")?;
        let expected = FIXED * (count + 1);
        ensure!(
            usize::try_from(length) == Ok(expected),
            "number of bytes in the header: expected {expected} for {count} signals, got {length}"
        );
        let kept = fixed.word(192, 44);
        ensure!(
            !kept.starts_with(&format!("{kind}+D")),
            "expected a continuous recording, got a discontinuous one ({kind}+D)"
        );
        let records = match fixed.whole(236, 8, "number of records")? {
            -1 => None,
            records => Some(u64::try_from(records).ok().with_context(|| {
                format!("number of records: expected 0 or more, or -1 if not known, got {records}")
            })?),
        };
        let duration = fixed.number(244, 8, "duration of a record")?;
        let fields = Text(read(bytes, FIXED * count, kind)?);
        let signals = signals(&fields, count, kind)?;
        Self { records, duration, record_bytes: 0, samples: 0, signals }.checked(kind)
    }

    /// Lays the signals out in a record, leaves the annotations out and checks that one sampling rate is left.
    fn checked(mut self, kind: Kind) -> Result<Self> {
        for signal in &mut self.signals {
            signal.offset = self.record_bytes;
            self.record_bytes =
                self.record_bytes.saturating_add(signal.samples.saturating_mul(kind.sample_bytes()));
        }
        let annotations = format!("{kind} Annotations");
        self.signals.retain(|signal| signal.label != annotations);
        let first = self.signals.first().context("expected a channel, got annotations alone")?;
        self.samples = first.samples;
        let duration = self.duration;
        ensure!(
            duration > 0.0,
            "duration of a record: expected a positive number of seconds, got {duration}"
        );
        self.require_one_rate()?;
        for signal in &self.signals {
            signal.require_sense(kind).with_context(|| format!("channel {}", signal.label))?;
        }
        let size = self.record_bytes;
        ensure!(size <= LARGEST_RECORD, "expected records of up to {LARGEST_RECORD} bytes, got {size}");
        Ok(self)
    }

    fn require_one_rate(&self) -> Result<()> {
        let mut rates: Vec<(usize, Vec<&str>)> = Vec::new();
        for signal in &self.signals {
            match rates.iter_mut().find(|(samples, _)| *samples == signal.samples) {
                Some((_, labels)) => labels.push(&signal.label),
                None => rates.push((signal.samples, vec![&signal.label])),
            }
        }
        let in_words = |(samples, labels): &(usize, Vec<&str>)| {
            format!("{} Hz in {}", *samples as f64 / self.duration, shortened(&labels.join(", ")))
        };
        let all = rates.iter().map(in_words).collect::<Vec<_>>().join(" and ");
        ensure!(rates.len() == 1, "expected one sampling rate in all channels, got {all}");
        Ok(())
    }
}

fn read(bytes: &mut Bytes, count: usize, kind: Kind) -> Result<Vec<u8>> {
    let mut buffer = vec![0; count];
    let got = bytes.fill(&mut buffer)?;
    ensure!(bytes.at() > 0, "empty: expected a header of the format {kind}");
    ensure!(got == count, "cut short in its header, at byte {}", bytes.at());
    Ok(buffer)
}

fn require_version(start: &[u8], kind: Kind) -> Result<()> {
    let other = if kind == Kind::Edf { Kind::Bdf } else { Kind::Edf };
    if start.starts_with(other.version()) {
        bail!("expected the format {kind}, got {other}");
    }
    ensure!(
        start.starts_with(kind.version()),
        "expected the format {kind}, but its first bytes are not of that format"
    );
    Ok(())
}

/// The signals, whose fields lie field by field: the labels of all, then the transducers of all, and so on.
fn signals(fields: &Text, count: usize, kind: Kind) -> Result<Vec<Signal>> {
    let signal = |i: usize| -> Result<Signal> {
        let number = |before: usize, name: &str| fields.number(before * count + 8 * i, 8, name);
        let samples = fields.whole(216 * count + 8 * i, 8, "samples in a record")?;
        let samples = usize::try_from(samples).ok().filter(|&samples| samples > 0);
        Ok(Signal {
            label: fields.word(16 * i, 16),
            offset: 0,
            samples: samples.context("samples in a record: expected at least one")?,
            physical: [number(104, "physical minimum")?, number(112, "physical maximum")?],
            digital: [number(120, "digital minimum")?, number(128, "digital maximum")?],
        })
    };
    let named = |i: usize| {
        signal(i).with_context(|| format!("{kind} header, signal {i} ({})", fields.word(16 * i, 16)))
    };
    (0..count).map(named).collect()
}

/// Fields of letters, padded with spaces.
struct Text(Vec<u8>);

impl Text {
    /// The letters of a field, taken for Latin-1, which is what files with other letters than ASCII mostly have.
    fn word(&self, at: usize, length: usize) -> String {
        let letters: String = self.0[at..at + length].iter().map(|&byte| char::from(byte)).collect();
        letters.trim_matches([' ', '\0']).to_owned()
    }

    fn whole(&self, at: usize, length: usize, name: &str) -> Result<i64> {
        let word = self.word(at, length);
        word.parse()
            .ok()
            .with_context(|| format!("{name}: expected a whole number, got {}", shortened(&word)))
    }

    fn number(&self, at: usize, length: usize, name: &str) -> Result<f64> {
        let word = self.word(at, length);
        let number = word.parse().ok().filter(|number: &f64| number.is_finite());
        number.with_context(|| format!("{name}: expected a number, got {}", shortened(&word)))
    }
}
