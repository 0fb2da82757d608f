//! Draws maps: a grid of cells with words in them, so that they can be read without colour.

use super::axes::{Axis, Plot};
use super::canvas::{Canvas, Frame, Paint, Text};

/// A grid of cells; columns count from the left and rows from below.
pub struct Map {
    plot: Plot,
    cells: [usize; 2],
}

/// What a cell shows.
pub struct Cell {
    /// Red, green and blue.
    pub colour: [u8; 3],
    /// Whether it is hatched.
    pub hatched: bool,
    /// A word or a number, and what stands under it.
    pub words: (String, Option<String>),
}

impl Map {
    /// A map within a panel; columns and rows may have names.
    pub fn within(panel: Frame, columns: (&[Option<String>], &str), rows: (&[Option<String>], &str)) -> Self {
        let axis = |(names, label): (&[Option<String>], &str)| {
            let named = names.iter().enumerate().filter_map(|(i, name)| Some((i as f64, name.clone()?)));
            Axis::linear([-0.5, names.len() as f64 - 0.5], label).with_ticks(named.collect())
        };
        let cells = [columns.0.len(), rows.0.len()];
        Self { plot: Plot::within(panel, axis(columns), axis(rows)), cells }
    }

    /// Draws axes and names.
    pub fn draw(&self, canvas: &mut Canvas) {
        self.plot.draw(canvas);
    }

    /// Draws one cell.
    pub fn cell(&self, canvas: &mut Canvas, [column, row]: [usize; 2], cell: &Cell) {
        let [columns, rows] = self.cells.map(|count| count.max(1));
        let frame = self.plot.frame.cell([columns, rows], [column, rows - 1 - row.min(rows - 1)], 0.0);
        cell.draw(canvas, frame);
    }
}

impl Cell {
    /// Draws it into a frame.
    pub fn draw(&self, canvas: &mut Canvas, frame: Frame) {
        let [red, green, blue] = self.colour;
        let edge = if canvas.style.grid().is_some() { "#ffffff" } else { "#888888" };
        canvas.rectangle(frame, &Paint::fill(format!("#{red:02x}{green:02x}{blue:02x}")).edged(edge, 0.6));
        if self.hatched {
            hatch(canvas, frame);
        }
        let brightness = (299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue)) / 1000;
        let ink = if brightness > 120 { canvas.style.ink() } else { "#ffffff" };
        let ((x, y), (word, below)) = (frame.centre(), &self.words);
        let lift = if below.is_some() { 0.3 } else { 3.2 };
        canvas.text((x, y + lift), &Text::new(word.clone(), 8.6).middle().colour(ink));
        if let Some(below) = below {
            canvas.text((x, y + 7.8), &Text::new(below.clone(), 6.6).middle().colour(ink));
        }
    }
}

/// Fills a frame with slanting lines.
fn hatch(canvas: &mut Canvas, frame: Frame) {
    let paint = Paint::stroke("#999999", 0.5);
    let mut offset = -frame.height + 3.0;
    while offset < frame.width {
        let [from, to] = [(-offset).max(0.0), frame.height.min(frame.width - offset)];
        if to > from {
            let at = |along: f64| (frame.x + offset + along, frame.bottom() - along);
            canvas.line(&[at(from), at(to)], &paint);
        }
        offset += 6.0;
    }
}
