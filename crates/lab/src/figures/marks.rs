//! Draws what plots show: curves with bands, points, shaded spans, densities, histograms and legends.

use super::axes::{Axis, Plot, SMALL};
use super::canvas::{Canvas, Frame, Paint, Point, Text};
use super::density::{Bin, smoothed};
use super::lettering::width;
use super::style::Role;

impl Plot {
    /// A curve; it is interrupted where a number is missing.
    pub fn curve(&self, canvas: &mut Canvas, points: &[(f64, Option<f64>)], paint: &Paint) {
        let known = |part: &[(f64, Option<f64>)]| -> Vec<Point> {
            part.iter().filter_map(|&(x, y)| Some(self.at(x, y?))).collect()
        };
        points.split(|(_, y)| y.is_none()).map(known).for_each(|part| canvas.line(&part, paint));
    }

    /// The room between two curves, where both are known.
    pub fn band(&self, canvas: &mut Canvas, points: &[(f64, Option<[f64; 2]>)], role: Role) {
        let known = points.iter().filter_map(|&(x, ends)| Some((x, ends?)));
        let lower: Vec<Point> = known.clone().map(|(x, [low, _])| self.at(x, low)).collect();
        let upper = known.map(|(x, [_, high])| self.at(x, high));
        let outline: Vec<Point> = upper.chain(lower.into_iter().rev()).collect();
        canvas.polygon(&outline, &Paint::fill(canvas.style.colour(role)).opacity(0.2));
    }

    /// A dot.
    pub fn dot(&self, canvas: &mut Canvas, (x, y): Point, radius: f64, paint: &Paint) {
        canvas.circle(self.at(x, y), radius, paint);
    }

    /// A mean with its standard deviation.
    pub fn bar(&self, canvas: &mut Canvas, x: f64, [mean, spread]: [f64; 2], dot: &Paint) {
        let ends = [self.at(x, mean - spread), self.at(x, mean + spread)];
        canvas.line(&ends, &Paint::stroke(dot.colour(), 1.0));
        canvas.circle(self.at(x, mean), 2.2, dot);
    }

    /// A shaded stretch of the horizontal axis.
    pub fn span(&self, canvas: &mut Canvas, [from, to]: [f64; 2]) {
        let ((left, _), (right, _)) = (self.at(from, self.y.bounds()[0]), self.at(to, self.y.bounds()[0]));
        let frame = Frame { x: left, width: right - left, ..self.frame };
        canvas.rectangle(frame, &Paint::fill(canvas.style.shade()));
    }

    /// A line across the plot.
    pub fn level(&self, canvas: &mut Canvas, y: f64, paint: &Paint) {
        let [from, to] = self.x.bounds();
        canvas.line(&[self.at(from, y), self.at(to, y)], paint);
    }

    /// A smoothed distribution of values on the horizontal axis; its highest point reaches `height`.
    pub fn distribution(&self, canvas: &mut Canvas, values: &[f64], height: f64, role: Role) {
        let points: Vec<(f64, f64)> = smoothed(values, &self.x);
        let outline: Vec<Point> = points.iter().map(|&(x, share)| self.at(x, share * height)).collect();
        canvas.polygon(&outline, &Paint::fill(canvas.style.colour(role)).opacity(0.22));
        canvas.line(&outline, &Paint::line(canvas.style, role));
    }

    /// The bars of a histogram.
    pub fn histogram(&self, canvas: &mut Canvas, bins: &[Bin], role: Role) {
        let paint = Paint::bar(canvas.style, role);
        for bin in bins.iter().filter(|bin| bin.share > 0.0) {
            let ((left, top), (right, bottom)) = (self.at(bin.from, bin.share), self.at(bin.to, 0.0));
            canvas.rectangle(Frame::new(left, top, right - left, bottom - top), &paint);
        }
    }

    /// Lines, dots or areas and what they stand for: in this corner where nothing lies there, or else where there is room.
    pub fn legend(&self, canvas: &mut Canvas, corner: Corner, entries: &[Entry]) {
        let widest = entries.iter().map(|entry| width(&entry.label, SMALL)).fold(0.0, f64::max);
        let size = [widest + 30.0, 14.0 * entries.len() as f64 + 4.0];
        let place = self.free_place(canvas, corner, size);
        canvas.part("legend", "", |canvas| {
            canvas.rectangle(place, &Paint::fill("#ffffff").opacity(0.8));
            for (i, entry) in entries.iter().enumerate() {
                entry.draw(canvas, (place.x + 3.0, place.y + 10.0 + 14.0 * i as f64));
            }
        });
    }

