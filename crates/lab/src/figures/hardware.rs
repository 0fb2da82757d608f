//! Draws the hardware: errors and distances against the number of bits, and errors against the noise of responses.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, heading};
use super::canvas::{Canvas, Frame, Paint, WIDTH};
use super::lettering::number;
use super::marks::{Corner, Entry};
use super::style::{Role, Style};
use super::sweep::{Mark, Sample, Sweep, count_lost, legend_above};
use crate::experiment::Figure;
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 540.0];

/// What a variant has in `panels.json`.
#[derive(Deserialize)]
struct Series {
    bits: Vec<f64>,
    noise: Vec<f64>,
    noisy_bits: u8,
    unlimited_error: Sweep,
    unlimited_distance: Sweep,
    nearest_error: Sweep,
    nearest_distance: Sweep,
    nearest_lost: Vec<usize>,
    stochastic_error: Sweep,
    stochastic_distance: Sweep,
    stochastic_lost: Vec<usize>,
    noisy_error: Sweep,
    noisy_lost: Vec<usize>,
    coarse_error: Sweep,
    coarse_lost: Vec<usize>,
}

/// A variant, what it is called and how its points are marked.
struct Variant {
    words: String,
    mark: Mark,
    series: Series,
}

/// A, B, errors of the two algorithms against bits; C, distances; D, noise.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let read = |(name, mark): (&str, Mark)| -> Result<Variant> {
        let words = match name {
            "algorithm-1" => "Algorithm 1".to_owned(),
            "algorithm-3" => "Algorithm 3".to_owned(),
            other => other.to_owned(),
        };
        Ok(Variant { words, mark, series: findings.series(Figure::Hardware, name)? })
    };
    let names = findings.variants(Figure::Hardware).into_iter().zip([Mark::Dot, Mark::Ring]);
    let variants = names.map(read).collect::<Result<Vec<_>>>()?;
    let whole = Frame::new(0.0, 0.0, SIZE[0], SIZE[1]);
    let errors = variants.iter().flat_map(|variant| {
        let series = &variant.series;
        [&series.nearest_error, &series.stochastic_error, &series.unlimited_error]
    });
    let axis = Sweep::axis(errors, "whitening error");
    for (i, letter) in ["A", "B"].into_iter().enumerate() {
        canvas.panel(letter, whole.cell([2, 2], [i, 0], 0.0), |canvas, panel| match variants.get(i) {
            Some(variant) => precision(canvas, panel, variant, axis.clone()),
            None => heading(canvas, panel, "not rerun"),
        });
    }
    let cell = |column| whole.cell([2, 2], [column, 1], 0.0);
    canvas.panel("C", cell(0), |canvas, panel| distances(canvas, panel, &variants));
    canvas.panel("D", cell(1), |canvas, panel| noise(canvas, panel, &variants));
    Ok(canvas)
}

/// An axis of bits.
fn bits(series: &Series) -> Axis {
    let ends = [series.bits.first(), series.bits.last()].map(|end| end.copied().unwrap_or(1.0));
    let ticks = series.bits.iter().map(|&bits| (bits, number(bits))).collect();
    Axis::linear([ends[0] - 0.7, ends[1] + 0.7], "bits of a weight, and of a gain").with_ticks(ticks)
}

/// A plot with room above it for counts of lost starts.
fn plot(panel: Frame, x: Axis, y: Axis) -> Plot {
    Plot::within(panel.inset([0.0, 24.0, 0.0, 0.0]), x, y)
}

/// A, B: the error against bits, rounded in either way.
fn precision(canvas: &mut Canvas, panel: Frame, variant: &Variant, y: Axis) {
    let (style, series) = (canvas.style, &variant.series);
    heading(canvas, panel, &variant.words);
    let plot = plot(panel, bits(series), y);
    plot.draw(canvas);
    let unlimited = Paint::line(style, Role::Truth);
    if let Some(median) = series.unlimited_error.over_starts.first().and_then(|over| over.median) {
        canvas.part("series", "unlimited", |canvas| plot.level(canvas, median, &unlimited));
    }
    let rounded = [
        ("nearest", Role::Initial, &series.nearest_error, &series.nearest_lost),
        ("stochastic", Role::Learned, &series.stochastic_error, &series.stochastic_lost),
    ];
    let mut entries = Vec::new();
    for (row, (name, role, sweep, lost)) in rounded.into_iter().enumerate() {
        canvas.part("series", name, |canvas| {
            sweep.draw(canvas, &plot, &series.bits, (role, variant.mark));
            count_lost(canvas, &plot, row, (&series.bits, lost), (role, Sample::Line));
        });
        entries.push(Entry::line(Paint::line(style, role), &format!("{name} rounding")));
    }
    entries.push(Entry::line(unlimited, "unlimited"));
    plot.legend(canvas, Corner::TopRight, &entries);
}

