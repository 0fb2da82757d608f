//! Turns a drawn SVG into a PNG, with the font that comes with the program.

use std::sync::Arc;

use anyhow::{Context, Result};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use super::lettering::FACES;

/// Pixels of the PNG for each unit of the SVG.
const SCALE: f32 = 2.5;

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

    /// The picture as the bytes of a PNG file.
    ///
    /// # Errors
    /// When the SVG is damaged.
    #[allow(clippy::cast_sign_loss)] // A size is not negative.
    pub fn png(&self, svg: &str) -> Result<Vec<u8>> {
        let options = Options { fontdb: Arc::clone(&self.fonts), ..Options::default() };
        let tree = Tree::from_str(svg, &options).context("a drawn SVG cannot be read")?;
        let [width, height] = [tree.size().width(), tree.size().height()].map(|x| (x * SCALE).ceil() as u32);
        let mut pixels = Pixmap::new(width, height).context("a picture without a size")?;
        // A height that is no whole number of pixels would leave the last row half empty.
        pixels.fill(Color::WHITE);
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().context("a PNG cannot be encoded")
    }
}
