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
    assert!(stderr(&output).contains("N = 7 is not that of any figure"), "{}", stderr(&output));
    let output = bench.reproduce("synthetic", &["--contexts", &format!("synthetic={stack}")]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));

    let spec = bench.tiny("leak");
    let output = reproduce(&["synthetic", "--spec", spec.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("expected a spec of one of the figures asked for, got one for leak"),
        "{}",
        stderr(&output)
    );
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

#[test]
fn a_bad_stack_fails_with_its_name_whatever_is_bad_about_it() {
    let bench = Bench::new();
    let mut singular = covariances(3, 6);
    singular[1] = vec![vec![1.0; 6]; 6];
    let bad = [
        ("one.npy", Npy::stack(&covariances(1, 6)).bytes()),
        ("singular.npy", Npy::stack(&singular).bytes()),
        ("flat.npy", Npy { shape: vec![18, 6], ..Npy::stack(&covariances(3, 6)) }.bytes()),
        ("text.npy", b"no array".to_vec()),
    ];
    for (name, bytes) in bad {
        let path = bench.write(name, bytes);
        for given in [path.display().to_string(), format!("natural={}", path.display())] {
            let output = bench.reproduce("natural", &["--contexts", &given]);
            assert_eq!(output.status.code(), Some(1), "{given}: {}", stderr(&output));
            assert!(stderr(&output).contains(name), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_name_that_is_no_figure_is_wrong_usage_and_says_which_there_are() {
    let bench = Bench::new();
    let stack = bench.write("six.npy", Npy::stack(&covariances(12, 6)).bytes());
    let output = bench.reproduce("natural", &["--contexts", &format!("naturel={}", stack.display())]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for part in ["naturel", "FIGURE=FILE", "natural", "interneurons"] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    // A file may have such a name.
    let odd = bench.write("a=b.npy", Npy::stack(&covariances(12, 6)).bytes());
    let output = bench.reproduce("natural", &["--quiet", "--contexts", odd.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
