//! Tests `leukos whiten` with real files and pipes: what comes out, and what is said of what cannot.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use leukos::contexts::stream;
use leukos::{Model, Moments, Real, Span, WhitenerSettings, WhitenerTraining};
use leukos_lab::recording::{Format, OutputShape, ReadOptions, Rows, SampleType, Sink, Source, open, writer};
use rand_distr::{Distribution, StandardNormal};

use crate::bench::{Bench, leukos, stderr};

pub const CHANNELS: usize = 3;

/// Correlated rows with an offset, in units in which whole numbers are fine enough (and without a negative zero).
pub fn stimuli(rows: usize, seed: u64) -> Vec<f64> {
    let mut rng = stream(seed, 0);
    let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
    let row = |[a, b, c]: [f64; 3]| {
        [400.0 + 100.0 * a, 90.0 * a + 40.0 * b, 20.0 * c - 60.0 * b].map(|s| s.round() + 0.0)
    };
    (0..rows).flat_map(|_| row([draw(), draw(), draw()])).collect()
}

/// A model fitted to such rows.
pub fn model() -> Model<f64> {
    let mut moments = vec![Moments::new(CHANNELS), Moments::new(CHANNELS)];
    moments[0].update(&stimuli(500, 1)).unwrap();
    moments[1].update(&stimuli(500, 2).iter().map(|s| s * 1.5).collect::<Vec<_>>()).unwrap();
    let settings =
        WhitenerSettings { time_constant: Some(Span::Samples(200.0)), ..WhitenerSettings::default() };
    let training = WhitenerTraining { moments, ..WhitenerTraining::default() };
    let whitener = training.fit(settings, &mut stream(0, 0), |_| ControlFlow::Continue(())).unwrap();
    Model::from(whitener)
}

pub fn write_model(bench: &Bench) -> PathBuf {
    bench.write("model.safetensors", model().to_bytes().unwrap())
}

pub fn write_recording(path: &Path, sample_type: SampleType, rows: &Rows, names: Option<&[&str]>) {
    let shape = OutputShape {
        format: Format::of_name(path).unwrap(),
        channels: CHANNELS,
        names: names.map(|names| names.iter().map(ToString::to_string).collect()),
        label: (!rows.labels.is_empty()).then(|| "state".into()),
        sample_type,
        rows: None,
        scale: 1.0,
    };
    let mut writer = writer(Sink::File(fs::File::create(path).unwrap()), &shape).unwrap();
    writer.write(rows).unwrap();
    writer.finish().unwrap();
}

pub fn read_recording(path: &Path, sample_type: SampleType) -> Vec<f64> {
    let raw = Format::of_name(path).unwrap() == Format::Raw;
    let options = ReadOptions {
        channels: raw.then_some(CHANNELS),
        sample_type: raw.then_some(sample_type),
        ..ReadOptions::default()
    };
    let mut reader = open(&Source::File(path.into()), &options).unwrap();
    assert!(raw || reader.layout().sample_type == sample_type, "{:?}", reader.layout());
    let mut rows = Rows::default();
    reader.read(2_000_000, &mut rows).unwrap();
    rows.values
}

fn plain(values: Vec<f64>) -> Rows {
    Rows { values, labels: Vec::new() }
}

/// `leukos whiten MODEL INPUT --out OUTPUT` and more.
pub fn whiten(bench: &Bench, input: &Path, out: &str, more: &[&str]) -> Output {
    let model = bench.path("model.safetensors");
    leukos()
        .arg("whiten")
        .arg(model)
        .arg(input)
        .arg("--out")
        .arg(bench.path(out))
        .args(more)
        .output()
        .unwrap()
}

