//! Draws Fig. 4: natural contexts, learning, what is learned, and how well it serves contexts never seen.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, MEDIUM, Plot, SMALL, heading, range};
use super::canvas::{Canvas, Frame, Paint, Text, WIDTH};
use super::density::histogram;
use super::filters::{colour_bar, filters, image, largest, patch};
use super::frequency::by_frequency;
use super::interneurons::{Sweep, error_against_interneurons};
use super::known;
use super::marks::{Entry, densities};
use super::pair::{legend_above, nothing};
use super::style::{Role, Style};
use crate::experiment::{Figure, Statistic};
use crate::findings::Findings;

const HEIGHT: f64 = 470.0;
/// What is said in place of E takes so much more.
const NOTE: f64 = 18.0;

#[derive(Deserialize)]
struct Series {
    patch: [usize; 2],
    presentation: Vec<f64>,
    error: Vec<Statistic>,
    test_adapted: Vec<Option<f64>>,
    train_adapted: Vec<Option<f64>>,
    test_fixed_gains: Vec<Option<f64>>,
    test_initial_synapses: Vec<Option<f64>>,
    basis_error_learned: Vec<Option<f64>>,
    basis_error_initial: Vec<Option<f64>>,
    basis_error_contexts: Vec<Option<f64>>,
    covariances: Vec<Vec<Vec<f64>>>,
    shown: Option<Shown>,
}

#[derive(Deserialize)]
struct Shown {
    learned_synapses: Vec<Vec<f64>>,
}

/// Fig. 4 A–F; E comes from the sweep over K, and where that was not rerun F takes its room.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let sweep = Sweep::read(findings, "authors")?;
    let mut canvas = Canvas::new(WIDTH, HEIGHT + if sweep.is_some() { 0.0 } else { NOTE }, style);
    let Some(variant) = findings.variant_or_first(Figure::Natural, "authors") else { return Ok(canvas) };
    let series: Series = findings.series(Figure::Natural, variant)?;
    let whole = Frame::new(0.0, 0.0, WIDTH, HEIGHT);
    let cell = |column: usize, row: usize| whole.cell([3, 2], [column, row], 8.0);
    canvas.panel("A", cell(0, 0), |canvas, frame| contexts(canvas, frame, &series));
    canvas.panel("B", cell(1, 0), |canvas, frame| learning_curve(canvas, frame, &series));
    canvas.panel("C", cell(2, 0), |canvas, frame| errors(canvas, frame, &series));
    canvas.panel("D", cell(0, 1), |canvas, frame| match &series.shown {
        Some(shown) => {
            heading(canvas, frame, "columns of *W*_T");
            let synapses = by_frequency(&shown.learned_synapses, series.patch);
            filters(canvas, frame.inset([14.0, 26.0, 6.0, 8.0]), &synapses, series.patch);
        }
        None => nothing(canvas, frame),
    });
    let mut last = cell(2, 1);
    if let Some(sweep) = &sweep {
        canvas.panel("E", cell(1, 1), |canvas, frame| error_against_interneurons(canvas, frame, sweep));
    } else {
        last = Frame { x: cell(1, 1).x, width: last.right() - cell(1, 1).x, ..last };
        let note =
            "E, the error against the number of interneurons, is drawn where interneurons was rerun with it";
        let note = Text::new(note, SMALL).middle().colour(style.faint_ink());
        canvas.text((0.5 * WIDTH, HEIGHT + NOTE - 6.0), &note);
    }
    canvas.panel("F", last, |canvas, frame| basis_errors(canvas, frame, &series));
    Ok(canvas)
}

