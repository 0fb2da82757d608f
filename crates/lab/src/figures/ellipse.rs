//! Draws covariances of two neurons as ellipses, and directions as lines through the middle.

use super::canvas::{Canvas, Frame, Paint, Point};

/// A 2 × 2 matrix as two columns.
pub type Pair = [[f64; 2]; 2];

/// Axes of variance: the roots of both eigenvalues, the larger first, and the angle of the larger one.
pub fn principal_axes(covariance: &Pair) -> ([f64; 2], f64) {
    let [[a, b], [_, c]] = *covariance;
    let (mean, half) = (0.5 * (a + c), (0.25 * (a - c).powi(2) + b * b).sqrt());
    let angle = 0.5 * (2.0 * b).atan2(a - c);
    ([mean + half, (mean - half).max(0.0)].map(f64::sqrt), angle)
}

/// A square plot of the plane, from −`reach` to `reach` either way.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    pub frame: Frame,
    pub reach: f64,
}

impl Plane {
    pub fn new(frame: Frame, reach: f64) -> Self {
        Self { frame: frame.square(), reach }
    }

    pub fn at(&self, (x, y): Point) -> Point {
        let (scale, centre) = (self.unit(), self.frame.centre());
        (centre.0 + scale * x, centre.1 - scale * y)
    }

    /// How long a length of 1 is drawn.
    fn unit(&self) -> f64 {
        0.5 * self.frame.width / self.reach
    }

    /// The ellipse one standard deviation from the middle.
    pub fn ellipse(&self, canvas: &mut Canvas, covariance: &Pair, paint: &Paint) {
        let ([major, minor], angle) = principal_axes(covariance);
        let (sine, cosine) = angle.sin_cos();
        let point = |i: usize| {
            let turn = std::f64::consts::TAU * i as f64 / 90.0;
            let (along, across) = (major * turn.cos(), minor * turn.sin());
            self.at((along * cosine - across * sine, along * sine + across * cosine))
        };
        canvas.polygon(&(0..90).map(point).collect::<Vec<_>>(), paint);
    }

    /// The eigenvectors of a covariance, as long as its ellipse reaches.
    pub fn eigenvectors(&self, canvas: &mut Canvas, covariance: &Pair, paint: &Paint) {
        let (lengths, angle) = principal_axes(covariance);
        for (length, angle) in lengths.into_iter().zip([angle, angle + std::f64::consts::FRAC_PI_2]) {
            let end = (length * angle.cos(), length * angle.sin());
            canvas.line(&[self.at((-end.0, -end.1)), self.at(end)], paint);
        }
    }

    /// The line that a vector spans, from edge to edge of a circle.
    pub fn axis(&self, canvas: &mut Canvas, vector: [f64; 2], length: f64, paint: &Paint) {
        let norm = vector[0].hypot(vector[1]);
        if norm > 0.0 {
            let end = (length * vector[0] / norm, length * vector[1] / norm);
            canvas.line(&[self.at((-end.0, -end.1)), self.at(end)], paint);
        }
    }

    pub fn circle(&self, canvas: &mut Canvas, radius: f64, paint: &Paint) {
        canvas.circle(self.at((0.0, 0.0)), radius * self.unit(), paint);
    }
}
