//! Maps rows by a square matrix that is laid out in panels of columns, so that every number of it is read in order.

use crate::arithmetic::{Arithmetic, dispatched};
use crate::real::Real;

/// A panel is as many columns wide as numbers fit into so many bytes: two registers of AVX2.
const PANEL_BYTES: usize = 64;
/// Rows that are mapped together, so that additions do not wait for one another.
const TOGETHER: usize = 4;

/// A matrix F (N × N) of which rows are multiplied from the left. Panels follow one another, each row by row; the last one
/// is filled up with zeros.
#[derive(Clone, Debug)]
pub(crate) struct Panels<T> {
    n: usize,
    entries: Vec<T>,
}

impl<T: Real> Panels<T> {
    /// Of zeros.
    pub fn new(n: usize) -> Self {
        Self { n, entries: vec![T::ZERO; n.next_multiple_of(Self::WIDTH) * n] }
    }

    const WIDTH: usize = PANEL_BYTES / size_of::<T>();

    /// Makes every number zero.
    pub fn clear(&mut self) {
        self.entries.fill(T::ZERO);
    }

    /// Sets one number.
    pub fn set(&mut self, row: usize, column: usize, value: T) {
        let (panel, place) = (column / Self::WIDTH, column % Self::WIDTH);
        self.entries[(panel * self.n + row) * Self::WIDTH + place] = value;
    }

    /// X F for rows X. Each number is summed up in the order of the channels, so neither how many rows there are nor the
    /// width of registers changes a bit.
    pub fn map(&self, rows: &[T], out: &mut [T]) {
        map_rows(&self.entries, self.n, rows, out);
    }
}

dispatched! {
    fn map_rows<T, A>(panels: &[T], n: usize, rows: &[T], out: &mut [T]) {
        match size_of::<T>() {
            4 => map_panels::<T, A, { PANEL_BYTES / 4 }>(panels, n, rows, out),
            _ => map_panels::<T, A, { PANEL_BYTES / 8 }>(panels, n, rows, out),
        }
    }
}

#[inline(always)]
fn map_panels<T: Real, A: Arithmetic, const WIDTH: usize>(panels: &[T], n: usize, rows: &[T], out: &mut [T]) {
    let several = rows.len() / n / TOGETHER * TOGETHER * n;
    for (index, panel) in panels.chunks_exact(n * WIDTH).enumerate() {
        let columns = index * WIDTH..n.min((index + 1) * WIDTH);
        let groups = rows[..several].chunks_exact(TOGETHER * n).zip(out.chunks_exact_mut(TOGETHER * n));
        for (x, r) in groups {
            map_panel::<T, A, WIDTH, TOGETHER>(panel, n, x, r, columns.clone());
        }
        for (x, r) in rows[several..].chunks_exact(n).zip(out[several..].chunks_exact_mut(n)) {
            map_panel::<T, A, WIDTH, 1>(panel, n, x, r, columns.clone());
        }
    }
}

#[inline(always)]
fn map_panel<T: Real, A: Arithmetic, const WIDTH: usize, const ROWS: usize>(
    panel: &[T],
    n: usize,
    x: &[T],
    out: &mut [T],
    columns: std::ops::Range<usize>,
) {
    let mut sums = [[T::ZERO; WIDTH]; ROWS];
    let x: [&[T]; ROWS] = std::array::from_fn(|row| &x[row * n..][..n]);
    for (k, line) in panel.chunks_exact(WIDTH).enumerate().take(n) {
        for row in 0..ROWS {
            for place in 0..WIDTH {
                sums[row][place] = A::mul_add(line[place], x[row][k], sums[row][place]);
            }
        }
    }
    for (sums, out) in sums.iter().zip(out.chunks_exact_mut(n)) {
        out[columns.clone()].copy_from_slice(&sums[..columns.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition, and bit for bit the same however the rows are cut.
    #[test]
    fn rows_are_mapped_as_defined_however_they_are_cut() {
        for n in [1, 2, 7, 8, 9, 33] {
            let entry = |i: usize, j: usize| ((3 * i + 7 * j) % 11) as f64 - 5.0;
            let mut panels = Panels::new(n);
            (0..n).for_each(|i| (0..n).for_each(|j| panels.set(i, j, entry(i, j))));
            let rows: Vec<f64> = (0..n * 11).map(|i| ((i * i) as f64).sin()).collect();
            let mut out = vec![0.0; rows.len()];
            panels.map(&rows, &mut out);
            for (x, r) in rows.chunks_exact(n).zip(out.chunks_exact(n)) {
                let mut alone = vec![0.0; n];
                panels.map(x, &mut alone);
                assert_eq!(alone, r);
                for j in 0..n {
                    let expected: f64 = (0..n).map(|k| x[k] * entry(k, j)).sum();
                    assert!(
                        (r[j] - expected).abs() < 1e-12 * n as f64,
                        "{n} channels: {} for {expected}",
                        r[j]
                    );
                }
            }
        }
    }
}
