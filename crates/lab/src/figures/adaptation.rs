//! Draws how fast gains adapt to natural contexts they have not met: against K, sample by sample, and with each rate.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, SMALL};
use super::canvas::{Canvas, Frame, Paint, Text};
use super::lettering::number;
use super::marks::Entry;
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const SIZE: [f64; 2] = [720.0, 540.0];
const LEGEND: f64 = 50.0;

/// First quartile, median and third quartile; `None` where it is infinite.
type Quartiles = [Option<f64>; 3];

#[derive(Deserialize)]
struct Series {
    n: f64,
    horizon: f64,
    k: Option<Vec<f64>>,
    samples: Vec<Quartiles>,
    floor: Vec<Quartiles>,
    curve: Option<Curve>,
    by_rate: Option<ByRate>,
}

/// The error after so many samples, where K = N.
#[derive(Deserialize)]
struct Curve {
    sample: Vec<f64>,
    error: Vec<Quartiles>,
}

/// The samples it takes with each rate, where K = N.
#[derive(Deserialize)]
struct ByRate {
    rate: Vec<f64>,
    samples: Vec<Quartiles>,
}

struct Variant {
    label: &'static str,
    role: Role,
    /// Where two variants share a role.
    dash: Option<&'static str>,
    series: Series,
}

impl Variant {
    fn paint(&self, style: Style) -> Paint {
        let paint = Paint::line(style, self.role);
        if self.dash.is_some() { paint.dashed(self.dash) } else { paint }
    }
}

/// What is drawn, and how.
const KINDS: [(&str, &str, Role, Option<&str>); 9] = [
    ("learned", "learned", Role::Learned, None),
    ("cosines", "cosines", Role::Truth, None),
    ("eigenbasis", "mean eigenbasis", Role::Context, None),
    ("local", "local frame", Role::Unit, None),
    ("random", "random", Role::Initial, None),
    ("prior", "learned, prior over *g*", Role::Further, None),
    ("prior-independent", "the same, *g* independent", Role::Further, Some("7 3")),
    ("ledoit-wolf", "no circuit: Ledoit–Wolf", Role::Other, None),
    ("running-covariance", "sample covariance", Role::Other, Some("2 3")),
];

/// A samples against K, B errors after a switch, C what optimal gains leave, D samples against the rate.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let mut variants = Vec::new();
    for (name, label, role, dash) in KINDS {
        if findings.variants(Figure::Adaptation).contains(&name) {
            let series = findings.series(Figure::Adaptation, name)?;
            variants.push(Variant { label, role, dash, series });
        }
    }
    legend(&mut canvas, &variants);
    let below = Frame::new(0.0, LEGEND, SIZE[0], SIZE[1] - LEGEND);
    let cell = |column, row| below.cell([2, 2], [column, row], 12.0);
    canvas.panel("A", cell(0, 0), |canvas, frame| samples_against_interneurons(canvas, frame, &variants));
    canvas.panel("B", cell(1, 0), |canvas, frame| after_switch(canvas, frame, &variants));
    canvas.panel("C", cell(0, 1), |canvas, frame| floors(canvas, frame, &variants));
    canvas.panel("D", cell(1, 1), |canvas, frame| samples_against_rate(canvas, frame, &variants));
    Ok(canvas)
}

/// One legend for all panels.
fn legend(canvas: &mut Canvas, variants: &[Variant]) {
    let style = canvas.style;
    for (row, variants) in variants.chunks(variants.len().div_ceil(2).max(1)).enumerate() {
        let mut left = 14.0;
        for variant in variants {
            let entry = Entry::line(variant.paint(style), variant.label);
            entry.draw(canvas, (left, 14.0 + 18.0 * row as f64));
            left += entry.room() + 10.0;
        }
    }
}

/// The axis of samples, on which never is a level of its own.
struct Samples {
    axis: Axis,
    never: f64,
}

