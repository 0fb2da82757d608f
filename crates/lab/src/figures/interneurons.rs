//! Draws Fig. 4 E and the appendix's two figures about K: errors, and the synapses that few and many interneurons learn.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot, SMALL, heading};
use super::canvas::{Canvas, Frame, Paint, Text, WIDTH};
use super::filters::{filters, largest, near_square, sparkline, zero_line};
use super::frequency::by_frequency;
use super::marks::{Corner, Entry};
use super::style::{Role, Style};
use crate::experiment::{Figure, Statistic};
use crate::findings::Findings;

const ERRORS: f64 = 235.0;

#[derive(Deserialize)]
struct Numbers {
    n: usize,
    k: Vec<usize>,
    train: Vec<Statistic>,
    test: Vec<Statistic>,
}

#[derive(Deserialize)]
struct Series {
    patch: [usize; 2],
    synapses: Vec<Option<Vec<Vec<f64>>>>,
}

/// A sweep over the number of interneurons.
pub struct Sweep {
    numbers: Numbers,
    series: Series,
}

impl Sweep {
    /// The sweep of this name; `None` where it was not rerun.
    pub fn read(findings: &Findings, variant: &str) -> Result<Option<Self>> {
        if !findings.variants(Figure::Interneurons).contains(&variant) {
            return Ok(None);
        }
        let numbers = Numbers::deserialize(findings.numbers(Figure::Interneurons, variant))?;
        let series = findings.series(Figure::Interneurons, variant)?;
        Ok(Some(Self { numbers, series }))
    }

    /// Rows and columns of a patch.
    pub fn patch(&self) -> [usize; 2] {
        self.series.patch
    }

    /// Each number of interneurons with the synapses that were learned.
    pub fn learned(&self) -> impl Iterator<Item = (usize, &Vec<Vec<f64>>)> {
        let synapses = self.numbers.k.iter().zip(&self.series.synapses);
        synapses.filter_map(|(&k, synapses)| Some((k, synapses.as_ref()?)))
    }
}

/// Both sweeps: A and B errors, C synapses for K ≤ N, D and E those for the largest K.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let square = Sweep::read(findings, "authors")?;
    let row = Sweep::read(findings, "authors-1d")?;
    let fewer: Vec<_> = row.iter().flat_map(Sweep::learned).collect();
    let n = row.as_ref().map_or(0, |row| row.numbers.n);
    let fewer: Vec<_> = fewer.into_iter().filter(|&(k, _)| (1..=n).contains(&k)).collect();
    let progress = 24.0 * fewer.len() as f64 + 30.0;
    let height = ERRORS + progress + 190.0;
    let mut canvas = Canvas::new(WIDTH, height, style);
    let top = Frame::new(0.0, 0.0, WIDTH, ERRORS);
    for (i, (name, sweep)) in [("A", &square), ("B", &row)].into_iter().enumerate() {
        if let Some(sweep) = sweep {
            let frame = top.cell([2, 1], [i, 0], 10.0);
            canvas.panel(name, frame, |canvas, frame| error_against_interneurons(canvas, frame, sweep));
        }
    }
    let middle = Frame::new(0.0, ERRORS, WIDTH, progress);
    if let Some(row) = &row {
        canvas.panel("C", middle, |canvas, frame| progressive(canvas, frame, &fewer, row.series.patch));
    }
    let below = Frame::new(0.0, ERRORS + progress, WIDTH, 190.0);
    for (i, (name, sweep)) in [("D", &square), ("E", &row)].into_iter().enumerate() {
        if let Some(sweep) = sweep {
            canvas.panel(name, below.cell([2, 1], [i, 0], 10.0), |canvas, frame| most(canvas, frame, sweep));
        }
    }
    Ok(canvas)
}

