//! Runs the same work on several threads, as many as the system allows.

use std::thread::{Builder, scope};

/// Runs `work` on this many threads at once, including the current one, and returns when all have finished. If the system
/// does not allow as many, fewer run.
pub fn side_by_side(threads: usize, work: impl Fn() + Sync) {
    let work = &work;
    scope(|scope| {
        for _ in 1..threads {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}
