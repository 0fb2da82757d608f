//! Answers for each pixel of an image how much light it stands for.

use std::sync::Arc;

use anyhow::{Result, ensure};

/// The share of red, green and blue in luminance, after ITU-R Rec. 709.
const REC_709: [f64; 3] = [0.2126, 0.7152, 0.0722];

/// An image in its stored levels. They become luminance only when a pixel is asked for, which takes a table but no
/// second copy of a large image.
#[derive(Clone, Debug)]
pub struct Image {
    width: usize,
    height: usize,
    levels: Levels,
    layout: Layout,
    /// The light that each level stands for.
    light: Arc<[f64]>,
}

/// The samples of an image, row by row, with those of a pixel next to each other.
#[derive(Clone, Debug)]
pub enum Levels {
    /// 8 bits each.
    Bytes(Vec<u8>),
    /// 16 bits each.
    Words(Vec<u16>),
}

/// What the samples of a pixel are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Its grey.
    Grey,
    /// Its grey and its opacity.
    GreyAlpha,
    /// Red, green and blue.
    Colour,
    /// Red, green, blue and opacity.
    ColourAlpha,
}

/// How levels stand for light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// By the transfer function of sRGB, as in photographs; the brightest level is 1.
    Srgb,
    /// In proportion, as in calibrated images; the light is the level itself.
    Linear,
}

impl Image {
    /// An image of these levels.
    ///
    /// # Errors
    /// When there are not as many levels as the size asks for, or a pixel is not opaque: what lies behind it is not
    /// known, so it has no luminance.
    pub fn new(size: [usize; 2], layout: Layout, levels: Levels, transfer: Transfer) -> Result<Self> {
        let [width, height] = size;
        let expected = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(layout.samples()));
        ensure!(
            expected == Some(levels.len()),
            "expected {width} x {height} pixels of {} samples, got {} samples",
            layout.samples(),
            levels.len()
        );
        ensure!(
            !layout.has_alpha() || levels.are_opaque(layout.samples()),
            "expected opaque pixels, but some are transparent, and what lies behind them is not known"
        );
        let light = transfer.table(levels.highest());
        Ok(Self { width, height, levels, layout, light })
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The luminance of the pixel in row y and column x.
    ///
    /// # Panics
    /// When there is no such pixel.
    pub fn luminance(&self, y: usize, x: usize) -> f64 {
        assert!(x < self.width && y < self.height, "no pixel ({y}, {x})");
        let at = (y * self.width + x) * self.layout.samples();
        match &self.levels {
            Levels::Bytes(levels) => self.weigh(&levels[at..]),
            Levels::Words(levels) => self.weigh(&levels[at..]),
        }
    }

    fn weigh<L: Copy + Into<usize>>(&self, levels: &[L]) -> f64 {
        let light = |sample: usize| self.light[levels[sample].into()];
        match self.layout {
            Layout::Grey | Layout::GreyAlpha => light(0),
            Layout::Colour | Layout::ColourAlpha => {
                REC_709[0] * light(0) + REC_709[1] * light(1) + REC_709[2] * light(2)
            }
        }
    }
}

impl Layout {
    fn samples(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Colour => 3,
            Self::ColourAlpha => 4,
        }
    }

    fn has_alpha(self) -> bool {
        matches!(self, Self::GreyAlpha | Self::ColourAlpha)
    }
}

impl Levels {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(levels) => levels.len(),
            Self::Words(levels) => levels.len(),
        }
    }

    fn highest(&self) -> u16 {
        match self {
            Self::Bytes(_) => u16::from(u8::MAX),
            Self::Words(_) => u16::MAX,
        }
    }

    /// Whether the last sample of every pixel is the highest one.
    fn are_opaque(&self, samples: usize) -> bool {
        match self {
            Self::Bytes(levels) => levels.iter().skip(samples - 1).step_by(samples).all(|&a| a == u8::MAX),
            Self::Words(levels) => levels.iter().skip(samples - 1).step_by(samples).all(|&a| a == u16::MAX),
        }
    }
}

impl Transfer {
    fn table(self, highest: u16) -> Arc<[f64]> {
        let light = |level: u16| match self {
            Self::Srgb => srgb_light(f64::from(level) / f64::from(highest)),
            Self::Linear => f64::from(level),
        };
        (0..=highest).map(light).collect()
    }
}

/// The light that a level between 0 and 1 stands for, after IEC 61966-2-1.
fn srgb_light(level: f64) -> f64 {
    if level <= 0.040_45 { level / 12.92 } else { ((level + 0.055) / 1.055).powf(2.4) }
}