/// A: two contexts, how their middle pixel varies with the others, and their covariances, all in one range of colours.
fn contexts(canvas: &mut Canvas, panel: Frame, series: &Series) {
    let inside = panel.inset([30.0, 24.0, 46.0, 8.0]);
    let shown = &series.covariances[..series.covariances.len().min(2)];
    let limit = largest(shown.iter().flatten());
    let (top, below) = inside.split(0.4);
    for (i, covariance) in shown.iter().enumerate() {
        canvas.part("series", &format!("context {i}"), |canvas| {
            let cell = |row: Frame| row.cell([2, 1], [i, 0], 10.0).square();
            let middle = &covariance[covariance.len() / 2];
            image(canvas, cell(top.inset([0.0, 0.0, 0.0, 12.0])), &patch(middle, series.patch), limit);
            image(canvas, cell(below), covariance, limit);
            let name = format!("*C*_{{ss}}({})", i + 1);
            let across = inside.cell([2, 1], [i, 0], 10.0).centre().0;
            canvas.text((across, panel.y + 13.0), &Text::new(name, MEDIUM).middle());
        });
    }
    let side = |canvas: &mut Canvas, frame: Frame, text: &str| {
        canvas.text((panel.x + 22.0, frame.centre().1), &Text::new(text, 10.0).middle().turned());
    };
    side(canvas, top.inset([0.0, 0.0, 0.0, 12.0]), "mid pixel");
    side(canvas, below, "covariance");
    let bar = below.cell([2, 1], [1, 0], 10.0).square();
    colour_bar(canvas, Frame::new(inside.right() + 8.0, bar.y, 8.0, bar.height), limit);
}

/// B: the mean error with its standard deviation over starts.
fn learning_curve(canvas: &mut Canvas, panel: Frame, series: &Series) {
    let high = series.error.iter().filter_map(|at| Some(at.mean? + at.std?));
    let last = series.presentation.last().copied().unwrap_or(10.0).max(10.0);
    let plot = Plot::within(
        panel,
        Axis::log([1.0, last], "presentations"),
        Axis::from_zero(high, "whitening error"),
    );
    plot.draw(canvas);
    canvas.part("series", "training", |canvas| {
        let x = series.presentation.iter().copied();
        let band = series.error.iter().map(|at| Some([at.mean? - at.std?, at.mean? + at.std?]));
        plot.band(canvas, &x.clone().zip(band).collect::<Vec<_>>(), Role::Learned);
        let means = series.error.iter().map(|at| at.mean);
        plot.curve(canvas, &x.zip(means).collect::<Vec<_>>(), &Paint::line(canvas.style, Role::Learned));
    });
}

/// C: errors over all starts in four situations, in the paper's colours: red, blue, green and purple.
fn errors(canvas: &mut Canvas, panel: Frame, series: &Series) {
    let sets = [
        ("*W*_T, *g* adapts, test", Role::Learned, known(&series.test_adapted)),
        ("*W*_T, *g* adapts, training", Role::Seen, known(&series.train_adapted)),
        ("*W*_T, *g* fixed, test", Role::Unit, known(&series.test_fixed_gains)),
        ("*W*_0, *g* adapts, test", Role::Random, known(&series.test_initial_synapses)),
    ];
    densities(canvas, panel, &sets, ("whitening error", 1.9));
}

/// F: how far learned synapses (blue), each context's eigenvectors (green) and starting synapses are from those of the
/// mean.
fn basis_errors(canvas: &mut Canvas, panel: Frame, series: &Series) {
    let sets = [
        ("*W*_T", Role::Basis, known(&series.basis_error_learned)),
        ("*Q*(c)", Role::Unit, known(&series.basis_error_contexts)),
        ("*W*_0", Role::Random, known(&series.basis_error_initial)),
    ];
    let [from, to] =
        range(sets.iter().flat_map(|(_, _, values)| values.iter().copied())).unwrap_or([0.0, 1.0]);
    let room = 0.08 * (to - from).max(1e-6);
    let bounds = [from - room, to + room];
    let bins = sets.iter().map(|(_, _, values)| histogram(values, bounds, 40)).collect::<Vec<_>>();
    let highest = bins.iter().flatten().map(|bin| bin.share).fold(0.0, f64::max);
    let plot = Plot::within(
        panel,
        Axis::linear(bounds, "‖· − *Q*_∗‖_F / N"),
        Axis::linear([0.0, 1.06 * highest.max(f64::MIN_POSITIVE)], "share of starts, contexts"),
    );
    plot.draw(canvas);
    let mut entries = Vec::new();
    for ((name, role, _), bins) in sets.into_iter().zip(bins) {
        canvas.part("series", name, |canvas| plot.histogram(canvas, &bins, role));
        entries.push(Entry::area(Paint::bar(canvas.style, role), name));
    }
    legend_above(canvas, plot.frame, entries);
}
