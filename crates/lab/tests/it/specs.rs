//! Tests that every spec parses strictly and runs at tiny scale.

use std::path::Path;

use toml::Value as Toml;

use crate::bench::{Bench, FIGURES, embedded, stderr, tiny};

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

/// Replaces a text in the tiny spec of a figure and returns what the program says about it.
fn complaint(figure: &str, from: &str, to: &str) -> String {
    let bench = Bench::new();
    let text = tiny(figure).to_string();
    assert!(text.contains(from), "{text}");
    let spec = bench.write("changed.toml", text.replace(from, to));
    let output = crate::bench::leukos()
        .args(["reproduce", figure, "--spec"])
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
        let said = complaint("synthetic", from, to);
        // A leak is checked when the plan is made, so the complaint names the variant and not the file.
        assert!(said.contains("changed.toml") || from.starts_with("leak"), "{said}");
        for part in expected {
            assert!(said.contains(part), "{to}: expected {part} in: {said}");
        }
    }
}

/// The page that says what every key of a spec means.
fn reference_page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/specs.md");
    std::fs::read_to_string(path).expect("docs/specs.md")
}

/// Every key and every word below a value of a spec; the names of variants are the user's.
fn words(key: &str, value: &Toml, found: &mut Vec<String>) {
    match value {
        Toml::Table(table) => {
            for (name, value) in table {
                if key != "variants" && !["quick", "paper"].contains(&name.as_str()) {
                    found.push(name.clone());
                }
                words(name, value, found);
            }
        }
        Toml::String(word) if key != "figure" => found.push(word.clone()),
        _ => {}
    }
}

#[test]
fn the_reference_page_has_every_key_and_word_of_the_embedded_specs() {
    let page = reference_page();
    for figure in FIGURES {
        let mut found = Vec::new();
        words("", &Toml::Table(embedded(figure)), &mut found);
        assert!(found.len() > 8, "{figure}: {found:?}");
        for word in found {
            let is_there = [format!("`{word}`"), format!("\"{word}\""), format!("{{ {word} =")]
                .iter()
                .any(|way| page.contains(way));
            assert!(is_there, "docs/specs.md does not have {word} of {figure}");
        }
    }
}

#[test]
fn the_reference_page_has_every_word_that_the_program_would_take() {
    let page = reference_page();
    let cases = [
        ("synthetic", "schedule = \"returning\""),
        ("synthetic", "initial_synapses = \"circle\""),
        ("synthetic", "initial_gains = \"median\""),
        ("synthetic", "unit_norm = \"projected\""),
        ("synthetic", "blank = \"kept\""),
        ("synthetic", "axes = \"circle\""),
        ("synthetic", "drawn = \"each-start\""),
        ("interneurons", "split = \"each-start\""),
        ("interneurons", "order = \"concurrent\""),
        ("interneurons", "initial_synapses = \"sphere\""),
    ];
    for (figure, setting) in cases {
        let (key, _) = setting.split_once(" = ").expect("a setting");
        let said = complaint(figure, setting, &format!("{key} = \"nonsense\""));
        let offered: Vec<&str> =
            said.split('`').skip(1).step_by(2).filter(|word| *word != "nonsense").collect();
        assert!(offered.len() > 1, "{said}");
        for word in offered.into_iter().filter(|word| !word.contains(' ')) {
            assert!(
                page.contains(&format!("`{word}`"))
                    || page.contains(&format!("\"{word}\""))
                    || page.contains(&format!("{{ {word} =")),
                "docs/specs.md does not have {word}, which {key} may be"
            );
        }
    }
}
