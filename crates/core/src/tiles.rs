//! Assembles, factorises and inverts a matrix of moderate size in register tiles.
//!
//! A tile of [`WIDE`] columns stays in registers while the products of many vectors are added to it. How tall it is
//! depends on the registers there are; each of its numbers is the same sum in the same order whatever that is.

use crate::arithmetic::{Arithmetic, dispatched};
use crate::kernels::{add_columns, by_fours, column, four_columns, scale_by_pivot};
use crate::real::Real;

/// The columns of a tile.
const WIDE: usize = 4;

/// The smallest matrix that holds a tile.
pub(crate) const SMALLEST_TILED: usize = 8;

/// From this size on the linear-algebra crate, which blocks for caches, is quicker.
pub(crate) const LARGE: usize = 96;

/// The sizes of matrices that tiles are for.
pub(crate) const TILED: std::ops::Range<usize> = SMALLEST_TILED..LARGE;

/// The height of a tile that fills the registers: two of them for each column.
const fn tallest<T>(register_bytes: usize, rows: usize) -> usize {
    let tall = 2 * register_bytes / size_of::<T>();
    if tall >= 32 && rows >= 32 {
        32
    } else if tall >= 16 && rows >= 16 {
        16
    } else {
        8
    }
}

/// Runs a loop with the height of its tiles known.
macro_rules! in_tiles {
    ($rows:expr, $A:ident, $function:ident::<$T:ident>($($argument:expr),* $(,)?)) => {
        match tallest::<$T>($A::REGISTER_BYTES, $rows) {
            32 => $function::<$T, $A, 32>($($argument),*),
            16 => $function::<$T, $A, 16>($($argument),*),
            _ => $function::<$T, $A, 8>($($argument),*),
        }
    };
}

/// Columns or rows in blocks of [`WIDE`], a narrower one first: what it leaves to do is then a multiple of [`WIDE`].
fn blocks(n: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let head = n % WIDE;
    let first = (head > 0).then_some(0..head);
    first.into_iter().chain((head..n).step_by(WIDE).map(|start| start..start + WIDE))
}

/// Starts of windows of `TALL` rows that cover `rows`, moved up where they would not fit into `n`.
#[inline(always)]
fn windows<const TALL: usize>(rows: std::ops::Range<usize>, n: usize) -> impl Iterator<Item = usize> {
    rows.step_by(TALL).map(move |start| start.min(n - TALL))
}

/// Adds Σₚ cₚ xₚ to a tile, or takes it off, where xₚ is a window of the p-th vector of length `n`, and cₚ are the
/// entries of the p-th vector of coefficients, as long, from `first` on.
#[inline(always)]
fn accumulate<T: Real, A: Arithmetic, const TALL: usize, const ADD: bool>(
    tile: &mut [[T; TALL]; WIDE],
    (vectors, window): (&[T], usize),
    (coefficients, first): (&[T], usize),
    n: usize,
) {
    for (x, c) in vectors.chunks_exact(n).zip(coefficients.chunks_exact(n)) {
        let (x, c) = (&x[window..window + TALL], &c[first..first + WIDE]);
        for j in 0..WIDE {
            let c = if ADD { c[j] } else { -c[j] };
            for l in 0..TALL {
                tile[j][l] = A::mul_add(c, x[l], tile[j][l]);
            }
        }
    }
}

/// Writes as many columns of a tile as `block` has.
#[inline(always)]
fn store<T: Real, const TALL: usize>(tile: &[[T; TALL]], block: &mut [T], n: usize, window: usize) {
    for (column, tile) in block.chunks_exact_mut(n).zip(tile) {
        column[window..window + TALL].copy_from_slice(tile);
    }
}

/// The M = αI + Σᵢ gᵢ wᵢ wᵢᵀ to assemble, with room for the gᵢ wᵢ.
pub(crate) struct Assembly<'a, T> {
    pub weights: &'a [T],
    pub gains: &'a [T],
    pub leak: T,
    pub scaled: &'a mut [T],
}

dispatched! {
    /// Assembles M and factorises it as L Lᵀ in one sweep over blocks of columns, each of which is the block of the
    /// sum less what earlier columns of L explain. Only the lower triangle means anything.
    /// Needs n ≥ [`SMALLEST_TILED`]; the error is the pivot that failed.
    widest pub(crate) fn assemble_cholesky<T, A>(
        assembly: Assembly<'_, T>, matrix: &mut [T], reciprocals: &mut [T],
    ) -> Result<(), usize> {
        in_tiles!(reciprocals.len(), A, assemble::<T>(assembly, matrix, reciprocals))
    }
}

