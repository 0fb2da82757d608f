//! Tests that `whiten --reversible` can be undone from every kind of output, and that nothing else pretends to be.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

use std::path::Path;

use leukos_lab::recording::{Rows, SampleType};

use crate::bench::{Bench, leukos, stderr};
use crate::whiten::{model, read_recording, stimuli, whiten, whitened, write_model, write_recording};

/// So many rows, or as many as `./check --long` asks for.
fn rows() -> usize {
    std::env::var("LEUKOS_LONG_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(20_000)
}

/// A recording with a stretch three times as large, in which 16 bits are too few at a scale of 4000.
fn recording(rows: usize) -> Vec<f64> {
    let large = rows / 2..rows / 2 + 30;
    let scale = |i: usize| if large.contains(&(i / 3)) { 3.0 } else { 1.0 };
    stimuli(rows, 5).into_iter().enumerate().map(|(i, s)| (s * scale(i)).clamp(-32000.0, 32000.0)).collect()
}

struct Case {
    out: &'static str,
    sample_type: SampleType,
    /// What undoing needs to be told of the file.
    more: &'static [&'static str],
}

const CASES: [Case; 7] = [
    Case { out: "w.npy", sample_type: SampleType::Int16, more: &[] },
    Case { out: "w.raw", sample_type: SampleType::Int16, more: &["--channels", "3", "--dtype", "int16"] },
    Case { out: "w.csv", sample_type: SampleType::Int16, more: &["--scale", "200"] },
    Case { out: "w.npy", sample_type: SampleType::Int32, more: &[] },
    Case { out: "w.npy", sample_type: SampleType::Float32, more: &[] },
    Case { out: "w.csv", sample_type: SampleType::Float32, more: &[] },
    Case { out: "w.npy", sample_type: SampleType::Float64, more: &[] },
];

impl Case {
    /// The responses that a reader of the output has, and by how much each was rounded at most.
    fn responses(&self, path: &Path) -> (Vec<f64>, fn(f64) -> f64) {
        let text = path.extension().is_some_and(|ending| ending == "csv");
        let written = read_recording(path, if text { SampleType::Float64 } else { self.sample_type });
        let scaled = |scale: f64| written.iter().map(|r| r * (1.0 / scale)).collect();
        match self.sample_type {
            SampleType::Int16 => (scaled(200.0), |_| 0.5 / 200.0),
            SampleType::Int32 => (scaled(1e6), |_| 0.5 / 1e6),
            // The digits of a text are any that lie nearer to this single than to another.
            SampleType::Float32 if text => (written, |r| r.abs() * 2.0_f64.powi(-23)),
            SampleType::Float32 => (written, |r| r.abs() * 2.0_f64.powi(-24)),
            SampleType::Float64 => (written, |_| 0.0),
        }
    }
}

/// Requires that every stimulus came back within what the rounding of its row becomes under the matrix that was in force,
/// which a whitener of the library follows.
fn assert_within_rounding(responses: &[f64], most: fn(f64) -> f64, back: &[f64], values: &[f64], case: &str) {
    let mut model = model();
    let rows = responses.chunks_exact(3).zip(back.chunks_exact(3).zip(values.chunks_exact(3)));
    for (row, (responses, (back, values))) in rows.enumerate() {
        let matrix = model.whitener.dewhitening_matrix().unwrap();
        let mut undone = [0.0; 3];
        model.whitener.unwhiten(responses, &mut undone).unwrap();
        assert_eq!(undone, back, "{case}, row {row}: as the library undoes it");
        for (i, (back, value)) in back.iter().zip(values).enumerate() {
            let rounding: f64 = (0..3).map(|j| matrix[(i, j)].abs() * most(responses[j])).sum();
            let difference = (back - value).abs();
            assert!(
                difference <= rounding + 1e-9 * (1.0 + value.abs()),
                "{case}, row {row}: {difference} > {rounding}"
            );
        }
    }
}

#[test]
fn every_kind_of_output_comes_back() {
    let values = recording(rows());
    for (input, input_type) in [("in.npy", SampleType::Int16), ("in.csv", SampleType::Float64)] {
        let bench = Bench::new();
        write_model(&bench);
        let rows = Rows { values: values.clone(), labels: Vec::new() };
        write_recording(&bench.path(input), input_type, &rows, None);
        for case in CASES {
            let kind = case.sample_type.to_string();
            let forth = ["--reversible", "--out-dtype", &kind];
            whitened(&bench, &bench.path(input), case.out, &forth);
            let back = [&["--inverse", "--reversible", "--out-dtype", "float64"], case.more].concat();
            whitened(&bench, &bench.path(case.out), "back.npy", &back);
            let back = read_recording(&bench.path("back.npy"), SampleType::Float64);
            assert_eq!(back.len(), values.len());
            let (responses, most) = case.responses(&bench.path(case.out));
            let name = format!("{input} as {kind} in {}", case.out);
            assert_within_rounding(&responses, most, &back, &values, &name);
        }
    }
}

/// Where numbers are clipped they cannot come back; all others do, and later ones too.
#[test]
fn what_was_clipped_is_all_that_is_lost() {
    let (bench, values) = (Bench::new(), recording(6000));
    write_model(&bench);
    write_recording(
        &bench.path("in.npy"),
        SampleType::Int16,
        &Rows { values: values.clone(), labels: Vec::new() },
        None,
    );
    let scale = ["--reversible", "--scale", "4000"];
    let said = whitened(&bench, &bench.path("in.npy"), "w.npy", &scale);
    assert!(
        stderr(&said).contains("numbers were too large for the output and were clipped"),
        "{}",
        stderr(&said)
    );
    let back = [&scale[..], &["--inverse", "--out-dtype", "float64"]].concat();
    whitened(&bench, &bench.path("w.npy"), "back.npy", &back);
    let written = read_recording(&bench.path("w.npy"), SampleType::Int16);
    let back = read_recording(&bench.path("back.npy"), SampleType::Float64);
    let rows = written.chunks_exact(3).zip(back.chunks_exact(3).zip(values.chunks_exact(3)));
    let mut clipped = 0;
    for (written, (back, values)) in rows {
        if written.iter().any(|r| *r == f64::from(i16::MAX) || *r == f64::from(i16::MIN)) {
            clipped += 1;
            continue;
        }
        let farthest = back.iter().zip(values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(farthest <= 0.5 / 4000.0 * 1000.0, "{farthest}");
    }
    assert!((1..1000).contains(&clipped), "{clipped}");
}

#[test]
fn an_adapting_run_is_not_undone_from_rounded_numbers() {
    let bench = Bench::new();
    write_model(&bench);
    let rows = Rows { values: stimuli(500, 5), labels: Vec::new() };
    write_recording(&bench.path("in.npy"), SampleType::Int16, &rows, None);
    for out in ["w.npy", "w.csv"] {
        whitened(&bench, &bench.path("in.npy"), out, &[]);
        let output = whiten(&bench, &bench.path(out), "back.npy", &["--inverse"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("`whiten --reversible`"), "{}", stderr(&output));
        assert!(!bench.path("back.npy").exists());
    }
    // With the model as it stands there is nothing to learn, and rounding is all that is lost.
    whitened(&bench, &bench.path("in.npy"), "w.npy", &["--frozen"]);
    whitened(&bench, &bench.path("w.npy"), "back.npy", &["--frozen", "--inverse"]);
    let output = leukos().args(["whiten", "--help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("--reversible"));
    let output = whiten(&bench, &bench.path("in.npy"), "w.npy", &["--frozen", "--reversible"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
