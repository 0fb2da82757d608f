//! Reads recordings that are text, a row on each line, with commas or tabs between the cells.

mod cells;
mod columns;
mod lines;

use std::borrow::Cow;

use anyhow::{Context, Result, bail, ensure};

use super::format::{Definition, Writing};
use super::source::Bytes;
use super::text_writer::TextWriter;
use super::{Layout, Place, ReadOptions, Reader, Rows, SampleType, require_channels, shortened};
use cells::{Cells, Unclosed, number};
use columns::Columns;
use lines::Lines;

pub(super) const fn definition<const DELIMITER: char>() -> Definition {
    Definition {
        needs_shape: false,
        tells_sample_rate: false,
        is_text: true,
        open: |bytes, options| Ok(Box::new(TextReader::open(bytes, DELIMITER, options)?)),
        is_scattered: |_| Ok(false),
        writing: Some(Writing {
            begin: |output, shape| Ok(Box::new(TextWriter::begin(output, DELIMITER, shape)?)),
            go_on: |output, shape, _| Box::new(TextWriter::new(output, DELIMITER, shape)),
            header: None,
        }),
    }
}

/// A text with a row on each line, so that the number of a line follows from that of its row.
struct TextReader {
    lines: Lines,
    delimiter: char,
    columns: Columns,
    layout: Layout,
    row: u64,
}

impl TextReader {
    pub fn open(bytes: Bytes, delimiter: char, options: &ReadOptions) -> Result<Self> {
        let mut lines = Lines::new(bytes)?;
        let line = lines.find().context("line 1")?;
        let Some(line) = line.filter(|&line| !is_blank(lines.line(line))) else {
            require_blank(&mut lines, 1).context("line 1")?;
            bail!("empty: expected a header or a row of numbers");
        };
        let first = first_cells(lines.line(line), delimiter).context("line 1")?;
        let columns = Columns::new(first, options.label.as_deref())?;
        if columns.names.is_some() {
            lines.skip(line.whole);
        }
        let layout = Layout {
            channels: columns.channels(),
            names: columns.channel_names(),
            sample_type: SampleType::Float64,
            sample_rate: options.sample_rate,
            rows: None,
        };
        Ok(Self { lines, delimiter, columns, layout, row: 0 })
    }

    /// The number of the next line, from 1.
    fn line_number(&self) -> u64 {
        self.row + 1 + u64::from(self.columns.names.is_some())
    }

    /// Reads a row; says whether there was one.
    fn read_row(&mut self, rows: &mut Rows) -> Result<bool> {
        let Some(line) = self.lines.find()? else { return Ok(false) };
        if is_blank(self.lines.line(line)) {
            let number = self.line_number();
            require_blank(&mut self.lines, number)?;
            return Ok(false);
        }
        self.parse(text(self.lines.line(line))?, rows)?;
        self.lines.skip(line.whole);
        self.row += 1;
        Ok(true)
    }

    fn parse(&self, text: &str, rows: &mut Rows) -> Result<()> {
        let expected = self.columns.count;
        let mut got = 0;
        for cell in Cells::new(text, self.delimiter) {
            ensure!(got < expected, "expected {expected} cells, got more: column {got} is one too many");
            let cell = cell.map_err(|Unclosed| self.unclosed(got))?;
            if Some(got) == self.columns.label {
                rows.labels.push(cell.into_owned());
            } else {
                rows.values.push(number(&cell).with_context(|| self.no_number(got, &cell, text))?);
            }
            got += 1;
        }
        let missing = || self.columns.in_words(got);
        ensure!(got == expected, "expected {expected} cells, got {got}: {} is missing", missing());
        Ok(())
    }

    fn no_number(&self, column: usize, cell: &str, text: &str) -> String {
        let cells: Vec<_> = Cells::new(text, self.delimiter).map_while(Result::ok).collect();
        if self.columns.are_named(cells.iter().map(AsRef::as_ref)) {
            return "expected numbers, got the header again".into();
        }
        format!("{}: expected a number, got {}", self.columns.in_words(column), shortened(cell))
    }

    fn unclosed(&self, column: usize) -> anyhow::Error {
        unclosed(&self.columns.in_words(column))
    }
}

fn unclosed(column: &str) -> anyhow::Error {
    anyhow::anyhow!("{column}: expected a closing quotation mark at the end of the cell, on the same line")
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        anyhow::anyhow!("expected text in UTF-8, got other bytes after {} of its bytes", error.valid_up_to())
    })
}

/// The cells of the first line, counted before they are kept.
fn first_cells(line: &[u8], delimiter: char) -> Result<Vec<String>> {
    let cells = Cells::new(text(line)?, delimiter);
    require_channels(cells.clone().count() as u64)?;
    let kept = |(column, cell): (usize, Result<Cow<str>, Unclosed>)| {
        cell.map(Cow::into_owned).map_err(|Unclosed| unclosed(&format!("column {column}")))
    };
    cells.enumerate().map(kept).collect()
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&byte| byte == b' ')
}

/// Blank lines are the end: with anything behind them, rows would not be where they seem to be.
fn require_blank(lines: &mut Lines, first: u64) -> Result<()> {
    let mut number = first;
    while let Some(line) = lines.find()? {
        ensure!(
            is_blank(lines.line(line)),
            "expected a row, got a blank line that is not at the end: line {number} follows"
        );
        lines.skip(line.whole);
        number += 1;
    }
    Ok(())
}

impl Reader for TextReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, rows: &mut Rows) -> Result<()> {
        rows.clear();
        for _ in 0..most {
            if !rows.values.is_empty() && self.lines.must_wait() {
                break;
            }
            let (number, byte) = (self.line_number(), self.lines.at());
            if !self.read_row(rows).with_context(|| format!("line {number}, at byte {byte}"))? {
                break;
            }
        }
        Ok(())
    }

    fn place(&self) -> Place {
        Place { row: self.row, byte: self.lines.at() }
    }

    fn go_to(&mut self, place: Place) -> Result<()> {
        self.lines.go_to(place.byte)?;
        self.row = place.row;
        Ok(())
    }
}
