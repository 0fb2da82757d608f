//! Parses the values of flags, and says what was expected if one is wrong.

use std::path::PathBuf;
use std::str::FromStr;

use crate::contexts::Scaling;

/// How patches are chosen.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    Independent,
    Walk,
    Every,
}

/// The width and height of a patch.
#[derive(Clone, Copy)]
pub struct Shape {
    pub width: usize,
    pub height: usize,
}

/// The largest number of pixels of a patch: beyond it a covariance takes more than 8 MiB.
const MOST_PIXELS: usize = 1024;

impl FromStr for Shape {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let side = |text: &str| text.parse::<u16>().ok().filter(|&side| side > 0).map(usize::from);
        let sides = given.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?)));
        let (width, height) = sides.ok_or("expected WIDTHxHEIGHT, such as 5x5 or 16x1")?;
        if !(2..=MOST_PIXELS).contains(&(width * height)) {
            return Err(format!("expected 2 to {MOST_PIXELS} pixels, got {}", width * height));
        }
        Ok(Self { width, height })
    }
}

/// The condition number below which a context is kept.
#[derive(Clone, Copy)]
pub struct Condition(pub f64);

impl FromStr for Condition {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let number = if given == "none" { Some(f64::INFINITY) } else { given.parse().ok() };
        number.filter(|&number| number > 1.0).map(Self).ok_or("expected a number above 1, or none".into())
    }
}

/// The largest eigenvalue that covariances are scaled to.
#[derive(Clone, Copy)]
pub struct Norm(pub Scaling);

impl FromStr for Norm {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        if given == "none" {
            return Ok(Self(Scaling::AsMeasured));
        }
        let number = given.parse().ok().filter(|&number: &f64| number.is_normal() && number > 0.0);
        number.map(|norm| Self(Scaling::Norm(norm))).ok_or("expected a number above 0, or none".into())
    }
}

/// The name of a file to write a stack to.
pub fn npy_path(given: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(given);
    if path.extension().is_none_or(|extension| extension != "npy") || path.is_dir() {
        return Err("expected the name of a .npy file".into());
    }
    Ok(path)
}
