//! Moves gains: the fast rule of a stream, and the gains that are best for a known covariance.

use crate::error::{Error, Result};
use crate::kernels::Arithmetic;
use crate::linalg::{Cholesky, product, symmetric_eigen};
use crate::matrix::Matrix;
use crate::metrics::{require_covariance, square_root};
use crate::real::Real;

/// Eq. (7), Δgᵢ = η_g (zᵢ² − ‖wᵢ‖²), without the part η_g zᵢ² that a drive adds to it.
#[inline(always)]
pub(crate) fn gain_base<T: Real, A: Arithmetic>(gain: T, rate: T, target: T) -> T {
    A::mul_add(-rate, target, gain)
}

/// The gains whose M = αI + W diag(g) Wᵀ is nearest to C^½ in the Frobenius norm:
/// g = [(WᵀW)∘²]⁺ diag(WᵀC^½W − αWᵀW), of least norm where several are.
///
/// Nothing keeps that M positive definite; [`optimal_gains`] does.
///
/// # Errors
/// When a size does not match, a number is not finite or runs over, or `covariance` is not one.
pub fn least_squares_gains(synapses: &Matrix, covariance: &Matrix, leak: f64) -> Result<Vec<f64>> {
    require_fit(synapses, covariance)?;
    require_leak(leak)?;
    least_squares_gains_for_root(synapses, &square_root("covariance", covariance)?, leak)
}

/// The same where C^½ is known already.
pub(crate) fn least_squares_gains_for_root(synapses: &Matrix, root: &Matrix, leak: f64) -> Result<Vec<f64>> {
    let (gram, k) = (product(synapses.view().transposed(), synapses.view()), synapses.columns());
    let spread = product(root.view(), synapses.view());
    let mut gains =
        (0..k).map(|i| dot(synapses.column(i), spread.column(i)) - leak * gram[(i, i)]).collect::<Vec<_>>();
    solve_semidefinite(&Matrix::from_fn(k, k, |i, j| gram[(i, j)] * gram[(i, j)]), &mut gains)?;
    if gains.iter().all(|gain| gain.is_finite()) { Ok(gains) } else { Err(out_of_range()) }
}

/// Steps whose predicted gain is below this share of the objective are the last ones. Newton's quadratic
/// convergence takes the gradient from 1e-4.5 to 1e-9 with the first and to all the precision there is with
/// the second; the objective shows neither, being flat to 1e-16 over 1e-8 of the gains.
const LAST_STEP: f64 = 1e-9;
const LAST_STEPS: usize = 2;
const MOST_ITERATIONS: usize = 100;

/// The gains that minimise the objective f_c(αI + W diag(g) Wᵀ) for a known covariance.
///
/// The objective is convex in g, with gradient ‖wᵢ‖² − Bᵢᵢ and Hessian 2 A∘B, where A = WᵀM⁻¹W and
/// B = WᵀM⁻¹CM⁻¹W. Newton's method with Armijo's rule never leaves the cone of positive definite M. It starts
/// from the least-squares gains where they are feasible. Where the minimiser is not unique (K > N(N+1)/2, or
/// parallel columns) the steps stay in the span that moves M, which gives the one of least norm.
///
/// # Errors
/// When a size does not match, a number is not finite, `covariance` is not positive definite, or no gains
/// make M positive definite.
pub fn optimal_gains(synapses: &Matrix, covariance: &Matrix, leak: f64) -> Result<Vec<f64>> {
    require_fit(synapses, covariance)?;
    require_leak(leak)?;
    require_covariance("covariance", covariance)?;
    Cholesky::new(covariance.clone()).map_err(|test| Error::NotPositiveDefinite {
        argument: "covariance".into(),
        expected: "a positive definite matrix",
        test,
    })?;
    let problem = Problem { synapses, covariance, leak };
    let mut point = problem.start()?;
    let (mut decrement, mut left) = (f64::INFINITY, LAST_STEPS);
    for _ in 0..MOST_ITERATIONS {
        let newton = problem.newton_step(&point)?;
        decrement = newton.decrement;
        let last = decrement <= LAST_STEP * point.objective;
        let Some(next) = problem.line_search(&point, &newton, last) else {
            // No step lowers the objective any more: this is the minimum to working precision.
            return Ok(point.gains);
        };
        point = next;
        left -= usize::from(last);
        if left == 0 {
            return Ok(point.gains);
        }
    }
    Err(Error::NotConverged {
        what: "Newton's method for the optimal gains",
        iterations: MOST_ITERATIONS,
        change: decrement / point.objective,
        tolerance: LAST_STEP,
    })
}

struct Problem<'a> {
    synapses: &'a Matrix,
    covariance: &'a Matrix,
    leak: f64,
}

/// Feasible gains with their objective and the factor of their M.
struct Point {
    gains: Vec<f64>,
    objective: f64,
    factor: Cholesky,
}

