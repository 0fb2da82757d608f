//! Where long work reports its progress: the command line shows it, other callers may ignore it.

/// Where progress is reported.
pub trait Outlook: Sync {
    /// The amount of work ahead, in units that take about equally long; 0 if it is not known.
    fn begin(&self, work: u64);
    /// A task of this figure and size is done.
    fn done(&self, figure: &str, work: u64);
    /// Something the user should know.
    fn say(&self, message: &str);
    /// Nothing more will be said.
    fn end(&self);
}
