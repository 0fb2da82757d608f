//! Draws the appendix's first figure, C: what is learned where contexts share nothing but their spectra.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, heading};
use super::canvas::{Canvas, Frame, Paint, WIDTH};
use super::filters::{colour_bar, filters_within, largest, near_square, sparkline, zero_line};
use super::frequency::by_frequency;
use super::known;
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const ROW: f64 = 240.0;

#[derive(Deserialize)]
struct Series {
    patch: [usize; 2],
    natural_synapses: Option<Vec<Vec<f64>>>,
    control_synapses: Option<Vec<Vec<f64>>>,
    natural_train: Vec<Option<f64>>,
    control_train: Vec<Option<f64>>,
}

/// A row for each variant: synapses of natural contexts, of controls, and the errors of both.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let variants = findings.variants(Figure::Control);
    let mut canvas = Canvas::new(WIDTH, ROW * variants.len() as f64, style);
    let letters = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];
    for (row, (variant, letters)) in variants.iter().zip(letters.chunks(3)).enumerate() {
        let series: Series = findings.series(Figure::Control, variant)?;
        let line = Frame::new(0.0, ROW * row as f64, WIDTH, ROW);
        let kinds = [("natural", &series.natural_synapses), ("control", &series.control_synapses)];
        // One range for both, so that they can be compared.
        let limit = largest(kinds.iter().filter_map(|(_, synapses)| synapses.as_ref()).flatten());
        for (i, (name, synapses)) in kinds.into_iter().enumerate() {
            let frame = Frame { x: 226.0 * i as f64, width: [222.0, 262.0][i], ..line };
            canvas.panel(letters[i], frame, |canvas, frame| {
                heading(canvas, Frame { width: 222.0, ..frame }, &title(variant, name, series.patch));
                let synapses = by_frequency(synapses.as_deref().unwrap_or(&[]), series.patch);
                let inside = Frame { width: 198.0, ..frame }.inset([16.0, 26.0, -16.0, 8.0]);
                let filled = show(canvas, inside, (&synapses, limit), series.patch);
                if i == 1 && series.patch[0] > 1 {
                    let bar = Frame::new(filled.right() + 10.0, filled.y, 8.0, filled.height);
                    colour_bar(canvas, bar, limit);
                }
            });
        }
        let frame = line.inset([494.0, 0.0, 0.0, 0.0]);
        canvas.panel(letters[2], frame, |canvas, frame| errors(canvas, frame, &series));
    }
    Ok(canvas)
}

/// What is over synapses; a reading other than the authors' is named.
fn title(variant: &str, kind: &str, [rows, columns]: [usize; 2]) -> String {
    let reading = variant.split('-').next().filter(|&reading| reading != "authors");
    let reading = reading.map(|reading| format!(", {reading}")).unwrap_or_default();
    format!("*W*_T, {kind}, {columns} × {rows}{reading}")
}

/// Synapses as filters, or as curves where patches are rows; gives the room that they fill.
fn show(
    canvas: &mut Canvas,
    frame: Frame,
    (synapses, limit): (&[Vec<f64>], f64),
    patch: [usize; 2],
) -> Frame {
    if patch[0] > 1 {
        return filters_within(canvas, frame, (synapses, limit), patch);
    }
    let across = near_square(synapses.len(), 0.8 * frame.width / frame.height);
    for (i, synapse) in synapses.iter().enumerate() {
        let cell = frame.cell([across, synapses.len().div_ceil(across)], [i % across, i / across], 8.0);
        zero_line(canvas, cell);
        let paint = Paint::stroke(canvas.style.colour(Role::Learned), 1.2);
        sparkline(canvas, cell, synapse, 1.1 * limit, &paint);
    }
    frame
}

/// The training error of every start, natural and control.
fn errors(canvas: &mut Canvas, panel: Frame, series: &Series) {
    let kinds = [
        ("natural", Role::Learned, known(&series.natural_train)),
        ("control", Role::Initial, known(&series.control_train)),
    ];
    let values = kinds.iter().flat_map(|(_, _, values)| values.iter().copied());
    let ticks = kinds.iter().enumerate().map(|(i, (name, _, _))| (i as f64, (*name).to_owned())).collect();
    let plot = Plot::within(
        panel,
        Axis::linear([-0.6, 1.6], "contexts").with_ticks(ticks),
        Axis::log_around(values, "training error"),
    );
    plot.draw(canvas);
    for (i, (name, role, values)) in kinds.into_iter().enumerate() {
        canvas.part("series", name, |canvas| {
            let dot = Paint::fill(canvas.style.colour(role)).opacity(0.6);
            for (j, &value) in values.iter().enumerate() {
                // Side by side, so that starts with one value do not hide each other.
                let aside = 0.5 * ((j as f64 + 0.5) / values.len() as f64 - 0.5);
                plot.dot(canvas, (i as f64 + aside, value), 2.4, &dot);
            }
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let ends = [plot.at(i as f64 - 0.4, mean), plot.at(i as f64 + 0.4, mean)];
            canvas.line(&ends, &Paint::stroke(canvas.style.ink(), 1.2));
        });
    }
}
