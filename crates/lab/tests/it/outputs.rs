//! Tests what becomes of outputs: what is replaced and what is not, which permissions they have, and what is left behind.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use leukos_lab::recording::{Rows, SampleType};

use crate::bench::{Bench, leukos, stderr};
use crate::whiten::{stimuli, write_model, write_recording};

fn bench() -> Bench {
    let bench = Bench::new();
    write_model(&bench);
    let rows = Rows { values: stimuli(300, 3), labels: Vec::new() };
    write_recording(&bench.path("in.csv"), SampleType::Float64, &rows, None);
    bench
}

fn whiten(bench: &Bench, out: &Path) -> Command {
    let mut call = leukos();
    call.arg("whiten").arg(bench.path("model.safetensors")).arg(bench.path("in.csv"));
    call.arg("--out").arg(out).args(["--out-format", "csv"]);
    call
}

fn run(call: &mut Command) {
    let output = call.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

fn no_companions(bench: &Bench) {
    let names = bench.names();
    assert!(!names.iter().any(|name| name.starts_with('.')), "{names:?}");
}

#[test]
fn pipes_and_devices_are_written_into() {
    let bench = bench();
    run(&mut whiten(&bench, &bench.path("expected.csv")));
    let expected = fs::read(bench.path("expected.csv")).unwrap();
    let fifo = bench.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (end, mut got) = (fifo.clone(), Vec::new());
    let reader = std::thread::spawn(move || {
        fs::File::open(end).unwrap().read_to_end(&mut got).unwrap();
        got
    });
    run(&mut whiten(&bench, &fifo));
    assert!(reader.join().unwrap() == expected);
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    no_companions(&bench);
    // A device of our own, in case it would be replaced; only root can make one.
    let null = bench.path("null");
    if Command::new("mknod").arg(&null).args(["c", "1", "3"]).output().unwrap().status.success() {
        run(&mut whiten(&bench, &null));
        run(leukos().arg("fit").arg(bench.path("in.csv")).arg("--out").arg(&null));
        assert!(fs::metadata(&null).unwrap().file_type().is_char_device());
        no_companions(&bench);
    } else {
        println!("not checked: a device, because none can be made");
    }
}

#[test]
fn links_are_followed_and_permissions_kept() {
    let bench = bench();
    let (target, link) = (bench.path("target.csv"), bench.path("link.csv"));
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("target.csv", &link).unwrap();
    run(&mut whiten(&bench, &link));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read(&target).unwrap().len() > 1000);
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    // A link that leads nowhere yet makes its target.
    symlink(bench.path("later.csv"), bench.path("early.csv")).unwrap();
    run(&mut whiten(&bench, &bench.path("early.csv")));
    assert!(fs::read(bench.path("later.csv")).unwrap() == fs::read(&target).unwrap());
    // A new file is like any other that this user makes.
    fs::write(bench.path("usual"), "").unwrap();
    let mode = |name: &str| fs::metadata(bench.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("later.csv"), mode("usual"));
    no_companions(&bench);
}

#[test]
fn a_temporary_name_is_neither_too_long_nor_somebody_elses() {
    let bench = bench();
    let name = format!("{}.csv", "ü".repeat(120));
    run(&mut whiten(&bench, &bench.path(&name)));
    assert!(bench.path(&name).exists());
    // The names that were used before are nobody's now.
    for name in ["out.csv.partial", ".out.csv.partial"] {
        fs::write(bench.path(name), "precious").unwrap();
    }
    symlink(bench.path("in.csv"), bench.path(".out.csv.0123456789ab.partial")).unwrap();
    run(&mut whiten(&bench, &bench.path("out.csv")));
    for name in ["out.csv.partial", ".out.csv.partial"] {
        assert_eq!(fs::read(bench.path(name)).unwrap(), b"precious");
    }
    assert!(fs::read(bench.path("in.csv")).unwrap().len() > 1000, "links are not followed");
    // A lock that is not ours to remove has something in it.
    fs::write(bench.path(".out.csv.lock"), "precious").unwrap();
    run(&mut whiten(&bench, &bench.path("out.csv")));
    assert_eq!(fs::read(bench.path(".out.csv.lock")).unwrap(), b"precious");
}

#[test]
fn a_partial_file_of_the_output_can_be_the_input() {
    let bench = bench();
    let input = bench.path(".out.csv.0123456789ab.partial");
    fs::rename(bench.path("in.csv"), &input).unwrap();
    let before = fs::read(&input).unwrap();
    let mut call = leukos();
    call.arg("whiten").arg(bench.path("model.safetensors")).arg(&input).args(["--format", "csv"]);
    run(call.arg("--out").arg(bench.path("out.csv")));
    assert!(fs::read(&input).unwrap() == before);
}

/// A run whose input stalls after some rows.
fn stalled(bench: &Bench, out: &str) -> Child {
    let mut call = leukos();
    call.arg("whiten").arg(bench.path("model.safetensors")).args(["-", "--format", "csv", "--out"]);
    let mut child = call.arg(bench.path(out)).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = fs::read(bench.path("in.csv")).unwrap();
    child.stdin.as_mut().unwrap().write_all(&input).unwrap();
    let begin = Instant::now();
    while !bench.names().iter().any(|name| name.ends_with(".partial")) {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing was written");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Waits for the end of a child that was told to end; its input stays open.
fn assert_ends(mut child: Child) {
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        // A second is promised, and this machine may be busy.
        assert!(begin.elapsed() < Duration::from_secs(10), "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(130));
}

#[test]
fn a_signal_ends_a_run_whose_input_stalls_and_leaves_nothing() {
    for name in ["-INT", "-TERM", "-HUP"] {
        let bench = bench();
        let child = stalled(&bench, "out.csv");
        signal(&child, name);
        assert_ends(child);
        assert_eq!(bench.names(), ["in.csv", "model.safetensors"], "{name}");
    }
    let bench = bench();
    let child = stalled(&bench, "out.csv");
    signal(&child, "-INT");
    signal(&child, "-INT");
    assert_ends(child);
    assert_eq!(bench.names(), ["in.csv", "model.safetensors"]);
}

#[test]
fn a_folder_or_a_disk_is_no_output() {
    let bench = bench();
    fs::create_dir(bench.path("folder")).unwrap();
    let output = whiten(&bench, &bench.path("folder")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--out: expected a file, got the folder"), "{}", stderr(&output));
}

#[test]
fn two_calls_of_reproduce_do_not_share_a_folder() {
    let bench = Bench::new();
    let text = crate::bench::tiny("synthetic").to_string().replace("quick = 12", "quick = 20000");
    let spec = bench.write("long.toml", text);
    let mut call = leukos();
    call.args(["reproduce", "synthetic", "--jobs", "1", "--spec"])
        .arg(&spec)
        .arg("--out")
        .arg(bench.path("out"));
    let mut first = call.stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !bench.path("out/runs/synthetic.jsonl").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = bench.reproduce("synthetic", &[]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("another leukos process is writing it"), "{}", stderr(&output));
}
