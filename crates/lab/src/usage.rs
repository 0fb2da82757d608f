//! Tells wrong usage apart from bad data, because the two have different exit codes.

/// The command line asks for something impossible: exit code 2 instead of 1.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
