//! Remembers where series lie on a canvas, so that a legend can be put where it hides none of them.

use super::canvas::{Frame, Point};

/// Something that a legend must not lie on.
pub enum Obstacle {
    /// A line through points.
    Line(Vec<Point>),
    /// All that lies within an outline.
    Area(Vec<Point>),
}

impl Obstacle {
    /// All of a frame.
    pub fn frame(frame: Frame) -> Self {
        let (right, bottom) = (frame.right(), frame.bottom());
        Self::Area(vec![(frame.x, frame.y), (right, frame.y), (right, bottom), (frame.x, bottom)])
    }

    /// Whether some of it lies in a frame.
    pub fn touches(&self, frame: Frame) -> bool {
        let crosses = |points: &[Point]| points.windows(2).any(|ends| crosses(frame, ends[0], ends[1]));
        match self {
            Self::Line(points) => crosses(points),
            Self::Area(outline) => {
                let closing = outline.last().zip(outline.first());
                crosses(outline)
                    || closing.is_some_and(|(&last, &first)| crosses(&[last, first]))
                    || surrounds(outline, (frame.x, frame.y))
            }
        }
    }
}

/// Whether the line between two points runs through a frame: the stretch within its columns and that within its rows
/// have something in common.
fn crosses(frame: Frame, from: Point, to: Point) -> bool {
    let ways = [
        (from.0, to.0 - from.0, [frame.x, frame.right()]),
        (from.1, to.1 - from.1, [frame.y, frame.bottom()]),
    ];
    let mut within = [0.0_f64, 1.0];
    for (start, step, [low, high]) in ways {
        if step == 0.0 {
            if !(low..=high).contains(&start) {
                return false;
            }
            continue;
        }
        let ends = [(low - start) / step, (high - start) / step];
        within = [within[0].max(ends[0].min(ends[1])), within[1].min(ends[0].max(ends[1]))];
    }
    within[0] <= within[1]
}

/// Whether an outline runs around a point: a ray from it crosses the outline an odd number of times.
fn surrounds(outline: &[Point], (x, y): Point) -> bool {
    let sides = outline.iter().zip(outline.iter().cycle().skip(1));
    let crossed =
        sides.filter(|(a, b)| (a.1 > y) != (b.1 > y) && x < a.0 + (b.0 - a.0) * (y - a.1) / (b.1 - a.1));
    crossed.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_touched_by_what_runs_through_it_or_around_it_alone() {
        let frame = Frame::new(10.0, 10.0, 10.0, 5.0);
        assert!(Obstacle::Line(vec![(0.0, 12.0), (40.0, 13.0)]).touches(frame), "no end is inside");
        assert!(Obstacle::Line(vec![(15.0, 0.0), (15.0, 11.0)]).touches(frame), "upright");
        assert!(!Obstacle::Line(vec![(0.0, 0.0), (8.0, 40.0)]).touches(frame));
        assert!(!Obstacle::Line(vec![(9.0, 16.0), (21.0, 15.5)]).touches(frame), "just below");
        assert!(Obstacle::frame(Frame::new(0.0, 0.0, 40.0, 40.0)).touches(frame), "all around");
        assert!(!Obstacle::frame(Frame::new(21.0, 0.0, 40.0, 40.0)).touches(frame));
    }
}