#[inline(always)]
fn assemble<T: Real, A: Arithmetic, const TALL: usize>(
    assembly: Assembly<'_, T>,
    matrix: &mut [T],
    reciprocals: &mut [T],
) -> Result<(), usize> {
    let (n, Assembly { weights, gains, leak, scaled }) = (reciprocals.len(), assembly);
    for ((to, from), &gain) in scaled.chunks_exact_mut(n).zip(weights.chunks_exact(n)).zip(gains) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = gain * from;
        }
    }
    for columns in blocks(n) {
        let first = columns.start;
        let (done, rest) = matrix.split_at_mut(first * n);
        let block = &mut rest[..columns.len() * n];
        let columns_are_few = columns.len() < WIDE;
        if columns_are_few {
            narrow_block::<T, A>(block, weights, scaled, n);
        } else {
            for window in windows::<TALL>(first..n, n) {
                let mut tile = [[T::ZERO; TALL]; WIDE];
                accumulate::<T, A, TALL, true>(&mut tile, (weights, window), (scaled, first), n);
                accumulate::<T, A, TALL, false>(&mut tile, (done, window), (done, first), n);
                store(&tile, block, n, window);
            }
        }
        for (c, column) in columns.zip(block.chunks_exact_mut(n)) {
            column[c] += leak;
        }
        if columns_are_few {
            factorise_narrow::<T, A>(block, reciprocals)?;
        } else {
            factorise_block::<T, A>(block, first, reciprocals)?;
        }
    }
    Ok(())
}

dispatched! {
    /// Factorises a ready matrix as L Lᵀ in place in the lower triangle. Needs n ≥ [`SMALLEST_TILED`]; the error is
    /// the pivot that failed.
    widest pub(crate) fn cholesky_tiled<T, A>(matrix: &mut [T], reciprocals: &mut [T]) -> Result<(), usize> {
        in_tiles!(reciprocals.len(), A, factorise::<T>(matrix, reciprocals))
    }
}

#[inline(always)]
fn factorise<T: Real, A: Arithmetic, const TALL: usize>(
    matrix: &mut [T],
    reciprocals: &mut [T],
) -> Result<(), usize> {
    let n = reciprocals.len();
    for columns in blocks(n) {
        let first = columns.start;
        let (done, rest) = matrix.split_at_mut(first * n);
        let block = &mut rest[..columns.len() * n];
        if columns.len() < WIDE {
            factorise_narrow::<T, A>(block, reciprocals)?;
            continue;
        }
        for start in (first..n).step_by(TALL) {
            let window = start.min(n - TALL);
            let mut tile = [[T::ZERO; TALL]; WIDE];
            accumulate::<T, A, TALL, false>(&mut tile, (done, window), (done, first), n);
            for (column, tile) in block.chunks_exact_mut(n).zip(&tile) {
                // Rows above `start` are done, or not in the lower triangle.
                for (x, &change) in column[start..window + TALL].iter_mut().zip(&tile[start - window..]) {
                    *x += change;
                }
            }
        }
        factorise_block::<T, A>(block, first, reciprocals)?;
    }
    Ok(())
}

/// The first columns of Σᵢ gᵢ wᵢ wᵢᵀ, too few for a tile.
#[inline(always)]
fn narrow_block<T: Real, A: Arithmetic>(block: &mut [T], weights: &[T], scaled: &[T], n: usize) {
    block.fill(T::ZERO);
    for (c, out) in block.chunks_exact_mut(n).enumerate() {
        by_fours!(
            weights.len() / n,
            |first| {
                let factors = four_columns(scaled, n, first).map(|scaled| scaled[c]);
                add_columns::<T, A, 4>(out, factors, four_columns(weights, n, first));
            },
            |i| {
                add_columns::<T, A, 1>(out, [scaled[i * n + c]], [column(weights, n, i)]);
            }
        );
    }
}

/// Factorises the columns of a narrow block, from their diagonal down.
#[inline(always)]
fn factorise_narrow<T: Real, A: Arithmetic>(block: &mut [T], reciprocals: &mut [T]) -> Result<(), usize> {
    let n = reciprocals.len();
    for c in 0..block.len() / n {
        let (done, rest) = block.split_at_mut(c * n);
        let out = &mut rest[c..n];
        for left in done.chunks_exact(n) {
            add_columns::<T, A, 1>(out, [-left[c]], [&left[c..]]);
        }
        reciprocals[c] = scale_by_pivot(out).ok_or(c)?;
    }
    Ok(())
}

