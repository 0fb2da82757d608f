//! Draws Algorithm 3 on natural contexts: what each constraint costs, how it learns, and which synapses it finds.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, heading};
use super::canvas::{Canvas, Frame, Paint};
use super::filters::filters;
use super::marks::Entry;
use super::pair::nothing;
use super::style::{Role, Style};
use crate::experiment::{Figure, Statistic};
use crate::findings::Findings;

const SIZE: [f64; 2] = [720.0, 540.0];
const LEGEND: f64 = 48.0;

#[derive(Deserialize)]
struct Series {
    patch: [usize; 2],
    k: Vec<f64>,
    /// The K of curves and filters.
    shown: Option<usize>,
    train: Vec<Spread>,
    test: Vec<Spread>,
    presentation: Vec<f64>,
    error: Option<Curve>,
    asymmetry: Option<Curve>,
    synapses: Option<Vec<Vec<f64>>>,
}

/// A median with its quartiles; `None` where too many starts failed.
#[derive(Deserialize)]
struct Spread {
    median: Option<f64>,
    quartiles: Option<[f64; 2]>,
}

/// Medians and quartiles at each of some presentations.
#[derive(Deserialize)]
struct Curve {
    median: Vec<Option<f64>>,
    quartiles: Vec<Option<[f64; 2]>>,
}

impl Curve {
    fn ends(&self) -> impl Iterator<Item = f64> {
        self.quartiles.iter().flatten().flatten().copied()
    }
}

#[derive(Deserialize)]
struct Bounds {
    gains: Statistic,
    alone: Statistic,
}

struct Variant {
    label: &'static str,
    role: Role,
    series: Series,
}

/// What is drawn, and how.
const KINDS: [(&str, &str, Role); 4] = [
    ("free", "free and tied", Role::Initial),
    ("decoupled", "untied", Role::Other),
    ("sign", "non-negative and tied", Role::Unit),
    ("all", "Algorithm 3", Role::Learned),
];

/// Below this an asymmetry is drawn as none.
const NO_ASYMMETRY: f64 = 1e-6;

/// A errors against K, B learning, C the columns of Algorithm 3, D asymmetry.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let rerun = findings.variants(Figure::Dale);
    let mut variants = Vec::new();
    for (name, label, role) in KINDS.into_iter().filter(|(name, _, _)| rerun.contains(name)) {
        variants.push(Variant { label, role, series: findings.series(Figure::Dale, name)? });
    }
    let levels = levels(findings, style);
    for (i, variant) in variants.iter().enumerate() {
        let entry = Entry::line(Paint::line(style, variant.role), variant.label);
        entry.draw(&mut canvas, (20.0 + 170.0 * i as f64, 14.0));
    }
    for (i, level) in levels.iter().enumerate() {
        Entry::line(level.paint.clone(), level.label).draw(&mut canvas, (20.0 + 340.0 * i as f64, 32.0));
    }
    let below = Frame::new(0.0, LEGEND, SIZE[0], SIZE[1] - LEGEND);
    let cell = |column, row| below.cell([2, 2], [column, row], 12.0);
    canvas.panel("A", cell(0, 0), |canvas, frame| errors(canvas, frame, &variants, &levels));
    canvas.panel("B", cell(1, 0), |canvas, frame| learning(canvas, frame, &variants));
    canvas.panel("C", cell(0, 1), |canvas, frame| {
        let all = variants.iter().find(|variant| variant.role == Role::Learned);
        match all.and_then(|all| Some((&all.series, all.series.synapses.as_ref()?))) {
            Some((series, synapses)) => columns(canvas, frame, series, synapses),
            None => nothing(canvas, frame),
        }
    });
    canvas.panel("D", cell(1, 1), |canvas, frame| asymmetry(canvas, frame, &variants));
    Ok(canvas)
}

/// What signs leave possible.
struct Level {
    label: &'static str,
    error: f64,
    paint: Paint,
}

fn levels(findings: &Findings, style: Style) -> Vec<Level> {
    let Ok(bounds) = Bounds::deserialize(findings.numbers(Figure::Dale, "bounds")) else { return Vec::new() };
    let kinds = [
        ("non-negative and tied, one context alone", bounds.alone, "1.5 2"),
        ("tied, *g* ≥ 0: no circuit does better", bounds.gains, "6 3"),
    ];
    let level = |(label, error, dash): (_, Statistic, _)| {
        Some(Level { label, error: error.median?, paint: Paint::stroke(style.ink(), 1.0).dashed(Some(dash)) })
    };
    kinds.into_iter().filter_map(level).collect()
}

