//! Reads and writes images, covariances and models.

mod covariances;
mod folder;
mod image;
mod models;
mod patches;
mod photographs;
mod van_hateren;

pub use covariances::{Stack, is_stack, matrix_bytes, read_stack, stack_bytes};
pub use folder::{Folder, LargeImages, file_name, read_folder, read_image};
pub use image::{Image, Layout, Levels, Transfer};
pub use models::{is_model, read_model, read_synapses, require_fit, write_checkpoint, write_model};
pub use patches::{NoCovariance, Sampling, patch_covariance};
pub use photographs::Photograph;
pub use van_hateren::read_van_hateren;