/// Factorises a block of [`WIDE`] columns from their diagonal down, once earlier blocks have been taken off:
/// first its corner, then the rows below, [`WIDE`] at a time.
#[inline(always)]
fn factorise_block<T: Real, A: Arithmetic>(
    block: &mut [T],
    first: usize,
    reciprocals: &mut [T],
) -> Result<(), usize> {
    let n = block.len() / WIDE;
    let (a, rest) = block.split_at_mut(n);
    let (b, rest) = rest.split_at_mut(n);
    let (c, d) = rest.split_at_mut(n);
    let (a, b, c, d) = (&mut a[first..n], &mut b[first..n], &mut c[first..n], &mut d[first..n]);
    let mut tops = [[T::ZERO; WIDE]; WIDE];
    for i in 0..WIDE {
        (tops[0][i], tops[1][i], tops[2][i], tops[3][i]) = (a[i], b[i], c[i], d[i]);
    }
    let corner = Corner::of::<A>(tops).map_err(|pivot| first + pivot)?;
    reciprocals[first..first + WIDE].copy_from_slice(&corner.reciprocals);
    let (a, b) = (a.as_chunks_mut::<WIDE>().0, b.as_chunks_mut::<WIDE>().0);
    let (c, d) = (c.as_chunks_mut::<WIDE>().0, d.as_chunks_mut::<WIDE>().0);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        let rows = corner.explain::<A>([*a, *b, *c, *d]);
        (*a, *b, *c, *d) = (rows[0], rows[1], rows[2], rows[3]);
    }
    Ok(())
}

/// The corner of a block as U D Uᵀ, with U unit lower triangular.
struct Corner<T> {
    /// The entries of U below its diagonal, column by column.
    below: [[T; WIDE]; WIDE],
    /// One over the roots of D.
    reciprocals: [T; WIDE],
}

impl<T: Real> Corner<T> {
    /// The roots are taken at the end and together: the way from one pivot to the next is one division long.
    #[inline(always)]
    fn of<A: Arithmetic>(mut columns: [[T; WIDE]; WIDE]) -> Result<Self, usize> {
        let mut below = [[T::ZERO; WIDE]; WIDE];
        for c in 0..WIDE {
            let pivot = columns[c][c];
            if !(pivot > T::ZERO && pivot.is_finite()) {
                return Err(c);
            }
            let reciprocal = T::ONE / pivot;
            for i in c + 1..WIDE {
                below[c][i] = columns[c][i] * reciprocal;
            }
            for j in c + 1..WIDE {
                for i in j..WIDE {
                    columns[j][i] = A::mul_add(-below[c][j], columns[c][i], columns[j][i]);
                }
            }
        }
        let reciprocals = std::array::from_fn(|c| T::ONE / columns[c][c].sqrt());
        Ok(Self { below, reciprocals })
    }

    /// The factor's entries in some rows of the block, given column by column.
    #[inline(always)]
    fn explain<A: Arithmetic>(&self, mut columns: [[T; WIDE]; WIDE]) -> [[T; WIDE]; WIDE] {
        for c in 0..WIDE {
            for j in c + 1..WIDE {
                for l in 0..WIDE {
                    columns[j][l] = A::mul_add(-self.below[c][j], columns[c][l], columns[j][l]);
                }
            }
            for l in 0..WIDE {
                columns[c][l] *= self.reciprocals[c];
            }
        }
        columns
    }
}

dispatched! {
    /// Writes the lower triangle of M⁻¹ = L⁻ᵀ L⁻¹, given the factor L and room for L⁻¹. Needs n ≥ [`SMALLEST_TILED`].
    widest pub(crate) fn invert_cholesky<T, A>(
        lower: &[T], reciprocals: &[T], rows: &mut [T], inverse: &mut [T],
    ) {
        in_tiles!(reciprocals.len(), A, invert::<T>(lower, reciprocals, rows, inverse));
    }
}

#[inline(always)]
fn invert<T: Real, A: Arithmetic, const TALL: usize>(
    lower: &[T],
    reciprocals: &[T],
    rows: &mut [T],
    inverse: &mut [T],
) {
    invert_lower::<T, A, TALL>(lower, reciprocals, rows);
    let n = reciprocals.len();
    for columns in blocks(n) {
        let first = columns.start;
        let block = &mut inverse[first * n..columns.end * n];
        for window in windows::<TALL>(first..n, n) {
            // L⁻¹ is lower triangular: its rows before the window have nothing there.
            let below = &rows[window * n..];
            let mut tile = [[T::ZERO; TALL]; WIDE];
            accumulate::<T, A, TALL, true>(&mut tile, (below, window), (below, first), n);
            store(&tile, block, n, window);
        }
    }
}

