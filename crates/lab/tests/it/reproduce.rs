//! Tests what `leukos reproduce` promises about its numbers: same bits for any number of threads, other seeds and other
//! contexts give other numbers, and earlier runs are used exactly when they are still right.

use serde_json::Value;

use crate::bench::{Bench, Npy, covariances, stderr};

/// Results without what may differ between two calls that do the same.
fn lasting(mut results: Value) -> Value {
    for key in ["seconds", "jobs"] {
        results.as_object_mut().expect("an object").remove(key);
    }
    results
}

#[test]
fn one_thread_and_two_give_the_same_bits() {
    for figure in ["synthetic", "natural", "biological", "control"] {
        let [one, two] = ["1", "2"].map(|jobs| {
            let bench = Bench::new();
            let output = bench.reproduce(figure, &["--jobs", jobs, "--quiet"]);
            assert!(output.status.success(), "{}", stderr(&output));
            (lasting(bench.results()), bench.panels())
        });
        assert!(one == two, "{figure}");
    }
}

#[test]
fn another_seed_gives_other_numbers() {
    let [zero, one] = ["0", "1"].map(|seed| {
        let bench = Bench::new();
        bench.reproduce("synthetic", &["--seed", seed, "--quiet"]);
        bench.results()["figures"]["synthetic"]["variants"]["authors"]["error_last10_all"].clone()
    });
    assert!(zero.is_object());
    assert_ne!(zero, one);
}

#[test]
fn a_second_call_uses_the_runs_of_the_first_and_says_so() {
    let bench = Bench::new();
    bench.reproduce("synthetic", &[]);
    let first = lasting(bench.results());
    let again = bench.reproduce("synthetic", &[]);
    assert!(stderr(&again).contains("8 of 8 runs were finished by an earlier call"), "{}", stderr(&again));
    assert!(first == lasting(bench.results()), "records must keep every bit");
}

#[test]
fn a_changed_seed_spec_or_stack_begins_anew_and_says_so() {
    let bench = Bench::new();
    bench.reproduce("natural", &[]);
    let first = bench.results();
    let said = stderr(&bench.reproduce("natural", &["--seed", "3"]));
    assert!(said.contains("natural: starting from scratch"), "{said}");
    assert_ne!(first["figures"], bench.results()["figures"]);

    let stack = bench.write("stack.npy", Npy::stack(&covariances(12, 6)).bytes());
    let given = stack.to_str().expect("a path");
    let said = stderr(&bench.reproduce("natural", &["--contexts", given]));
    assert!(said.contains("natural: starting from scratch"), "{said}");

    let text =
        crate::bench::tiny("natural").to_string().replace("synapse_rate = 0.05", "synapse_rate = 0.04");
    let spec = bench.write("slower.toml", text);
    let output = crate::bench::leukos()
        .args(["reproduce", "natural", "--contexts", given, "--spec"])
        .arg(spec)
        .arg("--out")
        .arg(bench.path("out"))
        .output()
        .expect("the program starts");
    assert!(stderr(&output).contains("natural: starting from scratch"), "{}", stderr(&output));
}

#[test]
fn generated_contexts_are_called_so_and_given_ones_are_named() {
    let bench = Bench::new();
    bench.reproduce("natural", &["--quiet"]);
    let generated = bench.results()["figures"]["natural"]["contexts"].clone();
    assert!(generated.as_str().is_some_and(|text| text.contains("1/f generator, not images")), "{generated}");

    let stack = bench.write("mine.npy", Npy::stack(&covariances(12, 6)).bytes());
    bench.reproduce("natural", &["--quiet", "--contexts", stack.to_str().expect("a path")]);
    let given = bench.results()["figures"]["natural"]["contexts"].clone();
    assert!(
        given
            .as_str()
            .is_some_and(|text| text.contains("12 covariances, N = 6") && text.contains("mine.npy"))
    );
}

#[test]
fn a_stack_of_another_size_serves_the_figure_it_is_given_for() {
    let bench = Bench::new();
    let stack = bench.write("nine.npy", Npy::stack(&covariances(12, 9)).bytes());
    let given = format!("interneurons={}", stack.display());
    let output = bench.reproduce("interneurons", &["--quiet", "--contexts", &given]);
    assert!(output.status.success(), "{}", stderr(&output));
    let results = bench.results();
    let variants = &results["figures"]["interneurons"]["variants"];
    assert_eq!(variants["authors"]["n"], 9);
    assert_eq!(variants["authors"]["k"], serde_json::json!([0, 2, 8, 9, 12, 18]));
    assert_eq!(variants["authors-1d"]["n"], 5);
}

#[test]
fn the_pseudo_code_of_algorithm_2_diverges_and_is_a_result() {
    let bench = Bench::new();
    let text = crate::bench::tiny("natural").to_string().replace("quick = 12", "quick = 400");
    let spec = bench.write("longer.toml", text);
    let output = bench.reproduce_with(&spec, "natural", &["--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let results = bench.results();
    let variants = &results["figures"]["natural"]["variants"];
    assert_eq!(variants["printed"]["diverged"]["count"], 2);
    assert!(variants["printed"]["diverged"]["first_step"].as_u64().is_some_and(|step| step > 0));
    assert!(variants["printed"].get("test_adapted").is_none());
    assert!(variants["authors"]["diverged"].is_null());
}
