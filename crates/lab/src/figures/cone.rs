//! Places 2 × 2 positive definite matrices in space, as a cone seen from the side, and cuts it with the planes F(W).
//!
//! A matrix [[a, b], [b, c]] lies at ((a − c)/2, b, (a + c)/2): distances are those of the Frobenius norm up to √2, and
//! the positive definite ones are the cone above its tip. The root of a covariance is drawn in its place, because it maps
//! the cone onto itself and makes F(W) flat: the plane of all M = αI + Σ gᵢwᵢwᵢᵀ within the cone.

use std::f64::consts::{PI, TAU};

use super::canvas::{Frame, Point};
use super::ellipse::Pair;

/// The entries (0, 0), (0, 1), (1, 1) of a symmetric matrix.
pub type Entries = [f64; 3];
type Place = [f64; 3];

/// How steeply the cone is looked down upon, in radians.
const ELEVATION: f64 = 0.40;

fn place([a, b, c]: Entries) -> Place {
    [0.5 * (a - c), b, 0.5 * (a + c)]
}

/// The positive root of a covariance, by its closed form for two neurons.
pub fn root(covariance: &Pair) -> Entries {
    let [[a, b], [_, c]] = *covariance;
    let determinant = (a * c - b * b).max(0.0).sqrt();
    let scale = (a + c + 2.0 * determinant).sqrt().max(f64::MIN_POSITIVE);
    [(a + determinant) / scale, b / scale, (c + determinant) / scale]
}

/// A view of the cone up to half a trace of `height`.
pub struct View {
    frame: Frame,
    height: f64,
    azimuth: f64,
}

impl View {
    /// A view from where neither plane is seen edge-on.
    pub fn new(frame: Frame, height: f64, synapses: [&Pair; 2]) -> Self {
        let normals = synapses.map(normal);
        let openness = |azimuth: f64| {
            let (sine, cosine) = azimuth.sin_cos();
            let towards = [-sine * ELEVATION.cos(), -cosine * ELEVATION.cos(), ELEVATION.sin()];
            normals.iter().map(|normal| dot(normal, &towards).abs()).fold(f64::INFINITY, f64::min)
        };
        let azimuths = (0..72).map(|i| f64::from(i) * TAU / 72.0);
        let azimuth = azimuths.max_by(|a, b| openness(*a).total_cmp(&openness(*b))).unwrap_or(0.0);
        Self { frame, height, azimuth }
    }

    /// The same view in another frame.
    pub fn moved(&self, frame: Frame) -> Self {
        Self { frame, ..*self }
    }

    /// Where a matrix is seen.
    pub fn at(&self, entries: Entries) -> Point {
        self.project(place(entries))
    }

    fn project(&self, [u, v, h]: Place) -> Point {
        let (sine, cosine) = self.azimuth.sin_cos();
        let (across, depth) = (u * cosine - v * sine, u * sine + v * cosine);
        let up = h * ELEVATION.cos() + depth * ELEVATION.sin();
        let tall = self.height * (ELEVATION.cos() + ELEVATION.sin());
        let scale = (0.5 * self.frame.width / self.height).min(self.frame.height / tall);
        (self.frame.centre().0 + scale * across, self.frame.bottom() - scale * up)
    }

    /// The rim of the cone where it is cut off, and its whole outline.
    pub fn cone(&self) -> [Vec<Point>; 2] {
        let rim = |turn: f64| {
            let (sine, cosine) = (turn - self.azimuth).sin_cos();
            self.project([self.height * cosine, self.height * sine, self.height])
        };
        let arc = |from: f64, to: f64| (0..=120).map(move |i| from + (to - from) * f64::from(i) / 120.0);
        // A side is seen edge-on where the rim's tangent points at the tip: sin(turn) = −tan(elevation).
        let touch = -ELEVATION.tan().asin();
        let back = arc(touch, PI - touch).map(rim);
        [arc(0.0, TAU).map(rim).collect(), back.chain([self.project([0.0; 3])]).collect()]
    }

    /// The edge of the plane F(W) within the cone.
    pub fn plane(&self, synapses: &Pair, leak: f64) -> Vec<Point> {
        let point = |i: i32| {
            let (sine, cosine) = (f64::from(i) * TAU / 720.0).sin_cos();
            self.edge(synapses, leak, [cosine, sine])
        };
        (0..720).map(point).collect()
    }

    /// The lines along which one gain changes while the other is 0, from edge to edge.
    pub fn gain_axes(&self, synapses: &Pair, leak: f64) -> [[Point; 2]; 2] {
        let ends = |gains: [f64; 2]| [gains, gains.map(|g| -g)].map(|gains| self.edge(synapses, leak, gains));
        [ends([1.0, 0.0]), ends([0.0, 1.0])]
    }

    /// Where the cone or the view ends when gains of this proportion grow from 0.
    fn edge(&self, synapses: &Pair, leak: f64, gains: [f64; 2]) -> Point {
        // Columns of unit length, so that equal angles are equally wide.
        let directions = synapses.map(|[x, y]| {
            let square = (x * x + y * y).max(f64::MIN_POSITIVE);
            scaled(&place([x * x, x * y, y * y]), 1.0 / square)
        });
        let step = add(&scaled(&directions[0], gains[0]), &scaled(&directions[1], gains[1]));
        self.project(add(&[0.0, 0.0, leak], &scaled(&step, self.reach(&step, leak))))
    }

    /// How far one can go from αI this way before the cone or the view ends.
    fn reach(&self, step: &Place, leak: f64) -> f64 {
        let inside = |share: f64| {
            let [u, v, h] = add(&[0.0, 0.0, leak], &scaled(step, share));
            u.hypot(v) <= h && h <= self.height
        };
        let mut ends = [0.0, 1.0];
        while inside(ends[1]) && ends[1] < 1e6 {
            ends[1] *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (ends[0] + ends[1]);
            ends[usize::from(!inside(middle))] = middle;
        }
        ends[0]
    }
}

/// The direction at a right angle to the plane F(W).
fn normal(synapses: &Pair) -> Place {
    let [a, b] = synapses.map(|[x, y]| place([x * x, x * y, y * y]));
    let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    let length = dot(&cross, &cross).sqrt().max(f64::MIN_POSITIVE);
    scaled(&cross, 1.0 / length)
}

fn dot(a: &Place, b: &Place) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn add(a: &Place, b: &Place) -> Place {
    std::array::from_fn(|i| a[i] + b[i])
}

fn scaled(a: &Place, factor: f64) -> Place {
    a.map(|x| factor * x)
}
