//! Draws what plots show: curves with bands, points, shaded spans, densities, histograms and legends.

use super::axes::{Plot, SMALL};
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
        let colour = canvas.style.colour(role);
        for bin in bins.iter().filter(|bin| bin.share > 0.0) {
            let ((left, top), (right, bottom)) = (self.at(bin.from, bin.share), self.at(bin.to, 0.0));
            let frame = Frame::new(left, top, right - left, bottom - top);
            canvas.rectangle(frame, &Paint::fill(colour).opacity(0.45));
            canvas.rectangle(frame, &Paint::stroke(colour, 0.8));
        }
    }

    /// Lines or dots and what they stand for.
    pub fn legend(&self, canvas: &mut Canvas, corner: Corner, entries: &[Entry]) {
        let widest = entries.iter().map(|entry| width(&entry.label, SMALL)).fold(0.0, f64::max);
        let [box_width, box_height] = [widest + 30.0, 14.0 * entries.len() as f64 + 4.0];
        let x = match corner {
            Corner::TopLeft | Corner::BottomLeft => self.frame.x + 4.0,
            Corner::TopRight => self.frame.right() - box_width - 2.0,
        };
        let y = match corner {
            Corner::TopLeft | Corner::TopRight => self.frame.y + 1.0,
            Corner::BottomLeft => self.frame.bottom() - box_height - 3.0,
        };
        canvas.rectangle(Frame::new(x, y, box_width, box_height), &Paint::fill("#ffffff").opacity(0.8));
        for (i, entry) in entries.iter().enumerate() {
            let middle = y + 10.0 + 14.0 * i as f64;
            entry.draw(canvas, (x + 3.0, middle));
        }
    }
}

/// A corner of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    TopLeft,
    TopRight,
    BottomLeft,
}

/// A line of a legend.
pub struct Entry {
    paint: Paint,
    label: String,
    dot: bool,
}

impl Entry {
    pub fn line(paint: Paint, label: &str) -> Self {
        Self { paint, label: label.to_owned(), dot: false }
    }

    pub fn dot(paint: Paint, label: &str) -> Self {
        Self { paint, label: label.to_owned(), dot: true }
    }

    /// How much room it takes beside others.
    pub fn room(&self) -> f64 {
        width(&self.label, SMALL) + 36.0
    }

    /// Draws the sample and its name, from the left end at half height.
    pub fn draw(&self, canvas: &mut Canvas, (x, y): Point) {
        if self.dot {
            canvas.circle((x + 10.0, y), 3.0, &self.paint);
        } else {
            canvas.line(&[(x, y), (x + 20.0, y)], &self.paint);
        }
        canvas.text((x + 24.0, y + 3.6), &Text::new(self.label.clone(), SMALL));
    }
}
