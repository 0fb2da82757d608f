//! Draws contexts in the manner of Fig. 4A: images, and below each the covariance of its patches.

use std::path::Path;

use anyhow::Result;
use leukos::Matrix;

use super::axes::SMALL;
use super::canvas::{Canvas, Frame, Paint, Text};
use super::filters::colour_bar;
use super::lettering::{literal, shortened};
use super::png::Renderer;
use super::raster;
use super::style::Style;
use crate::contexts::Thumbnail;
use crate::files::write_atomically;

/// A context to be shown.
#[derive(Clone, Debug)]
pub struct ShownContext<'a> {
    /// What is written above it.
    pub name: String,
    /// What is written below it.
    pub note: String,
    /// The image it comes from, where there is one.
    pub thumbnail: Option<&'a Thumbnail>,
    /// Its covariance.
    pub covariance: &'a Matrix,
}

/// A picture of some contexts of a stack.
#[derive(Debug)]
pub struct ContextsPicture {
    svg: String,
}

const COLUMNS: usize = 6;
const ROWS: usize = 2;
const WIDTH: f64 = 720.0;
/// The gap between two contexts.
const GAP: f64 = 12.0;
/// What lies around all contexts: left, top, right with the colour bar, bottom with the caption.
const MARGINS: [f64; 4] = [14.0, 10.0, 62.0, 26.0];
/// The room for a line of text.
const LINE: f64 = 14.0;

impl ContextsPicture {
    /// Draws up to twelve of the contexts, spread evenly over all of them.
    ///
    /// # Errors
    /// When an image cannot be encoded.
    pub fn draw(contexts: &[ShownContext<'_>], caption: &str) -> Result<Self> {
        let count = contexts.len().min(COLUMNS * ROWS);
        let shown: Vec<_> = (0..count).map(|i| &contexts[i * contexts.len() / count]).collect();
        let side = (WIDTH - MARGINS[0] - MARGINS[2] - GAP * (COLUMNS as f64 - 1.0)) / COLUMNS as f64;
        let image = if shown.iter().any(|context| context.thumbnail.is_some()) { 0.75 * side } else { 0.0 };
        let (band, rows) = (3.0 * LINE + image + side, count.div_ceil(COLUMNS) as f64);
        let height = MARGINS[1] + rows * band + MARGINS[3];
        let mut canvas = Canvas::new(WIDTH, height, Style::Light);
        for (i, context) in shown.iter().enumerate() {
            let x = MARGINS[0] + (i % COLUMNS) as f64 * (side + GAP);
            let y = MARGINS[1] + (i / COLUMNS) as f64 * band;
            draw_context(&mut canvas, Frame::new(x, y, side, band), context, image)?;
        }
        let right = MARGINS[0] + count.min(COLUMNS) as f64 * (side + GAP);
        let bar = Frame::new(right, MARGINS[1] + LINE + image + 6.0, 9.0, side);
        canvas.part("panel", "colour bar", |canvas| colour_bar(canvas, bar, 1.0));
        let caption = format!(
            "{count} of {} contexts; {caption}; colours relative to the largest entry of each",
            contexts.len()
        );
        let place = (MARGINS[0], height - 9.0);
        canvas.text(place, &Text::new(caption, SMALL).colour(Style::Light.faint_ink()));
        Ok(Self { svg: canvas.svg("contexts", "Contexts and, below each, its covariance") })
    }

    /// Writes the picture twice, as SVG and as PNG.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_atomically(&path.with_extension("svg"), self.svg.as_bytes())?;
        write_atomically(&path.with_extension("png"), &Renderer::new().png(&self.svg)?)
    }
}

/// One context: its name, its image in so much room, its covariance and a note, one below the other.
fn draw_context(canvas: &mut Canvas, frame: Frame, context: &ShownContext<'_>, room: f64) -> Result<()> {
    let (middle, side) = (frame.centre().0, frame.width);
    let name = literal(&shortened(&context.name, SMALL, side));
    let photograph = context
        .thumbnail
        .map(|thumbnail| Ok::<_, anyhow::Error>((thumbnail, raster::photograph(thumbnail)?)));
    let (photograph, matrix) = (photograph.transpose()?, raster::matrix(context.covariance, canvas.style)?);
    canvas.part("series", &context.name, |canvas| {
        canvas.text((middle, frame.y + 9.0), &Text::new(name, SMALL).middle());
        if let Some((thumbnail, png)) = &photograph {
            let proportion = thumbnail.width as f64 / thumbnail.height() as f64;
            let (wide, high) = (side.min(room * proportion), room.min(side / proportion));
            let place = Frame::new(middle - 0.5 * wide, frame.y + LINE + 0.5 * (room - high), wide, high);
            canvas.raster(place, png);
        }
        let square = Frame::new(frame.x, frame.y + LINE + room + 6.0, side, side);
        canvas.raster(square, &matrix);
        canvas.rectangle(square, &Paint::stroke(canvas.style.ink(), 0.6));
        let note = Text::new(literal(&context.note), SMALL).middle().colour(canvas.style.faint_ink());
        canvas.text((middle, square.bottom() + 12.0), &note);
    });
    Ok(())
}
