//! Remembers the temporary files of this process, so that none is left when it is ended by force.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ALL: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks a file to be removed when the process ends.
pub(super) fn remember(path: &Path) {
    all().insert(path.to_owned());
}

/// This file is no longer temporary, or is gone.
pub(super) fn forget(path: &Path) {
    all().remove(path);
}

/// Removes all temporary files, for a process that ends without cleaning up in any other way.
pub fn abandon() {
    for path in std::mem::take(&mut *all()) {
        // If it cannot be removed, nothing more can be done.
        let _ = std::fs::remove_file(path);
    }
}
