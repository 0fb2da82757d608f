//! Runs the inner loops over columns, fused and vectorised where the processor can.
//!
//! A loop is written once, generic over its number type and over [`Arithmetic`].
//! [`dispatched!`] compiles it twice: for processors with AVX2 and FMA, where a multiply-add is one
//! instruction with one rounding, and for all others, where it is a product and a sum.
//! Sums run in [`LANES`] interleaved strands whatever the vector width, so that a result does not
//! depend on how the compiler vectorised it.

use crate::real::Real;

/// The number of interleaved strands of a sum.
const LANES: usize = 8;

/// How a multiply-add is carried out.
pub(crate) trait Arithmetic {
    /// `a * b + c`.
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T;
}

/// One instruction, one rounding.
pub(crate) struct Fused;
/// A product, then a sum: the fused one would be a slow library call here.
pub(crate) struct Separate;

impl Arithmetic for Fused {
    #[inline(always)]
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
        a.mul_add(b, c)
    }
}

impl Arithmetic for Separate {
    #[inline(always)]
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
        a * b + c
    }
}

/// Compiles a loop for each kind of processor and picks one when it is called.
macro_rules! dispatched {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<T, A $(, $other:ident: $bound:path)*>($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, clippy::too_many_arguments)]
        $vis fn $name<T: $crate::real::Real $(, $other: $bound)*>($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body<T: $crate::real::Real, A: $crate::kernels::Arithmetic $(, $other: $bound)*>($($arg: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn wide<T: $crate::real::Real $(, $other: $bound)*>($($arg: $type),*) $(-> $result)? {
                    body::<T, $crate::kernels::Fused $(, $other)*>($($arg),*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has just been seen to have both features.
                    return unsafe { wide::<T $(, $other)*>($($arg),*) };
                }
            }
            // The other wide architecture always fuses.
            #[cfg(target_arch = "aarch64")]
            return body::<T, $crate::kernels::Fused $(, $other)*>($($arg),*);
            #[cfg(not(target_arch = "aarch64"))]
            body::<T, $crate::kernels::Separate $(, $other)*>($($arg),*)
        }
    };
}
pub(crate) use dispatched;

/// The products ⟨cᵢ, x⟩ of several columns with one vector.
#[inline(always)]
pub(crate) fn dots<T: Real, A: Arithmetic, const C: usize>(columns: [&[T]; C], x: &[T]) -> [T; C] {
    let columns = columns.map(|column| &column[..x.len()]);
    let (blocks, tail) = x.as_chunks::<LANES>();
    let mut strands = [[T::ZERO; LANES]; C];
    for (b, x) in blocks.iter().enumerate() {
        for c in 0..C {
            let column = &columns[c][b * LANES..(b + 1) * LANES];
            for l in 0..LANES {
                strands[c][l] = A::mul_add(column[l], x[l], strands[c][l]);
            }
        }
    }
    let start = blocks.len() * LANES;
    let mut sums = strands.map(|s| ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])));
    for (l, &x) in tail.iter().enumerate() {
        for c in 0..C {
            sums[c] = A::mul_add(columns[c][start + l], x, sums[c]);
        }
    }
    sums
}

/// The product ⟨x, y⟩.
#[inline(always)]
pub(crate) fn dot<T: Real, A: Arithmetic>(x: &[T], y: &[T]) -> T {
    dots::<T, A, 1>([x], y)[0]
}

/// Whether a sum of squares ran over, or is so small that it has lost digits. A NaN is out of range too.
#[inline(always)]
pub(crate) fn out_of_range<T: Real>(square: T) -> bool {
    !(square.is_finite() && square * T::EPSILON > T::ZERO)
}

/// `out += Σ factorᵢ cᵢ` over several columns.
#[inline(always)]
pub(crate) fn add_columns<T: Real, A: Arithmetic, const C: usize>(
    out: &mut [T],
    factors: [T; C],
    columns: [&[T]; C],
) {
    let columns = columns.map(|column| &column[..out.len()]);
    let (blocks, tail) = out.as_chunks_mut::<LANES>();
    let start = blocks.len() * LANES;
    for (b, out) in blocks.iter_mut().enumerate() {
        for c in 0..C {
            let column = &columns[c][b * LANES..(b + 1) * LANES];
            for l in 0..LANES {
                out[l] = A::mul_add(factors[c], column[l], out[l]);
            }
        }
    }
    for (l, out) in tail.iter_mut().enumerate() {
        for c in 0..C {
            *out = A::mul_add(factors[c], columns[c][start + l], *out);
        }
    }
}

/// `out = keep · x + take · y`.
#[inline(always)]
pub(crate) fn blend<T: Real, A: Arithmetic>(out: &mut [T], keep: T, x: &[T], take: T, y: &[T]) {
    for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
        *out = A::mul_add(keep, x, take * y);
    }
}

/// Calls `each` with four columns at a time, then with the rest one by one.
macro_rules! by_fours {
    ($count:expr, |$first:ident| $four:block, |$index:ident| $one:block) => {
        let count = $count;
        let fours = count / 4 * 4;
        for $first in (0..fours).step_by(4) $four
        for $index in fours..count $one
    };
}

/// Column `i` of a matrix with `rows` rows that is stored by columns.
#[inline(always)]
pub(crate) fn column<T>(matrix: &[T], rows: usize, i: usize) -> &[T] {
    &matrix[i * rows..(i + 1) * rows]
}

#[inline(always)]
fn four_columns<T>(matrix: &[T], rows: usize, first: usize) -> [&[T]; 4] {
    std::array::from_fn(|c| column(matrix, rows, first + c))
}

