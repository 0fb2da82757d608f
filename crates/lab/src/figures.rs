//! Draws the paper's figures from the results of a run; nothing here computes dynamics.
//!
//! Each figure has a file that lays out its panels. `canvas` writes SVG, `lettering` sets symbols, `style` has the
//! palette, `axes` and `marks` draw plots, and the rest are shapes that several figures share. `inspection` draws what models do
//! with recordings.

pub(crate) mod ablation;
pub(crate) mod adaptation;
mod axes;
pub(crate) mod biological;
mod canvas;
mod circuit;
mod cone;
mod contexts;
pub(crate) mod control;
pub(crate) mod dale;
mod density;
mod ellipse;
mod filters;
mod frequency;
pub(crate) mod geometry;
pub(crate) mod hardware;
mod inspection;
pub(crate) mod interneurons;
pub(crate) mod leak;
mod lettering;
mod maps;
mod marks;
mod matrices;
pub(crate) mod natural;
mod obstacles;
pub(crate) mod one_dimensional;
mod pair;
mod pdf;
mod png;
mod raster;
pub(crate) mod recurrence;
mod starts;
mod style;
mod sweep;
pub(crate) mod synthetic;
pub(crate) mod time_scales;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

pub(crate) use canvas::Canvas;
pub use canvas::escape;
pub use contexts::{ContextsPicture, ShownContext};
pub(crate) use frequency::by_frequency;
pub use inspection::{draw_adaptation, draw_model, picture_path, write_picture};
pub(crate) use starts::Starts;
pub use style::Style;

use crate::experiment::Figure;
use crate::files::write_atomically;
use crate::findings::Findings;
use crate::references::{Reference, References};
use crate::threads::side_by_side;

/// The directory of pictures within the directory of results.
pub const PICTURES: &str = "figures";

/// A drawn figure.
pub struct Picture {
    /// Which one.
    pub figure: Figure,
    /// In which style.
    pub style: Style,
    /// The drawing itself.
    pub svg: String,
}

impl Picture {
    /// Draws a figure; panels without results say so.
    ///
    /// # Errors
    /// When the figure's series are not as expected.
    pub fn draw(figure: Figure, findings: &Findings, words: &Reference, style: Style) -> Result<Self> {
        let canvas = figure.draw(findings, style)?;
        let svg = canvas.svg(&words.title, &findings.fill(figure, &words.alt));
        Ok(Self { figure, style, svg })
    }
}

/// Draws every figure in both styles.
///
/// # Errors
/// When a figure's series are not as expected.
pub fn draw_all(findings: &Findings, references: &References) -> Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    for figure in findings.figures() {
        for style in Style::ALL {
            pictures.push(Picture::draw(figure, findings, references.of(figure)?, style)?);
        }
    }
    Ok(pictures)
}

/// The files of a picture of a figure: SVG and PNG.
pub fn picture_paths(directory: &Path, figure: Figure, style: Style) -> [PathBuf; 2] {
    let name = format!("{}{}", figure.name(), style.suffix());
    ["svg", "png"].map(|format| directory.join(PICTURES).join(format!("{name}.{format}")))
}

/// The file of a figure to be set into a paper: its print style as PDF.
pub fn pdf_path(directory: &Path, figure: Figure) -> PathBuf {
    directory.join(PICTURES).join(format!("{}.pdf", figure.name()))
}

/// Writes pictures as SVG and PNG and those in print style as PDF too, on as many threads as there are cores.
///
/// # Errors
/// When a picture cannot be written.
pub fn write_all(pictures: &[Picture], directory: &Path) -> Result<()> {
    let renderer = png::Renderer::new();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let write = |picture: &Picture| -> Result<()> {
        let [svg, png] = picture_paths(directory, picture.figure, picture.style);
        write_atomically(&svg, picture.svg.as_bytes())?;
        write_atomically(&png, &renderer.png(&picture.svg)?)?;
        if picture.style == Style::Print {
            let bytes = pdf::pdf(&renderer.shapes(&picture.svg)?, picture.figure.name())?;
            write_atomically(&pdf_path(directory, picture.figure), &bytes)?;
        }
        Ok(())
    };
    side_by_side(threads, || {
        while let Some(picture) = pictures.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = write(picture) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                break;
            }
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Numbers of starts; a start that has none is left out.
fn known(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().filter_map(|value| *value).filter(|x| x.is_finite()).collect()
}
