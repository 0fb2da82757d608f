//! Does long work in stretches, so that Ctrl-C is heard and other Python threads run.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::arrays::{Number, NumpyRows};
use crate::errors::require_memory;

/// How long a stretch should take: short enough for a person, long enough for its overhead not to count.
const STRETCH: Duration = Duration::from_millis(20);
/// Rows of the first stretch, before anyone knows how long one takes.
const FIRST: usize = 64;
/// A stretch has no more numbers than this, so that a converted copy stays small.
pub const MOST_NUMBERS: usize = 1 << 20;

/// What a thread takes before it has done anything, in numbers of 8 bytes: a stack of 2 MB.
const OF_A_THREAD: usize = 1 << 18;

/// Hands rows to `work` in order, a stretch at a time, without holding the interpreter; between stretches Ctrl-C is
/// heard. The core gives the same bits however rows are cut.
pub fn in_stretches<T: Number>(
    py: Python<'_>,
    rows: &NumpyRows<'_, T>,
    mut work: impl FnMut(Range<usize>, &[T]) -> leukos::Result<()> + Send,
) -> PyResult<()> {
    in_pieces(py, (rows.count, rows.width), |stretch| {
        rows.with(stretch.clone(), |values| py.detach(|| work(stretch.clone(), values)))?
            .map_err(|error| rows.in_place(error, stretch.start))
    })
}

/// Has so many rows of some width done in order, a stretch at a time; between stretches Ctrl-C is heard.
pub fn in_pieces(
    py: Python<'_>,
    (count, width): (usize, usize),
    mut work: impl FnMut(Range<usize>) -> PyResult<()>,
) -> PyResult<()> {
    let most = (MOST_NUMBERS / width.max(1)).max(1);
    let (mut from, mut length) = (0, FIRST.min(most));
    while from < count {
        let stretch = from..count.min(from + length);
        let begin = Instant::now();
        work(stretch.clone())?;
        from = stretch.end;
        if from < count {
            py.check_signals()?;
            let taken = begin.elapsed();
            if taken < STRETCH / 2 {
                length = (2 * length).min(most);
            } else if taken > 2 * STRETCH {
                length = (length / 2).max(1);
            }
        }
    }
    Ok(())
}

/// Listens for Ctrl-C from within work that holds no interpreter, now and then.
pub struct Listener {
    last: Instant,
    heard: Option<PyErr>,
}

impl Listener {
    /// One that has just listened.
    pub fn new() -> Self {
        Self { last: Instant::now(), heard: None }
    }

    /// Listens if it is time to.
    pub fn listen(&mut self) -> ControlFlow<()> {
        if self.last.elapsed() < STRETCH {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        #[allow(clippy::redundant_closure_for_method_calls)] // The method alone is not general enough.
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.heard = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// What was heard, if anything.
    pub fn heard(self) -> PyResult<()> {
        self.heard.map_or(Ok(()), Err)
    }
}

/// Does work that has no stretches on a thread of its own. On Ctrl-C it is told to stop, by the flag, and left to
/// itself: a factorisation of a large matrix cannot be stopped, but nobody has to wait for it.
pub fn aside<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> R + Send + 'static,
) -> PyResult<R> {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, mut receiver) = channel();
    let told = Arc::clone(&stop);
    require_memory("thread", OF_A_THREAD)?;
    std::thread::Builder::new().spawn(move || sender.send(work(&told)))?;
    loop {
        let outcome;
        (receiver, outcome) = py.detach(move || {
            let outcome = receiver.recv_timeout(STRETCH);
            (receiver, outcome)
        });
        match outcome {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the computation panicked; please report this"));
            }
        }
    }
}
