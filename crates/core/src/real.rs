//! Names the two number types a circuit can be made of: `f32` and `f64`.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A real number, `f32` or `f64`.
///
/// The trait is sealed: kernels and the linear algebra below them are written for these two.
pub trait Real:
    sealed::Sealed
    + Number<Scalar = Self>
    + Copy
    + Debug
    + Display
    + Default
    + PartialOrd
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The distance from one to the next larger number.
    const EPSILON: Self;
    /// The largest finite number.
    const MAX: Self;
    /// The smallest positive number with all its digits.
    const MIN_POSITIVE: Self;

    /// The nearest number to `value`.
    fn from_f64(value: f64) -> Self;
    /// The same number in double precision (exact).
    fn to_f64(self) -> f64;
    /// The absolute value.
    fn abs(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The larger of two numbers; a NaN loses against a number.
    fn max(self, other: Self) -> Self;
    /// The smaller of two numbers; a NaN loses against a number.
    fn min(self, other: Self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

pub(crate) use sealed::Number;

mod sealed {
    use std::ops::{Add, Div, Mul, Neg, Sub};

    pub trait Sealed: faer::traits::RealField {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}

    /// What a learning step computes with: one number, or the same number of many circuits side by side.
    pub trait Number:
        Copy
        + Add<Output = Self>
        + Sub<Output = Self>
        + Mul<Output = Self>
        + Div<Output = Self>
        + Neg<Output = Self>
    {
        /// The number itself.
        type Scalar: super::Real;

        /// The same number for every circuit.
        fn splat(value: Self::Scalar) -> Self;

        /// `self * factor + term` with one rounding.
        fn fused(self, factor: Self, term: Self) -> Self;

        /// Applies `f` to the number of every circuit.
        fn map(self, f: impl Fn(Self::Scalar) -> Self::Scalar) -> Self;

        /// Applies `f` to two numbers of every circuit.
        fn zip(self, other: Self, f: impl Fn(Self::Scalar, Self::Scalar) -> Self::Scalar) -> Self;

        /// Whether `f` holds for the number of any circuit.
        fn any(self, f: impl Fn(Self::Scalar) -> bool) -> bool;
    }
}

macro_rules! real {
    ($t:ident, $from:expr, $to:expr) => {
        impl Number for $t {
            type Scalar = Self;

            #[inline(always)]
            fn splat(value: Self) -> Self {
                value
            }
            #[inline(always)]
            fn fused(self, factor: Self, term: Self) -> Self {
                $t::mul_add(self, factor, term)
            }
            #[inline(always)]
            fn map(self, f: impl Fn(Self) -> Self) -> Self {
                f(self)
            }
            #[inline(always)]
            fn zip(self, other: Self, f: impl Fn(Self, Self) -> Self) -> Self {
                f(self, other)
            }
            #[inline(always)]
            fn any(self, f: impl Fn(Self) -> bool) -> bool {
                f(self)
            }
        }

        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const EPSILON: Self = $t::EPSILON;
            const MAX: Self = $t::MAX;
            const MIN_POSITIVE: Self = $t::MIN_POSITIVE;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                $t::max(self, other)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                $t::min(self, other)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
        }
    };
}

real!(f32, |value: f64| value as f32, f64::from);
real!(f64, |value: f64| value, |value: f64| value);
