//! Factorises the small definite matrices of estimators and priors, A = LLᵀ, and solves with them.

use leukos::Matrix;

/// The factor L of a positive definite matrix, whose rows are the columns of what is kept.
pub struct Cholesky(Matrix);

/// A pivot below this share of its diagonal entry is rounding.
const ROUNDING: f64 = 1e-12;

impl Cholesky {
    /// `None` where the matrix is not positive definite to working precision.
    pub fn new(matrix: &Matrix) -> Option<Self> {
        let n = matrix.rows();
        let mut rows = Matrix::zeros(n, n);
        for j in 0..n {
            for i in 0..j {
                let left = matrix[(i, j)] - dot(&rows.column(i)[..i], &rows.column(j)[..i]);
                rows[(i, j)] = left / rows[(i, i)];
            }
            let pivot = matrix[(j, j)] - dot(&rows.column(j)[..j], &rows.column(j)[..j]);
            if pivot.is_nan() || pivot <= ROUNDING * matrix[(j, j)] {
                return None;
            }
            rows[(j, j)] = pivot.sqrt();
        }
        Some(Self(rows))
    }

    /// L.
    pub fn factor(&self) -> Matrix {
        self.0.transpose()
    }

    /// L⁻¹b in place of b.
    pub fn solve_half(&self, b: &mut [f64]) {
        for i in 0..b.len() {
            let row = self.0.column(i);
            b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
        }
    }

    /// A⁻¹b in place of b.
    pub fn solve(&self, b: &mut [f64]) {
        self.solve_half(b);
        for i in (0..b.len()).rev() {
            let row = self.0.column(i);
            b[i] /= row[i];
            let known = b[i];
            b[..i].iter_mut().zip(row).for_each(|(b, l)| *b -= l * known);
        }
    }

    /// A⁻¹.
    pub fn inverse(&self) -> Matrix {
        let mut inverse = Matrix::identity(self.0.rows());
        (0..self.0.rows()).for_each(|j| self.solve(inverse.column_mut(j)));
        inverse
    }
}

/// The inner product, in eight partial sums that the processor can compute in parallel.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut strands = [0.0; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for (strand, (a, b)) in strands.iter_mut().zip(a.iter().zip(b)) {
            *strand += a * b;
        }
    }
    let rest = a.len() / 8 * 8;
    strands.iter().sum::<f64>() + a[rest..].iter().zip(&b[rest..]).map(|(a, b)| a * b).sum::<f64>()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

    use super::*;

    #[test]
    fn what_is_solved_solves() {
        let n = 11;
        let a = Matrix::from_fn(n, n, |i, j| if i == j { 2.0 + i as f64 } else { 1.0 / (1 + i + j) as f64 });
        let cholesky = Cholesky::new(&a).unwrap();
        let (l, inverse) = (cholesky.factor(), cholesky.inverse());
        for i in 0..n {
            for j in 0..n {
                let product =
                    |x: &Matrix, y: &dyn Fn(usize) -> f64| (0..n).map(|k| x[(i, k)] * y(k)).sum::<f64>();
                assert!((product(&l, &|k| l[(j, k)]) - a[(i, j)]).abs() < 1e-12);
                assert!((product(&a, &|k| inverse[(k, j)]) - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
        assert!(Cholesky::new(&Matrix::from_rows(&[[1.0, 1.0], [1.0, 1.0]])).is_none());
        assert!(Cholesky::new(&Matrix::from_rows(&[[1.0, 2.0], [2.0, 1.0]])).is_none());
    }
}
