//! Evaluates the nested objective of Eq. (3), E_c min_g f_c(αI + W diag(g) Wᵀ), and its derivatives by W.
//!
//! At the optimal gains ∂f_c/∂g = 0. Therefore the gradient by W is the partial one at those gains (the envelope
//! theorem), 2 E_c[(I − M⁻¹C_ss M⁻¹) W diag(g_c)]; the second derivative also counts how the gains follow W.
//! Columns have unit length, and derivatives are those on the product of their spheres.

use crate::context_optimum::{ContextObjective, ContextOptimum};
use crate::error::{Error, Result, Test};
use crate::gains::require_leak;
use crate::kernels::{add_scaled, inner};
use crate::linalg::Cholesky;
use crate::matrix::Matrix;
use crate::metrics::square_root;
use crate::optimal_gains::optimal_gains;
use crate::spheres::{lengths_along, to_tangent};

/// The nested objective over contexts with known covariances, plus the cost of gains (κ/2) E_c‖g_c‖².
pub(crate) struct NestedObjective {
    covariances: Vec<Matrix>,
    leak: f64,
    /// κ, in the units of the objective over those of squared gains.
    gain_cost: f64,
    /// E_c 2 Tr C_ss^½, which no W can go below.
    least: f64,
    /// E_c Tr C_ss^½ / N, a typical eigenvalue of the best M.
    pub scale: f64,
}

/// The nested objective at one W, with the optimal gains of every context.
pub(crate) struct NestedPoint {
    pub synapses: Matrix,
    pub contexts: Vec<ContextOptimum>,
    pub objective: f64,
    /// The part of the gradient that is tangent to the spheres.
    pub gradient: Matrix,
    /// How far the gradient points along each column. Nothing without a cost of gains, which can then make up for
    /// any length.
    along: Vec<f64>,
}

impl NestedObjective {
    /// Checks everything once. `gain_cost` is relative: κ = `gain_cost` · s/(s² + α²) with the scale s.
    pub fn new(covariances: Vec<Matrix>, neurons: usize, leak: f64, gain_cost: f64) -> Result<Self> {
        require_leak(leak)?;
        if !(gain_cost.is_finite() && gain_cost >= 0.0) {
            let expected = "a finite number, 0 or more";
            return Err(Error::out_of_range("gain_cost", expected, gain_cost));
        }
        if covariances.is_empty() {
            return Err(Error::shape("covariances", "at least one context", "none"));
        }
        let mut traces = 0.0;
        for (index, covariance) in covariances.iter().enumerate() {
            traces += trace_of_root(index, covariance, neurons)?;
        }
        let mean = traces / covariances.len() as f64;
        let scale = mean / neurons as f64;
        // Gains are about as large as the scale and the leak together; their cost is a share of the scale.
        let size = scale.hypot(leak);
        let gain_cost = gain_cost * (scale / size) / size;
        Ok(Self { covariances, leak, gain_cost, least: 2.0 * mean, scale })
    }

    /// Evaluates the objective from scratch.
    ///
    /// # Errors
    /// When no gains make M positive definite in some context.
    pub fn at(&self, synapses: Matrix) -> Result<NestedPoint> {
        let settle = |context: ContextObjective<'_>| context.settle(self.cold_start(context)?);
        let contexts = self.contexts(&synapses).map(settle).collect::<Result<_>>()?;
        Ok(self.point(synapses, contexts))
    }

    /// Evaluates the objective where the gains of another point are a good start.
    ///
    /// # Errors
    /// As for [`Self::at`].
    pub fn near(&self, other: &NestedPoint, synapses: Matrix) -> Result<NestedPoint> {
        let settle = |(context, other): (ContextObjective<'_>, &ContextOptimum)| {
            context.settle(other.gains.clone()).or_else(|_| context.settle(self.cold_start(context)?))
        };
        let contexts = self.contexts(&synapses).zip(&other.contexts).map(settle).collect::<Result<_>>()?;
        Ok(self.point(synapses, contexts))
    }

    /// How far E_c f_c(M) is above its least value E_c 2 Tr C_ss^½. The cost of gains does not count.
    pub fn gap(&self, point: &NestedPoint) -> f64 {
        let squares: f64 = point.contexts.iter().map(|context| inner(&context.gains, &context.gains)).sum();
        point.objective - 0.5 * self.gain_cost * squares / self.covariances.len() as f64 - self.least
    }

    fn cold_start(&self, context: ContextObjective<'_>) -> Result<Vec<f64>> {
        optimal_gains(context.synapses, context.covariance, self.leak)
    }

    fn contexts<'a>(&'a self, synapses: &'a Matrix) -> impl Iterator<Item = ContextObjective<'a>> {
        let (leak, gain_cost) = (self.leak, self.gain_cost);
        let context = move |covariance| ContextObjective { synapses, covariance, leak, gain_cost };
        self.covariances.iter().map(context)
    }