impl Samples {
    fn of<'a>(variants: &[Variant], shown: impl Iterator<Item = &'a Quartiles>) -> Self {
        let horizon = variants.iter().map(|variant| variant.series.horizon).fold(10.0, f64::max);
        let least = shown.flatten().flatten().copied().fold(0.2 * horizon, f64::min);
        let (from, never) = (0.8 * least, 2.0 * horizon);
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for power in 0..6 {
            let values = [1.0, 3.0].map(|multiple| multiple * 10_f64.powi(power));
            ticks.extend(values.into_iter().filter(|&x| x <= horizon).map(|x| (x, format!("{x}"))));
        }
        ticks.push((never, "never".to_owned()));
        Self { axis: Axis::log([from, 3.0 * horizon], "samples to an error of 0.5").with_ticks(ticks), never }
    }

    /// Where a number of samples is drawn; those that are never aside of each other.
    fn place(&self, samples: Option<f64>, aside: f64) -> f64 {
        samples.unwrap_or(self.never * 1.07_f64.powf(aside))
    }
}

/// Quartiles and medians against something, with those that never get there on top.
fn quartile_bars(
    canvas: &mut Canvas,
    plot: &Plot,
    samples: &Samples,
    (points, variant, aside): (&[(f64, Quartiles)], &Variant, f64),
) {
    let colour = canvas.style.colour(variant.role);
    let at = |samples_to: Option<f64>| samples.place(samples_to, aside);
    let line: Vec<_> = points.iter().map(|(x, quartiles)| (*x, Some(at(quartiles[1])))).collect();
    plot.curve(canvas, &line, &variant.paint(canvas.style));
    for (x, [low, middle, high]) in points {
        let shift = |(px, py): (f64, f64)| (px + 1.2 * aside, py);
        let ends = [shift(plot.at(*x, at(*low))), shift(plot.at(*x, at(*high)))];
        if low.is_some() {
            canvas.line(&ends, &Paint::stroke(colour, 1.0));
        }
        let dot =
            if middle.is_some() { Paint::fill(colour) } else { Paint::fill("#ffffff").edged(colour, 1.2) };
        canvas.circle(shift(plot.at(*x, at(*middle))), 2.6, &dot);
    }
}

/// A: how many samples it takes with each K.
fn samples_against_interneurons(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let samples = Samples::of(variants, variants.iter().flat_map(|variant| &variant.series.samples));
    let plot = Plot::within(panel, interneurons(variants), samples.axis.clone());
    let Some(n) = variants.first().map(|variant| variant.series.n) else { return };
    plot.span(canvas, [n, plot.x.bounds()[1]]);
    plot.draw(canvas);
    mark_n(canvas, &plot, n);
    for (i, variant) in variants.iter().enumerate() {
        canvas.part("series", variant.label, |canvas| {
            let aside = i as f64 - 2.0;
            if let Some(k) = &variant.series.k {
                let points: Vec<_> = k.iter().copied().zip(variant.series.samples.iter().copied()).collect();
                quartile_bars(canvas, &plot, &samples, (&points, variant, aside));
            } else {
                let level = variant.series.samples.first().and_then(|quartiles| quartiles[1]);
                plot.level(canvas, samples.place(level, aside), &variant.paint(canvas.style));
            }
        });
    }
}

fn interneurons(variants: &[Variant]) -> Axis {
    let all = variants.iter().filter_map(|variant| variant.series.k.as_ref()).flatten();
    let most = all.copied().fold(1.0, f64::max);
    Axis::linear([0.0, 1.04 * most], "number of interneurons K")
}

fn mark_n(canvas: &mut Canvas, plot: &Plot, n: f64) {
    let (x, _) = plot.at(n, 1.0);
    canvas.text((x, plot.frame.y - 5.0), &Text::new(format!("K = N = {n}"), SMALL).middle());
}