/// C: the distance from V against bits.
fn distances(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let Some(first) = variants.first() else { return };
    let sweeps = variants.iter().flat_map(|variant| {
        let series = &variant.series;
        [&series.nearest_distance, &series.stochastic_distance, &series.unlimited_distance]
    });
    let plot = plot(panel, bits(&first.series), Sweep::axis(sweeps, "‖*Ŵ*_T − *V*‖_F"));
    plot.draw(canvas);
    let style = canvas.style;
    for (variant, aside) in variants.iter().zip([-0.12, 0.12]) {
        let series = &variant.series;
        let rounded =
            [(Role::Initial, &series.nearest_distance), (Role::Learned, &series.stochastic_distance)];
        let at: Vec<f64> = series.bits.iter().map(|bits| bits + aside).collect();
        canvas.part("series", &variant.words, |canvas| {
            for (role, sweep) in rounded {
                sweep.draw_barred(canvas, &plot, &at, (role, variant.mark));
            }
        });
    }
    let lines = [("nearest", Role::Initial), ("stochastic", Role::Learned)];
    let lines = lines.map(|(name, role)| Entry::line(Paint::line(style, role), name));
    let mark = |variant: &Variant| Entry::dot(variant.mark.paint(canvas, Role::Truth), &variant.words);
    let marks: Vec<Entry> = variants.iter().map(mark).collect();
    legend_above(canvas, &plot, 26.0, &lines);
    legend_above(canvas, &plot, 11.0, &marks);
}

/// D: the error of M against the noise of the responses.
fn noise(canvas: &mut Canvas, panel: Frame, variants: &[Variant]) {
    let Some(first) = variants.first() else { return };
    let style = canvas.style;
    let most = first.series.noise.iter().copied().fold(0.1, f64::max);
    let sweeps = || variants.iter().flat_map(|v| [&v.series.noisy_error, &v.series.coarse_error]);
    let plot = plot(
        panel,
        Axis::linear([-0.05 * most, 1.05 * most], "standard deviation σ of the noise in a response"),
        Axis::from_zero(sweeps().flat_map(Sweep::values), "whitening error"),
    );
    plot.draw(canvas);
    let squares: Vec<_> = (0..=40).map(|i| f64::from(i) / 40.0 * most).map(|x| (x, Some(x * x))).collect();
    let known = Paint::line(style, Role::Truth);
    canvas.part("series", "σ^2", |canvas| plot.curve(canvas, &squares, &known));
    let mut row = 0;
    for variant in variants {
        let series = &variant.series;
        let each = [
            ("unlimited".to_owned(), Role::Further, &series.noisy_error, &series.noisy_lost),
            (format!("{} bits", series.noisy_bits), Role::Learned, &series.coarse_error, &series.coarse_lost),
        ];
        for (words, role, sweep, lost) in each {
            canvas.part("series", &format!("{}, {words}", variant.words), |canvas| {
                sweep.draw(canvas, &plot, &series.noise, (role, variant.mark));
                if lost.iter().any(|count| *count > 0) {
                    let sample = Sample::Mark(variant.mark);
                    count_lost(canvas, &plot, row, (&series.noise, lost), (role, sample));
                    row += 1;
                }
            });
        }
    }
    let entries = [
        Entry::line(Paint::line(style, Role::Further), "unlimited"),
        Entry::line(Paint::line(style, Role::Learned), &format!("{} bits", first.series.noisy_bits)),
        Entry::line(known, "σ^2"),
    ];
    legend_above(canvas, &plot, 12.0 + 11.0 * row as f64, &entries);
}
