//! Draws the appendix's first figure, A and B: synapses for rows of pixels beside cosines and principal components.

use anyhow::Result;
use serde::Deserialize;

use super::axes::{MEDIUM, SMALL, heading};
use super::canvas::{Canvas, Frame, Paint, Text, WIDTH};
use super::filters::{colour_bar, image, largest, near_square, sparkline, zero_line};
use super::marks::Entry;
use super::pair::nothing;
use super::style::{Role, Style};
use crate::experiment::Figure;
use crate::findings::Findings;

const SIZE: [f64; 2] = [WIDTH, 300.0];

#[derive(Deserialize)]
struct Series {
    synapses: Option<Vec<Vec<f64>>>,
    cosines: Vec<Vec<f64>>,
    principal_components: Vec<Vec<f64>>,
}

/// A, the matrix W_T; B, its columns.
pub fn draw(findings: &Findings, style: Style) -> Result<Canvas> {
    let mut canvas = Canvas::new(SIZE[0], SIZE[1], style);
    let variant = findings.variant_or_first(Figure::OneDimensional, "authors");
    let Some(variant) = variant else { return Ok(canvas) };
    let series: Series = findings.series(Figure::OneDimensional, variant)?;
    let whole = Frame::new(0.0, 0.0, SIZE[0], SIZE[1]);
    let (a, b) = (Frame { width: 300.0, ..whole }, whole.inset([310.0, 0.0, 0.0, 0.0]));
    canvas.panel("A", a, |canvas, frame| match &series.synapses {
        Some(synapses) => matrix(canvas, frame, synapses),
        None => nothing(canvas, frame),
    });
    canvas.panel("B", b, |canvas, frame| columns(canvas, frame, &series));
    Ok(canvas)
}

/// A: the matrix as an image.
fn matrix(canvas: &mut Canvas, panel: Frame, synapses: &[Vec<f64>]) {
    heading(canvas, panel, "*W*_T");
    let frame = panel.inset([26.0, 24.0, 56.0, 30.0]).square();
    let limit = (largest(synapses) * 10.0).ceil() / 10.0;
    canvas.part("series", "learned", |canvas| image(canvas, frame, synapses, limit));
    let label = Text::new("interneuron", MEDIUM).middle();
    canvas.text((frame.centre().0, frame.bottom() + 16.0), &label);
    canvas.text((frame.x - 8.0, frame.centre().1), &Text::new("pixel", MEDIUM).middle().turned());
    colour_bar(canvas, Frame::new(frame.right() + 12.0, frame.y, 10.0, frame.height), limit);
}

/// B: each column as a curve, beside the cosine and the principal component that it is most like.
fn columns(canvas: &mut Canvas, panel: Frame, series: &Series) {
    let sets = [
        ("*W*_T", Role::Learned, series.synapses.as_deref().unwrap_or(&[])),
        ("principal components", Role::Initial, &series.principal_components[..]),
        ("cosines", Role::Truth, &series.cosines[..]),
    ];
    let inside = panel.inset([26.0, 28.0, 8.0, 8.0]);
    let count = series.cosines.len();
    let across = near_square(count, inside.width / inside.height);
    let limit = 1.15 * largest(sets.iter().flat_map(|(_, _, columns)| columns.iter()));
    let cell = |i: usize| inside.cell([across, count.div_ceil(across)], [i % across, i / across], 10.0);
    (0..count).for_each(|i| zero_line(canvas, cell(i)));
    let mut left = inside.x + 20.0;
    for (name, role, columns) in sets {
        let paint = Paint::stroke(canvas.style.colour(role), 1.3).dashed(match role {
            Role::Initial => Some("1.5 1.5"),
            role => canvas.style.dash(role),
        });
        canvas.part("series", name, |canvas| {
            for (i, column) in columns.iter().enumerate() {
                sparkline(canvas, cell(i), column, limit, &paint);
            }
        });
        Entry::line(paint, name).draw(canvas, (left, panel.y + 10.0));
        left += 46.0 + super::lettering::width(name, SMALL);
    }
}
