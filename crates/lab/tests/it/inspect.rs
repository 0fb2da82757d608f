//! Tests `leukos inspect`: numbers that are right, pictures that hold what they should, and clear words for what will not do.

use std::fmt::Write;
use std::path::Path;
use std::process::Output;

use leukos::Model;
use resvg::tiny_skia::Pixmap;
use resvg::usvg::roxmltree;
use serde_json::Value;

use crate::bench::{Bench, Npy, covariances, leukos, stderr};
use crate::fit::{csv, rows};

fn inspect(arguments: &[&Path], flags: &[&str]) -> Output {
    leukos().arg("inspect").args(arguments).args(flags).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&said(output)).expect("JSON")
}

/// A model of two contexts, and the recording that it was fitted to.
fn fitted(bench: &Bench) -> [std::path::PathBuf; 2] {
    let labels = [vec!["rest"; 700], vec!["walk"; 600]].concat();
    let day = bench.write("day.csv", csv(&[rows(0, 700), rows(3, 600)].concat(), Some(&labels)));
    let model = bench.path("model.safetensors");
    let output = leukos().arg("fit").arg(&day).args(["--label", "state", "--out"]).arg(&model).output();
    assert!(output.expect("the program starts").status.success());
    [model, day]
}

/// The names of the parts of this kind, of a picture that is XML.
fn parts(svg: &str, kind: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("XML");
    let attribute = format!("data-{kind}");
    document.descendants().filter_map(|node| node.attribute(attribute.as_str())).map(str::to_owned).collect()
}

#[test]
fn a_recording_is_described_by_its_numbers() {
    let bench = Bench::new();
    // b does not vary, d is twice a, e has an outlier, and two numbers are missing.
    let mut text = String::from("a,b,c,d,e\n");
    for i in 0..200 {
        let (a, c) = (f64::from(i * 7919 % 101), f64::from(i * 104_729 % 97));
        let e = if i == 120 { 1e4 } else { c - a };
        let c = if i == 3 { "nan".to_owned() } else { c.to_string() };
        let first = if i == 9 { String::new() } else { a.to_string() };
        writeln!(text, "{first},7,{c},{},{e}", 2.0 * a).expect("room");
    }
    let file = bench.write("odd.csv", &text);
    let report = json(&inspect(&[&file], &["--json", "--sample-rate", "50"]));
    assert_eq!(report["kind"], "recording");
    assert_eq!(
        (&report["rows"], &report["bad_rows"], &report["seconds"]),
        (&200.into(), &2.into(), &4.0.into())
    );
    let usable: Vec<f64> = (0..200).filter(|i| *i != 9).map(|i| f64::from(i * 7919 % 101)).collect();
    let mean = usable.iter().sum::<f64>() / 199.0;
    let sd = (usable.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 199.0).sqrt();
    let channel = |i: usize, what: &str| report["channels"][i][what].as_f64().expect("a number");
    assert!((channel(0, "mean") - mean).abs() < 1e-9 && (channel(0, "sd") - sd).abs() < 1e-9);
    assert_eq!((channel(0, "min"), channel(0, "max"), channel(0, "bad")), (0.0, 100.0, 1.0));
    assert_eq!((channel(1, "sd"), channel(4, "max")), (0.0, 1e4));
    assert_eq!(report["duplicates"], serde_json::json!([[0, 3]]));

    let words = said(&inspect(&[&file], &[]));
    for line in [
        "rows          200, 2 of them bad",
        "! channel 1 (b) does not vary",
        "! channel 3 (d) carries the same signal as channel 0 (a)",
        "! channel 4 (e) reaches 14.1 standard deviations",
    ] {
        assert!(words.contains(line), "{line}: {words}");
    }
}

#[test]
fn a_long_table_is_shortened_unless_all_of_it_is_asked_for() {
    let bench = Bench::new();
    let numbers: Vec<f64> = (0..50 * 60).map(|i| f64::from(i * 7919 % 1013)).collect();
    let array = Npy { dtype: "<f8", fortran_order: false, shape: vec![60, 50], numbers };
    let file = bench.write("wide.npy", array.bytes());
    let words = said(&inspect(&[&file], &[]));
    assert!(words.contains("... 10 more channels; --all shows them"), "{words}");
    assert!(words.contains("! 60 usable rows: a covariance of 50 channels needs 500 or more"), "{words}");
    let lines =
        |words: &str| words.lines().filter(|line| line.trim_start().starts_with(char::is_numeric)).count();
    assert_eq!((lines(&words), lines(&said(&inspect(&[&file], &["--all"])))), (40, 50));
}

