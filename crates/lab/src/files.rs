//! Protects the user's files: a command never writes a file that it reads, and an output is complete or absent.
//!
//! A command lists in [`Paths`] everything that it will read and write. [`Paths::secure`] finds two names of one file
//! before anything is opened for writing, and locks every output. Outputs are [`Replacement`]s: they are written under a
//! random name beside their target, and renamed when they are complete. [`abandon`] removes the incomplete files of a
//! command that is ended by force.

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
