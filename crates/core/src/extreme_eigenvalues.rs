//! Finds the smallest and the largest eigenvalue of a symmetric matrix, without allocating.
//!
//! Reflections bring the matrix to tridiagonal form (Householder 1958). There the signs of a recurrence count the
//! eigenvalues below any number (Sturm's theorem), so that bisection finds the two that bound all others.

use crate::arithmetic::{Arithmetic, dispatched};
use crate::kernels::dot;
use crate::metrics::largest;
use crate::real::Real;

/// Room for symmetric matrices of one size.
#[derive(Clone)]
pub(crate) struct ExtremeEigenvalues {
    /// The matrix, column after column, of which less and less is left.
    left: Vec<f64>,
    /// The vector v of a reflection, and what is subtracted with it.
    reflection: Vec<f64>,
    update: Vec<f64>,
    diagonal: Vec<f64>,
    /// The squares of the entries beside the diagonal, the first of them 0.
    beside: Vec<f64>,
}

impl ExtremeEigenvalues {
    pub fn new(n: usize) -> Self {
        let room = || vec![0.0; n];
        Self { left: vec![0.0; n * n], reflection: room(), update: room(), diagonal: room(), beside: room() }
    }

    /// The smallest and the largest eigenvalue, to rounding of the larger in size; `None` when a number is not finite.
    pub fn of(&mut self, matrix: &[f64]) -> Option<[f64; 2]> {
        let scale = largest(matrix.iter().copied());
        if !matrix.iter().all(|x| x.is_finite()) || scale == 0.0 {
            return (scale == 0.0).then_some([0.0; 2]);
        }
        // The squares of a matrix of unit scale are in range.
        self.left.iter_mut().zip(matrix).for_each(|(to, from)| *to = from / scale);
        let Self { left, reflection, update, diagonal, beside } = self;
        tridiagonalise(left, [reflection, update], diagonal, beside);
        Some(bisect(diagonal, beside).map(|value| value * scale))
    }
}

dispatched! {
    /// Brings a symmetric matrix to tridiagonal form: its diagonal, and the squares of the entries beside it.
    fn tridiagonalise<T, A>(matrix: &mut [T], room: [&mut [T]; 2], diagonal: &mut [T], beside: &mut [T]) {
        let n = diagonal.len();
        let [reflection, update] = room;
        for k in 0..n {
            diagonal[k] = matrix[k * n + k];
            let (column, rest) = matrix[k * n..].split_at_mut(n);
            let m = n - k - 1;
            if m == 0 {
                break;
            }
            let (v, w) = (&mut reflection[..m], &mut update[..m]);
            v.copy_from_slice(&column[k + 1..]);
            beside[k + 1] = dot::<T, A>(v, v);
            reflect::<T, A>(v, w, &mut Corner { columns: rest, n, first: k + 1 });
        }
    }
}

/// The lower right block of a matrix of size n, from row `first` on.
struct Corner<'a, T> {
    columns: &'a mut [T],
    n: usize,
    first: usize,
}

/// Replaces a block X by HXH, where H reflects v to the first axis: X − vwᵀ − wvᵀ with w = β(Xv − ½β(vᵀXv)v).
#[inline(always)]
fn reflect<T: Real, A: Arithmetic>(v: &mut [T], w: &mut [T], block: &mut Corner<'_, T>) {
    let squared = dot::<T, A>(v, v);
    let length = squared.sqrt();
    // Away from the axis, so that nothing cancels.
    let head = if v[0] < T::ZERO { v[0] - length } else { v[0] + length };
    let size = A::mul_add(head, head, A::mul_add(-v[0], v[0], squared));
    v[0] = head;
    if !(size > T::ZERO) {
        return;
    }
    let beta = (T::ONE + T::ONE) / size;
    for (w, column) in w.iter_mut().zip(block.columns.chunks_exact(block.n)) {
        *w = beta * dot::<T, A>(&column[block.first..], v);
    }
    let along = T::from_f64(0.5) * beta * dot::<T, A>(w, v);
    w.iter_mut().zip(&*v).for_each(|(w, &v)| *w = A::mul_add(-along, v, *w));
    for (j, column) in block.columns.chunks_exact_mut(block.n).enumerate() {
        let (left, right) = (-w[j], -v[j]);
        for ((x, &v), &w) in column[block.first..].iter_mut().zip(&*v).zip(&*w) {
            *x = A::mul_add(left, v, A::mul_add(right, w, *x));
        }
    }
}