    fn point(&self, synapses: Matrix, contexts: Vec<ContextOptimum>) -> NestedPoint {
        let share = 1.0 / self.covariances.len() as f64;
        let objective = share * contexts.iter().map(|context| context.objective).sum::<f64>();
        let mut gradient = Matrix::zeros(synapses.rows(), synapses.columns());
        for context in &contexts {
            context.add_gradient(share, &mut gradient);
        }
        let along = lengths_along(&synapses, &gradient);
        to_tangent(&synapses, &mut gradient);
        NestedPoint { synapses, contexts, objective, gradient, along }
    }
}

impl NestedPoint {
    /// The Hessian on the spheres, applied to a tangent V.
    pub fn hessian_product(&self, v: &Matrix) -> Matrix {
        let share = 1.0 / self.contexts.len() as f64;
        let mut out = Matrix::zeros(v.rows(), v.columns());
        for context in &self.contexts {
            context.add_hessian_product(&self.synapses, v, share, &mut out);
        }
        to_tangent(&self.synapses, &mut out);
        for (j, along) in self.along.iter().enumerate() {
            add_scaled(out.column_mut(j), -along, v.column(j));
        }
        out
    }

    /// For each column 2 E_c[gᵢ² (Aᵢᵢ I + M⁻¹)] + `floor` I with A = WᵀM⁻¹W: about the curvature when wᵢ alone
    /// moves. Where gains are near 0 it is small, because such a column hardly matters.
    pub fn column_curvatures(&self, floor: f64) -> Result<Vec<Cholesky>, Test> {
        (0..self.synapses.columns()).map(|i| self.column_curvature(i, floor)).collect()
    }

    fn column_curvature(&self, i: usize, floor: f64) -> Result<Cholesky, Test> {
        let n = self.synapses.rows();
        let (mut curvature, mut diagonal) = (Matrix::zeros(n, n), floor);
        for context in &self.contexts {
            let weight = 2.0 * context.gains[i] * context.gains[i] / self.contexts.len() as f64;
            add_scaled(curvature.as_mut_slice(), weight, context.whitening.as_slice());
            diagonal += weight * inner(self.synapses.column(i), context.filtered.column(i));
        }
        for r in 0..n {
            curvature[(r, r)] += diagonal;
        }
        Cholesky::new(curvature)
    }
}

/// Tr C^½ of a covariance, which must be positive definite.
fn trace_of_root(index: usize, covariance: &Matrix, neurons: usize) -> Result<f64> {
    let argument = format!("covariances[{index}]");
    covariance.require_shape(argument.clone(), neurons, neurons)?;
    let root = square_root(argument.clone(), covariance)?;
    let expected = "a positive definite matrix";
    Cholesky::new(covariance.clone()).map_err(|test| Error::NotPositiveDefinite {
        argument: argument.into(),
        expected,
        test,
    })?;
    Ok(root.trace())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    use super::{NestedObjective, to_tangent};
    use crate::kernels::add_scaled;
    use crate::linalg::product;
    use crate::matrix::Matrix;
    use crate::spheres::to_unit_columns;
    use crate::starts::on_sphere;

    /// The covariance of three neurons: AAᵀ/4 + I/5 with a random A.
    fn covariance(rng: &mut Pcg64) -> Matrix {
        let a = on_sphere(3, 5, rng);
        let mut covariance = product(a.view(), a.view().transposed());
        (0..3).for_each(|i| covariance[(i, i)] += 0.2);
        covariance
    }

    fn moved(w: &Matrix, size: f64, v: &Matrix) -> Matrix {
        let mut moved = w.clone();
        add_scaled(moved.as_mut_slice(), size, v.as_slice());
        to_unit_columns(&mut moved).unwrap();
        moved
    }

    /// The Hessian is the tangent part of how the gradient changes, to second order in the step.
    #[test]
    fn hessian_products_agree_with_differences_of_the_gradient() {
        let rng = &mut Pcg64::seed_from_u64(3);
        for (interneurons, leak, gain_cost) in [(2, 1.0, 0.0), (4, 0.3, 0.0), (3, 0.0, 0.0), (8, 0.5, 0.2)] {
            let covariances = (0..4).map(|_| covariance(rng)).collect();
            let objective = NestedObjective::new(covariances, 3, leak, gain_cost).unwrap();
            let w = on_sphere(3, interneurons, rng);
            let mut v = on_sphere(3, interneurons, rng);
            to_tangent(&w, &mut v);

            let step = 1e-5;
            let gradient = |size| objective.at(moved(&w, size, &v)).unwrap().gradient;
            let mut expected = gradient(step);
            add_scaled(expected.as_mut_slice(), -1.0, gradient(-step).as_slice());
            expected.as_mut_slice().iter_mut().for_each(|x| *x /= 2.0 * step);
            to_tangent(&w, &mut expected);

            let found = objective.at(w.clone()).unwrap().hessian_product(&v);
            let scale = expected.as_slice().iter().fold(1.0, |most: f64, x| most.max(x.abs()));
            for (found, expected) in found.as_slice().iter().zip(expected.as_slice()) {
                let error = (found - expected).abs() / scale;
                assert!(error < 1e-6, "K {interneurons}, leak {leak}: {found} for {expected}");
            }
        }
    }
}
