//! Describes models and recordings, in words and as JSON.

mod adaptation;
mod meter;
mod model;
mod recording;

pub(crate) use adaptation::all_gains;
pub use adaptation::{Adaptation, Point};
pub(crate) use meter::{FixedWhitener, Meter};
pub use model::{ModelReport, describe_settings};
pub use recording::{Lines, RecordingReport, Survey};
