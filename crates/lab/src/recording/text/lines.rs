//! Cuts bytes into lines without holding more than one of them and a chunk.

use anyhow::{Result, ensure};

use crate::recording::source::Bytes;

/// How many bytes are asked for at once.
const CHUNK: usize = 1 << 16;
/// The longest line, 16 MB.
const LONGEST: usize = 16_000_000;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub(super) struct Lines {
    bytes: Bytes,
    buffer: Vec<u8>,
    /// Where in the buffer the next line begins.
    begin: usize,
    /// Which byte of the recording that is.
    at: u64,
}

impl Lines {
    /// Lines from the beginning, without a byte-order mark.
    pub fn new(bytes: Bytes) -> Result<Self> {
        let mut lines = Self { bytes, buffer: Vec::new(), begin: 0, at: 0 };
        while lines.buffer.len() < BYTE_ORDER_MARK.len() && lines.more()? {}
        if lines.buffer.starts_with(BYTE_ORDER_MARK) {
            lines.skip(BYTE_ORDER_MARK.len());
        }
        Ok(lines)
    }

    /// Where the next line begins.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Finds the next line: how long it is without and with its end. It is [`Lines::line`] until it is skipped.
    pub fn find(&mut self) -> Result<Option<Line>> {
        let mut seen = 0;
        loop {
            let there = &self.buffer[self.begin..];
            if let Some(end) = there[seen..].iter().position(|&byte| byte == b'\n') {
                return Ok(Some(Line { text: seen + end, whole: seen + end + 1 }));
            }
            seen = there.len();
            ensure!(seen <= LONGEST, "expected lines of up to {} MB, got a longer one", LONGEST / 1_000_000);
            if !self.more()? {
                return Ok((seen > 0).then_some(Line { text: seen, whole: seen }));
            }
        }
    }

    /// Whether nobody can tell yet if a row follows: the next line has not come in full, or it is blank, which means the
    /// end only if nothing comes after it.
    pub fn must_wait(&self) -> bool {
        let there = &self.buffer[self.begin..];
        let line = there.iter().position(|&byte| byte == b'\n').map(|end| &there[..end]);
        self.bytes.is_pipe() && line.is_none_or(|line| line.iter().all(|byte| b" \r".contains(byte)))
    }

    /// The bytes of a line that was found, without its end.
    pub fn line(&self, line: Line) -> &[u8] {
        let text = &self.buffer[self.begin..self.begin + line.text];
        text.strip_suffix(b"\r").unwrap_or(text)
    }

    /// Goes on behind a number of bytes that are in the buffer.
    pub fn skip(&mut self, bytes: usize) {
        self.begin += bytes;
        self.at += bytes as u64;
    }

    pub fn go_to(&mut self, byte: u64) -> Result<()> {
        self.bytes.go_to(byte)?;
        self.buffer.clear();
        (self.begin, self.at) = (0, byte);
        Ok(())
    }

    /// Reads more bytes; returns whether there were any.
    fn more(&mut self) -> Result<bool> {
        self.buffer.drain(..self.begin);
        self.begin = 0;
        let there = self.buffer.len();
        self.buffer.resize(there + CHUNK, 0);
        let got = self.bytes.some(&mut self.buffer[there..])?;
        self.buffer.truncate(there + got);
        Ok(got > 0)
    }
}

/// A line in the buffer.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Its length without its end.
    text: usize,
    /// Its length with its end.
    pub whole: usize,
}
