//! Finds the images in a folder and reads each by the format its name announces.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use super::image::Image;
use super::photographs::{LARGEST, Photograph};
use super::van_hateren::read_van_hateren;

/// What a folder holds, in the order of names.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    /// Files whose names say that they are images.
    pub images: Vec<PathBuf>,
    /// The names of everything else.
    pub others: Vec<String>,
}

/// From how many bytes on an image is large.
const LARGE: u64 = 64 << 20;

/// A lock: large images are read one at a time, however many threads there are, so that memory does not grow
/// with their number.
#[derive(Debug, Default)]
pub struct LargeImages(Mutex<()>);

/// Lists a folder, but not the folders inside it. Hidden files are no images: some systems keep a shadow of each image
/// under such a name.
///
/// # Errors
/// When there is no such folder or it cannot be read.
pub fn read_folder(path: &Path) -> Result<Folder> {
    let list = || -> Result<Vec<PathBuf>> {
        ensure!(path.exists(), "expected a folder of images, but nothing with this name exists");
        ensure!(path.is_dir(), "expected a folder of images, got a file");
        let entries = fs::read_dir(path).context("the folder cannot be read")?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort_unstable();
        Ok(paths)
    };
    let paths = list().with_context(|| format!("folder {}", path.display()))?;
    let (images, others): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| is_image(path));
    Ok(Folder { images, others: others.iter().map(|path| file_name(path)).collect() })
}

/// The last part of a path for display: characters that a terminal or a picture cannot show are replaced.
pub fn file_name(path: &Path) -> String {
    let harmless = |letter: char| !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}');
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.chars().map(|letter| if harmless(letter) { letter } else { char::REPLACEMENT_CHARACTER }).collect()
}

fn is_image(path: &Path) -> bool {
    let known = ["png", "jpg", "jpeg", "tif", "tiff", "webp", "imc", "iml"];
    let named = extension(path).is_some_and(|extension| known.contains(&extension.as_str()));
    named && !file_name(path).starts_with('.') && path.is_file()
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// Reads an image and hands it on.
///
/// # Errors
/// When it cannot be read or is not the image its name announces.
pub fn read_image<T>(path: &Path, large: &LargeImages, use_image: impl FnOnce(Image) -> T) -> Result<T> {
    let size = fs::metadata(path).context("the file cannot be read")?.len();
    ensure!(size <= LARGEST, "expected a file of {} MiB at most, got {} MiB", LARGEST >> 20, size >> 20);
    let bytes = fs::read(path).context("the file cannot be read")?;
    if matches!(extension(path).as_deref(), Some("imc" | "iml")) {
        return Ok(use_image(read_van_hateren(&bytes)?));
    }
    let photograph = Photograph::open(&bytes)?;
    let _turn = (photograph.memory() > LARGE).then(|| large.0.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(use_image(photograph.read()?))
}
