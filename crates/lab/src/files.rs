//! Looks after people's files: what a command reads it never writes, and what it writes is there whole or not at all.
//!
//! A command lists in [`Paths`] everything that it will read and write, and [`Paths::secure`] finds two names of one file
//! before anything is opened for writing, and locks every output. Outputs are [`Replacement`]s: they grow under a random
//! name beside their target and take its place when they are whole. [`abandon`] removes what a command that is ended
//! by force has begun.

mod fingerprint;
mod identity;
mod lock;
mod paths;
mod replacement;
mod temporaries;

pub(crate) use fingerprint::fingerprint;
pub use fingerprint::{Prefix, PrefixHash, digest};
pub use paths::{Paths, Secured};
pub use replacement::{Replacement, is_stream, open_stream, write_atomically};
pub use temporaries::abandon;
