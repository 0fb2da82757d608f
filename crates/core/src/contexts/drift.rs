//! Moves slowly from one context to the next instead of switching.

use super::require_some;
use crate::error::{Error, Result};

/// A point on the way between two contexts, whose root is (1 − f) A + f B, where A and B are their roots.
///
/// Roots are mixed rather than covariances because they are what a circuit has to follow: standard deviations move
/// evenly, and between two contexts of one synthetic family every point belongs to the family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// The context that is left.
    pub from: usize,
    /// The context that is approached.
    pub to: usize,
    /// How much of the way is done: 0 at `from`, 1 at `to`.
    pub fraction: f64,
}

/// A path through contexts at an even pace, and then a rest at its end: an iterator that can be stopped, cloned and
/// resumed at will.
///
/// ```
/// use leukos::contexts::Drift;
///
/// let fractions: Vec<f64> = Drift::new(vec![3, 1], 4)?.take(6).map(|point| point.fraction).collect();
/// assert_eq!(fractions, [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]);
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    path: Vec<usize>,
    samples: usize,
    leg: usize,
    done: usize,
}

impl Drift {
    /// Visits the contexts of `path` in turn, with `samples` steps from each to the next.
    ///
    /// # Errors
    /// When the path is empty or a leg has no sample.
    pub fn new(path: Vec<usize>, samples: usize) -> Result<Self> {
        if path.is_empty() {
            return Err(Error::shape("path", "at least one context", "none"));
        }
        require_some("samples", samples)?;
        Ok(Self { path, samples, leg: 0, done: 0 })
    }
}

impl Iterator for Drift {
    type Item = Waypoint;

    fn next(&mut self) -> Option<Waypoint> {
        let Some(&to) = self.path.get(self.leg + 1) else {
            return self.path.last().map(|&last| Waypoint { from: last, to: last, fraction: 1.0 });
        };
        let from = self.path[self.leg];
        let fraction = self.done as f64 / self.samples as f64;
        self.done += 1;
        if self.done == self.samples {
            (self.leg, self.done) = (self.leg + 1, 0);
        }
        Some(Waypoint { from, to, fraction })
    }
}
