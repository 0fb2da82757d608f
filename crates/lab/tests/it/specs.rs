//! Tests that every spec parses strictly and runs at tiny scale.

use crate::bench::{Bench, FIGURES, stderr, tiny};

#[test]
fn every_figure_runs_at_tiny_scale_and_reports_every_variant() {
    for figure in FIGURES {
        let bench = Bench::new();
        let output = bench.reproduce(figure, &["--quiet"]);
        assert!(output.status.success(), "{figure}: {}", stderr(&output));
        assert!(output.stderr.is_empty(), "{figure} is not quiet: {}", stderr(&output));
        let (results, spec) = (bench.results(), tiny(figure));
        let reported = results["figures"][figure]["variants"].as_object().expect("variants");
        match spec.get("variants").and_then(toml::Value::as_table) {
            Some(variants) => assert!(variants.keys().eq(reported.keys()), "{figure}"),
            None => assert_eq!(reported.len(), 1, "{figure}"),
        }
        assert_eq!(results["figures"].as_object().map(serde_json::Map::len), Some(1));
        assert!(bench.panels()["figures"][figure]["variants"].is_object(), "{figure}");
    }
}

/// Replaces a text in the tiny synthetic spec and returns what the program says about it.
fn complaint(from: &str, to: &str) -> String {
    let bench = Bench::new();
    let text = tiny("synthetic").to_string();
    assert!(text.contains(from), "{text}");
    let spec = bench.write("changed.toml", text.replace(from, to));
    let output = crate::bench::leukos()
        .args(["reproduce", "synthetic", "--spec"])
        .arg(&spec)
        .arg("--out")
        .arg(bench.path("out"))
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn a_bad_spec_names_the_key_what_was_expected_and_what_came() {
    let cases = [
        ("gain_rate = 0.05", "gain_rat = 0.05", vec!["gain_rat", "expected one of", "gain_rate"]),
        (
            "gain_rate = 0.05",
            "gain_rate = -0.05",
            vec!["gain_rate", "expected a finite number above 0", "-0.05"],
        ),
        ("gain_rate = 0.05", "gain_rate = \"fast\"", vec!["gain_rate", "fast", "expected"]),
        ("samples = 30", "samples = 0", vec!["samples", "0", "nonzero"]),
        ("unit_norm = \"free\"", "unit_norm = \"loose\"", vec!["unit_norm", "loose", "free"]),
        ("figure = \"synthetic\"", "figure = \"fig3\"", vec!["figure", "fig3", "synthetic"]),
        ("leak = 1.0", "leak = -1.0", vec!["leak", "0 or more", "-1"]),
        ("schedule = \"returning\"\n", "", vec!["schedule", "missing"]),
    ];
    for (from, to, expected) in cases {
        let said = complaint(from, to);
        // A leak is checked when the plan is made, so the complaint names the variant and not the file.
        assert!(said.contains("changed.toml") || from.starts_with("leak"), "{said}");
        for part in expected {
            assert!(said.contains(part), "{to}: expected {part} in: {said}");
        }
    }
}
