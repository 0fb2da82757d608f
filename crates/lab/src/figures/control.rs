//! Draws the appendix's first figure, C: what is learned where contexts share nothing but their spectra.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, heading};
use super::canvas::{Canvas, Frame, Paint};
use super::filters::{filters, largest, near_square, sparkline, zero_line};
use super::frequency::by_frequency;
use super::known;
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const WIDTH: f64 = 720.0;
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
        let [columns, rows] = [series.patch[1], series.patch[0]];
        for (i, (name, synapses)) in
            [("natural", &series.natural_synapses), ("control", &series.control_synapses)]
                .into_iter()
                .enumerate()
        {
            let frame = Frame { x: 240.0 * i as f64, width: 232.0, ..line };
            canvas.panel(letters[i], frame, |canvas, frame| {
                heading(canvas, frame, &format!("*W*_T, {name}, {columns} × {rows}"));
                let synapses = synapses.as_deref().unwrap_or(&[]);
                show(canvas, frame.inset([16.0, 26.0, 12.0, 8.0]), synapses, series.patch);
            });
        }
        let frame = line.inset([480.0, 0.0, 0.0, 0.0]);
        canvas.panel(letters[2], frame, |canvas, frame| errors(canvas, frame, &series));
    }
    Ok(canvas)
}

/// Synapses as filters, or as curves where patches are rows.
fn show(canvas: &mut Canvas, frame: Frame, synapses: &[Vec<f64>], patch: [usize; 2]) {
    let ordered = by_frequency(synapses, patch);
    if patch[0] > 1 {
        return filters(canvas, frame, &ordered, patch);
    }
    let limit = 1.1 * largest(&ordered);
    let across = near_square(ordered.len(), 0.8 * frame.width / frame.height);
    for (i, synapse) in ordered.iter().enumerate() {
        let cell = frame.cell([across, ordered.len().div_ceil(across)], [i % across, i / across], 8.0);
        zero_line(canvas, cell);
        let paint = Paint::stroke(canvas.style.colour(Role::Learned), 1.2);
        sparkline(canvas, cell, synapse, limit, &paint);
    }
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
