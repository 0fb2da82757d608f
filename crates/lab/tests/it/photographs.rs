//! Makes test photographs, and their covariances the slow way: nested loops, none of the program.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::bench::Bench;

/// Luminances or levels, row by row.
pub type Rows = Vec<Vec<f64>>;

/// Levels between 0 and 1 in which neighbours resemble each other the more the smoother it is (from 0 to 1).
pub fn texture(width: usize, height: usize, smoothness: f64, seed: u64) -> Rows {
    let mut rng: Pcg64 = leukos::contexts::stream(seed, 0);
    let mut levels = vec![vec![0.0; width]; height];
    for y in 0..height {
        for x in 0..width {
            let above = if y > 0 { levels[y - 1][x] } else { 0.5 };
            let left = if x > 0 { levels[y][x - 1] } else { 0.5 };
            let fresh: f64 = rng.random_range(0.0..1.0);
            levels[y][x] = smoothness * 0.5 * (above + left) + (1.0 - smoothness) * fresh;
        }
    }
    levels
}

/// The texture in 8-bit colour, each channel a mixture of two.
pub fn colour(width: u32, height: u32, seed: u64) -> ImageBuffer<Rgb<u8>, Vec<u8>> {
    let [one, two] = [0, 100].map(|more| texture(width as usize, height as usize, 0.6, seed + more));
    ImageBuffer::from_fn(width, height, |x, y| {
        let (a, b) = (one[y as usize][x as usize], two[y as usize][x as usize]);
        Rgb([a, b, 0.5 * (a + b)].map(byte))
    })
}

/// The texture in 16-bit grey.
pub fn grey16(width: u32, height: u32, seed: u64) -> ImageBuffer<Luma<u16>, Vec<u16>> {
    let levels = texture(width as usize, height as usize, 0.6, seed);
    ImageBuffer::from_fn(width, height, |x, y| Luma([word(levels[y as usize][x as usize])]))
}

#[allow(clippy::cast_sign_loss)]
pub fn byte(level: f64) -> u8 {
    (255.0 * level).round() as u8
}

#[allow(clippy::cast_sign_loss)]
pub fn word(level: f64) -> u16 {
    (65535.0 * level).round() as u16
}

/// The bytes of an image file.
pub fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.into().write_to(&mut bytes, format).expect("an image");
    bytes.into_inner()
}

/// The bytes of a van Hateren image.
pub fn van_hateren(levels: impl Fn(usize, usize) -> u16) -> Vec<u8> {
    let levels = &levels;
    (0..1024).flat_map(|y| (0..1536).flat_map(move |x| levels(y, x).to_be_bytes())).collect()
}

/// A file in the folder `photos`.
pub fn add(bench: &Bench, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    fs::create_dir_all(bench.path("photos")).expect("a folder");
    bench.write(&format!("photos/{name}"), bytes)
}

/// The light of a level between 0 and 1.
fn linear(level: f64) -> f64 {
    if level <= 0.04045 { level / 12.92 } else { ((level + 0.055) / 1.055).powf(2.4) }
}

/// The luminances of an image of any kind.
pub fn luminances(image: &DynamicImage) -> Rows {
    let image = image.to_rgb32f();
    // Single precision would blur 16-bit levels, so they are counted in whole steps again.
    let level = |x: f32| f64::from((x * 65535.0).round()) / 65535.0;
    let row = |y| {
        (0..image.width())
            .map(|x| {
                let [red, green, blue] = image.get_pixel(x, y).0.map(|x| linear(level(x)));
                0.2126 * red + 0.7152 * green + 0.0722 * blue
            })
            .collect()
    };
    (0..image.height()).map(row).collect()
}

/// The covariance of patches (width × height, so far apart) at every place, in two passes.
pub fn covariance(luminances: &Rows, [width, height]: [usize; 2], spacing: usize) -> Rows {
    let mut samples = Vec::new();
    for top in 0..luminances.len() - (height - 1) * spacing {
        for left in 0..luminances[0].len() - (width - 1) * spacing {
            let pixel = |p: usize| luminances[top + spacing * (p / width)][left + spacing * (p % width)];
            samples.push((0..width * height).map(pixel).collect::<Vec<f64>>());
        }
    }
    let n = samples.len() as f64;
    let mean = |i: usize| samples.iter().map(|sample| sample[i]).sum::<f64>() / n;
    let means: Vec<f64> = (0..width * height).map(mean).collect();
    let entry = |i: usize, j: usize| {
        samples.iter().map(|sample| (sample[i] - means[i]) * (sample[j] - means[j])).sum::<f64>() / (n - 1.0)
    };
    (0..width * height).map(|i| (0..width * height).map(|j| entry(i, j)).collect()).collect()
}
