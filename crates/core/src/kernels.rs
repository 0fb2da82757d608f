//! Runs the inner loops over columns, fused and vectorised where the processor can (`arithmetic`).
//!
//! Sums run in [`LANES`] interleaved strands whatever the vector width, so that a result does not
//! depend on how the compiler vectorised it.

use crate::arithmetic::{Arithmetic, dispatched};
use crate::circuit::Parts;
use crate::real::Real;
use crate::synapses::HebbianStep;

/// The number of interleaved strands of a sum.
const LANES: usize = 8;
/// Half of them, for what a whole block leaves.
const HALF: usize = LANES / 2;

/// Calls `each` with four columns at a time, then with the rest one by one.
macro_rules! by_fours {
    ($count:expr, |$first:ident| $four:block, |$index:ident| $one:block) => {
        let count = $count;
        let fours = count / 4 * 4;
        for $first in (0..fours).step_by(4) $four
        for $index in fours..count $one
    };
}

pub(crate) use by_fours;

/// `sum += x · y`, strand by strand.
#[inline(always)]
fn fuse<T: Real, A: Arithmetic, const L: usize>(sum: &mut [T; L], x: &[T; L], y: &[T; L]) {
    for l in 0..L {
        sum[l] = A::mul_add(x[l], y[l], sum[l]);
    }
}

/// The products ⟨cᵢ, x⟩ of several columns with one vector.
///
/// There is no closure here, nor anywhere around a multiply-add: one that is not inlined would lose the
/// processor features of its caller and call the library's slow fused product.
#[inline(always)]
fn dots<T: Real, A: Arithmetic, const C: usize>(columns: [&[T]; C], x: &[T]) -> [T; C] {
    let zero = T::ZERO;
    let (blocks, rest) = x.as_chunks::<LANES>();
    let mut products = [zero; C];
    if !blocks.is_empty() {
        let own_blocks = columns.map(|column| &column.as_chunks::<LANES>().0[..blocks.len()]);
        let mut strands = [[zero; LANES]; C];
        for (b, x) in blocks.iter().enumerate() {
            for c in 0..C {
                fuse::<T, A, LANES>(&mut strands[c], &own_blocks[c][b], x);
            }
        }
        // The strands go through memory. Otherwise the compiler sees how they are used and arranges the loop
        // above for this sum, with a shuffle for each product.
        let strands = std::hint::black_box(strands);
        for c in 0..C {
            products[c] = sum_of_strands(strands[c]);
        }
    }
    let start = blocks.len() * LANES;
    for c in 0..C {
        for (&x, &y) in rest.iter().zip(&columns[c][start..]) {
            products[c] = A::mul_add(x, y, products[c]);
        }
    }
    products
}

#[inline(always)]
fn sum_of_strands<T: Real>(s: [T; LANES]) -> T {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

/// The products ⟨xᵢ, yᵢ⟩ of four pairs of neighbouring columns, from column `first` on; bit for bit those of [`dot`].
#[inline(always)]
fn four_dots<T: Real, A: Arithmetic>(x: &[T], y: &[T], rows: usize, first: usize) -> [T; 4] {
    let zero = T::ZERO;
    let (x, y) = (four_columns(x, rows, first), four_columns(y, rows, first));
    let blocks = rows / LANES;
    let mut products = [zero; 4];
    if blocks > 0 {
        let x_blocks = x.map(|column| &column.as_chunks::<LANES>().0[..blocks]);
        let y_blocks = y.map(|column| &column.as_chunks::<LANES>().0[..blocks]);
        let mut strands = [[zero; LANES]; 4];
        for b in 0..blocks {
            for c in 0..4 {
                fuse::<T, A, LANES>(&mut strands[c], &x_blocks[c][b], &y_blocks[c][b]);
            }
        }
        let strands = std::hint::black_box(strands);
        for c in 0..4 {
            products[c] = sum_of_strands(strands[c]);
        }
    }
    for c in 0..4 {
        for (&x, &y) in x[c][blocks * LANES..].iter().zip(&y[c][blocks * LANES..]) {
            products[c] = A::mul_add(x, y, products[c]);
        }
    }
    products
}

/// The products ⟨xᵢ, yᵢ⟩ of the columns of two matrices with `rows` rows.
#[inline(always)]
pub(crate) fn column_dots<T: Real, A: Arithmetic>(x: &[T], y: &[T], rows: usize, products: &mut [T]) {
    by_fours!(
        products.len(),
        |first| {
            products[first..first + 4].copy_from_slice(&four_dots::<T, A>(x, y, rows, first));
        },
        |i| {
            products[i] = dot::<T, A>(column(x, rows, i), column(y, rows, i));
        }
    );
}

/// The product ⟨x, y⟩.
#[inline(always)]
pub(crate) fn dot<T: Real, A: Arithmetic>(x: &[T], y: &[T]) -> T {
    dots::<T, A, 1>([x], y)[0]
}

/// Whether a sum of squares overflowed, or is so small that it has lost digits. A NaN is out of range too.
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
    let (blocks, rest) = out.as_chunks_mut::<LANES>();
    let start = blocks.len() * LANES;
    let own_blocks = columns.map(|column| column.as_chunks::<LANES>().0);
    for (b, out) in blocks.iter_mut().enumerate() {
        let mut sum = *out;
        for c in 0..C {
            fuse::<T, A, LANES>(&mut sum, &[factors[c]; LANES], &own_blocks[c][b]);
        }
        *out = sum;
    }
    let (halves, tail) = rest.as_chunks_mut::<HALF>();
    let tail_start = start + halves.len() * HALF;
    for out in halves {
        let mut sum = *out;
        for c in 0..C {
            if let Some(own) = columns[c][start..].first_chunk::<HALF>() {
                fuse::<T, A, HALF>(&mut sum, &[factors[c]; HALF], own);
            }
        }
        *out = sum;
    }
    for (l, out) in tail.iter_mut().enumerate() {
        for c in 0..C {
            *out = A::mul_add(factors[c], columns[c][tail_start + l], *out);
        }
    }
}

