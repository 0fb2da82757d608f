//! Copies a recording into another format: `cargo run --example convert INPUT OUTPUT`, `-` being standard input or output.

use std::fs::File;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use leukos_lab::recording::{
    Format, OutputShape, ReadOptions, Reader, Rows, SampleType, Sink, Source, open, writer,
};
use leukos_lab::usage::Usage;

/// Copy a recording into another format
#[derive(Parser)]
struct Convert {
    /// What to read
    input: Source,
    /// What to write
    output: String,
    /// The format of the input, if its name does not tell
    #[arg(long)]
    from: Option<Format>,
    /// The format of the output, if its name does not tell
    #[arg(long)]
    to: Option<Format>,
    /// The number of channels of a raw recording
    #[arg(long)]
    channels: Option<usize>,
    /// The type of the numbers of a raw recording
    #[arg(long)]
    dtype: Option<SampleType>,
    /// The type of the numbers in the output [default: that of the input]
    #[arg(long)]
    as_dtype: Option<SampleType>,
    /// The name or the number of the label column
    #[arg(long)]
    label: Option<String>,
}

const BLOCK: usize = 1000;

impl Convert {
    fn run(&self) -> Result<()> {
        let options = ReadOptions {
            format: self.from,
            channels: self.channels,
            sample_type: self.dtype,
            sample_rate: None,
            label: self.label.clone(),
        };
        let mut reader = open(&self.input, &options)?;
        let layout = reader.layout();
        let shape = OutputShape {
            format: self.to.map_or_else(|| Format::of_name(self.output.as_ref()), Ok)?,
            channels: layout.channels,
            names: layout.names.clone(),
            label: self.label.clone(),
            sample_type: self.as_dtype.unwrap_or(layout.sample_type),
            rows: layout.rows,
            scale: 1.0,
        };
        copy(&mut *reader, self.sink()?, &shape).with_context(|| format!("copying to {}", self.output))
    }

    fn sink(&self) -> Result<Sink> {
        Ok(if self.output == "-" { Sink::Stdout } else { Sink::File(File::create(&self.output)?) })
    }
}

fn copy(reader: &mut dyn Reader, sink: Sink, shape: &OutputShape) -> Result<()> {
    let mut writer = writer(sink, shape)?;
    let mut rows = Rows::default();
    loop {
        reader.read(BLOCK, &mut rows)?;
        if rows.values.is_empty() {
            return writer.finish();
        }
        writer.write(&rows)?;
    }
}

fn main() -> ExitCode {
    let Err(error) = Convert::parse().run() else { return ExitCode::SUCCESS };
    let closed = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    if closed == Some(std::io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {error:#}");
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}