/// The smallest and the largest eigenvalue of a tridiagonal matrix of unit scale.
fn bisect(diagonal: &[f64], beside: &[f64]) -> [f64; 2] {
    let n = diagonal.len();
    let roots = |i: usize| beside.get(i).map_or(0.0, |square| square.sqrt());
    let radius = |i: usize| diagonal[i].abs() + roots(i) + roots(i + 1);
    let bound = (0..n).map(radius).fold(0.0, f64::max);
    let (mut low, mut high) = ([-bound; 2], [bound; 2]);
    // Each round gains one bit of the bound.
    for _ in 0..54 {
        let middle = [0, 1].map(|end| 0.5 * (low[end] + high[end]));
        let below = count_below(diagonal, beside, middle);
        // The smallest has none below it, the largest all others.
        for (end, wanted) in [(0, 1), (1, n)] {
            *(if below[end] < wanted { &mut low[end] } else { &mut high[end] }) = middle[end];
        }
    }
    high
}

/// How many eigenvalues lie below each of two numbers: side by side, because each chain of divisions waits for itself.
fn count_below(diagonal: &[f64], beside: &[f64], numbers: [f64; 2]) -> [usize; 2] {
    let (mut pivots, mut counts) = ([1.0; 2], [0; 2]);
    for (d, square) in diagonal.iter().zip(beside) {
        for end in [0, 1] {
            let pivot = d - numbers[end] - square / pivots[end];
            pivots[end] = if pivot.abs() < f64::MIN_POSITIVE { -f64::MIN_POSITIVE } else { pivot };
            counts[end] += usize::from(pivots[end] < 0.0);
        }
    }
    counts
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    use super::ExtremeEigenvalues;
    use crate::linalg::{symmetric_eigenvalues, weighted_gram};
    use crate::matrix::Matrix;
    use crate::starts::{on_sphere, orthogonal};

    fn assert_extremes(matrix: &Matrix, expected: [f64; 2], what: &str) {
        let found = ExtremeEigenvalues::new(matrix.rows()).of(matrix.as_slice()).unwrap();
        let size = expected[0].abs().max(expected[1].abs());
        for (found, expected) in found.iter().zip(expected) {
            // Backward stable: off by rounding times the size and the number of operations in a row.
            let error = (found - expected).abs();
            assert!(error <= 1e-15 * matrix.rows() as f64 * size, "{what}: {found:e} for {expected:e}");
        }
    }

    #[test]
    fn they_are_the_first_and_the_last_of_all() {
        let rng = &mut Pcg64::seed_from_u64(1);
        for n in [1, 2, 3, 4, 7, 25, 60] {
            for scale in [1.0, 1e-170, 1e150] {
                let gains: Vec<f64> = (0..2 * n).map(|i| scale * ((i * i % 7) as f64 - 2.5)).collect();
                let matrix = weighted_gram(&on_sphere(n, 2 * n, rng), &gains, 0.3 * scale);
                let values = symmetric_eigenvalues(&matrix).unwrap();
                assert_extremes(&matrix, [values[0], values[n - 1]], &format!("N {n}, scale {scale:e}"));
            }
        }
    }

    #[test]
    fn known_spectra_are_found() {
        let rng = &mut Pcg64::seed_from_u64(2);
        for values in [vec![1.0; 6], vec![0.0, 0.0, 3.0], vec![-2.0, 1e-9, 1.0, 1.0], vec![1e-300; 4]] {
            let n = values.len();
            let turned = weighted_gram(&orthogonal(n, n, rng), &values, 0.0);
            let expected = [values[0], values[n - 1]];
            assert_extremes(&turned, expected, &format!("{values:?} turned"));
            assert_extremes(&Matrix::diagonal(&values), expected, &format!("{values:?}"));
        }
        assert_extremes(&Matrix::zeros(3, 3), [0.0, 0.0], "zero");
        assert_eq!(ExtremeEigenvalues::new(2).of(&[1.0, f64::NAN, f64::NAN, 1.0]), None);
        assert_eq!(ExtremeEigenvalues::new(1).of(&[f64::INFINITY]), None);
    }
}
