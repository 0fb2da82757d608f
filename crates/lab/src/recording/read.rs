//! Opens a recording in any format, and says of every error which recording it is about.

use anyhow::{Context, Result, bail, ensure};

use super::format::Definition;
use super::source::{Bytes, Source};
use super::{Format, Layout, Place, Reader, Rows, SampleType};
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
        let &Definition { needs_shape, tells_sample_rate, is_text, .. } = format.definition();
        let given = [
            ("--channels", self.channels.is_some() && !needs_shape),
            ("--dtype", self.sample_type.is_some() && !needs_shape),
            ("--sample-rate", self.sample_rate.is_some() && tells_sample_rate),
            ("--label", self.label.is_some() && !is_text),
        ];
        for (flag, senseless) in given {
            ensure!(!senseless, Usage(format!("{flag}: does not apply to {format} recordings")));
        }
        ensure!(
            !needs_shape || self.channels.is_some(),
            Usage(format!("--channels: expected the number of channels of a {format} recording, got none"))
        );
        ensure!(
            !needs_shape || self.sample_type.is_some(),
            Usage(format!("--dtype: expected the type of the numbers of a {format} recording, got none"))
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
    (format.definition().open)(bytes, options)
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
