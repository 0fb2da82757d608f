//! Tests that no command writes what it reads, whatever the names: every output collides with every other file of the
//! command, under the same name, a longer one, a symbolic link and a hard one.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use leukos_lab::recording::{Rows, SampleType};

use crate::bench::{Bench, Npy, covariances, leukos, stderr};
use crate::whiten::{stimuli, write_model, write_recording};

/// A file of a command.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Read, and named by the user.
    Read,
    /// Written, and named by the user.
    Written,
    /// Written under a name that follows from that of another.
    WrittenBeside(&'static str),
}

/// Where each file of a command is, by name.
type Places<'a> = &'a dyn Fn(&str) -> PathBuf;

/// A command and its files: names by which the call knows them, and where they are unless they collide.
struct Verb {
    files: Vec<(&'static str, Role, &'static str)>,
    prepare: fn(&Bench),
    call: fn(Places<'_>) -> Command,
}

impl Verb {
    fn path(&self, bench: &Bench, name: &str) -> PathBuf {
        let (_, _, path) = self.files.iter().find(|(own, ..)| *own == name).unwrap();
        bench.path(path)
    }

    /// All pairs of a file that the user names and an output.
    fn pairs(&self) -> Vec<(&'static str, &'static str)> {
        let named = self.files.iter().filter(|(_, role, _)| !matches!(role, Role::WrittenBeside(_)));
        let pairs =
            named.flat_map(|(own, ..)| self.files.iter().map(move |(other, role, _)| (*own, *other, *role)));
        let apart = pairs.filter(|(own, other, role)| {
            own != other && *role != Role::Read && *role != Role::WrittenBeside(own)
        });
        apart.map(|(own, other, _)| (own, other)).collect()
    }
}

const ALIASES: [&str; 4] = ["same name", "longer name", "symbolic link", "hard link"];

/// Another name of a file, or none where there cannot be one.
fn alias(bench: &Bench, path: &Path, how: &str) -> Option<PathBuf> {
    let ending = path.extension().map_or(String::new(), |ending| format!(".{}", ending.display()));
    let other = bench.path(&format!("alias{ending}"));
    match how {
        "same name" => return Some(path.to_owned()),
        "longer name" => return Some(path.parent()?.join(".").join(path.file_name()?)),
        "symbolic link" => symlink(path, &other).ok()?,
        _ => fs::hard_link(path, &other).ok()?,
    }
    Some(other)
}

/// Names and contents of everything below a folder.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(snapshot(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    all
}

fn assert_collide(verb: &Verb, (own, other): (&str, &str), how: &str) -> bool {
    let bench = Bench::new();
    (verb.prepare)(&bench);
    let target = verb.path(&bench, other);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    if verb.files.iter().any(|(name, role, _)| *name == own && *role == Role::Read) {
        fs::rename(verb.path(&bench, own), &target).unwrap();
    }
    let Some(collides) = alias(&bench, &target, how) else { return false };
    let path = |name: &str| if name == own { collides.clone() } else { verb.path(&bench, name) };
    let before = snapshot(&bench.path(""));
    let output = (verb.call)(&path).output().unwrap();
    let case = format!("{own} and {other}, {how}: {}", stderr(&output));
    assert_eq!(output.status.code(), Some(2), "{case}");
    assert!(stderr(&output).contains("expected a different file from"), "{case}");
    assert!(snapshot(&bench.path("")) == before, "{case}");
    true
}

