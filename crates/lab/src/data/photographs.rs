//! Reads photographs (PNG, JPEG, TIFF, WebP) upright and within a limit of memory.

use std::io::Cursor;

use anyhow::{Context, Result, bail, ensure};
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};

use super::image::{Image, Layout, Levels, Transfer};

/// How many bytes a decoded image may take, so that one file cannot take all memory: 170 megapixels of 8-bit colour.
pub const LARGEST: u64 = 512 << 20;

/// A photograph whose header was read.
pub struct Photograph<'a> {
    decoder: Box<dyn ImageDecoder + 'a>,
    bytes: &'a [u8],
}

impl<'a> Photograph<'a> {
    /// Reads the header and refuses an image that would take too much memory.
    ///
    /// # Errors
    /// When it is no image of a known format, is damaged, or is too large.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
        ensure!(reader.format().is_some(), "expected a PNG, JPEG, TIFF or WebP image, got something else");
        let mut limits = Limits::default();
        // A decoder needs room beside the image itself, which is checked below with a better message.
        limits.max_alloc = Some(2 * LARGEST);
        reader.limits(limits);
        let decoder: Box<dyn ImageDecoder + 'a> = Box::new(reader.into_decoder()?);
        let photograph = Self { decoder, bytes };
        let ((width, height), needed) = (photograph.decoder.dimensions(), photograph.memory());
        ensure!(
            needed <= LARGEST,
            "expected an image that takes {} MiB at most, got {width} x {height} pixels that take {} MiB",
            LARGEST >> 20,
            needed >> 20
        );
        Ok(photograph)
    }

    /// How many bytes the decoded image takes.
    pub fn memory(&self) -> u64 {
        self.decoder.total_bytes()
    }

    /// Decodes the image and turns it as its camera says it should be seen.
    ///
    /// # Errors
    /// When it is damaged, has transparent pixels or is of a kind whose light is not known.
    pub fn read(mut self) -> Result<Image> {
        // The decoder of JPEG shows what is missing as grey.
        ensure!(!is_jpeg(self.bytes) || jpeg_is_whole(self.bytes), "the file is cut short");
        let orientation = self.decoder.orientation().context("its orientation cannot be read")?;
        let mut image = DynamicImage::from_decoder(self.decoder)?;
        image.apply_orientation(orientation);
        let size = [image.width() as usize, image.height() as usize];
        let (layout, levels) = match image {
            DynamicImage::ImageLuma8(image) => (Layout::Grey, Levels::Bytes(image.into_raw())),
            DynamicImage::ImageLumaA8(image) => (Layout::GreyAlpha, Levels::Bytes(image.into_raw())),
            DynamicImage::ImageRgb8(image) => (Layout::Colour, Levels::Bytes(image.into_raw())),
            DynamicImage::ImageRgba8(image) => (Layout::ColourAlpha, Levels::Bytes(image.into_raw())),
            DynamicImage::ImageLuma16(image) => (Layout::Grey, Levels::Words(image.into_raw())),
            DynamicImage::ImageLumaA16(image) => (Layout::GreyAlpha, Levels::Words(image.into_raw())),
            DynamicImage::ImageRgb16(image) => (Layout::Colour, Levels::Words(image.into_raw())),
            DynamicImage::ImageRgba16(image) => (Layout::ColourAlpha, Levels::Words(image.into_raw())),
            other => bail!("expected 8 or 16 bits a sample, got {:?}", other.color()),
        };
        Image::new(size, layout, levels, Transfer::Srgb)
    }
}

fn is_jpeg(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8])
}

/// Whether the segments and scans of a JPEG file run to its end marker.
fn jpeg_is_whole(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(skipped) = bytes.get(at..).and_then(next_marker) {
        at += skipped + 2;
        match bytes[at - 1] {
            0xd9 => return true,
            // Markers without a segment.
            0x01 | 0xd0..=0xd8 => {}
            _ => match bytes.get(at..at + 2) {
                Some(length) => at += usize::from(u16::from_be_bytes([length[0], length[1]])),
                None => return false,
            },
        }
    }
    false
}

/// How many bytes lie before the next marker. In a scan FF 00 is a sample, and FF FF is padding.
fn next_marker(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xff))
}