pub fn whitened(bench: &Bench, input: &Path, out: &str, more: &[&str]) -> Output {
    let output = whiten(bench, input, out, more);
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// What the library makes of it in one call.
fn by_library<T: Real>(values: &[f64]) -> Vec<f64> {
    let mut model: Model<T> = Model::from_bytes(&model().to_bytes().unwrap()).unwrap();
    let stimuli: Vec<T> = values.iter().map(|&s| T::from_f64(s)).collect();
    let mut responses = vec![T::ZERO; stimuli.len()];
    model.whitener.whiten(&stimuli, &mut responses).unwrap();
    responses.iter().map(|r| r.to_f64()).collect()
}

fn assert_same_bits(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let differ = found.iter().zip(expected).position(|(a, b)| a.to_bits() != b.to_bits());
    assert_eq!(differ, None, "first difference");
}

#[test]
fn the_command_line_and_the_library_agree_to_the_last_bit() {
    let bench = Bench::new();
    write_model(&bench);
    // More than one block of the program, and not a whole number of them.
    let values = stimuli(25_001, 3);
    for (name, sample_type) in [
        ("in.npy", SampleType::Float64),
        ("in.csv", SampleType::Float64),
        ("single.npy", SampleType::Float32),
    ] {
        let input = bench.path(name);
        write_recording(&input, sample_type, &plain(values.clone()), None);
        let out = format!("out-{name}");
        whitened(&bench, &input, &out, &[]);
        let expected = if sample_type == SampleType::Float32 {
            by_library::<f32>(&values)
        } else {
            by_library::<f64>(&values)
        };
        assert_same_bits(&read_recording(&bench.path(&out), sample_type), &expected);
        assert!(!bench.path(&format!("{out}.partial")).exists());
    }
}

#[test]
fn whole_numbers_are_scaled_rounded_and_clipped_with_a_count() {
    let bench = Bench::new();
    write_model(&bench);
    let mut values = stimuli(3000, 4);
    values[300] = 30_000.0;
    let input = bench.path("in.raw");
    write_recording(&input, SampleType::Int16, &plain(values.clone()), None);
    let flags = ["--channels", "3", "--dtype", "int16"];
    let output = whitened(&bench, &input, "out.raw", &flags);
    let expected = by_library::<f32>(&values);
    // Whole numbers have one zero.
    let scaled = |scale: f64, limit: f64| -> Vec<f64> {
        expected.iter().map(|r| (r * scale).round_ties_even().clamp(-limit - 1.0, limit) + 0.0).collect()
    };
    let limit = f64::from(i16::MAX);
    assert_same_bits(&read_recording(&bench.path("out.raw"), SampleType::Int16), &scaled(200.0, limit));
    let clipped = expected.iter().filter(|r| (*r * 200.0).abs() > limit).count();
    assert!(
        clipped > 0 && stderr(&output).contains(&format!("{clipped} numbers were too large")),
        "{}",
        stderr(&output)
    );
    let coarse = [&flags[..], &["--scale", "10", "--out-dtype", "int32"]].concat();
    whitened(&bench, &input, "out.npy", &coarse);
    assert_same_bits(
        &read_recording(&bench.path("out.npy"), SampleType::Int32),
        &scaled(10.0, f64::from(i32::MAX)),
    );
}

#[test]
fn a_recording_comes_back_from_its_responses() {
    let bench = Bench::new();
    write_model(&bench);
    let values = stimuli(4000, 5);
    let input = bench.path("in.csv");
    write_recording(&input, SampleType::Float64, &plain(values.clone()), Some(&["a", "b", "c"]));
    for (mode, case) in
        [(&[][..], "adapting"), (&["--frozen"][..], "frozen"), (&["--strength", "0.5"][..], "half")]
    {
        whitened(&bench, &input, "white.csv", mode);
        let inverse = [mode, &["--inverse"]].concat();
        whitened(&bench, &bench.path("white.csv"), "back.csv", &inverse);
        let back = read_recording(&bench.path("back.csv"), SampleType::Float64);
        let farthest = back.iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(back.len() == values.len() && farthest < 1e-6, "{case}: {farthest}");
    }
    // Whole responses come back from their scale, to what rounding leaves of them.
    write_recording(&bench.path("in.raw"), SampleType::Int32, &plain(values.clone()), None);
    let raw = ["--channels", "3", "--dtype", "int32"];
    let raw = [&raw[..], &["--reversible"]].concat();
    whitened(&bench, &bench.path("in.raw"), "white.raw", &raw);
    whitened(&bench, &bench.path("white.raw"), "back.raw", &[&raw[..], &["--inverse"]].concat());
    assert_same_bits(&read_recording(&bench.path("back.raw"), SampleType::Int32), &values);
}

#[test]
fn labels_are_carried_along_and_a_new_one_begins_a_context() {
    let bench = Bench::new();
    write_model(&bench);
    let values = stimuli(2000, 6);
    let labels: Vec<String> =
        (0..2000).map(|row| if row < 900 { "rest" } else { "walk" }.to_owned()).collect();
    let input = bench.path("in.csv");
    write_recording(
        &input,
        SampleType::Float64,
        &Rows { values: values.clone(), labels },
        Some(&["a", "b", "c"]),
    );
    whitened(&bench, &input, "out.csv", &["--label", "state"]);
    let options = ReadOptions { label: Some("state".into()), ..ReadOptions::default() };
    let mut reader = open(&Source::File(bench.path("out.csv")), &options).unwrap();
    let mut rows = Rows::default();
    reader.read(10_000, &mut rows).unwrap();
    assert_eq!((rows.labels[899].as_str(), rows.labels[900].as_str()), ("rest", "walk"));
    let mut model = model();
    let mut expected = vec![0.0; values.len()];
    let (first, second) = expected.split_at_mut(900 * CHANNELS);
    model.whitener.whiten(&values[..900 * CHANNELS], first).unwrap();
    model.whitener.begin_context();
    model.whitener.whiten(&values[900 * CHANNELS..], second).unwrap();
    assert_same_bits(&rows.values, &expected);
}

#[test]
fn bad_samples_keep_their_rows() {
    let bench = Bench::new();
    write_model(&bench);
    let mut values = stimuli(500, 7);
    values[40 * CHANNELS + 1] = f64::NAN;
    let input = bench.path("in.csv");
    write_recording(&input, SampleType::Float64, &plain(values), Some(&["a", "b", "c"]));
    for mode in [&[][..], &["--frozen"]] {
        let rows = |choice: &str| {
            let output = whitened(&bench, &input, "out.csv", &[mode, &["--bad-samples", choice]].concat());
            assert!(stderr(&output).contains("1 of them from bad samples"), "{}", stderr(&output));
            let values = read_recording(&bench.path("out.csv"), SampleType::Float64);
            assert_eq!(values.len(), 500 * CHANNELS);
            [39, 40].map(|row| values[row * CHANNELS..(row + 1) * CHANNELS].to_vec())
        };
        assert!(rows("mark")[1].iter().all(|r| r.is_nan()));
        let [before, held] = rows("hold");
        assert_eq!(held, before);
        assert_eq!(rows("zero")[1], [0.0; CHANNELS]);
        let output = whiten(&bench, &input, "stopped.csv", &[mode, &["--bad-samples", "error"]].concat());
        assert_eq!(output.status.code(), Some(1));
        let message = stderr(&output);
        assert!(
            message.contains("in.csv: row 40, channel 1 (b): expected a usable number, got NaN"),
            "{message}"
        );
        assert!(!bench.path("stopped.csv").exists() && !bench.path("stopped.csv.partial").exists());
    }
}

#[test]
fn matrices_are_exported() {
    let bench = Bench::new();
    write_model(&bench);
    let input = bench.path("in.npy");
    write_recording(&input, SampleType::Float64, &plain(stimuli(500, 8)), None);
    let folder = bench.path("matrices");
    whitened(&bench, &input, "out.npy", &["--frozen", "--export-matrix", folder.to_str().unwrap()]);
    let matrix = read_recording(&folder.join("whitening_mat.npy"), SampleType::Float64);
    let inverse = read_recording(&folder.join("whitening_mat_inv.npy"), SampleType::Float64);
    let expected = model().whitener.whitening_matrix().unwrap();
    let product =
        |i: usize, j: usize| -> f64 { (0..3).map(|k| matrix[3 * i + k] * inverse[3 * k + j]).sum() };
    for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
        assert_eq!(matrix[3 * i + j].to_bits(), expected[(i, j)].to_bits());
        assert!((product(i, j) - f64::from(u8::from(i == j))).abs() < 1e-9);
    }
}

