//! Draws the appendix's last figure: Algorithm 3.

use anyhow::Result;

use super::axes::{Axis, Plot};
use super::canvas::{Canvas, Frame, Paint, WIDTH};
use super::marks::{Corner, Entry};
use super::pair::{PairSeries, directions, five_contexts, learning_curves, nothing};
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 430.0];

/// A–D.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let roles = [Role::Learned, Role::Initial, Role::Unit, Role::Further, Role::Other];
    let mut variants = findings.variants(Figure::Biological);
    // The reading that is shown start by start comes first.
    variants.sort_by_key(|&name| name != "authors");
    let read = |(&name, role): (&&str, Role)| -> Result<_> {
        Ok((name.to_owned(), role, findings.series::<PairSeries>(Figure::Biological, name)?))
    };
    let all = variants.iter().zip(roles).map(read).collect::<Result<Vec<_>>>()?;
    let curves: Vec<_> = all.iter().map(|(name, role, series)| (name.as_str(), *role, series)).collect();
    let whole = Frame::new(0.0, 0.0, SIZE[0], SIZE[1]);
    let [a, b, c, d] = [[0, 0], [1, 0], [0, 1], [1, 1]].map(|cell| whole.cell([2, 2], cell, 8.0));
    let shown = curves.first().and_then(|(_, _, series)| series.shown.as_ref());
    canvas.panel("A", a, |canvas, frame| learning_curves(canvas, frame, &curves));
    canvas.panel("B", b, |canvas, frame| match shown {
        Some(shown) => five_contexts(canvas, frame, &shown.five_contexts),
        None => nothing(canvas, frame),
    });
    canvas.panel("C", c, |canvas, frame| match shown {
        Some(shown) => directions(canvas, frame, shown),
        None => nothing(canvas, frame),
    });
    canvas.panel("D", d, |canvas, frame| asymmetry(canvas, frame, &curves));
    Ok(canvas)
}

/// D: feedforward and feedback synapses become each other's transpose.
fn asymmetry(canvas: &mut Canvas, panel: Frame, curves: &[(&str, Role, &PairSeries)]) {
    let medians = |series: &PairSeries| -> Vec<(f64, Option<f64>)> {
        let points = series.step.iter().copied().zip(series.asymmetry.iter().map(|at| at.median));
        points.filter(|&(step, _)| step >= 1.0).collect()
    };
    let values = curves.iter().flat_map(|(_, _, series)| medians(series)).filter_map(|(_, value)| value);
    let last = curves.iter().filter_map(|(_, _, series)| series.step.last().copied()).fold(10.0, f64::max);
    let plot = Plot::within(
        panel,
        Axis::log([1.0, last], "stimuli"),
        Axis::log_around(values, "‖*W*_{rn} − *W*_{nr}^⊤‖_F"),
    );
    plot.draw(canvas);
    let mut entries = Vec::new();
    for &(name, role, series) in curves {
        let paint = Paint::line(canvas.style, role);
        canvas.part("series", name, |canvas| plot.curve(canvas, &medians(series), &paint));
        entries.push(Entry::line(paint, name));
    }
    plot.legend(canvas, Corner::BottomLeft, &entries);
}
