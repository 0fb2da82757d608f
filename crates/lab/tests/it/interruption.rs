//! Tests Ctrl-C: a real signal to the real program, and the call that continues.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench::{Bench, leukos, stderr, tiny};

/// The tiny spec with so many starts that it takes a while.
fn long(bench: &Bench) -> std::path::PathBuf {
    let text = tiny("synthetic")
        .to_string()
        .replace("quick = 2", "quick = 40")
        .replace("quick = 12", "quick = 3000");
    bench.write("long.toml", text)
}

fn start(bench: &Bench, spec: &std::path::Path, out: &str) -> Child {
    leukos()
        .args(["reproduce", "synthetic", "--jobs", "2", "--spec"])
        .arg(spec)
        .arg("--out")
        .arg(bench.path(out))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Waits until some runs are on disk.
fn wait_for_runs(bench: &Bench, at_least: usize) {
    let (path, begin) = (bench.path("out/runs/synthetic.jsonl"), Instant::now());
    let lines = || std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    while lines() <= at_least {
        assert!(begin.elapsed() < Duration::from_secs(60), "no runs were kept");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_keeps_finished_runs_and_the_next_call_continues_from_them() {
    let bench = Bench::new();
    let spec = long(&bench);
    let child = start(&bench, &spec, "out");
    wait_for_runs(&bench, 3);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("the same command continues"), "{}", stderr(&output));
    assert!(!bench.path("out/results.json").exists(), "nothing half-done is called a result");

    let output = start(&bench, &spec, "out").wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("runs were finished by an earlier call"), "{}", stderr(&output));
    let output = start(&bench, &spec, "whole").wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", stderr(&output));
    let figures = |out: &str| crate::bench::read_json(&bench.path(out))["figures"].clone();
    assert!(
        figures("out/results.json") == figures("whole/results.json"),
        "an interruption changed the numbers"
    );
    assert!(figures("out/panels.json") == figures("whole/panels.json"), "an interruption changed the series");
}

#[test]
fn a_line_that_was_cut_off_is_run_again() {
    let bench = Bench::new();
    bench.reproduce("synthetic", &["--quiet"]);
    let (runs, whole) = (bench.path("out/runs/synthetic.jsonl"), bench.results()["figures"].clone());
    let text = std::fs::read_to_string(&runs).expect("records");
    std::fs::write(&runs, &text[..text.len() - 40]).expect("a shorter file");
    let output = bench.reproduce("synthetic", &[]);
    assert!(stderr(&output).contains("7 of 8 runs"), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 line was damaged or incomplete in "), "{}", stderr(&output));
    assert!(whole == bench.results()["figures"]);
}

#[test]
fn damaged_lines_are_counted_and_run_again() {
    let bench = Bench::new();
    bench.reproduce("synthetic", &["--quiet"]);
    let (runs, whole) = (bench.path("out/runs/synthetic.jsonl"), bench.results()["figures"].clone());
    let mut lines: Vec<String> =
        std::fs::read_to_string(&runs).expect("records").lines().map(Into::into).collect();
    // A digit of a result becomes another one: still JSON, still a number.
    for line in [2, 5] {
        let digit = lines[line].rfind(|letter: char| letter.is_ascii_digit()).expect("a number");
        let other = if lines[line].as_bytes()[digit] == b'7' { "8" } else { "7" };
        lines[line].replace_range(digit..=digit, other);
    }
    std::fs::write(&runs, lines.join("\n") + "\n").expect("a damaged file");
    let output = bench.reproduce("synthetic", &[]);
    assert!(stderr(&output).contains("6 of 8 runs"), "{}", stderr(&output));
    let said = format!("synthetic: 2 lines were damaged or incomplete in {}", runs.display());
    assert!(stderr(&output).contains(&said), "{}", stderr(&output));
    assert!(whole == bench.results()["figures"]);
}
