//! Shrinks images for pictures of them.

use crate::data::Image;

/// The longer side of a thumbnail, in pixels.
const SIDE: usize = 240;

/// A small image of luminances, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Thumbnail {
    /// The number of columns.
    pub width: usize,
    /// The luminances.
    pub luminances: Vec<f32>,
}

impl Thumbnail {
    /// The image at most 240 pixels wide and high, each pixel the mean of those it stands for.
    pub fn of(image: &Image) -> Self {
        let (width, height) = (image.width(), image.height());
        let longer = width.max(height).max(SIDE);
        let [columns, rows] = [width, height].map(|side| (side * SIDE / longer).max(1));
        let luminance = |p: usize| {
            let (y, x) = (p / columns, p % columns);
            let [top, bottom] = [y, y + 1].map(|y| y * height / rows);
            let [left, right] = [x, x + 1].map(|x| x * width / columns);
            let sum: f64 = (top..bottom)
                .flat_map(|y| (left..right).map(move |x| (y, x)))
                .map(|(y, x)| image.luminance(y, x))
                .sum();
            (sum / ((bottom - top) * (right - left)) as f64) as f32
        };
        Self { width: columns, luminances: (0..rows * columns).map(luminance).collect() }
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.luminances.len() / self.width
    }
}
