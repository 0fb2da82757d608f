//! Minimises a quadratic model within a ball by truncated conjugate gradients (Steihaug 1983).

use crate::kernels::{add_scaled, inner};
use crate::matrix::Matrix;

/// The model ⟨q, v⟩ + ½⟨v, Hv⟩ with a rough but definite P ≈ H, which also measures length: ‖v‖² = ⟨v, Pv⟩.
pub(crate) struct Quadratic<'a, H, P> {
    /// q.
    pub gradient: &'a Matrix,
    /// v ↦ Hv.
    pub hessian: H,
    /// r ↦ P⁻¹r.
    pub precondition: P,
}

/// A step that lowers the model.
pub(crate) struct ModelStep {
    pub v: Matrix,
    /// By how much it lowers the model.
    pub promised: f64,
    /// ‖v‖.
    pub length: f64,
    pub end: End,
}

/// Where a step ends.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    /// Near the model's minimum, or where the iterations ran out.
    Inside,
    /// On the ball's surface.
    Surface,
    /// On the surface too, along a direction d whose curvature ⟨d, Hd⟩/⟨d, Pd⟩ is not positive.
    Falling {
        /// That curvature.
        curvature: f64,
    },
}

/// The largest number of iterations in one step; the next step continues from there.
const MOST_ITERATIONS: usize = 100;

impl<H: Fn(&Matrix) -> Matrix, P: Fn(&Matrix) -> Matrix> Quadratic<'_, H, P> {
    /// Lowers the model within ‖v‖ ≤ `radius` until its gradient has shrunk to the share `tolerance`.
    pub fn minimise(&self, radius: f64, tolerance: f64) -> ModelStep {
        let enough = tolerance * norm(self.gradient);
        let mut state = ConjugateGradients::new(self.gradient, &(self.precondition)(self.gradient));
        for _ in 0..MOST_ITERATIONS {
            if norm(&state.residual) <= enough {
                break;
            }
            let product = (self.hessian)(&state.direction);
            let curvature = inner(state.direction.as_slice(), product.as_slice());
            if curvature <= 0.0 || !state.stays_within(radius, curvature) {
                return state.reach_surface(radius, curvature);
            }
            state.walk(curvature, &product);
            state.turn(&(self.precondition)(&state.residual));
        }
        ModelStep { v: state.v, promised: state.promised, length: state.vv.sqrt(), end: End::Inside }
    }
}

/// The iteration: v so far, the model's gradient there, and the direction d to go next.
struct ConjugateGradients {
    v: Matrix,
    residual: Matrix,
    direction: Matrix,
    /// −⟨residual, d⟩.
    slope: f64,
    promised: f64,
    /// ⟨v, Pv⟩, ⟨v, Pd⟩ and ⟨d, Pd⟩.
    vv: f64,
    vd: f64,
    dd: f64,
}

impl ConjugateGradients {
    fn new(gradient: &Matrix, preconditioned: &Matrix) -> Self {
        let slope = inner(gradient.as_slice(), preconditioned.as_slice());
        let zero = Matrix::zeros(gradient.rows(), gradient.columns());
        let mut direction = zero.clone();
        add_scaled(direction.as_mut_slice(), -1.0, preconditioned.as_slice());
        let residual = gradient.clone();
        Self { v: zero, residual, direction, slope, promised: 0.0, vv: 0.0, vd: 0.0, dd: slope }
    }

    fn stays_within(&self, radius: f64, curvature: f64) -> bool {
        let size = self.slope / curvature;
        self.vv + size * (2.0 * self.vd + size * self.dd) < radius * radius
    }

    /// Goes to the minimum along d.
    fn walk(&mut self, curvature: f64, product: &Matrix) {
        let size = self.slope / curvature;
        add_scaled(self.v.as_mut_slice(), size, self.direction.as_slice());
        add_scaled(self.residual.as_mut_slice(), size, product.as_slice());
        self.promised += 0.5 * size * self.slope;
        self.vv += size * (2.0 * self.vd + size * self.dd);
        self.vd += size * self.dd;
    }

    /// Makes the next direction conjugate to the earlier ones.
    fn turn(&mut self, preconditioned: &Matrix) {
        let slope = inner(self.residual.as_slice(), preconditioned.as_slice());
        let keep = slope / self.slope;
        for (d, x) in self.direction.as_mut_slice().iter_mut().zip(preconditioned.as_slice()) {
            *d = keep * *d - x;
        }
        self.slope = slope;
        self.vd *= keep;
        self.dd = slope + keep * keep * self.dd;
    }

    /// Goes along d until ‖v‖ = `radius`.
    fn reach_surface(mut self, radius: f64, curvature: f64) -> ModelStep {
        let room = (radius * radius - self.vv).max(0.0);
        let size = ((self.vd * self.vd + self.dd * room).sqrt() - self.vd) / self.dd;
        add_scaled(self.v.as_mut_slice(), size, self.direction.as_slice());
        let promised = self.promised + size * (self.slope - 0.5 * size * curvature);
        let falling = End::Falling { curvature: curvature / self.dd };
        let end = if curvature <= 0.0 { falling } else { End::Surface };
        ModelStep { v: self.v, promised, length: radius, end }
    }
}

/// The Euclidean norm of all entries.
pub(crate) fn norm(matrix: &Matrix) -> f64 {
    inner(matrix.as_slice(), matrix.as_slice()).sqrt()
}
