//! Remembers the commit and the sources the laboratory was built from.

mod sources;

use std::path::Path;
use std::process::Command;

/// What the numbers of a run can depend on, seen from the workspace; and from the package alone.
const WORKSPACE: [&str; 9] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates/core/Cargo.toml",
    "crates/core/src",
    "crates/lab/Cargo.toml",
    "crates/lab/build.rs",
    "crates/lab/experiments",
    "crates/lab/sources.rs",
    "crates/lab/src",
];
const PACKAGE: [&str; 6] = ["Cargo.toml", "Cargo.lock", "build.rs", "experiments", "sources.rs", "src"];

fn main() {
    println!("cargo:rerun-if-env-changed=LEUKOS_COMMIT");
    // The log of a clone; where there is none, sources say enough.
    let log = "../../.git/logs/HEAD";
    if Path::new(log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = std::env::var("LEUKOS_COMMIT").ok().or_else(head);
    println!("cargo:rustc-env=LEUKOS_COMMIT={}", commit.unwrap_or_default());
    println!("cargo:rustc-env=LEUKOS_SOURCES={}", sources());
}

fn head() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| name.trim().to_owned())
}

/// A number that stands for the sources, and what makes cargo look again.
fn sources() -> String {
    let workspace = Path::new("../..");
    let (root, places) = if workspace.join("crates/core/src").is_dir() {
        (workspace, &WORKSPACE[..])
    } else {
        (Path::new("."), &PACKAGE[..])
    };
    for place in places.iter().map(|place| root.join(place)).filter(|place| place.exists()) {
        println!("cargo:rerun-if-changed={}", place.display());
    }
    match sources::number_of(root, places) {
        Ok(number) => format!("{number:016x}"),
        Err(error) => panic!("expected sources that can be read: {error}"),
    }
}
