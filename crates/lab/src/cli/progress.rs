//! Shows how far the work has come: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::outlook::Outlook;
use crate::recording::Source;

/// Prints a line on standard error. If that fails, because it is closed or the disk is full, the work goes on.
pub fn say_line(words: impl Display) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// How often plain lines are printed.
const PAUSE: Duration = Duration::from_secs(5);

/// Where progress is shown.
pub enum Shown {
    Bar(ProgressBar),
    Lines(Mutex<Lines>),
    Nothing,
}

/// What plain lines are made of.
pub struct Lines {
    start: Instant,
    last: Instant,
    done: u64,
    total: u64,
}

/// Where progress is reported, and a flag that can end the work.
pub struct Watch<'a> {
    pub outlook: &'a dyn Outlook,
    /// Set from outside to end the work early.
    pub stop: &'a AtomicBool,
}

impl Watch<'_> {
    /// Says that all bytes of a recording will be read.
    pub fn begin(&self, source: &Source) {
        self.outlook.begin(source.size().unwrap_or(0));
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Shown {
    pub fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Nothing;
        }
        if std::io::stderr().is_terminal() {
            return Self::Bar(ProgressBar::new(0));
        }
        let now = Instant::now();
        Self::Lines(Mutex::new(Lines { start: now, last: now, done: 0, total: 0 }))
    }
}

impl Outlook for Shown {
    fn begin(&self, work: u64) {
        match self {
            Self::Bar(bar) => {
                bar.reset();
                bar.set_style(style(work));
                bar.set_length(work);
            }
            Self::Lines(lines) => {
                let now = Instant::now();
                *lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                    Lines { start: now, last: now, done: 0, total: work };
            }
            Self::Nothing => {}
        }
    }

    fn done(&self, figure: &str, work: u64) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(figure.to_owned());
                bar.inc(work);
            }
            Self::Lines(lines) => {
                lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner).done(figure, work);
            }
            Self::Nothing => {}
        }
    }

    fn say(&self, message: &str) {
        match self {
            Self::Bar(bar) => bar.suspend(|| say_line(message)),
            Self::Lines(_) => say_line(message),
            Self::Nothing => {}
        }
    }

    fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// A bar; only words if the amount of work is not known.
fn style(work: u64) -> ProgressStyle {
    let template = match work {
        0 => "{spinner} {msg}  {elapsed}",
        _ => "{wide_bar} {percent:>3} %  {msg}  {elapsed}, {eta} left",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Lines {
    fn done(&mut self, figure: &str, work: u64) {
        self.done += work;
        if self.last.elapsed() < PAUSE {
            return;
        }
        self.last = Instant::now();
        let seconds = self.start.elapsed().as_secs_f64();
        if self.total == 0 {
            say_line(format_args!("{figure}, after {seconds:.0} s"));
            return;
        }
        let share = self.done as f64 / self.total as f64;
        let left = seconds * (1.0 - share) / share;
        let percent = 100.0 * share;
        say_line(format_args!("{percent:3.0} % after {seconds:.0} s, about {left:.0} s left ({figure})"));
    }
}