#[test]
fn a_model_is_described_and_drawn_and_not_changed() {
    let bench = Bench::new();
    let [model, _] = fitted(&bench);
    let bytes = std::fs::read(&model).expect("a model");
    let words = said(&inspect(&[&model], &[]));
    for line in [
        "of 3 channels, in double precision",
        "left, middle, right",
        "the samples show how long to remember",
        "0 seen",
    ] {
        assert!(words.contains(line), "{line}: {words}");
    }
    let opened: Model = Model::from_bytes(&bytes).expect("a model");
    let whitener = opened.whitener.single().expect("one group");
    let report = json(&inspect(&[&model], &["--json"]));
    let numbers = |list: &Value| -> Vec<f64> {
        list.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
    };
    assert_eq!(numbers(&report["groups"][0]["gains"]), whitener.gains().expect("gains"));
    assert_eq!(numbers(&report["groups"][0]["prior"]["mean"]), whitener.prior().expect("a prior").mean);
    assert_eq!(report["groups"][0]["settings"]["floor"], 1e-3);
    let status = &report["groups"][0]["status"];
    assert_eq!((&status["started"], &status["last_change"]), (&true.into(), &Value::Null));
    let expected = whitener.clone().status();
    assert_eq!(status["rows_in_force"], expected.rows_in_force);
    assert_eq!(status["excess"], serde_json::json!(expected.excess));
    let memories = status["memories"].as_array().expect("a list");
    let weight =
        |memory: &Value| ["plain", "trend", "gain"].map(|part| memory[part].as_f64().expect("a weight"));
    let weights: Vec<_> = memories.iter().map(weight).collect();
    assert_eq!(
        weights,
        expected.memories.iter().map(|own| [own.plain, own.trend, own.gain]).collect::<Vec<_>>()
    );
    assert!((weights.iter().flatten().sum::<f64>() - 1.0).abs() < 1e-9, "{weights:?}");
    assert!(
        memories.last().expect("a memory")["length"].is_null(),
        "the one since the last change: {memories:?}"
    );

    let [svg, png] = ["model.svg", "model.png"].map(|name| {
        let picture = bench.path(name);
        said(&inspect(&[&model], &["--picture", picture.to_str().expect("a path")]));
        std::fs::read(picture).expect("a picture")
    });
    let svg = String::from_utf8(svg).expect("text");
    assert_eq!(parts(&svg, "panel"), ["A", "B", "C", "D", "E"]);
    assert_eq!(parts(&svg, "series"), ["prior", "gains"]);
    assert!(svg.contains(">middle<") && !svg.contains("NaN"), "the channels are named");
    assert!(Pixmap::decode_png(&png).expect("a PNG").width() == 1800);
    assert!(std::fs::read(&model).expect("a model") == bytes, "looking changes nothing");
}

#[test]
fn what_a_model_makes_of_a_recording_is_drawn() {
    let bench = Bench::new();
    let [model, day] = fitted(&bench);
    let picture = bench.path("adaptation.svg");
    let flags = ["--label", "state", "--json", "--picture", picture.to_str().expect("a path")];
    let report = json(&inspect(&[&model, &day], &flags));
    assert_eq!(report["groups"][0]["status"]["samples"]["seen"], 1300);
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    assert_eq!(parts(&svg, "panel"), ["A", "B", "C", "D", "E"]);
    let mut series = parts(&svg, "series");
    series.sort_unstable();
    let expected = ["adapting", "gain 0", "gain 1", "gain 2", "held fixed", "level of white responses"];
    assert_eq!(series, expected);
    assert!(svg.contains(">samples<") && !svg.contains("NaN"));
    let timed = [&flags[..], &["--sample-rate", "100"]].concat();
    said(&inspect(&[&model, &day], &timed));
    assert!(std::fs::read_to_string(&picture).expect("a picture").contains(">time (s)<"));
}

#[test]
fn what_will_not_do_is_told_apart_and_draws_nothing() {
    let bench = Bench::new();
    let [model, day] = fitted(&bench);
    let stack = bench.write("covs.npy", Npy::stack(&covariances(2, 3)).bytes());
    let bytes = std::fs::read(&model).expect("a model");
    let cut = bench.write("cut.safetensors", &bytes[..bytes.len() - 9]);
    let other = bench.write("other.csv", "a,b\n1,2\n");
    let renamed = bench.write("renamed.csv", "left,right,middle\n1,2,3\n");
    let picture = bench.path("p.png");
    let picture = picture.to_str().expect("a path");
    let cases: [(Vec<&Path>, Vec<&str>, i32, &str); 9] = [
        (vec![&day], vec!["--picture", picture, "--label", "state"], 2, "expected a model"),
        (vec![&day, &day], vec!["--label", "state"], 2, "expected a model"),
        (vec![&model], vec!["--picture", "p.gif"], 2, "expected the name of a .png or .svg file"),
        (vec![&model], vec!["--sample-rate", "9"], 2, "but only a model was given"),
        (vec![&stack], vec![], 2, "is a stack of covariances"),
        (vec![&cut], vec!["--picture", picture], 1, "cut.safetensors"),
        (vec![Path::new("nowhere.csv")], vec![], 1, "recording nowhere.csv"),
        (vec![&model, &other], vec!["--picture", picture], 1, "expected the model's 3 channels, got 2"),
        (
            vec![&model, &renamed],
            vec!["--picture", picture],
            1,
            "expected channel 1 to be \"middle\" as in the model",
        ),
    ];
    for (files, flags, code, says) in cases {
        let output = inspect(&files, &flags);
        assert_eq!(output.status.code(), Some(code), "{files:?} {flags:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "expected {says:?} in {}", stderr(&output));
    }
    assert!(!bench.path("p.png").exists());
}
