//! Who is told how far long work has come; the command line shows it, and tests and other callers need not.

/// Someone who is told how far the work has come.
pub trait Outlook: Sync {
    /// So much work lies ahead, in units that take about equally long; 0 where nobody knows.
    fn begin(&self, work: u64);
    /// A task of this figure and size is done.
    fn done(&self, figure: &str, work: u64);
    /// Something the user should know.
    fn say(&self, message: &str);
    /// Nothing more will be said.
    fn end(&self);
}
