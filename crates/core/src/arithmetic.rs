//! Says how a multiply-add is carried out, and compiles loops for the processors there are.
//!
//! A loop is written once, generic over its number type and over [`Arithmetic`].
//! [`dispatched!`] compiles it for processors with AVX2 and FMA, where a multiply-add is one instruction with one
//! rounding, and for all others, where it is a product and a sum; some loops also for AVX-512, with the same bits.

use crate::real::Real;

/// How a multiply-add is carried out.
pub(crate) trait Arithmetic {
    /// The size of the vector registers to make use of.
    const REGISTER_BYTES: usize;

    /// `a * b + c`.
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T;
}

/// One instruction, one rounding.
pub(crate) struct Fused;
/// The same with the widest registers there are.
pub(crate) struct FusedWidest;
/// A product, then a sum: the fused one would be a slow library call here.
pub(crate) struct Separate;

impl Arithmetic for FusedWidest {
    const REGISTER_BYTES: usize = 64;

    #[inline(always)]
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
        a.fused(b, c)
    }
}

impl Arithmetic for Fused {
    const REGISTER_BYTES: usize = 32;

    #[inline(always)]
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
        a.fused(b, c)
    }
}

impl Arithmetic for Separate {
    const REGISTER_BYTES: usize = 32;

    #[inline(always)]
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
        a * b + c
    }
}

/// Compiles a loop for each kind of processor and picks one when it is called: with AVX2 and FMA, or without;
/// loops marked `widest` also with the registers of AVX-512, which shorter loops cannot fill.
macro_rules! dispatched {
    (@level $features:literal $arithmetic:ident $name:ident<T>($($arg:ident: $type:ty),*) $(-> $result:ty)?) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        #[allow(clippy::too_many_arguments)]
        fn $name<T: $crate::real::Real>($($arg: $type),*) $(-> $result)? {
            body::<T, $crate::arithmetic::$arithmetic>($($arg),*)
        }
    };
    (@widest widest, ($($arg:ident: $type:ty),*), $($result:ty)?) => {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            dispatched!(@level "avx512f" FusedWidest widest<T>($($arg: $type),*) $(-> $result)?);
            // SAFETY: the processor has just been seen to have this feature.
            return unsafe { widest::<T>($($arg),*) };
        }
    };
    (@widest , $($rest:tt)*) => {};
    ($(#[$meta:meta])* $($level:ident)? => $vis:vis fn $name:ident<T, A>($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, clippy::too_many_arguments)]
        $vis fn $name<T: $crate::real::Real>($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body<T: $crate::real::Real, A: $crate::arithmetic::Arithmetic>($($arg: $type),*) $(-> $result)? $body

            dispatched!(@widest $($level)?, ($($arg: $type),*), $($result)?);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                dispatched!(@level "avx2,fma" Fused wide<T>($($arg: $type),*) $(-> $result)?);
                // SAFETY: the processor has just been seen to have both features.
                return unsafe { wide::<T>($($arg),*) };
            }
            // The other wide architecture always fuses.
            #[cfg(target_arch = "aarch64")]
            return body::<T, $crate::arithmetic::Fused>($($arg),*);
            #[cfg(not(target_arch = "aarch64"))]
            body::<T, $crate::arithmetic::Separate>($($arg),*)
        }
    };
    ($(#[$meta:meta])* widest $vis:vis fn $($rest:tt)*) => { dispatched! { $(#[$meta])* widest => $vis fn $($rest)* } };
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { dispatched! { $(#[$meta])* => $vis fn $($rest)* } };
}
pub(crate) use dispatched;
