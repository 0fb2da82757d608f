//! Describes what went wrong, with the facts needed to fix it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::circuit::Circuit;
use crate::kernels::all_finite;
use crate::real::Real;

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong size.
    #[error("{argument}: expected {expected}, got {found}")]
    Shape {
        /// The argument's name.
        argument: Cow<'static, str>,
        /// The size it should have.
        expected: String,
        /// The size it has.
        found: String,
    },
    /// An argument asks for more than is allowed on any machine; see [`crate::size`].
    #[error("{argument}: expected {expected}, got {found}")]
    TooLarge {
        /// The argument's name.
        argument: Cow<'static, str>,
        /// The largest size.
        expected: String,
        /// The size asked for.
        found: String,
    },
    /// There is not enough memory for what an argument asks for.
    #[error("{argument}: expected {} MB of memory that are free, got less", bytes.div_ceil(1_000_000))]
    OutOfMemory {
        /// The argument's name.
        argument: Cow<'static, str>,
        /// How much was needed, at most.
        bytes: usize,
    },
    /// An argument holds an infinity or a NaN.
    #[error("{argument}: expected finite numbers, got {value} at position {index}")]
    NotFinite {
        /// The argument's name.
        argument: Cow<'static, str>,
        /// Where it stands; matrices count column after column.
        index: usize,
        /// What stands there.
        value: f64,
    },
    /// A sample that a whitener cannot use, where that has been asked to be an error.
    #[error(
        "stimuli: expected finite numbers within the saturation limit and in proportion to the others \
         (or another choice of bad_samples), got {value} at position {index}"
    )]
    BadSample {
        /// Where it stands.
        index: usize,
        /// What stands there.
        value: f64,
    },
    /// A number lies outside its range.
    #[error("{argument}: expected {expected}, got {found}")]
    OutOfRange {
        /// The argument's name.
        argument: Cow<'static, str>,
        /// The range.
        expected: Cow<'static, str>,
        /// The number.
        found: f64,
    },
    /// Two choices, each fine alone, do not go together.
    #[error("{argument}: {reason}")]
    Incompatible {
        /// The argument's name.
        argument: Cow<'static, str>,
        /// Why it does not fit, and what would.
        reason: &'static str,
    },
    /// Without a leak, fewer interneurons than neurons leave M singular whatever the gains.
    #[error(
        "leak: expected more than 0 for {neurons} neurons and {interneurons} interneurons, \
         because M = W diag(g) W' has rank {interneurons} at most; got 0"
    )]
    Singular {
        /// The number of primary neurons N.
        neurons: usize,
        /// The number of interneurons K, less than N.
        interneurons: usize,
    },
    /// A matrix that must be symmetric is not.
    #[error(
        "{argument}: expected a symmetric matrix, but entries ({row}, {column}) and ({column}, {row}) differ by {difference:e}"
    )]
    NotSymmetric {
        /// The argument's name.
        argument: Cow<'static, str>,
        /// The row of the entry.
        row: usize,
        /// The column of the entry.
        column: usize,
        /// By how much the two entries differ.
        difference: f64,
    },
    /// A matrix that must be positive definite at the start is not.
    #[error("{argument}: expected {expected}, but {test}")]
    NotPositiveDefinite {
        /// The argument's name.
        argument: Cow<'static, str>,
        /// What was expected of it.
        expected: &'static str,
        /// Which test says so.
        test: Test,
    },
    /// The bytes of a model file are not what a whitener would have written.
    #[error("model file: {problem}")]
    ModelFile {
        /// Which part of the file, what was expected there and what was found.
        problem: String,
    },
    /// A run left the set of valid circuits.
    #[error(transparent)]
    Diverged(#[from] Box<Diverged>),
    /// The recurrent dynamics did not settle, or an iteration ran out of steps.
    #[error(
        "{what} did not converge in {iterations} iterations: last change {change:e}, tolerance {tolerance:e}"
    )]
    NotConverged {
        /// What was iterated.
        what: &'static str,
        /// How often.
        iterations: usize,
        /// The size of the last change, in the units of the tolerance.
        change: f64,
        /// The tolerance asked for.
        tolerance: f64,
    },
}

/// Where and how a run left the set of valid circuits.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "the run diverged at step {step}: M is no longer valid, {test} (last step known to be valid: {last_valid_step}); smaller rates may help"
)]
pub struct Diverged {
    /// The step, counted from 0, whose update or response failed.
    pub step: u64,
    /// Which test fired.
    pub test: Test,
    /// The number of steps after which the circuit is known to have been valid: [`Self::circuit`] is the circuit then.
    pub last_valid_step: u64,
    /// The last circuit known to be valid. It is kept in double precision, which holds either precision exactly.
    pub circuit: Circuit<f64>,
}

/// The test that a circuit failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Test {
    /// The Cholesky factorisation of M met a pivot that is not positive.
    Cholesky {
        /// Which pivot.
        pivot: usize,
    },
    /// An eigenvalue of the untied M has a real part that is not positive.
    Eigenvalue,
    /// Conjugate gradients met a direction p with pᵀMp ≤ 0.
    Curvature,
    /// M cannot be inverted.
    Singular,
    /// A number overflowed.
    Overflow,
    /// The recurrent dynamics grew without bound.
    Dynamics,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cholesky { pivot } => {
                write!(f, "pivot {pivot} of its Cholesky factorisation is not positive")
            }
            Self::Eigenvalue => f.write_str("an eigenvalue has a real part that is not positive"),
            Self::Curvature => f.write_str("conjugate gradients met a direction of negative curvature"),
            Self::Singular => f.write_str("it is singular to working precision"),
            Self::Overflow => f.write_str("a number is too large for its precision"),
            Self::Dynamics => f.write_str("the recurrent dynamics grow without bound"),
        }
    }
}

impl Error {
    pub(crate) fn shape(
        argument: impl Into<Cow<'static, str>>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Shape { argument: argument.into(), expected: expected.into(), found: found.into() }
    }

    pub(crate) fn out_of_range(
        argument: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
        found: f64,
    ) -> Self {
        Self::OutOfRange { argument: argument.into(), expected: expected.into(), found }
    }
}

pub(crate) fn require_length<T>(
    argument: impl Into<Cow<'static, str>>,
    values: &[T],
    expected: usize,
    of: &str,
) -> Result<()> {
    if values.len() == expected {
        return Ok(());
    }
    Err(Error::shape(argument, format!("{expected} numbers ({of})"), format!("{} numbers", values.len())))
}

pub(crate) fn require_finite<T: Real>(argument: impl Into<Cow<'static, str>>, values: &[T]) -> Result<()> {
    require_finite_within(argument, values, 0..values.len())
}

/// The same for some of the values; the error counts from the first of all.
pub(crate) fn require_finite_within<T: Real>(
    argument: impl Into<Cow<'static, str>>,
    values: &[T],
    range: Range<usize>,
) -> Result<()> {
    if all_finite(&values[range.clone()]) {
        return Ok(());
    }
    match values[range.clone()].iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(offset) => {
            let index = range.start + offset;
            Err(Error::NotFinite { argument: argument.into(), index, value: values[index].to_f64() })
        }
    }
}

/// A rate, a tolerance: finite and more than zero.
pub(crate) fn require_positive<T: Real>(argument: impl Into<Cow<'static, str>>, value: T) -> Result<()> {
    if value.is_finite() && value > T::ZERO {
        return Ok(());
    }
    Err(Error::out_of_range(argument, "a finite number above 0", value.to_f64()))
}
