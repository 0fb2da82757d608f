//! Writes what the page shows as JSON, a frame at a time. `page/drawing.js` reads it.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::{Value, json};

/// The version of frames, which the page checks.
const VERSION: u32 = 1;

/// What a stream is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ConditionKind {
    Waiting,
    Calibrating,
    Adapting,
    Paused,
    Ended,
    Failed,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Condition {
    pub kind: ConditionKind,
    pub words: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Counts {
    pub bad: u64,
    pub outliers: u64,
    pub silent: u64,
    pub changes: usize,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct ChannelRow {
    pub name: String,
    /// The standard deviation of its stimuli; not a number as long as there are none.
    pub scale: f64,
    pub state: &'static str,
    pub words: String,
    pub bad: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Mark {
    pub row: u64,
    pub kind: &'static str,
    pub words: String,
}

/// The state at one moment of a stream.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub row: u64,
    pub error: Option<f64>,
    pub floor: f64,
    pub unadapted: Option<f64>,
    pub gains: Vec<f64>,
}

/// The latest items, numbered from 1; the oldest are forgotten.
#[derive(Clone, Debug)]
pub(super) struct Latest<T> {
    kept: VecDeque<T>,
    most: usize,
    added: u64,
}

impl<T> Latest<T> {
    pub fn new(most: usize) -> Self {
        Self { kept: VecDeque::with_capacity(most), most, added: 0 }
    }

    pub fn push(&mut self, item: T) {
        if self.kept.len() == self.most {
            self.kept.pop_front();
        }
        self.kept.push_back(item);
        self.added += 1;
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.kept.iter()
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.kept.iter_mut()
    }

    /// The number of the oldest.
    pub fn first(&self) -> u64 {
        self.added - self.kept.len() as u64 + 1
    }

    /// Those with a higher number than this, with their numbers.
    pub fn since(&self, number: u64) -> impl Iterator<Item = (u64, &T)> {
        (self.first()..).zip(&self.kept).filter(move |(id, _)| *id > number)
    }
}

/// The latest samples of some channels.
#[derive(Clone, Debug)]
pub(super) struct Traces {
    pub channels: Vec<usize>,
    /// Of each row the stimuli, then the responses.
    pub rows: Latest<Vec<f32>>,
    /// The row of the recording that the latest is.
    pub last_row: u64,
}

/// Everything that a page may ask about a stream.
#[derive(Clone, Debug)]
pub(super) struct Board {
    pub run: String,
    pub sequence: u64,
    pub title: String,
    pub model: Option<String>,
    pub control: bool,
    pub state: Condition,
    pub rows: u64,
    pub total_rows: Option<u64>,
    pub sample_rate: Option<f64>,
    pub behind_ms: Option<f64>,
    pub counts: Counts,
    pub channels: Vec<ChannelRow>,
    /// The channels that matrices are of.
    pub shown: Vec<usize>,
    pub before: Vec<f32>,
    pub after: Vec<f32>,
    pub moments: Latest<Moment>,
    pub gains_total: usize,
    pub changes: Latest<Mark>,
    pub traces: Traces,
}

/// So many moments, changes and samples are kept, and so many gains and traces sent.
pub(super) const MOST_MOMENTS: usize = 600;
pub(super) const MOST_CHANGES: usize = 64;
pub(super) const MOST_GAINS: usize = 32;
pub(super) const MOST_TRACES: usize = 8;
pub(super) const TRACE_ROWS: usize = 256;

impl Board {
    pub fn new(run: String, title: String, model: Option<String>, control: bool) -> Self {
        Self {
            run,
            sequence: 0,
            title,
            model,
            control,
            state: Condition { kind: ConditionKind::Waiting, words: "waiting for the first rows".into() },
            rows: 0,
            total_rows: None,
            sample_rate: None,
            behind_ms: None,
            counts: Counts::default(),
            channels: Vec::new(),
            shown: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            moments: Latest::new(MOST_MOMENTS),
            gains_total: 0,
            changes: Latest::new(MOST_CHANGES),
            traces: Traces { channels: Vec::new(), rows: Latest::new(TRACE_ROWS), last_row: 0 },
        }
    }

    /// The frame for a page that has all moments up to this number.
    pub fn frame(&mut self, since: u64) -> Value {
        self.sequence += 1;
        json!({
            "version": VERSION,
            "mode": "stream",
            "run": self.run,
            "sequence": self.sequence,
            "title": self.title,
            "model": self.model,
            "control": self.control,
            "state": self.state,
            "rows": self.rows,
            "total_rows": self.total_rows,
            "sample_rate": self.sample_rate,
            "behind_ms": self.behind_ms.map(|ms| rounded(ms, 1e-1)),
            "counts": self.counts,
            "channels": self.channels,
            "shown": self.shown,
            "before": column(self.before.iter().map(|&r| f64::from(r))),
            "after": column(self.after.iter().map(|&r| f64::from(r))),
            "points": self.points(since),
            "gains_total": self.gains_total,
            "changes": self.changes.iter().collect::<Vec<_>>(),
            "traces": self.traces_as_json(),
        })
    }

    fn points(&self, since: u64) -> Value {
        let new: Vec<_> = self.moments.since(since).collect();
        let known = |of: fn(&Moment) -> f64| column(new.iter().map(|(_, moment)| of(moment)));
        let gains = new.iter().map(|(_, moment)| column(moment.gains.iter().copied().take(MOST_GAINS)));
        json!({
            "first": self.moments.first(),
            "id": new.iter().map(|(id, _)| id).collect::<Vec<_>>(),
            "row": new.iter().map(|(_, moment)| moment.row).collect::<Vec<_>>(),
            "error": known(|moment| moment.error.unwrap_or(f64::NAN)),
            "floor": known(|moment| moment.floor),
            "unadapted": known(|moment| moment.unadapted.unwrap_or(f64::NAN)),
            "gains": gains.collect::<Vec<_>>(),
        })
    }

    fn traces_as_json(&self) -> Value {
        let Traces { channels, rows, last_row } = &self.traces;
        let trace = |place: usize| column(rows.iter().map(|row| f64::from(row[place])));
        let count = rows.iter().count() as u64;
        json!({
            "first_row": (last_row + 1).saturating_sub(count),
            "channels": channels,
            "before": (0..channels.len()).map(trace).collect::<Vec<_>>(),
            "after": (channels.len()..2 * channels.len()).map(trace).collect::<Vec<_>>(),
        })
    }
}

/// Numbers with four significant digits, enough to draw; null where there is none.
pub(super) fn column(numbers: impl Iterator<Item = f64>) -> Vec<Value> {
    numbers.map(number).collect()
}

pub(super) fn number(x: f64) -> Value {
    if x == 0.0 {
        return json!(0.0);
    }
    let unit = 10_f64.powi(x.abs().log10().floor() as i32 - 3);
    // Not a number and infinity become null.
    json!(rounded(x, unit))
}

/// The nearest multiple of a unit, a power of ten.
fn rounded(x: f64, unit: f64) -> f64 {
    // Dividing by a whole number gives the shortest digits.
    if unit < 1.0 { (x / unit).round() / (1.0 / unit).round() } else { (x / unit).round() * unit }
}

/// The start of any frame of the toy.
pub(super) fn toy_frame(run: &str, sequence: u64, toy: &Value) -> Value {
    json!({
        "version": VERSION, "mode": "toy", "run": run, "sequence": sequence, "title": "toy", "control": true, "toy": toy,
    })
}
