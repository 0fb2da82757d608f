//! Draws a matrix in a panel of its own: a heading, the entries in colours, channels by name, and what the colours mean.

use anyhow::Result;
use leukos::Matrix;

use super::axes::{SMALL, heading};
use super::canvas::{Canvas, Frame, Paint, Text};
use super::filters::colour_bar;
use super::lettering::{literal, shortened};
use super::raster;

/// A matrix to be shown in a panel.
pub struct MatrixPanel<'a> {
    /// The panel's letter.
    pub letter: &'a str,
    /// What it shows.
    pub heading: &'a str,
    /// What its rows and its columns are.
    pub sides: [&'a str; 2],
    /// The names of its rows, where they have any.
    pub names: Option<&'a [String]>,
    /// The matrix.
    pub matrix: &'a Matrix,
}

/// What lies around the matrix: left, top, right with the colour bar, bottom.
const MARGINS: [f64; 4] = [52.0, 26.0, 62.0, 24.0];
/// More rows than this have no room for their names.
const MOST_NAMES: usize = 16;
/// The size of the names.
const TINY: f64 = 8.0;

impl MatrixPanel<'_> {
    /// Draws it into a frame.
    ///
    /// # Errors
    /// When the image cannot be encoded.
    pub fn draw(&self, canvas: &mut Canvas, frame: Frame) -> Result<()> {
        let png = raster::matrix(self.matrix, canvas.style)?;
        let limit = self.matrix.as_slice().iter().fold(f64::MIN_POSITIVE, |most, x| most.max(x.abs()));
        canvas.panel(self.letter, frame, |canvas, frame| {
            heading(canvas, frame, self.heading);
            let image = self.place(frame.inset(MARGINS));
            canvas.raster(image, &png);
            canvas.rectangle(image, &Paint::stroke(canvas.style.ink(), 0.6));
            self.label(canvas, image);
            let bar = Frame::new(image.right() + 8.0, image.y, 8.0, image.height);
            colour_bar(canvas, bar, limit);
        });
        Ok(())
    }

    /// Entries are squares as long as that leaves room for both sides to be seen.
    fn place(&self, room: Frame) -> Frame {
        let proportion = (self.matrix.columns() as f64 / self.matrix.rows() as f64).clamp(0.2, 5.0);
        let width = room.width.min(room.height * proportion);
        let height = width / proportion;
        Frame::new(room.centre().0 - 0.5 * width, room.y, width, height)
    }

    fn label(&self, canvas: &mut Canvas, image: Frame) {
        let [rows, columns] = self.sides;
        let below = (image.centre().0, image.bottom() + 14.0);
        canvas.text(below, &Text::new(columns, SMALL).middle());
        let count = self.matrix.rows();
        let Some(names) = self.names.filter(|names| names.len() == count && count <= MOST_NAMES) else {
            return canvas.text((image.x - 8.0, image.centre().1), &Text::new(rows, SMALL).middle().turned());
        };
        for (i, name) in names.iter().enumerate() {
            let y = image.y + image.height * (i as f64 + 0.5) / count as f64 + 0.35 * TINY;
            let name = literal(&shortened(name, TINY, MARGINS[0] - 8.0));
            canvas.text((image.x - 4.0, y), &Text::new(name, TINY).end());
        }
    }
}
