//! Cuts a line into cells, in quotes or not.

use std::borrow::Cow;

/// The cells of a line; a quoted cell keeps its spaces, others lose those around them.
#[derive(Clone)]
pub(super) struct Cells<'a> {
    rest: Option<&'a str>,
    delimiter: char,
}

/// A quoted cell that does not end where it should.
#[derive(Debug)]
pub(super) struct Unclosed;

impl<'a> Cells<'a> {
    pub fn new(line: &'a str, delimiter: char) -> Self {
        Self { rest: Some(line), delimiter }
    }

    fn plain(&mut self, rest: &'a str) -> &'a str {
        let cell = match rest.split_once(self.delimiter) {
            Some((cell, rest)) => {
                self.rest = Some(rest);
                cell
            }
            None => rest,
        };
        cell.trim_matches(' ')
    }

    /// A cell of which the opening quotation mark is gone; two such marks inside stand for one.
    fn quoted(&mut self, inside: &'a str) -> Result<Cow<'a, str>, Unclosed> {
        let mut from = 0;
        let end = loop {
            let mark = from + inside[from..].find('"').ok_or(Unclosed)?;
            if !inside[mark + 1..].starts_with('"') {
                break mark;
            }
            from = mark + 2;
        };
        let behind = inside[end + 1..].trim_start_matches(' ');
        self.rest = behind.strip_prefix(self.delimiter);
        if self.rest.is_none() && !behind.is_empty() {
            return Err(Unclosed);
        }
        let cell = &inside[..end];
        Ok(if from == 0 { cell.into() } else { cell.replace("\"\"", "\"").into() })
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Result<Cow<'a, str>, Unclosed>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        match rest.trim_start_matches(' ').strip_prefix('"') {
            Some(inside) => Some(self.quoted(inside)),
            None => Some(Ok(self.plain(rest).into())),
        }
    }
}

/// The number in a cell; an empty one is a number that is missing.
pub(super) fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim_matches(' ');
    if cell.is_empty() { Some(f64::NAN) } else { cell.parse().ok() }
}
