//! Tests the exit codes: 0 done, 1 failed, 2 wrong usage.

use std::process::Output;

use crate::bench::{Bench, Npy, covariances, leukos, stderr};

fn reproduce(arguments: &[&str]) -> Output {
    leukos().arg("reproduce").args(arguments).output().expect("the program starts")
}

#[test]
fn a_wrong_figure_scale_flag_or_number_is_wrong_usage() {
    let wrong = [
        vec!["fig3"],
        vec!["--scale", "huge"],
        vec!["--sed", "1"],
        vec!["--seed", "-1"],
        vec!["--jobs", "0"],
        vec!["--seed"],
    ];
    for arguments in wrong {
        let output = reproduce(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_stack_or_a_spec_that_nothing_uses_is_wrong_usage() {
    let bench = Bench::new();
    let stack = bench.write("seven.npy", Npy::stack(&covariances(12, 7)).bytes());
    let stack = stack.to_str().expect("a path");
    let output = bench.reproduce("natural", &["--contexts", stack]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("N = 7 fits none"), "{}", stderr(&output));
    let output = bench.reproduce("synthetic", &["--contexts", &format!("synthetic={stack}")]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));

    let spec = bench.tiny("leak");
    let output = reproduce(&["synthetic", "--spec", spec.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("is for leak"), "{}", stderr(&output));
}

#[test]
fn files_that_cannot_be_read_or_written_are_failures() {
    let bench = Bench::new();
    for arguments in [vec!["--contexts", "nowhere.npy"], vec!["--spec", "nowhere.toml"]] {
        let output = reproduce(&arguments);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("nowhere."), "{}", stderr(&output));
    }
    bench.write("out", "a file where a directory should be");
    let output = bench.reproduce("synthetic", &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("out/results.json"), "{}", stderr(&output));
}
