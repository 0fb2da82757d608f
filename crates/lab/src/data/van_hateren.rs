//! Reads the natural images of van Hateren and van der Schaaf (1998).
//!
//! Both of their formats, `.iml` (linear) and `.imc` (linear, and corrected for the optics of the camera), hold
//! 1536 × 1024 unsigned 16-bit numbers, the high byte first, row by row and without a header.

use anyhow::{Result, ensure};

use super::image::{Image, Layout, Levels, Transfer};

const WIDTH: usize = 1536;
const HEIGHT: usize = 1024;
/// The size of a file in bytes.
const BYTES: usize = 2 * WIDTH * HEIGHT;

/// Reads an image from the bytes of its file.
///
/// # Errors
/// When the file does not have the size that such images have.
pub fn read_van_hateren(bytes: &[u8]) -> Result<Image> {
    let found = bytes.len();
    ensure!(
        found >= BYTES,
        "the file is cut short: expected {WIDTH} x {HEIGHT} pixels in {BYTES} bytes, got {found}"
    );
    ensure!(found == BYTES, "expected {WIDTH} x {HEIGHT} pixels in {BYTES} bytes, got {found}");
    let levels = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    Image::new([WIDTH, HEIGHT], Layout::Grey, Levels::Words(levels), Transfer::Linear)
}