/// Writes L⁻¹ by rows: row i is (eᵢ − Σₚ Lᵢₚ rowₚ) / Lᵢᵢ over the rows p before it.
#[inline(always)]
fn invert_lower<T: Real, A: Arithmetic, const TALL: usize>(lower: &[T], reciprocals: &[T], rows: &mut [T]) {
    let n = reciprocals.len();
    for range in blocks(n) {
        let first = range.start;
        let (done, rest) = rows.split_at_mut(first * n);
        let block = &mut rest[..range.len() * n];
        for window in windows::<TALL>(0..n, n) {
            let mut tile = [[T::ZERO; TALL]; WIDE];
            for c in 0..WIDE {
                for l in 0..TALL {
                    tile[c][l] = if window + l == first + c { T::ONE } else { T::ZERO };
                }
            }
            if window < range.end {
                accumulate::<T, A, TALL, false>(&mut tile, (done, window), (&lower[..first * n], first), n);
                for c in 0..WIDE {
                    let left = &lower[(first + c) * n + first..];
                    for l in 0..TALL {
                        tile[c][l] *= reciprocals[first + c];
                    }
                    for j in c + 1..WIDE {
                        for l in 0..TALL {
                            tile[j][l] = A::mul_add(-left[j], tile[c][l], tile[j][l]);
                        }
                    }
                }
            }
            store(&tile, block, n, window);
        }
    }
}

dispatched! {
    /// The lower triangle of Σₚ xₚ xₚᵀ for vectors of n ≥ [`SMALLEST_TILED`] numbers, one after another.
    widest pub(crate) fn gram_tiled<T, A>(out: &mut [T], vectors: &[T], n: usize) {
        in_tiles!(n, A, gram::<T>(out, vectors, n));
    }
}

#[inline(always)]
fn gram<T: Real, A: Arithmetic, const TALL: usize>(out: &mut [T], vectors: &[T], n: usize) {
    for columns in blocks(n) {
        let first = columns.start;
        let block = &mut out[first * n..columns.end * n];
        for window in windows::<TALL>(first..n, n) {
            let mut tile = [[T::ZERO; TALL]; WIDE];
            accumulate::<T, A, TALL, true>(&mut tile, (vectors, window), (vectors, first), n);
            store(&tile, block, n, window);
        }
    }
}

dispatched! {
    /// The product of two matrices stored by columns, the left one with n ≥ [`SMALLEST_TILED`] rows.
    widest pub(crate) fn multiply_tiled<T, A>(out: &mut [T], left: &[T], right: &[T], n: usize) {
        in_tiles!(n, A, product::<T>(out, left, right, n));
    }
}

/// Tiles of twice the usual width where there are registers for it; what they leave is done in usual ones.
#[inline(always)]
fn product<T: Real, A: Arithmetic, const TALL: usize>(out: &mut [T], left: &[T], right: &[T], n: usize) {
    const BROAD: usize = 2 * WIDE;
    let inner = left.len() / n;
    let columns = right.len() / inner;
    let broad = if A::REGISTER_BYTES >= 64 { columns / BROAD * BROAD } else { 0 };
    let (broad_out, out) = out.split_at_mut(broad * n);
    let (broad_right, right) = right.split_at(broad * inner);
    for (out, right) in broad_out.chunks_mut(BROAD * n).zip(broad_right.chunks(BROAD * inner)) {
        product_block::<T, A, TALL, BROAD>(out, left, right, n);
    }
    for (out, right) in out.chunks_mut(WIDE * n).zip(right.chunks(WIDE * inner)) {
        product_block::<T, A, TALL, WIDE>(out, left, right, n);
    }
}

/// Up to `COLUMNS` columns of a product.
#[inline(always)]
fn product_block<T: Real, A: Arithmetic, const TALL: usize, const COLUMNS: usize>(
    out: &mut [T],
    left: &[T],
    right: &[T],
    n: usize,
) {
    let inner = left.len() / n;
    let last = right.len() / inner - 1;
    // A block that is not full computes its last column more than once.
    let right: [&[T]; COLUMNS] = std::array::from_fn(|j| column(right, inner, j.min(last)));
    for window in windows::<TALL>(0..n, n) {
        let mut tile = [[T::ZERO; TALL]; COLUMNS];
        for (p, x) in left.chunks_exact(n).enumerate() {
            let x = &x[window..window + TALL];
            for j in 0..COLUMNS {
                let factor = right[j][p];
                for l in 0..TALL {
                    tile[j][l] = A::mul_add(factor, x[l], tile[j][l]);
                }
            }
        }
        store(&tile, out, n, window);
    }
}
