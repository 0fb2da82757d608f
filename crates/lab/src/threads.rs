//! Lets several threads do the same work, as many as the system gives.

use std::thread::{Builder, scope};

/// Does `work` on so many threads at a time, this one among them, and returns when all of them have done it. Where the
/// system does not give as many, fewer do it.
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
