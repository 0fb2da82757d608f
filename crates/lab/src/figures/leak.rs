//! Draws the leak sweep: how near the synapses come to V when the leak is not the one that the contexts were made with.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{Axis, Plot};
use super::canvas::{Canvas, Frame, Paint, WIDTH};
use super::known;
use super::lettering::number;
use super::marks::{Corner, Entry};
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 280.0];

#[derive(Deserialize)]
struct Series {
    leak: Vec<f64>,
    /// The distance of each start at each leak, V's columns at a right angle.
    orthogonal: Vec<Vec<Option<f64>>>,
    /// The same, V's columns at another angle.
    oblique: Vec<Vec<Option<f64>>>,
}

/// Distances of all starts and their medians against the leak.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let Some(variant) = findings.variant_or_first(Figure::Leak, "authors") else { return Ok(canvas) };
    let series: Series = findings.series(Figure::Leak, variant)?;
    let kinds = [
        ("*V* orthogonal", Role::Initial, &series.orthogonal, -4.0),
        ("*V* oblique", Role::Learned, &series.oblique, 4.0),
    ];
    let values = kinds.iter().flat_map(|(_, _, leaks, _)| leaks.iter().flat_map(|starts| known(starts)));
    let most = series.leak.iter().copied().fold(0.0, f64::max);
    let ticks = series.leak.iter().map(|&leak| (leak, number(leak))).collect();
    let plot = Plot::within(
        Frame::new(0.0, 0.0, SIZE[0], SIZE[1]),
        Axis::linear([0.0, 1.08 * most], "leak α").with_ticks(ticks),
        Axis::log_around(values, "‖*Ŵ*_T − *V*‖_F"),
    );
    canvas.part("panel", "A", |canvas| {
        plot.draw(canvas);
        let mut entries = Vec::new();
        for (name, role, leaks, aside) in kinds {
            canvas.part("series", name, |canvas| swarm(canvas, &plot, &series.leak, leaks, (role, aside)));
            entries.push(Entry::line(Paint::line(style, role), name));
        }
        plot.legend(canvas, Corner::BottomLeft, &entries);
    });
    Ok(canvas)
}

/// Every start as a dot a little aside, and a line through the medians.
fn swarm(
    canvas: &mut Canvas,
    plot: &Plot,
    leaks: &[f64],
    starts: &[Vec<Option<f64>>],
    (role, aside): (Role, f64),
) {
    let dot = Paint::fill(canvas.style.colour(role)).opacity(0.3);
    let mut medians = Vec::new();
    for (&leak, starts) in leaks.iter().zip(starts) {
        let mut known = known(starts);
        known.sort_by(f64::total_cmp);
        for &distance in &known {
            let (x, y) = plot.at(leak, distance);
            canvas.circle((x + aside, y), 1.6, &dot);
        }
        // A start that diverged counts as infinitely far, as in the results.
        medians.push((leak, known.get(starts.len() / 2).copied()));
    }
    plot.curve(canvas, &medians, &Paint::line(canvas.style, role));
    let ring = Paint::fill("#ffffff").edged(canvas.style.colour(role), 1.4);
    for (leak, median) in medians {
        if let Some(median) = median {
            plot.dot(canvas, (leak, median), 3.0, &ring);
        }
    }
}