/// A: errors with adapted gains against K, on contexts kept back and on those learned from.
fn errors(canvas: &mut Canvas, panel: Frame, variants: &[Variant], levels: &[Level]) {
    let spreads = variants.iter().flat_map(|variant| variant.series.train.iter().chain(&variant.series.test));
    let ends = spreads.flat_map(|at| at.quartiles.into_iter().flatten().chain(at.median));
    let most = variants.iter().flat_map(|variant| &variant.series.k).copied().fold(1.0, f64::max);
    let plot = Plot::within(
        panel,
        Axis::linear([0.0, 1.06 * most], "number of interneurons K"),
        Axis::from_zero(ends.chain(levels.iter().map(|level| level.error)), "whitening error"),
    );
    plot.draw(canvas);
    for level in levels {
        canvas.part("series", level.label, |canvas| plot.level(canvas, level.error, &level.paint));
    }
    for (i, variant) in variants.iter().enumerate() {
        canvas.part("series", variant.label, |canvas| {
            let colour = canvas.style.colour(variant.role);
            let aside = 2.4 * (i as f64 - 1.5);
            let kinds = [
                (&variant.series.test, Paint::fill(colour), Some(Paint::line(canvas.style, variant.role))),
                (&variant.series.train, Paint::fill("#ffffff").edged(colour, 1.2), None),
            ];
            for (spreads, dot, line) in kinds {
                let points = variant.series.k.iter().copied().zip(spreads);
                if let Some(line) = line {
                    plot.curve(
                        canvas,
                        &points.clone().map(|(k, at)| (k, at.median)).collect::<Vec<_>>(),
                        &line,
                    );
                }
                for (k, at) in points {
                    let place = |error| {
                        let (x, y) = plot.at(k, error);
                        (x + aside, y)
                    };
                    if let (Some([low, high]), true) = (at.quartiles, dot.colour() == colour) {
                        canvas.line(&[place(low), place(high)], &Paint::stroke(colour, 1.0));
                    }
                    if let Some(median) = at.median {
                        canvas.circle(place(median), 2.6, &dot);
                    }
                }
            }
        });
    }
    let ink = canvas.style.ink();
    let dots = [("test", Paint::fill(ink)), ("training", Paint::fill("#ffffff").edged(ink, 1.2))];
    for (i, (name, dot)) in dots.into_iter().enumerate() {
        Entry::dot(dot, name)
            .draw(canvas, (plot.frame.right() - 150.0 + 62.0 * i as f64, plot.frame.y - 8.0));
    }
}

/// Which K curves belong to.
fn shown(variants: &[Variant]) -> String {
    let k = variants.iter().find_map(|variant| variant.series.shown);
    k.map_or(String::new(), |k| format!(", K = {k}"))
}

/// B: the error on training contexts while everything learns.
fn learning(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let last = variants.iter().filter_map(|variant| variant.series.presentation.last());
    let ends = variants.iter().filter_map(|variant| variant.series.error.as_ref()).flat_map(Curve::ends);
    let plot = Plot::within(
        panel,
        Axis::log(
            [1.0, last.copied().fold(10.0, f64::max)],
            &format!("contexts presented{}", shown(variants)),
        ),
        Axis::log_around(ends, "whitening error"),
    );
    plot.draw(canvas);
    for variant in variants {
        banded(canvas, &plot, variant, variant.series.error.as_ref());
    }
}

/// D: how far feedforward weights are from feedback weights.
fn asymmetry(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let untied = || variants.iter().filter(|variant| matches!(variant.role, Role::Other | Role::Learned));
    let last = untied().filter_map(|variant| variant.series.presentation.last());
    let values = untied().filter_map(|variant| variant.series.asymmetry.as_ref()).flat_map(Curve::ends);
    let plot = Plot::within(
        panel,
        Axis::log(
            [1.0, last.copied().fold(10.0, f64::max)],
            &format!("contexts presented{}", shown(variants)),
        ),
        Axis::log_around(values.map(|x| x.max(NO_ASYMMETRY)), "‖*W*_{rn} − *W*_{nr}^⊤‖_F"),
    );
    plot.draw(canvas);
    for variant in untied() {
        banded(canvas, &plot, variant, variant.series.asymmetry.as_ref());
    }
}

/// A median with its quartiles against presentations.
fn banded(canvas: &mut Canvas, plot: &Plot, variant: &Variant, curve: Option<&Curve>) {
    let Some(curve) = curve else { return };
    canvas.part("series", variant.label, |canvas| {
        let x = variant.series.presentation.iter().copied();
        plot.band(canvas, &x.clone().zip(curve.quartiles.iter().copied()).collect::<Vec<_>>(), variant.role);
        let medians: Vec<_> = x.zip(curve.median.iter().copied()).collect();
        plot.curve(canvas, &medians, &Paint::line(canvas.style, variant.role));
    });
}

/// C: what the interneurons of Algorithm 3 answer through, from the largest gain to the smallest.
fn columns(canvas: &mut Canvas, panel: Frame, series: &Series, synapses: &[Vec<f64>]) {
    heading(canvas, panel, &format!("columns of *W*_{{nr}}, K = {}", synapses.len()));
    canvas.part("series", "columns", |canvas| {
        filters(canvas, panel.inset([16.0, 24.0, 16.0, 8.0]), synapses, series.patch);
    });
}
