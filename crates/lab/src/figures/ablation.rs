//! Draws the ablation: gains alone, synapses alone and both, after a switch and over the last presentations.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot};
use super::canvas::{Canvas, Frame, Paint, WIDTH};
use super::marks::{Corner, Entry};
use super::style::{Role, Style};
use crate::experiment::{Figure, Statistic};
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 270.0];

#[derive(Deserialize)]
struct Series {
    sample: Vec<f64>,
    error: Vec<Statistic>,
}

#[derive(Deserialize)]
struct Numbers {
    error_last10: Statistic,
    error_late: Statistic,
}

struct Variant<'a> {
    name: &'a str,
    role: Role,
    series: Series,
    numbers: Numbers,
}

/// A, the error after a switch; B, its means.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let roles = [Role::Learned, Role::Initial, Role::Unit, Role::Further, Role::Other];
    let read = |(name, role)| -> Result<Variant> {
        let numbers = Numbers::deserialize(findings.numbers(Figure::Ablation, name))?;
        Ok(Variant { name, role, series: findings.series(Figure::Ablation, name)?, numbers })
    };
    let variants = findings.variants(Figure::Ablation).into_iter().zip(roles);
    let variants = variants.map(read).collect::<Result<Vec<_>>>()?;
    let whole = Frame::new(0.0, 0.0, SIZE[0], SIZE[1]);
    let (a, b) = (Frame { width: 400.0, ..whole }, whole.inset([420.0, 0.0, 0.0, 0.0]));
    canvas.panel("A", a, |canvas, frame| after_switch(canvas, frame, &variants));
    canvas.panel("B", b, |canvas, frame| means(canvas, frame, &variants));
    Ok(canvas)
}

/// A: the mean error so many stimuli after a switch, with its standard deviation over starts.
fn after_switch(canvas: &mut Canvas, panel: Frame, variants: &[Variant<'_>]) {
    let means = variants.iter().flat_map(|variant| variant.series.error.iter().filter_map(|at| at.mean));
    let last = variants.iter().filter_map(|variant| variant.series.sample.last().copied());
    let plot = Plot::within(
        panel,
        Axis::log([1.0, last.fold(10.0, f64::max)], "stimuli after the switch"),
        Axis::log_around(means, "whitening error"),
    );
    plot.draw(canvas);
    let mut entries = Vec::new();
    for variant in variants {
        let paint = Paint::line(canvas.style, variant.role);
        canvas.part("series", variant.name, |canvas| {
            let x = variant.series.sample.iter().copied();
            let errors = &variant.series.error;
            let band = errors.iter().map(|at| Some([at.mean? - at.std?, at.mean? + at.std?]));
            plot.band(canvas, &x.clone().zip(band).collect::<Vec<_>>(), variant.role);
            plot.curve(canvas, &x.zip(errors.iter().map(|at| at.mean)).collect::<Vec<_>>(), &paint);
        });
        entries.push(Entry::line(paint, &label(variant.name).replace('\n', " ")));
    }
    plot.legend(canvas, Corner::BottomLeft, &entries);
}

/// B: over all stimuli of the last ten presentations, and over the second half of each.
fn means(canvas: &mut Canvas, panel: Frame, variants: &[Variant<'_>]) {
    let both = |variant: &Variant| [variant.numbers.error_last10, variant.numbers.error_late];
    let ends = variants.iter().flat_map(both).filter_map(|at| Some(at.mean? + at.std?));
    let ticks = (0..).zip(variants).map(|(i, variant)| (f64::from(i), label(variant.name)));
    let plot = Plot::within(
        panel,
        Axis::linear([-0.6, variants.len() as f64 - 0.4], "").with_ticks(ticks.collect()),
        Axis::from_zero(ends, "whitening error"),
    );
    plot.draw(canvas);
    for (i, variant) in variants.iter().enumerate() {
        let colour = canvas.style.colour(variant.role);
        let dots = [Paint::fill(colour), Paint::fill("#ffffff").edged(colour, 1.2)];
        canvas.part("series", variant.name, |canvas| {
            for ((aside, dot), statistic) in [-0.12, 0.12].into_iter().zip(dots).zip(both(variant)) {
                if let (Some(mean), Some(std)) = (statistic.mean, statistic.std) {
                    plot.bar(canvas, i as f64 + aside, [mean, std], &dot);
                }
            }
        });
    }
    let ink = canvas.style.ink();
    let entries = [
        Entry::dot(Paint::fill(ink), "all stimuli"),
        Entry::dot(Paint::fill("#ffffff").edged(ink, 1.2), "second half"),
    ];
    plot.legend(canvas, Corner::TopLeft, &entries);
}

/// What a variant is called in the picture; a spec's own variants keep their names.
fn label(variant: &str) -> String {
    let known = match variant {
        "gains" => "gains\nalone",
        "synapses" => "synapses\nslow",
        "synapses-fast" => "synapses\nfast",
        other => other,
    };
    known.to_owned()
}
