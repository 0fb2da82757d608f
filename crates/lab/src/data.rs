//! Reads and writes the files of the outside world.

mod covariances;

pub use covariances::{Stack, read_stack};
