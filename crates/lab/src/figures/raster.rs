//! Turns luminances and matrices into the bytes of small PNG files, to be set into a picture.

use anyhow::{Context, Result};
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use leukos::Matrix;

use super::style::Style;
use crate::contexts::Thumbnail;

/// How many pixels a matrix has at least on each side, so that its entries have sharp edges wherever it is shown.
const SHARP: usize = 300;

/// An image in grey; the darkest and the brightest hundredth of its pixels are black and white.
///
/// # Errors
/// When it cannot be encoded.
pub fn photograph(thumbnail: &Thumbnail) -> Result<Vec<u8>> {
    let mut sorted = thumbnail.luminances.clone();
    sorted.sort_unstable_by(f32::total_cmp);
    let (black, white) = (sorted[sorted.len() / 100], sorted[sorted.len() - 1 - sorted.len() / 100]);
    let span = (white - black).max(f32::MIN_POSITIVE);
    let grey = |luminance: &f32| display(((luminance - black) / span).clamp(0.0, 1.0));
    let pixels: Vec<u8> = thumbnail.luminances.iter().map(grey).collect();
    png(&pixels, [thumbnail.width, thumbnail.height()], ExtendedColorType::L8)
}

/// A matrix in colours; the strongest is that of its largest entry.
///
/// # Errors
/// When it cannot be encoded.
pub fn matrix(matrix: &Matrix, style: Style) -> Result<Vec<u8>> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let limit = matrix.as_slice().iter().fold(f64::MIN_POSITIVE, |most, x| most.max(x.abs()));
    let fold = SHARP.div_ceil(rows.max(columns));
    let at = |y: usize, x: usize| style.diverging_bytes(matrix[(y / fold, x / fold)] / limit);
    let pixels: Vec<u8> =
        (0..rows * fold).flat_map(|y| (0..columns * fold).flat_map(move |x| at(y, x))).collect();
    png(&pixels, [columns * fold, rows * fold], ExtendedColorType::Rgb8)
}

/// The level at which a screen shows so much light.
#[allow(clippy::cast_sign_loss)] // Light is not negative.
fn display(light: f32) -> u8 {
    (255.0 * light.powf(1.0 / 2.2)).round() as u8
}

fn png(pixels: &[u8], [width, height]: [usize; 2], kind: ExtendedColorType) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let [width, height] = [u32::try_from(width)?, u32::try_from(height)?];
    PngEncoder::new(&mut bytes)
        .write_image(pixels, width, height, kind)
        .context("a PNG cannot be encoded")?;
    Ok(bytes)
}
