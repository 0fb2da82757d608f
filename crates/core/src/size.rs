//! Refuses sizes that do not fit into memory before anything is allocated: a failed allocation would end the process.
//!
//! A matrix has at most [`MOST_NUMBERS`] numbers on any machine. Below that the machine decides: the memory that some work
//! will need is allocated in one piece as a test, and released untouched. The amount is stated where the work begins, as a
//! number of matrices of each shape; it is an upper bound (`crates/core/tests/memory.rs` measures it).

use std::borrow::Cow;
use std::hint::black_box;

use crate::error::{Error, Result};

/// The most numbers that a matrix may have: 16 384 channels squared, which are 2 GiB in double precision.
pub const MOST_NUMBERS: usize = 1 << 28;

/// The largest N of which a matrix N × N may be made.
const MOST_ROWS: usize = MOST_NUMBERS.isqrt();

/// Work with fewer numbers than this is not tested: the test would take longer than the work.
const SMALL: usize = 1 << 14;
/// What any work may need besides, so that its small allocations do not fail after the large ones have not: products of
/// matrices keep 4 MB on every thread.
const BESIDES: usize = 1 << 20;

/// Checks that a matrix may have so many rows and columns.
///
/// # Errors
/// [`Error::TooLarge`] when it would have more than [`MOST_NUMBERS`] numbers.
pub fn require_matrix(argument: impl Into<Cow<'static, str>>, rows: usize, columns: usize) -> Result<()> {
    if rows.checked_mul(columns).is_some_and(|numbers| numbers <= MOST_NUMBERS) {
        return Ok(());
    }
    let expected = format!("a matrix of at most {MOST_NUMBERS} numbers");
    Err(Error::TooLarge { argument: argument.into(), expected, found: format!("{rows} x {columns}") })
}

/// Checks that a matrix of so many rows and as many columns may be made, such as a covariance of so many channels.
///
/// # Errors
/// [`Error::TooLarge`] when there are more than 16 384.
pub fn require_square(argument: impl Into<Cow<'static, str>>, rows: usize) -> Result<()> {
    if rows <= MOST_ROWS {
        return Ok(());
    }
    let expected = format!("at most {MOST_ROWS}");
    Err(Error::TooLarge { argument: argument.into(), expected, found: rows.to_string() })
}

/// Checks that there is memory for this many numbers in double precision.
///
/// # Errors
/// [`Error::OutOfMemory`] when they cannot.
pub fn require_memory(argument: impl Into<Cow<'static, str>>, numbers: usize) -> Result<()> {
    if numbers < SMALL {
        return Ok(());
    }
    let mut trial: Vec<f64> = Vec::new();
    // Without `black_box` the compiler would remove the allocation.
    match black_box(&mut trial).try_reserve_exact(numbers.saturating_add(BESIDES)) {
        Ok(()) => {
            black_box(&mut trial);
            Ok(())
        }
        Err(_) => Err(out_of_memory(argument, numbers)),
    }
}

/// The error when there is no memory for this many numbers.
pub(crate) fn out_of_memory(argument: impl Into<Cow<'static, str>>, numbers: usize) -> Error {
    Error::OutOfMemory { argument: argument.into(), bytes: numbers.saturating_mul(size_of::<f64>()) }
}

/// Checks that samples of so many channels can be summed up, in so many contexts more.
///
/// # Errors
/// When there are too many channels, or there is no memory for their co-moments.
pub fn require_moments(channels: usize, contexts: usize) -> Result<()> {
    Work { squares: contexts.saturating_mul(2).saturating_add(2), ..Work::of("channels", channels, 0) }
        .require()?;
    require_memory("channels", channels.saturating_mul(4 * crate::moments::BLOCK))
}

/// Checks that there is memory to create, copy and run a circuit of this size.
///
/// # Errors
/// When it is too large, or there is no memory for it.
pub fn require_circuit(neurons: usize, interneurons: usize) -> Result<()> {
    Work { squares: 8, weights: 8, ..Work::of("neurons", neurons, interneurons) }.require()
}

/// Checks that there is memory to create, copy and run a whitener of this size.
///
/// # Errors
/// When it is too large, or there is no memory for it.
pub fn require_whitener(channels: usize, interneurons: usize) -> Result<()> {
    // Fourteen memories with two predictions each, the map, and all of it once more for a copy.
    Work { squares: 140, weights: 16, ..Work::of("channels", channels, interneurons) }.require()?;
    require_memory("channels", channels.saturating_add(interneurons).saturating_mul(1024))
}

/// How many matrices some work holds at once, by their shapes, with N neurons or channels and K interneurons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// What N counts.
    pub name: &'static str,
    pub neurons: usize,
    pub interneurons: usize,
    /// N × N.
    pub squares: usize,
    /// N × K.
    pub weights: usize,
    /// K × K.
    pub gains: usize,
}

impl Work {
    /// Nothing yet.
    pub fn of(name: &'static str, neurons: usize, interneurons: usize) -> Self {
        Self { name, neurons, interneurons, squares: 0, weights: 0, gains: 0 }
    }

    /// # Errors
    /// When a matrix would be too large, or all together do not fit into memory.
    pub fn require(self) -> Result<()> {
        let (n, k) = (self.neurons, self.interneurons);
        require_square(self.name, n)?;
        if self.gains > 0 {
            require_square("interneurons", k)?;
        }
        if self.weights > 0 {
            require_matrix("synapses", n, k)?;
        }
        // The products fit by now, or do not count.
        let all = [(self.squares, n, n), (self.weights, n, k), (self.gains, k, k)].into_iter();
        let numbers = all.fold(0_usize, |sum, (count, rows, columns)| {
            sum.saturating_add(count.saturating_mul(rows.saturating_mul(columns)))
        });
        require_memory(self.name, numbers)
    }
}
