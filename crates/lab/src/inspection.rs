//! Looks into models and recordings and says what is there, for people and for machines.

mod adaptation;
mod model;
mod recording;

pub use adaptation::{Adaptation, Point};
pub use model::{ModelReport, describe_settings};
pub use recording::{Lines, RecordingReport, Survey};
