//! Draws the loop cut short: errors, distances and eigenvalues against the iterations allowed, and learning curves.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, heading, range};
use super::canvas::{Canvas, Frame, Paint, WIDTH};
use super::lettering::number;
use super::marks::Entry;
use super::style::{Role, Style};
use super::sweep::{Mark, Sample, Sweep, count_lost, legend_above};
use crate::experiment::{Figure, Statistic};
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 540.0];

/// What a variant has in `panels.json`.
#[derive(Deserialize)]
struct Series {
    seeds: usize,
    iterations: Vec<f64>,
    lost: Vec<usize>,
    loop_error: Sweep,
    loop_emitted: Sweep,
    loop_distance: Sweep,
    loop_smallest: Sweep,
    loop_largest: Sweep,
    loop_smallest_needed: Sweep,
    loop_largest_needed: Sweep,
    exact_error: Statistic,
    exact_distance: Statistic,
    curves: Vec<Curve>,
}

/// The error of M after so many presentations.
#[derive(Deserialize)]
struct Curve {
    iterations: String,
    error: Vec<Statistic>,
    quartiles: Vec<Option<[f64; 2]>>,
    finished: usize,
}

/// A variant, what it is called and how its points are marked.
struct Variant {
    words: &'static str,
    mark: Mark,
    series: Series,
}

/// A, errors; B, distances; C, eigenvalues; D, learning curves.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let Some(first) = findings.variant_or_first(Figure::Loop, "fixed-rate") else { return Ok(canvas) };
    let others = findings.variants(Figure::Loop).into_iter().filter(|name| *name == "chosen-rate");
    let words = [("fixed rate", Mark::Dot), ("chosen rate", Mark::Ring)];
    let read = |(name, (words, mark))| -> Result<Variant> {
        Ok(Variant { words, mark, series: findings.series(Figure::Loop, name)? })
    };
    let variants = [first].into_iter().chain(others).zip(words).map(read).collect::<Result<Vec<_>>>()?;
    let whole = Frame::new(0.0, 0.0, SIZE[0], SIZE[1]);
    let cell = |column, row| whole.cell([2, 2], [column, row], 0.0);
    canvas.panel("A", cell(0, 0), |canvas, panel| errors(canvas, panel, &variants));
    canvas.panel("B", cell(1, 0), |canvas, panel| distances(canvas, panel, &variants));
    canvas.panel("C", cell(0, 1), |canvas, panel| eigenvalues(canvas, panel, &variants[..1]));
    canvas.panel("D", cell(1, 1), |canvas, panel| learning(canvas, panel, &variants[0].series));
    Ok(canvas)
}

/// An axis of iterations, from so many on.
fn iterations(variants: &[Variant], first: f64) -> Axis {
    let all = || variants.iter().flat_map(|variant| variant.series.iterations.iter().copied());
    let last = all().fold(2.0 * first, f64::max);
    let powers = all().filter(|at| at.log2().fract() == 0.0);
    let mut ticks: Vec<(f64, String)> = powers.map(|at| (at, number(at))).collect();
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    ticks.dedup();
    Axis::log([0.8 * first, 1.25 * last], "iterations of the loop for each stimulus").with_ticks(ticks)
}

/// The shortest loop with which most starts finished; a power of two.
fn shortest(variants: &[Variant]) -> f64 {
    let known = |variant: &Variant| {
        let each = variant.series.iterations.iter().zip(&variant.series.loop_error.over_starts);
        each.filter(|(_, over)| over.median.is_some()).map(|(at, _)| *at).fold(f64::INFINITY, f64::min)
    };
    let shortest = variants.iter().map(known).fold(f64::INFINITY, f64::min);
    if shortest.is_finite() { shortest.log2().floor().exp2() } else { 1.0 }
}

/// A plot with room above it for counts of lost starts.
fn plot(panel: Frame, x: Axis, y: Axis) -> Plot {
    Plot::within(panel.inset([0.0, 24.0, 0.0, 0.0]), x, y)
}

/// A: the error of M, and that of the responses.
fn errors(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let style = canvas.style;
    let sweeps = variants.iter().flat_map(|v| [&v.series.loop_error, &v.series.loop_emitted]);
    let plot = plot(panel, iterations(variants, 1.0), Sweep::axis(sweeps, "whitening error"));
    plot.draw(canvas);
    exact(canvas, &plot, variants[0].series.exact_error);
    for (row, variant) in variants.iter().enumerate() {
        let series = &variant.series;
        let errors = [(Role::Initial, &series.loop_error), (Role::Learned, &series.loop_emitted)];
        canvas.part("series", variant.words, |canvas| {
            for (role, sweep) in errors {
                sweep.draw(canvas, &plot, &series.iterations, (role, variant.mark));
            }
            let lost = (&series.iterations[..], &series.lost[..]);
            count_lost(canvas, &plot, row, lost, (Role::Truth, Sample::Mark(variant.mark)));
        });
    }
    let lines = [("error of *M*", Role::Initial), ("of responses", Role::Learned), ("exact", Role::Truth)];
    let lines = lines.map(|(words, role)| Entry::line(Paint::line(style, role), words));
    legend_above(canvas, &plot, 34.0, &lines);
}