#[test]
fn a_model_for_something_else_is_refused_by_name() {
    let bench = Bench::new();
    let mut named = model();
    named.channel_names = Some(["a", "b", "c"].map(String::from).to_vec());
    bench.write("model.safetensors", named.to_bytes().unwrap());
    for (text, problem) in [
        ("1,2\n3,4\n", "expected the model's 3 channels, got 2"),
        ("a,x,c\n1,2,3\n", "expected channel 1 to be \"b\" as in the model, got \"x\""),
    ] {
        let output = whiten(&bench, &bench.write("in.csv", text), "out.csv", &[]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(
            message.contains(problem) && message.contains("model.safetensors") && message.contains("in.csv"),
            "{message}"
        );
        assert!(!bench.path("out.csv").exists() && !bench.path("out.csv.partial").exists());
    }
    let timed = WhitenerSettings { sample_rate: Some(250.0), ..WhitenerSettings::default() };
    let whitener = leukos::Whitener::<f64>::new(leukos::Matrix::identity(3), timed).unwrap();
    bench.write("model.safetensors", Model::from(whitener).to_bytes().unwrap());
    let output = whiten(&bench, &bench.write("in.csv", "1,2,3\n"), "out.csv", &["--sample-rate", "500"]);
    assert!(stderr(&output).contains("expected a sample rate of 250 Hz"), "{}", stderr(&output));
    bench.write("model.safetensors", "nonsense");
    let output = whiten(&bench, &bench.path("in.csv"), "out.csv", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("model.safetensors"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_is_told_from_bad_data() {
    let bench = Bench::new();
    write_model(&bench);
    let input = bench.write("in.csv", "1,2,3\n4,5,7\n");
    let [state, model, input_word, out] = ["state", "model.safetensors", "in.csv", "out.csv"]
        .map(|name| bench.path(name).to_str().unwrap().to_owned());
    let whole = fs::read(&model).unwrap();
    for (input, out, more, problem) in [
        (input.as_path(), "in.csv", &[][..], "--out: expected a different file from the input"),
        (
            &input,
            "model.safetensors",
            &["--out-format", "csv"],
            "--out: expected a different file from the model",
        ),
        (
            &input,
            "out.csv",
            &["--checkpoint", &model],
            "--checkpoint: expected a different file from the model",
        ),
        (
            &input,
            "out.csv",
            &["--checkpoint", &input_word],
            "--checkpoint: expected a different file from the input",
        ),
        (&input, "out.csv", &["--checkpoint", &out], "--checkpoint: expected a different file from --out"),
        (&input, "out.xyz", &[], "--out-format"),
        (&input, "out.edf", &[], "got edf, which leukos only reads"),
        (&input, "out.csv", &["--resume"], "--checkpoint"),
        (&input, "out.csv", &["--strength", "2"], "--strength: expected a number from 0 to 1"),
        (&input, "out.csv", &["--scale", "0", "--out-dtype", "int16"], "--scale"),
        (&input, "out.csv", &["--inverse", "--bad-samples", "hold"], "--bad-samples: expected mark or error"),
        (&input, "out.csv", &["--every", "0", "--checkpoint", &state], "--every"),
        (
            Path::new("-"),
            "out.csv",
            &["--format", "csv", "--checkpoint", &state],
            "--checkpoint: expected plain files",
        ),
        (
            Path::new("-"),
            "out.csv",
            &["--format", "csv", "--checkpoint", &state, "--resume"],
            "--resume: expected plain files",
        ),
        (Path::new("-"), "out.csv", &[], "--format"),
    ] {
        let output = whiten(&bench, input, out, more);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(problem), "{more:?}: {}", stderr(&output));
    }
    assert_eq!(fs::read_to_string(&input).unwrap(), "1,2,3\n4,5,7\n");
    assert!(fs::read(&model).unwrap() == whole);
    assert!(!bench.path("out.csv.partial").exists());
}

#[test]
fn pipes_work_on_both_sides() {
    let bench = Bench::new();
    let model = write_model(&bench);
    let values = stimuli(30_000, 9);
    let bytes: Vec<u8> = values.iter().flat_map(|&s| (s as f32).to_le_bytes()).collect();
    let raw = ["--format", "raw", "--channels", "3", "--dtype", "float32", "--out", "-", "--quiet"];
    let start = || {
        let mut call = leukos();
        call.arg("whiten").arg(&model).arg("-").args(raw);
        call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = start();
    let (mut stdin, input) = (child.stdin.take().unwrap(), bytes.clone());
    let feeder = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    let found: Vec<f64> =
        output.stdout.as_chunks().0.iter().map(|&x| f64::from(f32::from_le_bytes(x))).collect();
    assert_same_bits(&found, &by_library::<f32>(&values));

    // Whoever reads closes early: no failure.
    let mut child = start();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let feeder = std::thread::spawn(move || while stdin.write_all(&bytes).is_ok() {});
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_said() {
    let bench = Bench::new();
    let model = write_model(&bench);
    let input = bench.path("in.npy");
    write_recording(&input, SampleType::Float64, &plain(stimuli(30_000, 10)), None);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output =
        leukos().arg("whiten").arg(model).arg(input).args(["--out", "-"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("standard output") && stderr(&output).contains("No space"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn damaged_input_leaves_no_output() {
    let bench = Bench::new();
    write_model(&bench);
    let rows = (0..9000).map(|row| format!("{row},{},{}\n", row * 7 % 13, row * 5 % 11));
    let text: String = std::iter::once("a,b,c\n".to_owned()).chain(rows).collect();
    for (bad, problem) in [("1,2\n", "line 9002"), ("a,b,c\n", "line 9002"), ("1,2,three\n", "three")] {
        let input = bench.write("in.csv", format!("{text}{bad}1,2,3\n"));
        let output = whiten(&bench, &input, "out.csv", &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).contains(problem) && stderr(&output).contains("in.csv"),
            "{}",
            stderr(&output)
        );
        assert!(!bench.path("out.csv").exists() && !bench.path("out.csv.partial").exists());
    }
}
