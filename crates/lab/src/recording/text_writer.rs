//! Writes recordings as text, a row on each line, with as many digits as it takes to read the same number again.

use std::fmt::{Debug, Display, Write as _};

use anyhow::{Result, ensure};

use super::write::{Output, OutputShape};
use super::{Misfits, Rows, SampleType, Writer, rounding::Fitting};

pub(super) struct TextWriter {
    output: Output,
    fitting: Fitting,
    delimiter: char,
    channels: usize,
    sample_type: SampleType,
    labelled: bool,
    text: String,
}

impl TextWriter {
    /// Begins with a header if the channels have names.
    pub fn begin(output: Output, delimiter: char, shape: &OutputShape) -> Result<Self> {
        let mut writer = Self::new(output, delimiter, shape);
        if let Some(names) = &shape.names {
            for name in names.iter().chain(&shape.label) {
                writer.push_word(name)?;
            }
            writer.end_line();
            writer.output.write(writer.text.as_bytes())?;
        }
        Ok(writer)
    }

    /// Goes on behind other rows.
    pub fn new(output: Output, delimiter: char, shape: &OutputShape) -> Self {
        Self {
            output,
            fitting: shape.fitting(),
            delimiter,
            channels: shape.channels,
            sample_type: shape.sample_type,
            labelled: shape.label.is_some(),
            text: String::new(),
        }
    }

    fn push_number(&mut self, value: f64) {
        let (fitting, text) = (&mut self.fitting, &mut self.text);
        match self.sample_type {
            SampleType::Int16 => push(text, fitting.int16(value)),
            SampleType::Int32 => push(text, fitting.int32(value)),
            SampleType::Float32 => push_float(text, fitting.float32(value)),
            SampleType::Float64 => push_float(text, value),
        }
        text.push(self.delimiter);
    }

    /// A name or a label, in quotation marks where it could be taken for something else.
    fn push_word(&mut self, word: &str) -> Result<()> {
        ensure!(
            !word.contains(['\n', '\r']),
            "expected names and labels without an end of line, got {word:?}"
        );
        if word.contains(['"', self.delimiter]) || word.trim() != word || word.is_empty() {
            let doubled = word.replace('"', "\"\"");
            push(&mut self.text, format_args!("\"{doubled}\""));
        } else {
            self.text.push_str(word);
        }
        self.text.push(self.delimiter);
        Ok(())
    }

    /// Ends a line instead of its last cell.
    fn end_line(&mut self) {
        self.text.pop();
        self.text.push('\n');
    }
}

fn push(text: &mut String, what: impl Display) {
    // A string takes whatever is written to it.
    let _ = write!(text, "{what}");
}

/// The shortest digits that stand for this number and no other of its type.
fn push_float<T: Debug + Into<f64> + Copy>(text: &mut String, value: T) {
    if value.into().is_nan() {
        text.push_str("nan");
    } else {
        push(text, format_args!("{value:?}"));
    }
}

impl Writer for TextWriter {
    fn write(&mut self, rows: &Rows) -> Result<()> {
        let count = rows.values.len() / self.channels;
        let labels = if self.labelled { rows.labels.len() } else { count };
        ensure!(labels == count, "expected a label for each of {count} rows, got {labels}");
        self.text.clear();
        for (i, row) in rows.values.chunks_exact(self.channels).enumerate() {
            row.iter().for_each(|&value| self.push_number(value));
            if self.labelled {
                self.push_word(&rows.labels[i])?;
            }
            self.end_line();
        }
        self.output.write(self.text.as_bytes())
    }

    fn flush(&mut self) -> Result<u64> {
        self.output.flush()
    }

    fn misfits(&self) -> Misfits {
        self.fitting.misfits
    }

    fn finish(&mut self) -> Result<()> {
        self.output.flush().map(|_| ())
    }
}