/// The weights of one interneuron after a Hebbian step. A step of few weights waits for the new gain, and makes the
/// way from there short; a step of many waits for memory, and makes do with fewer operations.
#[inline(always)]
pub(crate) fn move_weights<T: Real, A: Arithmetic>(
    out: &mut [T],
    step: HebbianStep<T>,
    weights: &[T],
    correlation: &[T],
) {
    let n = out.len();
    let (weights, correlation) = (&weights[..n], &correlation[..n]);
    if n < LANES {
        for l in 0..n {
            out[l] = step.apply::<A>(weights[l], correlation[l]);
        }
        return;
    }
    let (kept, growth) = (step.kept::<A>(), step.growth);
    for start in (0..n).step_by(LANES) {
        // The last block may begin within the one before it.
        let block = start.min(n - LANES)..start.min(n - LANES) + LANES;
        let (out, weights, own) = (&mut out[block.clone()], &weights[block.clone()], &correlation[block]);
        for l in 0..LANES {
            out[l] = A::mul_add(kept, weights[l], growth * own[l]);
        }
    }
}

/// Column `i` of a matrix with `rows` rows that is stored by columns.
#[inline(always)]
pub(crate) fn column<T>(matrix: &[T], rows: usize, i: usize) -> &[T] {
    &matrix[i * rows..(i + 1) * rows]
}

#[inline(always)]
pub(crate) fn four_columns<T>(matrix: &[T], rows: usize, first: usize) -> [&[T]; 4] {
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
    /// The recurrent current M x = leak · x + Σᵢ gᵢ zᵢ w_nr,i and the inputs zᵢ = ⟨w_rn,i , x⟩, in one pass over the weights.
    pub(crate) fn recurrent<T, A>(parts: Parts<'_, T>, x: &[T], inputs: &mut [T], current: &mut [T]) {
        let Parts { feedback, gains, leak, neurons, .. } = parts;
        let feedforward = parts.listening();
        for (current, &x) in current.iter_mut().zip(x) {
            *current = leak * x;
        }
        by_fours!(gains.len(), |first| {
            let z = dots::<T, A, 4>(four_columns(feedforward, neurons, first), x);
            inputs[first..first + 4].copy_from_slice(&z);
            let outputs = std::array::from_fn(|c| gains[first + c] * z[c]);
            add_columns::<T, A, 4>(current, outputs, four_columns(feedback, neurons, first));
        }, |i| {
            inputs[i] = dot::<T, A>(column(feedforward, neurons, i), x);
            add_columns::<T, A, 1>(current, [gains[i] * inputs[i]], [column(feedback, neurons, i)]);
        });
    }
}

