//! Draws what Fig. 3 and the figure of Algorithm 3 have in common: learning curve, five contexts, directions.

use serde::Deserialize;

use super::axes::{Axis, Plot};
use super::canvas::{Canvas, Frame, Paint, Text};
use super::ellipse::{Pair, Plane};
use super::marks::{Corner, Entry};
use super::style::Role;
use crate::experiment::Statistic;

/// The series of a variant of training two neurons and two interneurons.
#[derive(Deserialize)]
pub struct PairSeries {
    pub presentation: Vec<f64>,
    pub error: Vec<Statistic>,
    /// The first and the third quartile of the error over starts.
    pub error_quartiles: Vec<Option<[f64; 2]>>,
    pub step: Vec<f64>,
    #[serde(default)]
    pub asymmetry: Vec<Statistic>,
    pub distance_initial: Vec<Option<f64>>,
    pub distance_final: Vec<Option<f64>>,
    pub shown: Option<Shown>,
}

/// The start that is shown.
#[derive(Deserialize)]
pub struct Shown {
    pub axes: Pair,
    pub contexts: Vec<Pair>,
    pub initial_synapses: Pair,
    pub learned_synapses: Pair,
    pub five_contexts: FiveContexts,
}

/// The error within five contexts with frozen synapses.
#[derive(Deserialize)]
pub struct FiveContexts {
    presented: Vec<usize>,
    samples: f64,
    initial_synapses: Option<Vec<f64>>,
    learned_synapses: Option<Vec<f64>>,
}

/// The median error with its quartiles against presentations, one curve for each variant.
pub fn learning_curves(canvas: &mut Canvas, panel: Frame, curves: &[(&str, Role, &PairSeries)]) {
    let ends = curves.iter().flat_map(|(_, _, series)| series.error_quartiles.iter().flatten().flatten());
    let last = curves.iter().filter_map(|(_, _, series)| series.presentation.last());
    let last = last.copied().fold(10.0, f64::max);
    let plot = Plot::within(
        panel,
        Axis::log([1.0, last], "contexts presented"),
        Axis::log_around(ends.copied(), "whitening error"),
    );
    plot.draw(canvas);
    let mut entries = Vec::new();
    for &(name, role, series) in curves {
        canvas.part("series", name, |canvas| {
            let x = series.presentation.iter().copied();
            plot.band(canvas, &x.clone().zip(series.error_quartiles.clone()).collect::<Vec<_>>(), role);
            let medians = series.error.iter().map(|error| error.median);
            let paint = Paint::line(canvas.style, role);
            plot.curve(canvas, &x.zip(medians).collect::<Vec<_>>(), &paint);
            entries.push(Entry::line(paint, name));
        });
    }
    if entries.len() > 1 {
        plot.legend(canvas, Corner::TopRight, &entries);
    }
}

/// Error(t) within five contexts, before and after learning.
pub fn five_contexts(canvas: &mut Canvas, panel: Frame, five: &FiveContexts) {
    let traces = [&five.initial_synapses, &five.learned_synapses];
    let all = traces.into_iter().flatten().flatten().copied();
    let count = five.presented.len() as f64;
    let plot = Plot::within(
        panel,
        Axis::linear([0.0, count * five.samples], "stimuli"),
        Axis::log_around(all, "whitening error"),
    );
    for context in (0..five.presented.len()).step_by(2) {
        let from = context as f64 * five.samples;
        plot.span(canvas, [from, from + five.samples]);
    }
    plot.draw(canvas);
    let roles = [("*W*_0", Role::Initial), ("*W*_T", Role::Learned)];
    let mut entries = Vec::new();
    for (trace, (name, role)) in traces.into_iter().zip(roles) {
        let Some(trace) = trace else { continue };
        canvas.part("series", name, |canvas| {
            let paint = Paint::stroke(canvas.style.colour(role), 1.0).dashed(canvas.style.dash(role));
            let points = trace.iter().enumerate().map(|(i, &error)| (i as f64, Some(error)));
            plot.curve(canvas, &points.collect::<Vec<_>>(), &paint);
            entries.push(Entry::line(paint, name));
        });
    }
    legend_above(canvas, plot.frame, entries);
}

/// A legend in one line above a plot, where it hides nothing.
pub fn legend_above(canvas: &mut Canvas, frame: Frame, entries: Vec<Entry>) {
    let room = entries.iter().map(Entry::room).fold(62.0, f64::max);
    let left = frame.right() - room * entries.len() as f64;
    canvas.part("legend", "", |canvas| {
        for (i, entry) in entries.into_iter().enumerate() {
            entry.draw(canvas, (left + room * i as f64, frame.y - 8.0));
        }
    });
}

/// The axes that the columns of W₀, W_T and V span.
pub fn directions(canvas: &mut Canvas, panel: Frame, shown: &Shown) {
    let plane = Plane::new(panel.inset([6.0, 22.0, 6.0, 40.0]), 1.08);
    plane.circle(canvas, 1.0, &Paint::stroke(canvas.style.shade(), 1.0));
    let sets = [
        ("*W*_0", Role::Initial, &shown.initial_synapses),
        ("*W*_T", Role::Learned, &shown.learned_synapses),
        ("*V*", Role::Truth, &shown.axes),
    ];
    for (i, (name, role, columns)) in sets.into_iter().enumerate() {
        let paint = Paint::line(canvas.style, role);
        canvas.part("series", name, |canvas| {
            columns.iter().for_each(|&column| plane.axis(canvas, column, 1.0, &paint));
            let across = panel.width.min(162.0) / 3.0;
            let left = panel.centre().0 - 1.5 * across + i as f64 * across;
            Entry::line(paint.clone(), name).draw(canvas, (left, panel.bottom() - 24.0));
        });
    }
}

/// Says in a panel that no start finished, so that there is nothing to show.
pub fn nothing(canvas: &mut Canvas, panel: Frame) {
    let text = Text::new("no start that is shown here finished", 10.0).middle();
    canvas.text(panel.centre(), &text.colour(canvas.style.faint_ink()));
}
