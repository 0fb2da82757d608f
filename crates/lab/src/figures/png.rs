//! Turns a drawn SVG into a PNG of the same size on paper, with the font that comes with the program.

use std::sync::Arc;

use anyhow::{Context, Result};
use png::{BitDepth, ColorType, Encoder, PixelDimensions, Unit};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use super::lettering::FACES;

/// Pixels of the PNG for each unit of the SVG.
const SCALE: f32 = 2.5;
/// Pixels in a metre: a unit of the SVG is a 96th of an inch, so there are 240 in an inch.
const PER_METRE: u32 = 9449;

/// Draws with a fixed set of fonts, so that the machine's do not matter.
pub struct Renderer {
    fonts: Arc<Database>,
}

impl Renderer {
    pub fn new() -> Self {
        let mut fonts = Database::new();
        FACES.iter().for_each(|face| fonts.load_font_data(face().to_vec()));
        Self { fonts: Arc::new(fonts) }
    }

    /// The picture as shapes, letters included.
    ///
    /// # Errors
    /// When the SVG is damaged.
    pub fn shapes(&self, svg: &str) -> Result<Tree> {
        let options = Options { fontdb: Arc::clone(&self.fonts), ..Options::default() };
        Tree::from_str(svg, &options).context("a drawn SVG cannot be read")
    }

    /// The picture as the bytes of a PNG file.
    ///
    /// # Errors
    /// When the SVG is damaged.
    #[allow(clippy::cast_sign_loss)] // A size is not negative.
    pub fn png(&self, svg: &str) -> Result<Vec<u8>> {
        let tree = self.shapes(svg)?;
        let [width, height] = [tree.size().width(), tree.size().height()].map(|x| (x * SCALE).ceil() as u32);
        let mut pixels = Pixmap::new(width, height).context("a picture without a size")?;
        // A height that is no whole number of pixels would leave the last row half empty.
        pixels.fill(Color::WHITE);
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        encode(&pixels).context("a PNG cannot be encoded")
    }
}

/// The bytes of a picture without transparency, with its size on paper.
fn encode(pixels: &Pixmap) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_pixel_dims(Some(PixelDimensions { xppu: PER_METRE, yppu: PER_METRE, unit: Unit::Meter }));
    let opaque: Vec<u8> =
        pixels.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&opaque)?;
    writer.finish()?;
    Ok(bytes)
}
