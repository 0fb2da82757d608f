//! Opens a recording in any format, and says of every error which recording it is about.

use anyhow::{Context, Result, bail, ensure};

use super::fixed_rows::{ByteOrder, Encoding, FixedRows};
use super::source::{Bytes, Source};
use super::text::TextReader;
use super::{Format, Layout, Place, Reader, Rows, SampleType, edf, npy, require_channels};
use crate::usage::Usage;

/// What the user says of a recording, each where its format does not say it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// The format, where the name of the file does not say it.
    pub format: Option<Format>,
    /// The number of channels of a raw recording.
    pub channels: Option<usize>,
    /// The type of the numbers of a raw recording.
    pub sample_type: Option<SampleType>,
    /// Samples a second, of a recording that does not say so.
    pub sample_rate: Option<f64>,
    /// The name of the label column of a text, or its number from 0.
    pub label: Option<String>,
}

impl ReadOptions {
    /// The format that is said, or else the one that the name of the file stands for.
    ///
    /// # Errors
    /// When neither says it.
    pub fn format_of(&self, source: &Source) -> Result<Format> {
        Ok(match (self.format, source) {
            (Some(format), _) => format,
            (None, Source::File(path)) => Format::of_name(path)?,
            (None, Source::Stdin) => {
                bail!(Usage(
                    "--format: expected the format of standard input, which has no file name to tell it"
                        .into()
                ))
            }
        })
    }

    /// Refuses options that the format makes superfluous or cannot use, and values that make no sense.
    fn require_sense(&self, format: Format) -> Result<()> {
        let raw = format == Format::Raw;
        let text = matches!(format, Format::Csv | Format::Tsv);
        let edf = matches!(format, Format::Edf | Format::Bdf);
        let given = [
            ("--channels", self.channels.is_some() && !raw),
            ("--dtype", self.sample_type.is_some() && !raw),
            ("--sample-rate", self.sample_rate.is_some() && edf),
            ("--label", self.label.is_some() && !text),
        ];
        for (flag, senseless) in given {
            ensure!(!senseless, Usage(format!("{flag}: does not apply to {format} recordings")));
        }
        ensure!(
            !raw || self.channels.is_some(),
            Usage("--channels: expected the number of channels of a raw recording, got none".into())
        );
        ensure!(
            !raw || self.sample_type.is_some(),
            Usage("--dtype: expected the type of the numbers of a raw recording, got none".into())
        );
        if let Some(rate) = self.sample_rate {
            let complaint = || Usage(format!("--sample-rate: expected a positive number, got {rate}"));
            ensure!(rate > 0.0 && rate.is_finite(), complaint());
        }
        Ok(())
    }
}

/// Opens a recording.
///
/// # Errors
/// When it cannot be read or is not what it should be; [`Usage`] when the options are at fault.
pub fn open(source: &Source, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    let format = options.format_of(source)?;
    let open = || -> Result<Box<dyn Reader>> {
        // Before opening a file, or waiting for a pipe.
        options.require_sense(format)?;
        open_bytes(source.bytes()?, format, options)
    };
    let reader = open().with_context(|| source.to_string())?;
    Ok(Box::new(Named { name: source.to_string(), reader }))
}

/// Opens bytes as a recording of this format; its errors do not name a recording.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(bytes: Bytes, format: Format, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    options.require_sense(format)?;
    match format {
        Format::Raw => open_raw(bytes, options),
        Format::Npy => npy::open(bytes, options.sample_rate),
        Format::Csv => Ok(Box::new(TextReader::open(bytes, ',', options)?)),
        Format::Tsv => Ok(Box::new(TextReader::open(bytes, '\t', options)?)),
        Format::Edf => edf::open(bytes, edf::Kind::Edf),
        Format::Bdf => edf::open(bytes, edf::Kind::Bdf),
    }
}

fn open_raw(bytes: Bytes, options: &ReadOptions) -> Result<Box<dyn Reader>> {
    let (Some(channels), Some(sample_type)) = (options.channels, options.sample_type) else {
        bail!(Usage("--channels, --dtype: expected both for a raw recording".into()));
    };
    let channels =
        require_channels(channels as u64).map_err(|error| Usage(format!("--channels: {error}")))?;
    ensure!(bytes.length() != Some(0), "empty: expected at least one row");
    let layout = Layout { channels, names: None, sample_type, sample_rate: options.sample_rate, rows: None };
    let encoding = Encoding { sample_type, order: ByteOrder::LowFirst };
    Ok(Box::new(FixedRows::new(bytes, encoding, layout)?))
}

/// A reader whose errors say what is read.
struct Named {
    name: String,
    reader: Box<dyn Reader>,
}

impl Reader for Named {
    fn layout(&self) -> &Layout {
        self.reader.layout()
    }

    fn read(&mut self, most: usize, rows: &mut Rows) -> Result<()> {
        self.reader.read(most, rows).with_context(|| self.name.clone())
    }

    fn place(&self) -> Place {
        self.reader.place()
    }

    fn go_to(&mut self, place: Place) -> Result<()> {
        self.reader.go_to(place).with_context(|| self.name.clone())
    }
}