/// B: the error so many samples after the switch, with quartiles of those that are told apart best.
fn after_switch(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let curves = variants.iter().filter_map(|variant| Some((variant, variant.series.curve.as_ref()?)));
    let medians = curves.clone().flat_map(|(_, curve)| curve.error.iter().filter_map(|at| at[1]));
    let highest = 12.0;
    let horizon = variants.iter().map(|variant| variant.series.horizon).fold(10.0, f64::max);
    let plot = Plot::within(
        panel,
        Axis::log([1.0, horizon], "samples after the switch, K = N"),
        Axis::log_around(medians.filter(|&error| error < highest), "whitening error"),
    );
    plot.draw(canvas);
    threshold(canvas, &plot);
    for (variant, curve) in curves {
        canvas.part("series", variant.label, |canvas| {
            let x = curve.sample.iter().copied();
            let band = curve.error.iter().map(|[low, _, high]| Some([(*low)?, (*high)?]));
            let banded = matches!(variant.role, Role::Learned | Role::Further | Role::Other);
            if banded && variant.dash.is_none() {
                plot.band(canvas, &x.clone().zip(band).collect::<Vec<_>>(), variant.role);
            }
            let medians = curve.error.iter().map(|at| at[1].filter(|&error| error < highest));
            plot.curve(canvas, &x.zip(medians).collect::<Vec<_>>(), &variant.paint(canvas.style));
        });
    }
}

/// The error that counts as adapted.
fn threshold(canvas: &mut Canvas, plot: &Plot) {
    plot.level(canvas, 0.5, &Paint::stroke(canvas.style.faint_ink(), 0.8).dashed(Some("1 2")));
}

/// C: the error with optimal gains.
fn floors(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let with = variants.iter().filter(|variant| variant.series.k.is_some() && variant.role != Role::Further);
    let ends = with.clone().flat_map(|variant| variant.series.floor.iter().flatten().flatten());
    let plot = Plot::within(
        panel,
        interneurons(variants),
        Axis::log_around(ends.copied(), "error with optimal gains"),
    );
    let Some(n) = variants.first().map(|variant| variant.series.n) else { return };
    plot.span(canvas, [n, plot.x.bounds()[1]]);
    plot.draw(canvas);
    mark_n(canvas, &plot, n);
    threshold(canvas, &plot);
    for variant in with {
        canvas.part("series", variant.label, |canvas| {
            let k = variant.series.k.iter().flatten().copied();
            let floors = &variant.series.floor;
            let line: Vec<_> = k.clone().zip(floors.iter().map(|at| at[1])).collect();
            plot.curve(canvas, &line, &variant.paint(canvas.style));
            let dot = Paint::fill(canvas.style.colour(variant.role));
            for (k, quartiles) in k.zip(floors) {
                if let [Some(low), Some(middle), Some(high)] = *quartiles {
                    let ends = [plot.at(k, low), plot.at(k, high)];
                    canvas.line(&ends, &Paint::stroke(dot.colour(), 1.0));
                    plot.dot(canvas, (k, middle), 2.2, &dot);
                }
            }
        });
    }
}

/// D: how many samples it takes with each gain rate.
fn samples_against_rate(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let with = variants.iter().filter_map(|variant| Some((variant, variant.series.by_rate.as_ref()?)));
    let samples = Samples::of(variants, with.clone().flat_map(|(_, by_rate)| &by_rate.samples));
    let rates = with.clone().flat_map(|(_, by_rate)| by_rate.rate.iter().copied());
    let ticks = with.clone().take(1).flat_map(|(_, by_rate)| &by_rate.rate).map(|&rate| (rate, number(rate)));
    let plot = Plot::within(
        panel,
        Axis::log_around(rates, "gain rate η_g, K = N").widened().with_ticks(ticks.collect()),
        samples.axis.clone(),
    );
    plot.draw(canvas);
    for (i, (variant, by_rate)) in with.enumerate() {
        canvas.part("series", variant.label, |canvas| {
            let points: Vec<_> = by_rate.rate.iter().copied().zip(by_rate.samples.iter().copied()).collect();
            quartile_bars(canvas, &plot, &samples, (&points, variant, i as f64 - 2.0));
        });
    }
}