    /// Where a box of this size hides least, as near as possible to a corner.
    fn free_place(&self, canvas: &Canvas, corner: Corner, [width, height]: [f64; 2]) -> Frame {
        const STEPS: usize = 12;
        let room = self.frame.inset([4.0, 1.0, 2.0 + width, 3.0 + height]);
        let at = |across: f64, down: f64| {
            Frame::new(
                room.x + across * room.width.max(0.0),
                room.y + down * room.height.max(0.0),
                width,
                height,
            )
        };
        let steps = || (0..=STEPS).map(|step| step as f64 / STEPS as f64);
        let (from_left, from_top) = corner.place();
        let mut places: Vec<(f64, f64)> = steps().flat_map(|x| steps().map(move |y| (x, y))).collect();
        places.sort_by(|a, b| {
            let far = |place: &(f64, f64)| (place.0 - from_left).abs() + (place.1 - from_top).abs();
            far(a).total_cmp(&far(b))
        });
        let frames = places.into_iter().map(|(across, down)| at(across, down));
        // With some air around it, because lines have a width.
        let hidden = |frame: &Frame| canvas.hidden_by(frame.inset([-3.0; 4]));
        frames.min_by_key(hidden).unwrap_or(self.frame)
    }
}

/// A corner of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    TopLeft,
    TopRight,
    BottomLeft,
}

impl Corner {
    /// How far it is from the left and from the top, from 0 to 1.
    fn place(self) -> (f64, f64) {
        match self {
            Self::TopLeft => (0.0, 0.0),
            Self::TopRight => (1.0, 0.0),
            Self::BottomLeft => (0.0, 1.0),
        }
    }
}

/// What a line of a legend shows.
enum Sample {
    Line,
    Dot,
    Area,
}

/// A line of a legend.
pub struct Entry {
    paint: Paint,
    label: String,
    sample: Sample,
}

impl Entry {
    pub fn line(paint: Paint, label: &str) -> Self {
        Self { paint, label: label.to_owned(), sample: Sample::Line }
    }

    pub fn dot(paint: Paint, label: &str) -> Self {
        Self { paint, label: label.to_owned(), sample: Sample::Dot }
    }

    pub fn area(paint: Paint, label: &str) -> Self {
        Self { paint, label: label.to_owned(), sample: Sample::Area }
    }

    /// How much room it takes beside others.
    pub fn room(&self) -> f64 {
        width(&self.label, SMALL) + 36.0
    }

    /// Draws the sample and its name, from the left end at half height.
    pub fn draw(&self, canvas: &mut Canvas, (x, y): Point) {
        match self.sample {
            Sample::Line => canvas.line(&[(x, y), (x + 20.0, y)], &self.paint),
            Sample::Dot => canvas.circle((x + 10.0, y), 3.0, &self.paint),
            Sample::Area => canvas.rectangle(Frame::new(x + 5.0, y - 4.5, 14.0, 9.0), &self.paint),
        }
        canvas.text((x + 24.0, y + 3.6), &Text::new(self.label.clone(), SMALL));
    }
}

/// The smoothed distributions of several sets of values, each with its name, over a logarithmic axis with this label; the
/// highest peaks are at 1, and `top` leaves room for the legend.
pub fn densities(
    canvas: &mut Canvas,
    panel: Frame,
    sets: &[(&str, Role, Vec<f64>)],
    (label, top): (&str, f64),
) {
    let all = sets.iter().flat_map(|(_, _, values)| values.iter().copied());
    let across = Axis::log_around(all, label).widened();
    let plot = Plot::within(panel, across, Axis::linear([0.0, top], "density").bare());
    plot.draw(canvas);
    let mut entries = Vec::new();
    for (name, role, values) in sets {
        canvas.part("series", name, |canvas| plot.distribution(canvas, values, 1.0, *role));
        entries.push(Entry::line(Paint::line(canvas.style, *role), name));
    }
    plot.legend(canvas, Corner::TopRight, &entries);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Style;
    use crate::figures::axes::Axis;

    #[test]
    fn a_legend_makes_way_for_a_curve() {
        let mut canvas = Canvas::new(300.0, 200.0, Style::Light);
        let axis = || Axis::linear([0.0, 1.0], "");
        let plot = Plot::within(Frame::new(0.0, 0.0, 300.0, 200.0), axis(), axis());
        let size = [60.0, 32.0];
        let wanted = plot.free_place(&canvas, Corner::BottomLeft, size);
        let corner = plot.frame.bottom() - wanted.bottom() + wanted.x - plot.frame.x;
        assert!(corner < 10.0, "an empty plot has the legend where it is asked to be");
        let paint = Paint::line(canvas.style, Role::Learned);
        canvas.part("series", "", |canvas| plot.curve(canvas, &[(0.0, Some(0.1)), (1.0, Some(0.1))], &paint));
        let found = plot.free_place(&canvas, Corner::BottomLeft, size);
        assert_eq!((canvas.hidden_by(wanted), canvas.hidden_by(found)), (1, 0));
        assert_eq!(found.x, wanted.x, "no further than it must");
    }
}