/// Training and test errors against K, with the overcomplete range shaded and the error without interneurons.
pub fn error_against_interneurons(canvas: &mut Canvas, panel: Frame, sweep: &Sweep) {
    let numbers = &sweep.numbers;
    let (n, last) = (numbers.n as f64, numbers.k.last().copied().unwrap_or(1) as f64);
    let means = numbers.train.iter().chain(&numbers.test).filter_map(|at| at.mean);
    let plot = Plot::within(
        panel,
        Axis::linear([0.0, 1.02 * last], "number of interneurons K"),
        Axis::log_around(means, "whitening error"),
    );
    plot.span(canvas, [n, 1.02 * last]);
    plot.draw(canvas);
    let mut entries = Vec::new();
    for (name, role, errors) in
        [("training", Role::Seen, &numbers.train), ("test", Role::Learned, &numbers.test)]
    {
        let with = numbers.k.iter().zip(errors).filter(|&(&k, _)| k > 0);
        canvas.part("series", name, |canvas| {
            let points: Vec<_> = with.clone().map(|(&k, at)| (k as f64, at.mean)).collect();
            plot.curve(canvas, &points, &Paint::line(canvas.style, role));
            for (&k, at) in with {
                if let (Some(mean), Some(std)) = (at.mean, at.std) {
                    let dot = Paint::fill(canvas.style.colour(role));
                    plot.bar(canvas, k as f64, [mean, std], &dot);
                }
            }
        });
        entries.push(Entry::line(Paint::line(canvas.style, role), name));
    }
    let without = numbers.k.iter().position(|&k| k == 0).and_then(|at| numbers.train[at].mean);
    if let Some(error) = without {
        // Red, as the paper says; dashes tell it from the test error.
        let paint = Paint::stroke(canvas.style.colour(Role::Learned), 1.2).dashed(Some("4 3"));
        canvas.part("series", "K = 0", |canvas| plot.level(canvas, error, &paint));
        entries.push(Entry::line(paint, "K = 0"));
    }
    plot.legend(canvas, Corner::BottomLeft, &entries);
    let (x, _) = plot.at(n, 1.0);
    canvas.text((x, plot.frame.y - 5.0), &Text::new(format!("K = N = {}", numbers.n), SMALL).middle());
}

/// Rows of small curves, one row for each K up to N, from low to high frequency.
fn progressive(canvas: &mut Canvas, panel: Frame, fewer: &[(usize, &Vec<Vec<f64>>)], patch: [usize; 2]) {
    heading(canvas, panel, &format!("columns of *W*_T for K ≤ N, {} pixels", size(patch)));
    let most = fewer.iter().map(|(k, _)| *k).max().unwrap_or(1);
    let inside = panel.inset([52.0, 24.0, 10.0, 6.0]);
    for (i, (k, synapses)) in fewer.iter().enumerate() {
        let line = inside.cell([1, fewer.len()], [0, i], 2.0);
        canvas.text((inside.x - 8.0, line.centre().1 + 3.6), &Text::new(format!("K = {k}"), SMALL).end());
        canvas.part("series", &format!("K = {k}"), |canvas| {
            let ordered = by_frequency(synapses, patch);
            let limit = 1.1 * largest(&ordered);
            for (j, synapse) in ordered.iter().enumerate() {
                small_curve(canvas, line.cell([most, 1], [j, 0], 6.0), synapse, limit);
            }
        });
    }
}

/// All synapses at the largest K.
fn most(canvas: &mut Canvas, panel: Frame, sweep: &Sweep) {
    let Some((k, synapses)) = sweep.learned().last() else { return };
    let patch = sweep.series.patch;
    heading(canvas, panel, &format!("{} pixels, K = {k}", size(patch)));
    let inside = panel.inset([16.0, 24.0, 6.0, 8.0]);
    let ordered = by_frequency(synapses, patch);
    if patch[0] > 1 {
        return filters(canvas, inside, &ordered, patch);
    }
    let across = near_square(k, 0.7 * inside.width / inside.height);
    let limit = 1.1 * largest(&ordered);
    for (i, synapse) in ordered.iter().enumerate() {
        let cell = inside.cell([across, k.div_ceil(across)], [i % across, i / across], 6.0);
        small_curve(canvas, cell, synapse, limit);
    }
}

/// The size of a patch, in words.
fn size([rows, columns]: [usize; 2]) -> String {
    format!("{columns} × {rows}")
}

fn small_curve(canvas: &mut Canvas, cell: Frame, synapse: &[f64], limit: f64) {
    zero_line(canvas, cell);
    let paint = Paint::stroke(canvas.style.colour(Role::Learned), 1.2);
    sparkline(canvas, cell, synapse, limit, &paint);
}