/// What exact responses lead to.
fn exact(canvas: &mut Canvas, plot: &Plot, statistic: Statistic) {
    if let Some(median) = statistic.median {
        let paint = Paint::line(canvas.style, Role::Truth);
        canvas.part("series", "exact", |canvas| plot.level(canvas, median, &paint));
    }
}

/// B: the distance from V.
fn distances(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let sweeps = variants.iter().map(|v| &v.series.loop_distance);
    let axis = Sweep::axis(sweeps, "‖*Ŵ*_T − *V*‖_F");
    let plot = plot(panel, iterations(variants, shortest(variants)), axis);
    plot.draw(canvas);
    exact(canvas, &plot, variants[0].series.exact_distance);
    let mut entries = Vec::new();
    for (variant, role) in variants.iter().zip([Role::Learned, Role::Further]) {
        canvas.part("series", variant.words, |canvas| {
            variant.series.loop_distance.draw(
                canvas,
                &plot,
                &variant.series.iterations,
                (role, variant.mark),
            );
        });
        entries.push(Entry::line(Paint::line(canvas.style, role), variant.words));
    }
    entries.push(Entry::line(Paint::line(canvas.style, Role::Truth), "exact"));
    legend_above(canvas, &plot, 12.0, &entries);
}

/// C: the eigenvalues of M, and those that would make the responses white.
fn eigenvalues(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let (style, series) = (canvas.style, &variants[0].series);
    let sweeps = [
        ("largest", Role::Learned, &series.loop_largest, &series.loop_largest_needed),
        ("smallest", Role::Initial, &series.loop_smallest, &series.loop_smallest_needed),
    ];
    let values = sweeps.iter().flat_map(|(_, _, sweep, needed)| sweep.values().chain(needed.values()));
    let [least, most] = range(values.chain([1.0])).unwrap_or([0.5, 1.5]);
    let y = Axis::linear([least - 0.05, most + 0.05], "eigenvalue of *M* / of the root of *C*");
    let plot = plot(panel, iterations(variants, shortest(variants)), y);
    plot.draw(canvas);
    heading(canvas, panel, "fixed rate");
    plot.level(canvas, 1.0, &Paint::stroke(style.faint_ink(), 0.8));
    let mut entries = Vec::new();
    for (name, role, sweep, needed) in sweeps {
        canvas.part("series", name, |canvas| {
            let at = series.iterations.iter().copied();
            let needed: Vec<_> = at.zip(needed.over_starts.iter().map(|over| over.median)).collect();
            plot.curve(canvas, &needed, &Paint::stroke(style.colour(role), 1.2).dashed(Some(DOTTED)));
            sweep.draw(canvas, &plot, &series.iterations, (role, Mark::Dot));
        });
        entries.push(Entry::line(Paint::line(style, role), name));
    }
    entries.push(Entry::line(Paint::stroke(style.ink(), 1.2).dashed(Some(DOTTED)), "needed to whiten"));
    legend_above(canvas, &plot, 12.0, &entries);
}

/// The dashes of what theory says.
const DOTTED: &str = "1.5 2";

/// D: the error of M while the circuit learns.
fn learning(canvas: &mut Canvas, panel: Frame, series: &Series) {
    let style = canvas.style;
    heading(canvas, panel, "fixed rate");
    let known = |curve: &Curve| curve.error.iter().filter_map(|over| over.median).collect::<Vec<_>>();
    let last = series.curves.iter().map(|curve| curve.error.len()).max().unwrap_or(2);
    let plot = plot(
        panel,
        Axis::linear([0.0, last as f64], "contexts presented"),
        Axis::log_around(series.curves.iter().flat_map(known), "error of *M*"),
    );
    plot.draw(canvas);
    let mut entries = Vec::new();
    for (curve, role) in series.curves.iter().zip([Role::Further, Role::Learned, Role::Truth, Role::Other]) {
        let paint = Paint::line(style, role);
        let words = match (curve.iterations.as_str(), series.seeds - curve.finished) {
            ("exact", _) => "exact".to_owned(),
            (iterations, 0) => format!("~T~ = {iterations}"),
            (iterations, lost) => format!("~T~ = {iterations} ({lost} lost)"),
        };
        canvas.part("series", &curve.iterations, |canvas| {
            let at = (1..).map(f64::from);
            let band: Vec<_> = at.clone().zip(curve.quartiles.iter().copied()).collect();
            plot.band(canvas, &band, role);
            let medians: Vec<_> = at.zip(curve.error.iter().map(|over| over.median)).collect();
            plot.curve(canvas, &medians, &paint);
        });
        entries.push(Entry::line(paint, &words));
    }
    legend_above(canvas, &plot, 12.0, &entries);
}