dispatched! {
    /// The products of all columns with one vector: z = Wᵀr.
    pub(crate) fn project<T, A>(matrix: &[T], x: &[T], products: &mut [T]) {
        let rows = x.len();
        by_fours!(products.len(), |first| {
            let four = dots::<T, A, 4>(four_columns(matrix, rows, first), x);
            products[first..first + 4].copy_from_slice(&four);
        }, |i| {
            products[i] = dot::<T, A>(column(matrix, rows, i), x);
        });
    }
}

dispatched! {
    /// The recurrent current: out = leak · x + Σᵢ gᵢ ⟨w_rn,i , x⟩ w_nr,i, which is M x in one pass over the weights.
    pub(crate) fn recurrent<T, A>(feedback: &[T], feedforward: &[T], gains: &[T], leak: T, x: &[T], out: &mut [T]) {
        let rows = x.len();
        for (out, &x) in out.iter_mut().zip(x) {
            *out = leak * x;
        }
        by_fours!(gains.len(), |first| {
            let mut outputs = dots::<T, A, 4>(four_columns(feedforward, rows, first), x);
            for (output, &gain) in outputs.iter_mut().zip(&gains[first..first + 4]) {
                *output *= gain;
            }
            add_columns::<T, A, 4>(out, outputs, four_columns(feedback, rows, first));
        }, |i| {
            let output = gains[i] * dot::<T, A>(column(feedforward, rows, i), x);
            add_columns::<T, A, 1>(out, [output], [column(feedback, rows, i)]);
        });
    }
}

dispatched! {
    /// Solves L Lᵀ x = b in place, with L lower triangular and the reciprocals of its diagonal at hand.
    pub(crate) fn solve_cholesky<T, A>(lower: &[T], reciprocals: &[T], x: &mut [T]) {
        solve_lower::<T, A>(lower, reciprocals, x);
        solve_lower_transposed::<T, A>(lower, reciprocals, x);
    }
}

#[inline(always)]
fn solve_lower<T: Real, A: Arithmetic>(lower: &[T], reciprocals: &[T], x: &mut [T]) {
    let n = x.len();
    by_fours!(
        n,
        |first| {
            let (head, rest) = x[first..].split_at_mut(4);
            for j in 0..4 {
                head[j] *= reciprocals[first + j];
                for i in j + 1..4 {
                    head[i] = A::mul_add(-lower[(first + j) * n + first + i], head[j], head[i]);
                }
            }
            let columns = four_columns(lower, n, first).map(|column| &column[first + 4..]);
            add_columns::<T, A, 4>(rest, std::array::from_fn(|j| -head[j]), columns);
        },
        |j| {
            let (head, rest) = x[j..].split_at_mut(1);
            head[0] *= reciprocals[j];
            add_columns::<T, A, 1>(rest, [-head[0]], [&column(lower, n, j)[j + 1..]]);
        }
    );
}

#[inline(always)]
fn solve_lower_transposed<T: Real, A: Arithmetic>(lower: &[T], reciprocals: &[T], x: &mut [T]) {
    let n = x.len();
    let fours = n / 4 * 4;
    for j in (fours..n).rev() {
        let (head, rest) = x[j..].split_at_mut(1);
        head[0] = (head[0] - dot::<T, A>(&column(lower, n, j)[j + 1..], rest)) * reciprocals[j];
    }
    for first in (0..fours).step_by(4).rev() {
        let (head, rest) = x[first..].split_at_mut(4);
        let columns = four_columns(lower, n, first).map(|column| &column[first + 4..]);
        let below = dots::<T, A, 4>(columns, rest);
        for j in (0..4).rev() {
            let mut value = head[j] - below[j];
            for i in j + 1..4 {
                value = A::mul_add(-lower[(first + j) * n + first + i], head[i], value);
            }
            head[j] = value * reciprocals[first + j];
        }
    }
}

dispatched! {
    /// Factorises M = L Lᵀ in place in the lower triangle, column after column; the error is the pivot that failed.
    pub(crate) fn cholesky<T, A>(matrix: &mut [T], reciprocals: &mut [T]) -> Result<(), usize> {
        let n = reciprocals.len();
        for j in 0..n {
            let (done, rest) = matrix.split_at_mut(j * n);
            let out = &mut rest[j..n];
            by_fours!(j, |first| {
                let columns = four_columns(done, n, first).map(|column| &column[j..]);
                add_columns::<T, A, 4>(out, columns.map(|column| -column[0]), columns);
            }, |p| {
                let left = &column(done, n, p)[j..];
                add_columns::<T, A, 1>(out, [-left[0]], [left]);
            });
            let pivot = out[0];
            if !(pivot > T::ZERO && pivot.is_finite()) {
                return Err(j);
            }
            reciprocals[j] = T::ONE / pivot.sqrt();
            for x in out {
                *x *= reciprocals[j];
            }
        }
        Ok(())
    }
}

dispatched! {
    /// The product ⟨x, y⟩.
    pub(crate) fn inner<T, A>(x: &[T], y: &[T]) -> T {
        dot::<T, A>(x, y)
    }
}

dispatched! {
    /// `out += factor · x`.
    pub(crate) fn add_scaled<T, A>(out: &mut [T], factor: T, x: &[T]) {
        add_columns::<T, A, 1>(out, [factor], [x]);
    }
}

dispatched! {
    /// `out = factor · out + x`.
    pub(crate) fn extend<T, A>(out: &mut [T], factor: T, x: &[T]) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = A::mul_add(factor, *out, x);
        }
    }
}
