//! Remembers the commit the laboratory was built from, where there is one.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=LEUKOS_COMMIT");
    let log = "../../.git/logs/HEAD";
    if Path::new(log).exists() {
        println!("cargo:rerun-if-changed={log}");
    } else {
        println!("cargo:rerun-if-changed=build.rs");
    }
    let commit = std::env::var("LEUKOS_COMMIT").ok().or_else(head);
    println!("cargo:rustc-env=LEUKOS_COMMIT={}", commit.unwrap_or_default());
}

fn head() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| name.trim().to_owned())
}
