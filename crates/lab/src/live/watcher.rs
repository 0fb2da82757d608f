//! Watches a stream for the page: measures it, remembers its latest part, and passes instructions on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use leukos::{Exclusion, RunningError, SampleCounts, Whitener, WhitenerStatus};

use super::earlier::{EarlierContexts, Verdict};
use super::frame::{
    Board, ChannelRow, Condition, ConditionKind, Counts, MOST_GAINS, MOST_TRACES, Mark, Moment,
};
use super::pace::Pace;
use super::whole;
use crate::channels::named;
use crate::inspection::{FixedWhitener, Meter};
use crate::recording::Layout;
use crate::whitening::{Instruction, Onlooker, Seen, Watched};

/// What the stream and the server share.
#[derive(Clone)]
pub(super) struct Desk {
    board: Arc<Mutex<Board>>,
    instructions: Arc<Mutex<Vec<Instruction>>>,
}

/// So many instructions may wait for the next row.
const MOST_INSTRUCTIONS: usize = 16;

impl Desk {
    pub fn new(board: Board) -> Self {
        Self { board: Arc::new(Mutex::new(board)), instructions: Arc::default() }
    }

    pub fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn instructions(&self) -> MutexGuard<'_, Vec<Instruction>> {
        self.instructions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an instruction on; says whether there was room for it.
    pub fn instruct(&self, instruction: Instruction) -> bool {
        let mut waiting = self.instructions();
        let room = waiting.len() < MOST_INSTRUCTIONS;
        if room {
            waiting.push(instruction);
        }
        room
    }
}

/// At most so many channels are in the matrices.
const MOST_SHOWN: usize = 64;
/// Measuring a row takes time that grows with the square of the channels: so many squares are measured in a second, and of
/// a stream whose rate is not known so many in a row. Of faster streams not every row is measured.
const SQUARES_IN_A_SECOND: f64 = 1e7;
const SQUARES_IN_A_ROW: f64 = 256.0;
/// Moments are at least so far apart, and take at most one part in so many of the time.
const LEAST_PAUSE: Duration = Duration::from_millis(5);
const SHARE: u32 = 3;
/// What is shown is measured over so many rows for each channel, and so many at least.
const ROWS_PER_CHANNEL: f64 = 20.0;
const LEAST_ROWS: f64 = 1000.0;
/// Moments in the time of so many rows.
const MOMENTS_PER_WINDOW: f64 = 20.0;
/// Rows that are read at once, so that gains are seen often enough.
const MOST_ROWS: usize = 256;

pub(super) struct Watcher {
    desk: Desk,
    /// How many times faster than recorded; none for a pipe, whose rows come when they come.
    speed: Option<f64>,
    pace: Option<Pace>,
    names: Option<Vec<String>>,
    view: Option<Measurements>,
}

impl Watcher {
    pub fn new(desk: Desk, speed: Option<f64>) -> Self {
        Self { desk, speed, pace: None, names: None, view: None }
    }
}

impl Onlooker for Watcher {
    fn begin(&mut self, layout: &Layout, whitening: &mut dyn Watched) -> Result<()> {
        let model = whitening.snapshot()?;
        self.names = layout.names.clone().or(model.channel_names.clone());
        let rate = layout.sample_rate.map(|rate| rate * self.speed.unwrap_or(1.0));
        let mut view = Measurements::new(&model, whitening, rate)?;
        let n = layout.channels;
        let channels = view.channels(0, &whitening.statuses(), self.names.as_deref(), |_| f64::NAN);
        let mut board = self.desk.board();
        board.channels = channels;
        board.total_rows = layout.rows;
        board.sample_rate = layout.sample_rate;
        board.shown = evenly(n, MOST_SHOWN);
        let unknown = vec![f32::NAN; board.shown.len().pow(2)];
        (board.before, board.after) = (unknown.clone(), unknown);
        board.traces.channels = evenly(n, MOST_TRACES);
        board.gains_total = model.whitener.whiteners().map(Whitener::interneurons).sum();
        self.pace = rate.filter(|_| self.speed.is_some()).map(|rate| Pace::new(rate, 0));
        self.view = Some(view);
        Ok(())
    }