struct NewtonStep {
    step: Vec<f64>,
    /// −∇fᵀ step, twice what a quadratic model promises to gain.
    decrement: f64,
}

impl Problem<'_> {
    /// The least-squares gains, or else gains that make M a multiple of the identity or of WWᵀ.
    fn start(&self) -> Result<Point> {
        let root = square_root("covariance", self.covariance)?;
        let projected = least_squares_gains_for_root(self.synapses, &root, self.leak)?;
        if let Some(point) = self.at(projected) {
            return Ok(point);
        }
        let flat = if self.leak > 0.0 {
            0.0
        } else {
            let length: f64 = self.synapses.as_slice().iter().map(|w| w * w).sum();
            root.trace() / length
        };
        self.at(vec![flat; self.synapses.columns()]).ok_or(Error::NotPositiveDefinite {
            argument: "synapses".into(),
            expected: "synapses and a leak for which some gains make M positive definite",
            test: crate::error::Test::Singular,
        })
    }

    /// `None` off the cone.
    fn at(&self, gains: Vec<f64>) -> Option<Point> {
        let (n, w) = (self.synapses.rows(), self.synapses);
        let scaled = Matrix::from_fn(n, w.columns(), |i, j| w[(i, j)] * gains[j]);
        let mut m = product(scaled.view(), w.view().transposed());
        for i in 0..n {
            m[(i, i)] += self.leak;
        }
        let trace = m.trace();
        let factor = Cholesky::new(m).ok()?;
        let mut solved = self.covariance.clone();
        factor.solve_columns(&mut solved);
        let objective = trace + solved.trace();
        objective.is_finite().then_some(Point { gains, objective, factor })
    }

    fn newton_step(&self, point: &Point) -> Result<NewtonStep> {
        let (w, k) = (self.synapses, self.synapses.columns());
        let mut filtered = w.clone();
        point.factor.solve_columns(&mut filtered);
        let a = product(w.view().transposed(), filtered.view());
        let spread = product(self.covariance.view(), filtered.view());
        let b = product(filtered.view().transposed(), spread.view());
        let descent: Vec<f64> = (0..k).map(|i| b[(i, i)] - dot(w.column(i), w.column(i))).collect();
        let mut step = descent.clone();
        solve_semidefinite(&Matrix::from_fn(k, k, |i, j| 2.0 * a[(i, j)] * b[(i, j)]), &mut step)?;
        let decrement = dot(&descent, &step);
        Ok(NewtonStep { step, decrement })
    }

    /// Armijo's rule: halve until the objective falls by a fair share of what the slope promises.
    fn line_search(&self, point: &Point, newton: &NewtonStep, last: bool) -> Option<Point> {
        let mut size = 1.0;
        for _ in 0..60 {
            let gains = point.gains.iter().zip(&newton.step).map(|(g, step)| g + size * step).collect();
            if let Some(next) = self.at(gains) {
                // The last steps gain less than the objective can resolve, so they are only kept feasible.
                if last || next.objective <= point.objective - 1e-4 * size * newton.decrement {
                    return Some(next);
                }
            }
            size *= 0.5;
        }
        None
    }
}

/// How small an eigenvalue counts as zero, relative to the largest.
const NULL: f64 = 1e-13;

/// Solves A x = b in place for a positive semidefinite A: the x of least norm where A is singular.
fn solve_semidefinite(matrix: &Matrix, x: &mut [f64]) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    if let Ok(factor) = Cholesky::new(matrix.clone())
        && factor.pivot_ratio() > NULL.sqrt()
    {
        factor.solve(x);
        return Ok(());
    }
    let (values, vectors) = symmetric_eigen(matrix).ok_or_else(out_of_range)?;
    let largest = values.last().copied().unwrap_or(0.0);
    let mut solution = vec![0.0; x.len()];
    for (j, &value) in values.iter().enumerate() {
        if value > NULL * largest {
            let share = dot(vectors.column(j), x) / value;
            solution.iter_mut().zip(vectors.column(j)).for_each(|(s, v)| *s += share * v);
        }
    }
    x.copy_from_slice(&solution);
    Ok(())
}

fn out_of_range() -> Error {
    let reason = "their sizes are so far from those of the covariance and the leak that the gains run over; \
                  rescale them";
    Error::Incompatible { argument: "synapses".into(), reason }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    crate::kernels::inner(x, y)
}

fn require_fit(synapses: &Matrix, covariance: &Matrix) -> Result<()> {
    synapses.require_finite("synapses")?;
    covariance.require_shape("covariance", synapses.rows(), synapses.rows())
}

pub(crate) fn require_leak<T: Real>(leak: T) -> Result<()> {
    if leak.is_finite() && leak >= T::ZERO {
        return Ok(());
    }
    let (expected, found) = ("a finite number, 0 or more", leak.to_f64());
    Err(Error::OutOfRange { argument: "leak".into(), expected, found })
}
