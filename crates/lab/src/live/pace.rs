//! Lets the rows of a file pass at the speed at which they were recorded.

use std::time::{Duration, Instant};

use super::whole;

/// When rows are due.
pub(super) struct Pace {
    /// Rows a second.
    rate: f64,
    begun: Instant,
    first: u64,
}

/// As long as this nobody notices.
const INSTANT: Duration = Duration::from_millis(10);

impl Pace {
    pub fn new(rate: f64, first: u64) -> Self {
        Self { rate, begun: Instant::now(), first }
    }

    /// How many rows are due by now, and how late the first of them is.
    pub fn due(&self, row: u64) -> (usize, Duration) {
        let due = self.begun.elapsed().as_secs_f64() * self.rate - (row - self.first) as f64;
        (whole(due) as usize, Duration::from_secs_f64((due / self.rate).max(0.0)))
    }

    /// How long to sleep until the next row, and a few more, are due.
    pub fn pause(&self) -> Duration {
        Duration::from_secs_f64((1.0 / self.rate).min(0.05)).max(INSTANT)
    }
}
