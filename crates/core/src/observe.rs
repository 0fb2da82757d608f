//! Lets an observer watch a run, and stop it.

use std::ops::ControlFlow;

use crate::circuit::Circuit;
use crate::matrix::Matrix;
use crate::real::Real;

/// One step of a run, seen after the response and before the update it leads to.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a, T = f64> {
    /// The number of steps before this one.
    pub index: u64,
    /// The circuit that answers in this step.
    pub circuit: &'a Circuit<T>,
    /// What it was shown.
    pub shown: Shown<'a, T>,
}

/// What a circuit is shown in one step.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a, T = f64> {
    /// Online: a stimulus, answered by a response.
    Stimulus {
        /// The stimulus s.
        stimulus: &'a [T],
        /// The response r.
        response: &'a [T],
    },
    /// Offline: a context's covariance.
    Covariance {
        /// C_ss of the context.
        covariance: &'a Matrix<T>,
        /// Which context.
        context: usize,
    },
}

/// Watches a run.
///
/// `()` watches nothing and costs nothing, a pair watches twice, [`Every`] thins, and a closure does as it likes:
///
/// ```
/// use std::ops::ControlFlow;
/// use leukos::{Observer, Step};
///
/// let mut seen = 0;
/// let mut stop_after_three = |_: &Step| {
///     seen += 1;
///     if seen < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
/// };
/// fn takes_observer(_: &mut impl Observer<f64>) {}
/// takes_observer(&mut stop_after_three);
/// ```
pub trait Observer<T> {
    /// Whether [`Self::see`] does anything; a run without an observer takes a faster path.
    const WATCHES: bool = true;

    /// Looks at one step. `Break` ends the run once this step is complete.
    fn see(&mut self, step: &Step<'_, T>) -> ControlFlow<()>;
}

impl<T: Real> Observer<T> for () {
    const WATCHES: bool = false;

    fn see(&mut self, _: &Step<'_, T>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<T: Real, F: FnMut(&Step<'_, T>) -> ControlFlow<()>> Observer<T> for F {
    fn see(&mut self, step: &Step<'_, T>) -> ControlFlow<()> {
        self(step)
    }
}

/// Both see every step, and either can end the run.
impl<T: Real, A: Observer<T>, B: Observer<T>> Observer<T> for (A, B) {
    const WATCHES: bool = A::WATCHES || B::WATCHES;

    fn see(&mut self, step: &Step<'_, T>) -> ControlFlow<()> {
        let (first, second) = (self.0.see(step), self.1.see(step));
        if first.is_break() { first } else { second }
    }
}

/// Shows steps 0, `period`, 2 `period`, … to an observer.
#[derive(Clone, Copy, Debug)]
pub struct Every<O> {
    period: u64,
    observer: O,
}

impl<O> Every<O> {
    /// Shows every `period`th step to `observer`; a period of 0 counts as 1.
    pub fn new(period: u64, observer: O) -> Self {
        Self { period: period.max(1), observer }
    }

    /// Gives the observer back.
    pub fn into_inner(self) -> O {
        self.observer
    }
}

impl<T: Real, O: Observer<T>> Observer<T> for Every<O> {
    const WATCHES: bool = O::WATCHES;

    fn see(&mut self, step: &Step<'_, T>) -> ControlFlow<()> {
        if step.index.is_multiple_of(self.period) {
            self.observer.see(step)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Whether the observer does anything.
pub(crate) fn observes<T, O: Observer<T>>(_: &O) -> bool {
    O::WATCHES
}
