//! Does long work in pieces, so that Ctrl-C works and other Python threads can run.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::arrays::{Number, NumpyRows};
use crate::errors::require_memory;

/// How long a piece should take: short enough for a waiting user, long enough that its overhead does not matter.
const STRETCH: Duration = Duration::from_millis(20);
/// Rows of the first piece, before it is known how long a row takes.
const FIRST: usize = 64;
/// The most numbers in a piece, so that a converted copy stays small.
pub const MOST_NUMBERS: usize = 1 << 20;

/// What a thread takes before it has done anything, in numbers of 8 bytes: a stack of 2 MB.
const OF_A_THREAD: usize = 1 << 18;

/// Hands rows to `work` in order, a piece at a time, without holding the interpreter; between pieces it checks for Ctrl-C.
/// The results of the core do not depend on how rows are divided.
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

/// Works through this many rows in order, a piece at a time; between pieces it checks for Ctrl-C.
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

/// Checks for Ctrl-C now and then from work that does not hold the interpreter.
pub struct Listener {
    last: Instant,
    heard: Option<PyErr>,
}

impl Listener {
    /// One that has just checked.
    pub fn new() -> Self {
        Self { last: Instant::now(), heard: None }
    }

    /// Checks if it is time to.
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

    /// The exception, if Ctrl-C was pressed.
    pub fn heard(self) -> PyResult<()> {
        self.heard.map_or(Ok(()), Err)
    }
}

/// Does work that cannot be divided on a thread of its own. On Ctrl-C the flag tells the thread to stop, and the caller
/// does not wait for it: a factorisation of a large matrix, for example, cannot be stopped.
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
