//! Detects that the input has hardly varied for a long time, whatever its mean.
//!
//! A response that is large only because the input lies far from the mean says nothing about variances, but the gains
//! cannot tell. So the variance about its own mean is taken over windows, and compared with what M expects.

#[cfg(feature = "model-file")]
use crate::archive::{Archive, require, require_all};
#[cfg(feature = "model-file")]
use crate::error::Result;

/// First and second moments of one window, and what M was when it began.
#[derive(Clone)]
pub(super) struct Stillness {
    /// The length of a window.
    pub window: u64,
    pub seen: u64,
    /// The first row of the window, and sums of the distances from it and of their squares.
    pub origin: Vec<f64>,
    pub sums: Vec<f64>,
    pub squares: f64,
    /// What E|x|²/N was expected to be at the beginning of the window, or less: (tr M/N)² ≤ tr M²/N.
    pub power: f64,
}

impl Stillness {
    pub fn new(channels: usize, window: u64) -> Self {
        let (origin, sums) = (vec![0.0; channels], vec![0.0; channels]);
        Self { window, seen: 0, origin, sums, squares: 0.0, power: 0.0 }
    }

    /// Whether the next row is the first of a window, which needs the present state of the whitener.
    pub fn begins(&self) -> bool {
        self.seen == 0
    }

    /// Begins a window with this expected power.
    pub fn begin(&mut self, power: f64) {
        self.power = power;
        self.sums.fill(0.0);
        self.squares = 0.0;
    }

    /// Takes in a conditioned row.
    pub fn see(&mut self, row: impl Iterator<Item = f64>) {
        let first = self.seen == 0;
        for ((origin, sum), x) in self.origin.iter_mut().zip(&mut self.sums).zip(row) {
            if first {
                *origin = x;
            }
            let distance = x - *origin;
            *sum += distance;
            self.squares += distance * distance;
        }
        self.seen += 1;
    }

    /// At the end of a window, its variance relative to what was expected; then the next one may begin.
    pub fn verdict(&mut self) -> Option<f64> {
        if self.seen < self.window {
            return None;
        }
        let count = self.seen as f64;
        let about_mean = self.squares - self.sums.iter().map(|sum| sum * sum / count).sum::<f64>();
        self.seen = 0;
        Some(about_mean.max(0.0) / count / self.origin.len() as f64 / self.power)
    }

    /// Forgets the window.
    pub fn restart(&mut self) {
        self.seen = 0;
    }
}

#[cfg(feature = "model-file")]
impl Stillness {
    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let Self { window: _, seen, origin, sums, squares, power } = self;
        archive.value("stillness.seen", seen)?;
        archive.vector("stillness.origin", origin.len(), origin)?;
        archive.vector("stillness.sums", sums.len(), sums)?;
        archive.value("stillness.squares", squares)?;
        archive.value("stillness.power", power)?;
        if !A::READS {
            return Ok(());
        }
        require_all("stillness.origin", origin, "numbers of a size below 1e120", |x| x.abs() < 1e120)?;
        require("stillness.squares", *squares >= 0.0, "a number that is not negative", *squares)?;
        require("stillness.power", *power >= 0.0, "a number that is not negative", power)
    }
}