    fn wait(&mut self, row: u64, most: usize, stop: &AtomicBool) -> usize {
        let most = most.min(MOST_ROWS);
        let Some(pace) = &self.pace else { return most };
        loop {
            if stop.load(Ordering::Relaxed) {
                return 0;
            }
            let (due, late) = pace.due(row);
            if due > 0 {
                self.desk.board().behind_ms = Some(1e3 * late.as_secs_f64());
                return due.min(most);
            }
            std::thread::sleep(pace.pause());
        }
    }

    fn instructions(&mut self) -> Vec<Instruction> {
        std::mem::take(&mut *self.desk.instructions())
    }

    fn obeyed(&mut self, row: u64, words: &str) {
        let kind = if words == "new context" { "told" } else { "note" };
        self.desk.board().changes.push(Mark { row, kind, words: words.into() });
    }

    fn see(&mut self, seen: &Seen<'_>, whitening: &mut dyn Watched) -> Result<()> {
        let Some(view) = &mut self.view else { return Ok(()) };
        let begun = Instant::now();
        view.measure(seen)?;
        view.remember(seen, &mut self.desk.board());
        let row = seen.first + (seen.stimuli.len() / view.mean.len()) as u64;
        view.note_changes(row, seen, whitening, &self.desk)?;
        if row >= view.next_row && begun >= view.next_time {
            view.add_moment(row, whitening, &self.desk, self.names.as_deref())?;
            view.next_row = row + view.stride;
            view.next_time = Instant::now() + LEAST_PAUSE.max(begun.elapsed() * SHARE);
        }
        if self.pace.is_none() {
            self.desk.board().behind_ms = Some(1e3 * begun.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

/// So many of the first n numbers, evenly chosen.
fn evenly(n: usize, most: usize) -> Vec<usize> {
    let shown = n.min(most);
    (0..shown).map(|i| i * n / shown).collect()
}

/// What is measured of a stream.
struct Measurements {
    /// Over how many rows it is measured.
    window: f64,
    /// One row in so many is measured.
    every: u64,
    /// The rows of this block that are measured.
    stimuli: Vec<f64>,
    responses: Vec<f64>,
    mean: Vec<f64>,
    /// Covariances before and after.
    before: RunningError,
    after: RunningError,
    adapting: Meter,
    unadapted: Option<FixedWhitener>,
    earlier: EarlierContexts,
    bad: Vec<u64>,
    excluded_since: Vec<Option<u64>>,
    /// How often the whiteners have found that the context has changed.
    switches: u64,
    /// The row of the latest change.
    changed: u64,
    next_settled: u64,
    stride: u64,
    next_row: u64,
    next_time: Instant,
}

impl Measurements {
    /// For a stream of so many rows a second, where that is known.
    fn new(model: &leukos::Model, whitening: &mut dyn Watched, rate: Option<f64>) -> Result<Self> {
        let n = model.whitener.channels();
        let window = LEAST_ROWS.max(ROWS_PER_CHANNEL * n as f64);
        let squares = (n * n) as f64;
        let share = rate.map_or(squares / SQUARES_IN_A_ROW, |rate| rate * squares / SQUARES_IN_A_SECOND);
        let every = whole(share.ceil()).max(1);
        let matrix = || RunningError::new(n, (window / every as f64).max(ROWS_PER_CHANNEL * n as f64));
        Ok(Self {
            window,
            every,
            stimuli: Vec::new(),
            responses: Vec::new(),
            mean: vec![f64::NAN; n],
            before: matrix()?,
            after: matrix()?,
            adapting: Meter::new(&model.whitener)?,
            // None as long as there is no scale.
            unadapted: FixedWhitener::of(model).ok(),
            earlier: EarlierContexts::new(n as u64 * every, window),
            bad: vec![0; n],
            excluded_since: vec![None; n],
            switches: whitening.samples().iter().map(|counts| counts.switches).sum(),
            changed: 0,
            next_settled: 0,
            stride: whole((window / MOMENTS_PER_WINDOW).ceil()),
            next_row: 0,
            next_time: Instant::now(),
        })
    }

    fn measure(&mut self, seen: &Seen<'_>) -> Result<()> {
        let n = self.mean.len();
        self.stimuli.clear();
        self.responses.clear();
        let rows = seen.stimuli.chunks_exact(n).zip(seen.responses.chunks_exact(n));
        for (row, (stimulus, response)) in (seen.first..).zip(rows) {
            self.bad.iter_mut().zip(stimulus).for_each(|(bad, s)| *bad += u64::from(!s.is_finite()));
            // What the whitener could not use says nothing.
            let usable = response.iter().chain(stimulus).all(|x| x.is_finite());
            if row.is_multiple_of(self.every) && usable {
                self.stimuli.extend(stimulus);
                self.responses.extend(response);
            }
        }
        let forgetting = 1.0 / (10.0 * self.window / self.every as f64).max(100.0);
        let mut centred = vec![0.0; n];
        for stimulus in self.stimuli.chunks_exact(n) {
            for ((mean, x), &s) in self.mean.iter_mut().zip(&mut centred).zip(stimulus) {
                *mean = if mean.is_nan() { s } else { *mean + forgetting * (s - *mean) };
                *x = s - *mean;
            }
            // A number that is too large to be squared is left out.
            let _ = self.before.update(&centred);
        }
        for response in self.responses.chunks_exact(n) {
            let _ = self.after.update(response);
        }
        self.adapting.update(&self.responses);
        Ok(self.unadapted.as_mut().map_or(Ok(()), |fixed| fixed.see(&self.stimuli))?)
    }

    /// Keeps the latest rows of a few channels.
    fn remember(&self, seen: &Seen<'_>, board: &mut Board) {
        let n = self.mean.len();
        let rows = seen.stimuli.chunks_exact(n).zip(seen.responses.chunks_exact(n));
        let channels = board.traces.channels.clone();
        for (stimulus, response) in rows {
            let of = |row: &[f64]| channels.iter().map(|&channel| row[channel] as f32).collect::<Vec<_>>();
            board.traces.rows.push([of(stimulus), of(response)].concat());
        }
        board.rows = seen.first + (seen.stimuli.len() / n) as u64;
        board.traces.last_row = board.rows.saturating_sub(1);
    }

    /// Marks changes of context, those that were told and those that were detected, and names them.
    fn note_changes(
        &mut self,
        row: u64,
        seen: &Seen<'_>,
        whitening: &mut dyn Watched,
        desk: &Desk,
    ) -> Result<()> {
        let counts = whitening.samples();
        let switches = counts.iter().map(|counts| counts.switches).sum();
        let switched = switches > std::mem::replace(&mut self.switches, switches);
        for (row, label) in seen.told {
            self.begin_context(*row, "told", format!("told: {label}"), desk)?;
        }
        // A change that was told is soon detected as well, and one that is large is detected several times.
        let fresh = row > self.changed + whole(self.window);
        if switched && seen.told.is_empty() && (fresh || self.changed == 0) {
            self.begin_context(row, "new", "change of context".into(), desk)?;
        }
        if let Some(verdict) = self.earlier.see(&self.stimuli, row - seen.first, &self.adapting)? {
            rename_latest(&verdict, &mut desk.board());
        }
        if row >= self.next_settled.max(self.changed + whole(2.0 * self.window)) {
            self.earlier.settle(whitening.snapshot()?);
            self.next_settled = row + whole(self.window);
        }
        Ok(())
    }

    fn begin_context(&mut self, row: u64, kind: &'static str, words: String, desk: &Desk) -> Result<()> {
        self.changed = row;
        self.earlier.change()?;
        desk.board().changes.push(Mark { row, kind, words });
        Ok(())
    }

    fn add_moment(
        &mut self,
        row: u64,
        whitening: &mut dyn Watched,
        desk: &Desk,
        names: Option<&[String]>,
    ) -> Result<()> {
        if self.unadapted.is_none() {
            self.unadapted = FixedWhitener::of(&whitening.snapshot()?).ok();
        }
        let (error, floor) = (self.adapting.error()?, self.adapting.noise_floor());
        let unadapted = self.unadapted.as_ref().map_or(Ok(None), FixedWhitener::error)?;
        let gains = whitening.gains()?.into_iter().take(MOST_GAINS).collect();
        let statuses = whitening.statuses();
        let (before, after) = (self.before.covariance(), self.after.covariance());
        let deviation = |i: usize| before[(i, i)].sqrt();
        let channels = self.channels(row, &statuses, names, deviation);
        let mut board = desk.board();
        let pairs: Vec<_> =
            board.shown.iter().flat_map(|&i| board.shown.iter().map(move |&j| (i, j))).collect();
        board.before =
            pairs.iter().map(|&(i, j)| (before[(i, j)] / (deviation(i) * deviation(j))) as f32).collect();
        board.after = pairs.iter().map(|&(i, j)| after[(i, j)] as f32).collect();
        board.channels = channels;
        board.moments.push(Moment { row, error, floor, unadapted, gains });
        let sum = |of: fn(&SampleCounts) -> u64| statuses.iter().map(|(_, status)| of(&status.samples)).max();
        board.counts = Counts {
            bad: sum(|counts| counts.bad).unwrap_or(0),
            outliers: sum(|counts| counts.outliers).unwrap_or(0),
            silent: sum(|counts| counts.silent).unwrap_or(0),
            changes: board
                .changes
                .iter()
                .filter(|change| matches!(change.kind, "new" | "told" | "recalled"))
                .count(),
        };
        board.state = state(&statuses, error, floor, board.counts.changes);
        Ok(())
    }

    /// How each channel is.
    fn channels(
        &mut self,
        row: u64,
        statuses: &[(Vec<usize>, WhitenerStatus)],
        names: Option<&[String]>,
        scale: impl Fn(usize) -> f64,
    ) -> Vec<ChannelRow> {
        let n = self.mean.len();
        let mut why: Vec<Option<Exclusion>> = vec![None; n];
        let mut twins: Vec<Option<usize>> = vec![None; n];
        for (group, status) in statuses {
            status.excluded.iter().for_each(|&(i, exclusion)| why[group[i]] = Some(exclusion));
            status.duplicates.iter().for_each(|&(i, j)| twins[group[j]] = Some(group[i]));
        }
        for (since, why) in self.excluded_since.iter_mut().zip(&why) {
            *since = why.and(since.or(Some(row)));
        }
        let name = |channel: usize| match names {
            Some(names) => names[channel].clone(),
            None => named(channel, None),
        };
        (0..n)
            .map(|i| {
                let since = self.excluded_since[i].unwrap_or(row);
                let (state, words) = match (why[i], twins[i]) {
                    (Some(Exclusion::Constant), _) => {
                        ("dead", format!("dead: constant, left out since row {since}"))
                    }
                    (Some(Exclusion::Bad), _) => {
                        ("dead", format!("dead: no usable number, left out since row {since}"))
                    }
                    (None, Some(twin)) => ("duplicate", format!("duplicate of {}", name(twin))),
                    (None, None) => ("live", "live".into()),
                };
                ChannelRow {
                    name: name(i),
                    scale: scale(i),
                    state,
                    words,
                    bad: self.bad[i] as f64 / row.max(1) as f64,
                }
            })
            .collect()
    }
}

/// Gives the latest change its final name.
fn rename_latest(verdict: &Verdict, board: &mut Board) {
    let of_context = |change: &&mut Mark| matches!(change.kind, "new" | "told");
    let Some(latest) = board.changes.iter_mut().rev().find(of_context) else { return };
    let told = (latest.kind == "told").then(|| latest.words.clone());
    let (kind, words) = match verdict {
        Verdict::New(context) => ("new", format!("new: context {context}")),
        Verdict::Recalled(context) => ("recalled", format!("recalled: context {context}")),
    };
    latest.kind = kind;
    latest.words = told.map_or_else(|| words.clone(), |told| format!("{words} ({told})"));
}

fn state(
    statuses: &[(Vec<usize>, WhitenerStatus)],
    error: Option<f64>,
    floor: f64,
    changes: usize,
) -> Condition {
    let so_far = match changes {
        0 => String::new(),
        1 => "; 1 change of context so far".into(),
        many => format!("; {many} changes of context so far"),
    };
    let (kind, words) = if statuses.iter().any(|(_, status)| !status.started) {
        (ConditionKind::Calibrating, "calibrating: estimating mean and scale from the first rows".to_owned())
    } else if statuses.iter().any(|(_, status)| !status.adapting) {
        (ConditionKind::Paused, format!("not adapting: the map is kept as it is{so_far}"))
    } else {
        let how = match error {
            None => "too few rows yet to tell how white".to_owned(),
            Some(error) if error <= 1.5 * floor => format!("white up to noise{so_far}"),
            Some(error) => format!("error {error:.2}, noise alone would show {floor:.2}{so_far}"),
        };
        (ConditionKind::Adapting, format!("adapting: {how}"))
    };
    Condition { kind, words }
}