dispatched! {
    /// A symmetric matrix, given by its lower triangle, times a vector, in one pass over that triangle.
    pub(crate) fn apply_symmetric<T, A>(lower: &[T], x: &[T], out: &mut [T]) {
        let n = x.len();
        out.fill(T::ZERO);
        by_fours!(n, |first| {
            let (below, next) = (four_columns(lower, n, first).map(|column| &column[first..]), first + 4);
            let own: [T; 4] = std::array::from_fn(|c| x[first + c]);
            for j in 0..4 {
                out[first + j] = A::mul_add(below[j][j], own[j], out[first + j]);
                for i in j + 1..4 {
                    out[first + i] = A::mul_add(below[j][i], own[j], out[first + i]);
                    out[first + j] = A::mul_add(below[j][i], own[i], out[first + j]);
                }
            }
            let below = below.map(|column| &column[4..]);
            let sums = dots::<T, A, 4>(below, &x[next..]);
            for j in 0..4 {
                out[first + j] += sums[j];
            }
            add_columns::<T, A, 4>(&mut out[next..], own, below);
        }, |j| {
            let below = &column(lower, n, j)[j..];
            out[j] += dot::<T, A>(below, &x[j..]);
            add_columns::<T, A, 1>(&mut out[j + 1..], [x[j]], [&below[1..]]);
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

dispatched! {
    /// Solves L x = b in place, for as many vectors x as there are: each part of L is read once for all of them.
    widest pub(crate) fn solve_triangle<T, A>(lower: &[T], reciprocals: &[T], x: &mut [T]) {
        solve_lower::<T, A>(lower, reciprocals, x);
    }
}

#[inline(always)]
fn solve_lower<T: Real, A: Arithmetic>(lower: &[T], reciprocals: &[T], x: &mut [T]) {
    let n = reciprocals.len();
    by_fours!(
        n,
        |first| {
            let columns = four_columns(lower, n, first).map(|column| &column[first + 4..]);
            for x in x.chunks_exact_mut(n) {
                let (head, rest) = x[first..].split_at_mut(4);
                for j in 0..4 {
                    head[j] *= reciprocals[first + j];
                    for i in j + 1..4 {
                        head[i] = A::mul_add(-lower[(first + j) * n + first + i], head[j], head[i]);
                    }
                }
                add_columns::<T, A, 4>(rest, std::array::from_fn(|j| -head[j]), columns);
            }
        },
        |j| {
            for x in x.chunks_exact_mut(n) {
                let (head, rest) = x[j..].split_at_mut(1);
                head[0] *= reciprocals[j];
                add_columns::<T, A, 1>(rest, [-head[0]], [&column(lower, n, j)[j + 1..]]);
            }
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
    /// Σᵢ xᵢ yᵢᵀ for vectors of a few numbers.
    pub(crate) fn sum_outer_products<T, A>(x: &[T], y: &[T], n: usize, out: &mut [T]) {
        out.fill(T::ZERO);
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact(n)) {
            for (out, &y) in out.chunks_exact_mut(n).zip(y) {
                for (out, &x) in out.iter_mut().zip(x) {
                    *out = A::mul_add(x, y, *out);
                }
            }
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
            reciprocals[j] = scale_by_pivot(out).ok_or(j)?;
        }
        Ok(())
    }
}

/// Divides a column of the factor by the root of its pivot, which comes first; `None` where that is not positive.
#[inline(always)]
pub(crate) fn scale_by_pivot<T: Real>(column: &mut [T]) -> Option<T> {
    let pivot = column[0];
    if !(pivot > T::ZERO && pivot.is_finite()) {
        return None;
    }
    let reciprocal = T::ONE / pivot.sqrt();
    for x in column {
        *x *= reciprocal;
    }
    Some(reciprocal)
}

dispatched! {
    /// Whether all numbers are finite: 0 · x is 0 for those that are, and a NaN, which no sum loses, for the others.
    widest pub(crate) fn all_finite<T, A>(values: &[T]) -> bool {
        const STRANDS: usize = 4 * LANES;
        let (blocks, rest) = values.as_chunks::<STRANDS>();
        let mut zeros = [T::ZERO; STRANDS];
        for x in blocks {
            fuse::<T, A, STRANDS>(&mut zeros, x, &[T::ZERO; STRANDS]);
        }
        zeros.iter().chain(rest).fold(true, |finite, &x| finite & x.is_finite())
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

dispatched! {
    /// `out = a · out + b · x + c · y`, with the factors a, b and c.
    widest pub(crate) fn blend<T, A>(out: &mut [T], factors: [T; 3], x: &[T], y: &[T]) {
        let [a, b, c] = factors;
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            *out = A::mul_add(a, *out, A::mul_add(b, x, c * y));
        }
    }
}
