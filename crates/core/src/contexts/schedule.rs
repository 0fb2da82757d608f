//! Orders contexts in time: blocks in random order, or a chain that stays where it is most of the time.

use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use super::{require_probability, require_some};
use crate::error::{Error, Result};

/// The context of each sample, without end: an iterator that can be stopped, cloned and resumed at will.
///
/// ```
/// use leukos::contexts::{Schedule, stream};
///
/// let mut schedule = Schedule::blocks(64, 3, stream(0, 0))?;
/// let presented: Vec<usize> = schedule.by_ref().take(6).collect();
/// assert_eq!(presented[0], presented[2]);
/// assert_eq!(schedule.clone().next(), schedule.next());
/// # Ok::<(), leukos::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule<R = Pcg64> {
    contexts: usize,
    pace: Pace,
    /// The context of the last sample; `None` before the first.
    current: Option<usize>,
    rng: R,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// How long a block is, and how much of the present one is left.
    Blocks { length: usize, left: usize },
    /// The probability of leaving.
    Sticky { switch: f64 },
}

impl<R: Rng> Schedule<R> {
    /// Blocks of `length` samples, each of a context drawn uniformly from all, whatever came before.
    /// With length 1 this is the order of presentations that an offline run takes.
    ///
    /// # Errors
    /// When there is no context or a block has no sample.
    pub fn blocks(contexts: usize, length: usize, rng: R) -> Result<Self> {
        require_some("contexts", contexts)?;
        require_some("length", length)?;
        Ok(Self { contexts, pace: Pace::Blocks { length, left: 0 }, current: None, rng })
    }

    /// A chain that starts anywhere, keeps its context with probability 1 − `switch`, and otherwise goes to any of
    /// the other contexts.
    ///
    /// # Errors
    /// When there is no context, `switch` is not a probability, or there is no other context to switch to.
    pub fn sticky(contexts: usize, switch: f64, rng: R) -> Result<Self> {
        require_some("contexts", contexts)?;
        require_probability("switch", switch)?;
        if contexts == 1 && switch > 0.0 {
            let reason = "a chain needs a second context to switch to; give two or more, or switch = 0";
            return Err(Error::Incompatible { argument: "contexts".into(), reason });
        }
        Ok(Self { contexts, pace: Pace::Sticky { switch }, current: None, rng })
    }

    fn any(&mut self) -> usize {
        self.rng.random_range(0..self.contexts)
    }

    fn other_than(&mut self, context: usize) -> usize {
        let drawn = self.rng.random_range(0..self.contexts - 1);
        drawn + usize::from(drawn >= context)
    }
}

impl<R: Rng> Iterator for Schedule<R> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let next = match (self.current, &mut self.pace) {
            (Some(same), Pace::Blocks { left, .. }) if *left > 0 => {
                *left -= 1;
                same
            }
            (_, Pace::Blocks { length, left }) => {
                *left = *length - 1;
                self.any()
            }
            (None, Pace::Sticky { .. }) => self.any(),
            (Some(same), &mut Pace::Sticky { switch }) => {
                if self.rng.random_bool(switch) {
                    self.other_than(same)
                } else {
                    same
                }
            }
        };
        self.current = Some(next);
        self.current
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}