fn assert_all_collide(verb: &Verb) {
    let mut tried = 0;
    for pair in verb.pairs() {
        for how in ALIASES {
            tried += usize::from(assert_collide(verb, pair, how));
        }
    }
    assert!(tried >= 2 * verb.pairs().len(), "{tried}");
    // And without a collision it works.
    let bench = Bench::new();
    (verb.prepare)(&bench);
    fs::create_dir_all(bench.path("dir")).unwrap();
    let output = (verb.call)(&|name| verb.path(&bench, name)).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

fn prepare(bench: &Bench) {
    write_model(bench);
    let rows = Rows { values: stimuli(300, 3), labels: Vec::new() };
    write_recording(&bench.path("in.csv"), SampleType::Float64, &rows, None);
    write_recording(&bench.path("in.npy"), SampleType::Float64, &rows, None);
    bench.write("config.toml", "time_constant = 50.0\n");
    let synapses: Vec<f64> = (0..9).map(|i| f64::from(i % 4 == 0)).collect();
    let synapses = Npy { dtype: "<f8", fortran_order: false, shape: vec![3, 3], numbers: synapses };
    bench.write("synapses.npy", synapses.bytes());
}

#[test]
fn whiten_writes_nothing_that_it_reads() {
    use Role::{Read, Written, WrittenBeside};
    assert_all_collide(&Verb {
        files: vec![
            ("model", Read, "model.safetensors"),
            ("input", Read, "in.csv"),
            ("out", Written, "out.csv"),
            ("checkpoint", Written, "state"),
            ("lock", WrittenBeside("out"), ".out.csv.lock"),
            ("other lock", WrittenBeside("checkpoint"), ".state.lock"),
            ("matrix", WrittenBeside("dir"), "dir/whitening_mat.npy"),
            ("inverse matrix", WrittenBeside("dir"), "dir/whitening_mat_inv.npy"),
        ],
        prepare,
        call: |path| {
            let mut call = leukos();
            call.arg("whiten").arg(path("model")).arg(path("input")).args(["--format", "csv"]);
            call.arg("--out").arg(path("out")).args(["--out-format", "csv"]);
            call.arg("--checkpoint").arg(path("checkpoint"));
            call.arg("--export-matrix").arg(path("matrix").parent().unwrap());
            call
        },
    });
}

#[test]
fn fit_writes_nothing_that_it_reads() {
    use Role::{Read, Written, WrittenBeside};
    assert_all_collide(&Verb {
        files: vec![
            ("input", Read, "in.csv"),
            ("config", Read, "config.toml"),
            ("synapses", Read, "synapses.npy"),
            ("out", Written, "out.safetensors"),
            ("lock", WrittenBeside("out"), ".out.safetensors.lock"),
        ],
        prepare,
        call: |path| {
            let mut call = leukos();
            call.arg("fit").arg(path("input")).args(["--format", "csv"]).arg("--config").arg(path("config"));
            call.arg("--synapses").arg(path("synapses")).arg("--out").arg(path("out"));
            call
        },
    });
}

#[test]
fn inspect_writes_nothing_that_it_reads() {
    use Role::{Read, Written, WrittenBeside};
    assert_all_collide(&Verb {
        files: vec![
            ("model", Read, "model.safetensors"),
            ("recording", Read, "in.csv"),
            ("picture", Written, "picture.png"),
            ("lock", WrittenBeside("picture"), ".picture.png.lock"),
        ],
        prepare,
        call: |path| {
            let mut call = leukos();
            call.arg("inspect").arg(path("model")).arg(path("recording")).args(["--format", "csv"]);
            call.arg("--picture").arg(path("picture"));
            call
        },
    });
}

#[test]
fn contexts_writes_nothing_that_it_reads() {
    use Role::{Read, Written, WrittenBeside};
    assert_all_collide(&Verb {
        files: vec![
            ("recording", Read, "in.npy"),
            ("out", Written, "out.npy"),
            ("table", WrittenBeside("out"), "out.csv"),
            ("drawing", WrittenBeside("out"), "out.svg"),
            ("picture", WrittenBeside("out"), "out.png"),
            ("lock", WrittenBeside("out"), ".out.npy.lock"),
        ],
        prepare,
        call: |path| {
            let mut call = leukos();
            call.arg("contexts").arg(path("recording")).args(["--format", "npy", "--segment", "100"]);
            call.arg("--out").arg(path("out"));
            call
        },
    });
}

#[test]
fn reproduce_writes_nothing_that_it_reads() {
    use Role::{Read, WrittenBeside};
    assert_all_collide(&Verb {
        files: vec![
            ("spec", Read, "natural.toml"),
            ("stack", Read, "stack.npy"),
            ("results", WrittenBeside("out"), "out/results.json"),
            ("panels", WrittenBeside("out"), "out/panels.json"),
            ("report", WrittenBeside("out"), "out/report.html"),
            ("runs", WrittenBeside("out"), "out/runs/natural.jsonl"),
            ("picture", WrittenBeside("out"), "out/figures/natural-print.svg"),
            ("lock", WrittenBeside("out"), "out/.results.json.lock"),
        ],
        prepare: |bench| {
            bench.tiny("natural");
            bench.write("stack.npy", Npy::stack(&covariances(9, 6)).bytes());
        },
        call: |path| {
            let mut call = leukos();
            call.args(["reproduce", "natural", "--spec"]).arg(path("spec"));
            call.arg("--contexts").arg(format!("natural={}", path("stack").display()));
            call.arg("--out").arg(path("results").parent().unwrap());
            call
        },
    });
}

#[test]
fn an_image_behind_a_link_is_not_drawn_over() {
    let bench = Bench::new();
    let stack = bench.path("made.npy");
    let made = leukos().args(["contexts", "synthetic", "--out"]).arg(&stack).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    fs::create_dir(bench.path("photos")).unwrap();
    symlink(bench.path("made.png"), bench.path("photos/one.png")).unwrap();
    let before = snapshot(&bench.path(""));
    let output =
        leukos().arg("contexts").arg(bench.path("photos")).arg("--out").arg(&stack).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("expected a different file from the image"), "{}", stderr(&output));
    assert!(snapshot(&bench.path("")) == before);
}

#[test]
fn redirected_input_and_output_are_recognised() {
    let bench = Bench::new();
    prepare(&bench);
    let input = fs::read(bench.path("in.csv")).unwrap();
    let open = || fs::OpenOptions::new().read(true).append(true).open(bench.path("in.csv")).unwrap();
    let call = |input: &str, out: &str| {
        let mut call = leukos();
        call.arg("whiten")
            .arg(bench.path("model.safetensors"))
            .args([input, "--format", "csv", "--out", out]);
        call
    };
    let path = bench.path("in.csv").display().to_string();
    let from_itself = call("-", &path).stdin(open()).output().unwrap();
    let into_itself = call(&path, "-").stdout(open()).output().unwrap();
    for output in [from_itself, into_itself] {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("expected a different file from the input"), "{}", stderr(&output));
    }
    assert!(fs::read(bench.path("in.csv")).unwrap() == input);
}
