//! Draws matrices as images, synapses as filters of pixels or as small curves, and a bar that explains the colours.

use super::axes::SMALL;
use super::canvas::{Canvas, Frame, Paint, Text};
use super::lettering::compact;
use super::style::Style;

/// The largest size of any entry.
pub fn largest<'a>(columns: impl IntoIterator<Item = &'a Vec<f64>>) -> f64 {
    columns.into_iter().flatten().fold(f64::MIN_POSITIVE, |largest, x| largest.max(x.abs()))
}

/// A matrix by columns as an image; colours run from −`limit` to `limit`.
pub fn image(canvas: &mut Canvas, frame: Frame, columns: &[Vec<f64>], limit: f64) {
    let rows = columns.first().map_or(0, Vec::len);
    for (j, column) in columns.iter().enumerate() {
        for (i, entry) in column.iter().enumerate() {
            let cell = frame.cell([columns.len(), rows], [j, i], 0.0);
            // A little larger than the cell, so that no light shows between neighbours.
            let cell = Frame { width: cell.width + 0.15, height: cell.height + 0.15, ..cell };
            canvas.rectangle(cell, &Paint::fill(canvas.style.diverging(entry / limit)));
        }
    }
    canvas.rectangle(frame, &Paint::stroke(canvas.style.ink(), 0.6));
}

/// A vector of pixels, row by row, as the columns of its patch.
pub fn patch(pixels: &[f64], [rows, columns]: [usize; 2]) -> Vec<Vec<f64>> {
    let pixel = |i: usize, j: usize| pixels.get(i * columns + j).copied().unwrap_or(0.0);
    (0..columns).map(|j| (0..rows).map(|i| pixel(i, j)).collect()).collect()
}

/// What a bar of colours takes at the right of filters, with its numbers.
const BAR: f64 = 44.0;

/// Synapses as filters of pixels, side by side, with one range of colours and a bar that explains it.
pub fn filters(canvas: &mut Canvas, frame: Frame, synapses: &[Vec<f64>], shape: [usize; 2]) {
    let limit = largest(synapses);
    let filled = filters_within(canvas, frame.inset([0.0, 0.0, BAR, 0.0]), (synapses, limit), shape);
    colour_bar(canvas, Frame::new(filled.right() + 10.0, filled.y, 8.0, filled.height), limit);
}

/// The same without the bar, with colours from −`limit` to `limit`; gives the room that the filters fill.
pub fn filters_within(
    canvas: &mut Canvas,
    frame: Frame,
    (synapses, limit): (&[Vec<f64>], f64),
    shape: [usize; 2],
) -> Frame {
    let per_row = near_square(synapses.len(), frame.width / frame.height);
    let rows = synapses.len().div_ceil(per_row.max(1)).max(1);
    let mut filled = Frame { width: 0.0, height: 0.0, ..frame };
    let side = frame.cell([per_row, rows], [0, 0], GAP);
    let side = side.width.min(side.height);
    for (i, pixels) in synapses.iter().enumerate() {
        let [column, row] = [i % per_row, i / per_row].map(|at| at as f64 * (side + GAP));
        let cell = Frame::new(frame.x + column, frame.y + row, side, side);
        image(canvas, cell, &patch(pixels, shape), limit);
        filled.width = filled.width.max(cell.right() - frame.x);
        filled.height = filled.height.max(cell.bottom() - frame.y);
    }
    filled
}

/// The gap between two filters.
const GAP: f64 = 4.0;

/// The number of columns of a grid of so many cells whose sides are in about this proportion, with few cells empty.
#[allow(clippy::cast_sign_loss)] // Roots are not negative.
pub fn near_square(cells: usize, proportion: f64) -> usize {
    let near = ((cells as f64 * proportion).sqrt().round() as usize).clamp(1, cells.max(1));
    let empty = |columns: usize| cells.next_multiple_of(columns) - cells;
    let choices = [near, near - 1, near + 1].into_iter().filter(|columns| (1..=cells).contains(columns));
    choices.min_by_key(|&columns| empty(columns)).unwrap_or(1)
}

/// A vector as a small curve around a faint line at 0; `limit` reaches the edge of the frame.
pub fn sparkline(canvas: &mut Canvas, frame: Frame, values: &[f64], limit: f64, paint: &Paint) {
    let middle = frame.centre().1;
    let step = frame.width / (values.len().max(2) - 1) as f64;
    let at = |(i, x): (usize, &f64)| (frame.x + step * i as f64, middle - 0.5 * frame.height * x / limit);
    canvas.line(&values.iter().enumerate().map(at).collect::<Vec<_>>(), paint);
}

/// The line at 0 behind small curves.
pub fn zero_line(canvas: &mut Canvas, frame: Frame) {
    let middle = frame.centre().1;
    let paint = Paint::stroke(if canvas.style == Style::Light { "#cccccc" } else { "#999999" }, 0.6);
    canvas.line(&[(frame.x, middle), (frame.right(), middle)], &paint);
}

/// A bar that explains the colours from −`limit` to `limit`.
pub fn colour_bar(canvas: &mut Canvas, frame: Frame, limit: f64) {
    let steps = 40;
    let column: Vec<f64> = (0..steps).map(|i| 1.0 - 2.0 * f64::from(i) / f64::from(steps - 1)).collect();
    image(canvas, frame, &[column], 1.0);
    for (share, value) in [(0.0, limit), (0.5, 0.0), (1.0, -limit)] {
        let y = frame.y + share * frame.height + 3.6;
        canvas.text((frame.right() + 4.0, y), &Text::new(compact(value), SMALL));
    }
}
