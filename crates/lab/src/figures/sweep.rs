//! Draws what a sweep found: medians and quartiles over starts against what was varied, and how many starts were lost.

use serde::Deserialize;

use super::axes::{Axis, Plot};
use super::canvas::{Canvas, Paint, Text};
use super::marks::Entry;
use super::style::Role;
use crate::experiment::Statistic;

/// A number over starts, for each entry of what was varied.
#[derive(Deserialize)]
pub struct Sweep {
    pub over_starts: Vec<Statistic>,
    pub quartiles: Vec<Option<[f64; 2]>>,
}

/// How the points of a curve are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// By dots.
    Dot,
    /// By rings.
    Ring,
}

impl Mark {
    /// What a mark is painted with.
    pub fn paint(self, canvas: &Canvas, role: Role) -> Paint {
        let colour = canvas.style.colour(role);
        match self {
            Self::Dot => Paint::fill(colour).edged(colour, 1.2),
            Self::Ring => Paint::fill("#ffffff").edged(colour, 1.2),
        }
    }
}

impl Sweep {
    /// Everything that is to be seen of it.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        let medians = self.over_starts.iter().filter_map(|over| over.median);
        medians.chain(self.quartiles.iter().flatten().flatten().copied())
    }

    /// A logarithmic axis that has room for several.
    pub fn axis<'a>(sweeps: impl IntoIterator<Item = &'a Self>, label: &str) -> Axis {
        Axis::log_around(sweeps.into_iter().flat_map(Self::values), label)
    }

    /// Medians with a band between quartiles.
    pub fn draw(&self, canvas: &mut Canvas, plot: &Plot, at: &[f64], (role, mark): (Role, Mark)) {
        let ends: Vec<_> = at.iter().copied().zip(self.quartiles.iter().copied()).collect();
        ends.split(|(_, ends)| ends.is_none()).for_each(|part| plot.band(canvas, part, role));
        self.draw_medians(canvas, plot, at, (role, mark));
    }

    /// Medians with a line between quartiles: clearer than bands where many lie on each other.
    pub fn draw_barred(&self, canvas: &mut Canvas, plot: &Plot, at: &[f64], (role, mark): (Role, Mark)) {
        let thin = Paint::stroke(canvas.style.colour(role), 0.8);
        for (&x, ends) in at.iter().zip(&self.quartiles) {
            if let Some(ends) = ends {
                canvas.line(&ends.map(|y| plot.at(x, y)), &thin);
            }
        }
        self.draw_medians(canvas, plot, at, (role, mark));
    }

    fn draw_medians(&self, canvas: &mut Canvas, plot: &Plot, at: &[f64], (role, mark): (Role, Mark)) {
        let medians: Vec<_> =
            at.iter().copied().zip(self.over_starts.iter().map(|over| over.median)).collect();
        plot.curve(canvas, &medians, &Paint::line(canvas.style, role));
        let paint = mark.paint(canvas, role);
        for (x, median) in medians {
            if let Some(median) = median {
                plot.dot(canvas, (x, median), 2.4, &paint);
            }
        }
    }
}

/// What stands before the counts of lost starts: the line of a role, or a mark.
#[derive(Clone, Copy, Debug)]
pub enum Sample {
    Line,
    Mark(Mark),
}

/// Counts lost starts above a plot, each over its place; `row` counts from the bottom. Nothing where none were lost.
pub fn count_lost(
    canvas: &mut Canvas,
    plot: &Plot,
    row: usize,
    counts: (&[f64], &[usize]),
    (role, sample): (Role, Sample),
) {
    let (left, y) = (plot.frame.x, plot.frame.y - 5.0 - 11.0 * row as f64);
    let lost: Vec<_> = counts.0.iter().zip(counts.1).filter(|(_, count)| **count > 0).collect();
    if lost.is_empty() {
        return;
    }
    match sample {
        Sample::Line => {
            canvas.line(&[(left - 44.0, y - 3.0), (left - 28.0, y - 3.0)], &Paint::line(canvas.style, role));
        }
        Sample::Mark(mark) => canvas.circle((left - 34.0, y - 3.0), 2.4, &mark.paint(canvas, role)),
    }
    let colour = canvas.style.colour(role);
    canvas.text((left - 6.0, y), &Text::new("lost", 9.0).end().colour(colour));
    for (&at, count) in lost {
        let (x, _) = plot.at(at, plot.y.bounds()[0]);
        canvas.text((x, y), &Text::new(count.to_string(), 8.0).middle().colour(colour));
    }
}

/// Lines and marks and what they stand for, side by side and so far above a plot: where curves fill all of it.
pub fn legend_above(canvas: &mut Canvas, plot: &Plot, lift: f64, entries: &[Entry]) {
    canvas.part("legend", "", |canvas| {
        let mut x = plot.frame.x;
        for entry in entries {
            entry.draw(canvas, (x, plot.frame.y - lift));
            x += entry.room();
        }
    });
}
