//! Reads recordings from their beginning to their end and sums them up into contexts: by file, by label or by segments.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};

use super::sums::Sums;
use crate::outlook::Outlook;
use crate::recording::{Layout, ReadOptions, Reader, Rows, Source, open};

/// What makes a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Each recording is one.
    Files,
    /// All rows with the same label, in whichever recording.
    Labels,
    /// Segments of this many consecutive rows of a recording. The remainder at the end is a segment of its own if it has
    /// at least half that length, and otherwise joins the one before.
    Segments(u64),
}

impl Division {
    /// The length of a segment.
    pub(super) fn length(self) -> u64 {
        match self {
            Self::Segments(length) => length,
            Self::Files | Self::Labels => u64::MAX,
        }
    }
}

/// Recordings of the same channels, opened and not read yet.
pub struct Recordings {
    opened: Vec<(String, Box<dyn Reader>)>,
    /// What is known of all of them; the number of rows is that of the first.
    pub layout: Layout,
    /// How many bytes all files have; none where one is a pipe.
    bytes: Option<u64>,
}

/// How many numbers are read at a time.
const BLOCK: usize = 1 << 16;

impl Recordings {
    /// Opens recordings and sees that they have the same channels.
    ///
    /// # Errors
    /// When one cannot be opened or differs from the first; the error names both.
    pub fn open(sources: &[Source], options: &ReadOptions) -> Result<Self> {
        let mut opened: Vec<(String, Box<dyn Reader>)> = Vec::new();
        let mut whole: Option<Layout> = None;
        for source in sources {
            let (name, reader) = (name(source), open(source, options)?);
            let layout = reader.layout();
            match &mut whole {
                None => whole = Some(layout.clone()),
                Some(whole) => agree(whole, layout).with_context(|| {
                    format!("{source} and {} do not have the same channels and sample rate", sources[0])
                })?,
            }
            opened.push((name, reader));
        }
        let layout = whole.context("expected at least one recording")?;
        Ok(Self { opened, layout, bytes: sources.iter().map(Source::size).sum() })
    }

    /// Reads them all and sums them up. `false` when it was stopped before the end.
    ///
    /// # Errors
    /// When one cannot be read or is damaged.
    pub fn read_into(self, sums: &mut Sums, outlook: &dyn Outlook, stop: &AtomicBool) -> Result<bool> {
        outlook.begin(self.bytes.unwrap_or(0));
        let (most, mut rows) = ((BLOCK / self.layout.channels).max(1), Rows::default());
        for (name, mut reader) in self.opened {
            let mut before = 0;
            loop {
                reader.read(most, &mut rows)?;
                if stop.load(Ordering::Relaxed) {
                    outlook.end();
                    return Ok(false);
                }
                if rows.values.is_empty() {
                    break;
                }
                sums.update(&name, &mut rows)?;
                let byte = reader.place().byte;
                outlook.done(&format!("{name}, {} rows", sums.rows), byte - before);
                before = byte;
            }
            sums.end_recording(&name)?;
        }
        outlook.end();
        Ok(true)
    }
}

/// Sees that a layout is that of the recordings before it, and adds what they did not say.
fn agree(whole: &mut Layout, layout: &Layout) -> Result<()> {
    let [expected, got] = [whole.channels, layout.channels];
    ensure!(expected == got, "expected {expected} channels, got {got}");
    if let (Some(expected), Some(got)) = (&whole.names, &layout.names)
        && let Some((expected, got)) = expected.iter().zip(got).find(|(expected, got)| expected != got)
    {
        bail!("expected a channel named {expected:?}, got {got:?} in its place");
    }
    if let (Some(expected), Some(got)) = (whole.sample_rate, layout.sample_rate) {
        ensure!(expected == got, "expected a sample rate of {expected} Hz, got {got} Hz");
    }
    whole.names = whole.names.take().or_else(|| layout.names.clone());
    whole.sample_rate = whole.sample_rate.or(layout.sample_rate);
    Ok(())
}

/// What a recording is called in a list of contexts.
fn name(source: &Source) -> String {
    match source {
        Source::File(path) => path.display().to_string(),
        Source::Stdin => "standard input".into(),
    }
}
