//! Tests the number that stands for the sources of the program, which finished runs belong to.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

#[path = "../../sources.rs"]
mod hashing;

use hashing::number_of;

const PLACES: [&str; 4] = ["Cargo.lock", "src", "missing", "experiments"];

fn sources() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in [
        ("Cargo.lock", "version = 4"),
        ("src/lib.rs", "mod deep;"),
        ("src/deep/one.rs", "fn one() {}"),
        ("src/deep/two.rs", "fn two() {}"),
        ("experiments/leak.toml", "figure = \"leak\""),
        ("README.md", "not a source"),
    ] {
        put(folder.path(), name, text);
    }
    folder
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn number(folder: &TempDir) -> u64 {
    number_of(folder.path(), &PLACES).unwrap()
}

#[test]
fn the_number_is_that_of_the_sources_wherever_they_are() {
    let (here, there) = (sources(), sources());
    assert_eq!(number(&here), number(&there));
    put(there.path(), "README.md", "changed");
    assert_eq!(number(&here), number(&there), "only sources count");
}

/// Something that can happen to sources, by name.
type Change = (&'static str, fn(&Path));

#[test]
fn any_change_of_a_source_changes_the_number() {
    let changes: [Change; 7] = [
        ("a byte", |root| put(root, "src/deep/one.rs", "fn One() {}")),
        ("a version", |root| put(root, "Cargo.lock", "version = 5")),
        ("a spec", |root| put(root, "experiments/leak.toml", "figure = \"lean\"")),
        ("a new file", |root| put(root, "src/deep/three.rs", "")),
        ("a place that was empty", |root| put(root, "missing", "")),
        ("a file less", |root| fs::remove_file(root.join("src/deep/two.rs")).unwrap()),
        ("a name", |root| fs::rename(root.join("src/deep/two.rs"), root.join("src/deep/2.rs")).unwrap()),
    ];
    let mut numbers = vec![number(&sources())];
    for (what, change) in changes {
        let folder = sources();
        change(folder.path());
        assert!(!numbers.contains(&number(&folder)), "{what}");
        numbers.push(number(&folder));
    }
}

#[test]
fn what_moves_between_files_changes_the_number() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for (folder, first, second) in [(&one, "ab", "c"), (&other, "a", "bc")] {
        put(folder.path(), "src/a.rs", first);
        put(folder.path(), "src/b.rs", second);
    }
    assert_ne!(number(&one), number(&other));
}
