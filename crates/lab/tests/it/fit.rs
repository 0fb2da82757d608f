//! Tests `leukos fit`: the bits of the library whatever the contexts come from, config files, and nothing left after a failure.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use leukos::contexts::stream;
use leukos::{Matrix, Model, Moments, Span, TrainingSynapses, Whitener, WhitenerSettings, WhitenerTraining};
use leukos_lab::data::{matrix_bytes, read_stack};

use crate::bench::{Bench, Npy, covariances, leukos, stderr};

const NAMES: [&str; 3] = ["left", "middle", "right"];

/// Rows of three channels, a little different in each context and far from zero.
pub fn rows(context: u32, count: u32) -> Vec<[f64; 3]> {
    let noise = |i: u32, k: u32| f64::from((i * 7919 + k * 104_729 + context * 31) % 1009) / 1009.0 - 0.5;
    let strength = f64::from(context + 1);
    let row =
        |i| [40.0 + noise(i, 1) * strength, noise(i, 2) + 0.6 * noise(i, 1), 3.0 * noise(i, 3) / strength];
    (0..count).map(row).collect()
}

/// A table with a header; a label column where there are labels.
pub fn csv(rows: &[[f64; 3]], labels: Option<&[&str]>) -> String {
    let mut text = NAMES.join(",") + if labels.is_some() { ",state\n" } else { "\n" };
    for (i, [a, b, c]) in rows.iter().enumerate() {
        let label = labels.map_or(String::new(), |labels| format!(",{}", labels[i]));
        writeln!(text, "{a},{b},{c}{label}").expect("room");
    }
    text
}

pub fn moments(rows: &[[f64; 3]]) -> Moments {
    let mut moments = Moments::new(3);
    moments.update(rows.as_flattened()).expect("whole rows");
    moments
}

/// What the library makes of contexts with these settings.
fn fitted(moments: Vec<Moments>, settings: WhitenerSettings, synapses: TrainingSynapses) -> Model {
    let training = WhitenerTraining { moments, synapses, ..WhitenerTraining::default() };
    let watch = |_| ControlFlow::Continue(());
    let whitener: Whitener = training.fit(settings, &mut stream(0, 0), watch).expect("a whitener");
    let mut model = Model::from(whitener);
    model.channel_names = Some(NAMES.map(String::from).to_vec());
    model
}

fn usual(moments: Vec<Moments>) -> Vec<u8> {
    let model = fitted(moments, WhitenerSettings::default(), TrainingSynapses::Eigenbasis);
    model.to_bytes().expect("bytes")
}

/// `leukos fit INPUTS --out model` with these further arguments.
fn fit(bench: &Bench, inputs: &[&Path], arguments: &[&str]) -> Output {
    let mut call = leukos();
    call.arg("fit").args(inputs).arg("--out").arg(bench.path("model")).args(arguments);
    call.output().expect("the program starts")
}

/// The bytes of the model that was fitted.
fn model(bench: &Bench, inputs: &[&Path], arguments: &[&str]) -> Vec<u8> {
    let output = fit(bench, inputs, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    std::fs::read(bench.path("model")).expect("a model")
}

/// The call fails with this code, says this, and leaves no file behind.
fn assert_fails(bench: &Bench, inputs: &[&Path], arguments: &[&str], (code, says): (i32, &str)) {
    let files = |bench: &Bench| std::fs::read_dir(bench.path("")).expect("a directory").count();
    let before = files(bench);
    let output = fit(bench, inputs, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(says), "{arguments:?}: expected {says:?} in {}", stderr(&output));
    assert_eq!(files(bench), before, "{arguments:?} left a file behind");
}

#[test]
fn contexts_by_file_by_label_and_from_a_pipe_have_the_bits_of_the_library() {
    let bench = Bench::new();
    let (rest, walk) = (rows(0, 700), rows(3, 600));
    let [a, b] = [("a.csv", &rest), ("b.csv", &walk)].map(|(name, rows)| bench.write(name, csv(rows, None)));
    let expected = usual(vec![moments(&rest), moments(&walk)]);
    assert!(model(&bench, &[&a, &b], &[]) == expected, "by file");

    // Rest is interrupted by walking, and rows without a label belong to nothing.
    let mixed = [&rest[..300], &walk[..], &rows(9, 5), &rest[300..]].concat();
    let labels = [vec!["rest"; 300], vec!["walk"; 600], vec![""; 5], vec!["rest"; 400]].concat();
    let mixed = bench.write("mixed.csv", csv(&mixed, Some(&labels)));
    let output = fit(&bench, &[&mixed], &["--label", "state"]);
    assert!(std::fs::read(bench.path("model")).expect("a model") == expected, "by label");
    assert!(stderr(&output).contains("1305, 5 without a label and left out"), "{}", stderr(&output));

    let mut child = leukos()
        .args(["fit", "-", "--format", "csv", "--quiet", "--out"])
        .arg(bench.path("piped"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    for part in csv(&rest, None).as_bytes().chunks(1000) {
        pipe.write_all(part).expect("it reads");
    }
    drop(pipe);
    assert!(child.wait().expect("it ends").success());
    assert!(
        std::fs::read(bench.path("piped")).expect("a model") == usual(vec![moments(&rest)]),
        "one context"
    );
}

#[test]
fn segments_have_the_bits_of_the_library_and_a_short_end_belongs_to_the_one_before() {
    let bench = Bench::new();
    let all = rows(1, 1250);
    let long = bench.write("long.csv", csv(&all, None));
    let parts = |ends: &[usize]| -> Vec<Moments> {
        ends.windows(2).map(|ends| moments(&all[ends[0]..ends[1]])).collect()
    };
    let expected = usual(parts(&[0, 500, 1000, 1250]));
    assert!(model(&bench, &[&long], &["--segment", "500"]) == expected, "half a segment is one");
    let seconds = ["--segment", "2s", "--sample-rate", "250"];
    let rated = WhitenerSettings { sample_rate: Some(250.0), ..WhitenerSettings::default() };
    let expected = fitted(parts(&[0, 500, 1000, 1250]), rated, TrainingSynapses::Eigenbasis);
    assert!(model(&bench, &[&long], &seconds) == expected.to_bytes().expect("bytes"), "in seconds");
    let expected = usual(parts(&[0, 504, 1250]));
    assert!(model(&bench, &[&long], &["--segment", "504"]) == expected, "242 rows are less than half of 504");
    let expected = usual(parts(&[0, 400, 800, 1250]));
    assert!(model(&bench, &[&long], &["--segment", "400"]) == expected, "50 rows are less than half of 400");
    assert!(model(&bench, &[&long], &["--segment", "9999"]) == usual(parts(&[0, 1250])), "one short segment");
}

#[test]
fn bad_saturated_and_wild_rows_are_counted_and_left_out() {
    let bench = Bench::new();
    let mut all = rows(1, 800);
    let (mut text, mut marked) = (csv(&all, None), all.clone());
    text = text.replacen(&format!("{},", all[300][0]), ",", 1);
    marked[300][0] = f64::NAN;
    all[500][2] = 5000.0;
    text = text.replacen(&format!(",{}\n", rows(1, 800)[500][2]), ",5000\n", 1);
    marked[500][2] = f64::NAN;
    let spoiled = bench.write("spoiled.csv", text);
    let output = fit(&bench, &[&spoiled], &["--saturation", "4000"]);
    let says = "samples       800, 2 of them bad or wild and left out";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    let settings = WhitenerSettings { saturation: Some(4000.0), ..WhitenerSettings::default() };
    let expected = fitted(vec![moments(&marked)], settings, TrainingSynapses::Eigenbasis);
    assert!(std::fs::read(bench.path("model")).expect("a model") == expected.to_bytes().expect("bytes"));
    let output = fit(&bench, &[&spoiled], &[]);
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert!(std::fs::read(bench.path("model")).expect("a model") == usual(vec![moments(&marked)]), "wild");
}

#[test]
fn a_stack_of_covariances_has_the_bits_of_the_library() {
    let bench = Bench::new();
    let given = covariances(4, 3);
    let stack = bench.write("covs.npy", Npy::stack(&given).bytes());
    let contexts = read_stack(&stack).expect("a stack").contexts;
    let moments = contexts.covariances().iter();
    let moments = moments.map(|covariance| Moments::of_covariance(covariance, 1).expect("moments")).collect();
    let mut expected = fitted(moments, WhitenerSettings::default(), TrainingSynapses::Eigenbasis);
    expected.channel_names = None;
    assert!(model(&bench, &[&stack], &[]) == expected.to_bytes().expect("bytes"));
    assert_fails(&bench, &[&stack], &["--label", "state"], (2, "stack of covariances"));
}

#[test]
fn contexts_of_a_recording_are_its_covariances_and_fit_takes_them() {
    let bench = Bench::new();
    let (rest, walk) = (rows(0, 700), rows(3, 600));
    let labels = [vec!["rest"; 700], vec!["walk"; 600]].concat();
    let day = bench.write("day.csv", csv(&[&rest[..], &walk].concat(), Some(&labels)));
    let make = |arguments: &[&str]| {
        let mut call = leukos();
        call.arg("contexts").arg(&day).arg("--out").arg(bench.path("covs.npy")).args(arguments);
        call.output().expect("the program starts")
    };
    let output = make(&["--label", "state"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("2 of 2 contexts kept"), "{}", stderr(&output));
    let stack = read_stack(&bench.path("covs.npy")).expect("a stack");
    let expected = [&rest, &walk].map(|rows| moments(rows).covariance().expect("a covariance"));
    assert_eq!(stack.contexts.covariances(), expected);
    let listing = std::fs::read_to_string(bench.path("covs.csv")).expect("a table");
    assert!(listing.contains("\nrest,0,") && listing.contains("\nwalk,1,"), "{listing}");
    let picture = std::fs::read_to_string(bench.path("covs.svg")).expect("a picture");
    assert!(picture.contains("data-series=\"walk\""));
    model(&bench, &[&bench.path("covs.npy")], &[]);

    assert_eq!(make(&[]).status.code(), Some(2), "neither labels nor segments");
    assert_eq!(make(&["--label", "state", "--patch", "3x3"]).status.code(), Some(2), "no patches here");
    let output = make(&["--label", "state", "--condition", "1.0001"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("condition number of 1.0001 or more"), "{}", stderr(&output));
}

#[test]
fn a_config_file_speaks_the_words_of_the_flags_which_win_and_is_kept_in_the_model() {
    let bench = Bench::new();
    let all = rows(1, 900);
    let day = bench.write("day.csv", csv(&all, None));
    let config = bench.write(
        "config.toml",
        "time_constant = \"2s\"\nsample_rate = 250\nstrength = 0.5\nfloor = 0.001\nbad_samples = \"hold\"\nsegment = 300\n",
    );
    let config = ["--config", config.to_str().expect("a path"), "--strength", "0.8"];
    let settings = WhitenerSettings {
        time_constant: Some(Span::Seconds(2.0)),
        sample_rate: Some(250.0),
        strength: 0.8,
        bad_samples: leukos::BadSamples::Hold,
        ..WhitenerSettings::default()
    };
    let parts = all.chunks(300).map(moments).collect();
    let mut expected = fitted(parts, settings, TrainingSynapses::Eigenbasis);
    // In the order of the alphabet, and without the floor, which is the usual one.
    let echo = "bad_samples = \"hold\"\nsample_rate = 250.0\nsegment = 300.0\nstrength = 0.8\ntime_constant = \"2s\"\n";
    expected.notes.insert("config".into(), echo.into());
    let found: Model = Model::from_bytes(&model(&bench, &[&day], &config)).expect("a model");
    assert_eq!(found.notes, expected.notes);
    assert!(found.to_bytes().expect("bytes") == expected.to_bytes().expect("bytes"));
    let auto = [&config[..2], &["--time-constant", "auto"]].concat();
    let found: Model = Model::from_bytes(&model(&bench, &[&day], &auto)).expect("a model");
    assert_eq!(found.whitener.single().expect("one group").settings().time_constant, None);
    assert!(!found.notes["config"].contains("time_constant"), "{:?}", found.notes);

    let wrong = [
        ("leak = 1\n", "leak: expected one of the settings n_interneurons, synapses, time_constant"),
        ("follow = \"means\"\n", "follow"),
        ("strenght = 1\n", "strenght: expected one of the settings n_interneurons, synapses, time_constant"),
        ("strength = \"full\"\n", "strength"),
        ("time_constant = -3\n", "expected a number of samples above 0"),
        ("strength = \n", "expected TOML"),
        ("label = \"right\"\nsegment = 3\n", "--segment: expected --segment or --label, got both"),
    ];
    for (text, says) in wrong {
        let path = bench.write("wrong.toml", text);
        assert_fails(&bench, &[&day], &["--config", path.to_str().expect("a path"), "--quiet"], (2, says));
    }
    assert_fails(
        &bench,
        &[&day],
        &["--config", "nowhere.toml"],
        (1, "config nowhere.toml: the file cannot be read"),
    );
}

#[test]
fn every_setting_has_its_flag() {
    let bench = Bench::new();
    let all = rows(1, 900);
    let day = bench.write("day.csv", csv(&all, None));
    let settings = WhitenerSettings {
        sample_rate: Some(250.0),
        time_constant: Some(Span::Samples(40.0)),
        synapse_time_constant: Some(Span::Seconds(60.0)),
        strength: 0.9,
        bad_samples: leukos::BadSamples::Zero,
        follow: leukos::Follow::Nothing,
        saturation: Some(1e4),
        floor: 0.01,
        update_every: Some(7),
        exclude_above: Some(8.0),
    };
    let expected = fitted(vec![moments(&all)], settings, TrainingSynapses::Eigenbasis);
    let flags = "--sample-rate 250 --time-constant 40 --synapse-time-constant 1min --strength 0.9 --bad-samples zero \
                 --follow nothing --saturation 10000 --floor 0.01 --update-every 7 --exclude-above 8";
    let flags: Vec<&str> = flags.split_whitespace().collect();
    assert!(model(&bench, &[&day], &flags) == expected.to_bytes().expect("bytes"));
}

#[test]
fn groups_and_synapses_are_those_that_were_asked_for() {
    let bench = Bench::new();
    let all = rows(1, 900);
    let day = bench.write("day.csv", csv(&all, None));
    let training = WhitenerTraining { moments: vec![moments(&all)], ..WhitenerTraining::default() };
    let (groups, settings) = ([vec![0, 2], vec![1]], WhitenerSettings::default());
    let watch = |_| ControlFlow::Continue(());
    let grouped = training.fit_groups(&groups, &settings, &mut stream(0, 0), watch).expect("whiteners");
    let mut expected: Model = Model::from(grouped);
    expected.channel_names = Some(NAMES.map(String::from).to_vec());
    assert!(model(&bench, &[&day], &["--groups", "0+2,1"]) == expected.to_bytes().expect("bytes"), "groups");

    let given = Matrix::from_rows(&[[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]]);
    let file = bench.write("synapses.npy", matrix_bytes(&given).expect("bytes"));
    let file = file.to_str().expect("a path");
    let expected = fitted(vec![moments(&all)], settings.clone(), TrainingSynapses::Given(given));
    let found = model(&bench, &[&day], &["--synapses", file]);
    assert!(found == expected.to_bytes().expect("bytes"), "synapses of an array");
    let earlier = bench.write("earlier.safetensors", &found);
    let again = model(&bench, &[&day], &["--synapses", earlier.to_str().expect("a path")]);
    assert!(again == found, "synapses of a model");
    let random = |seed: &str| model(&bench, &[&day], &["--synapses", "random", "--random-state", seed]);
    assert!(random("1") == random("1") && random("1") != random("2"), "random synapses");
    let few: Model = Model::from_bytes(&model(&bench, &[&day], &["--n-interneurons", "2"])).expect("a model");
    assert_eq!(few.whitener.single().expect("one group").gains().expect("gains").len(), 2);

    assert_fails(&bench, &[&day], &["--synapses", file, "--groups", "0,1-2"], (2, "--synapses"));
    assert_fails(
        &bench,
        &[&day],
        &["--synapses", file, "--n-interneurons", "3"],
        (1, "--synapses: expected 3 channels x 3"),
    );
    assert_fails(&bench, &[&day], &["--synapses", "nowhere.npy"], (1, "synapses nowhere.npy"));
}

#[test]
fn wrong_usage_is_told_from_bad_data_and_neither_leaves_a_file() {
    let bench = Bench::new();
    let day = bench.write("day.csv", csv(&rows(1, 100), None));
    let wrong = [
        (vec!["--strength", "2"], "--strength: expected a number from 0 to 1, got 2"),
        (
            vec!["--time-constant", "fast"],
            "expected a number of samples above 0, such as 1000, or a time such as",
        ),
        (vec!["--time-constant", "2s"], "--time-constant: a time in seconds needs a sample rate"),
        (vec!["--segment", "2s"], "--segment: a time in seconds needs a sample rate; give --sample-rate"),
        (vec!["--segment", "0.2"], "--segment: expected 1 to 1e15 samples"),
        (vec!["--groups", "0-1,1-2"], "--groups: expected each of the channels 0 to 2 in one group"),
        (vec!["--groups", "0-1"], "--groups: expected each of the channels 0 to 2 in one group"),
        (vec!["--groups", "2-0"], "expected channel numbers counted from 0"),
        (vec!["--bad-samples", "drop"], "expected mark, hold, zero or error"),
        (vec!["--floor", "-1"], "--floor"),
        (vec!["--follow", "means"], "expected contexts or nothing"),
        (vec!["--exclude-above", "1"], "--exclude-above: expected a number from 2 to 1e6, got 1"),
        (vec!["--update-every", "0"], "--update-every: expected 1 to 65536 samples, got 0"),
        (vec!["--outlier-limit", "30"], "unexpected argument '--outlier-limit'"),
        (vec!["--label", "left", "--segment", "9"], "cannot be used with"),
        (vec!["--channels", "3"], "--channels: does not apply to csv recordings"),
        (vec!["--speed", "9"], "unexpected argument '--speed'"),
    ];
    for (arguments, says) in wrong {
        assert_fails(&bench, &[&day], &arguments, (2, says));
    }
    let output = leukos().arg("fit").arg(&day).arg("--out").arg(&day).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("--out: expected a different file from recording"),
        "{}",
        stderr(&output)
    );

    let [wide, other, still, empty] = [
        ("wide.csv", "left,middle\n1,2\n3,4\n"),
        ("other.csv", "left,right,middle\n1,2,3\n"),
        ("still.csv", "left,middle,right\n1,2,3\n1,2,3\n"),
        ("empty.csv", "left,middle,right\n1,,3\nnan,2,3\n"),
    ]
    .map(|(name, text)| bench.write(name, text));
    let bad: [(Vec<&Path>, &str); 5] = [
        (vec![&day, &wide], "wide.csv and recording"),
        (vec![&day, &other], "expected a channel named \"middle\", got \"right\" in its place"),
        (vec![&still], "varies"),
        (vec![&day, &empty], "empty.csv: samples: expected at least one without NaN"),
        (vec![Path::new("nowhere.csv")], "recording nowhere.csv: the file cannot be read"),
    ];
    for (inputs, says) in bad {
        assert_fails(&bench, &inputs, &[], (1, says));
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_with_130_and_writes_nothing() {
    let bench = Bench::new();
    let mut child = leukos()
        .args(["fit", "-", "--format", "csv", "--out"])
        .arg(bench.path("model"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (mut pipe, text) = (child.stdin.take().expect("a pipe"), csv(&rows(1, 5000), None));
    pipe.write_all(text.as_bytes()).expect("it reads");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    // It goes on reading until it sees the signal; then nobody reads any more.
    let (rows, begin) = (text.split_once('\n').expect("a header").1, Instant::now());
    while pipe.write_all(rows.as_bytes()).is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the signal was not heeded");
    }
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing was written"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(bench.path("")).expect("a directory").count(), 0, "a file was left behind");
}

#[test]
fn the_tour_of_the_readme_runs() {
    let bench = Bench::new();
    let day = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recordings/awkward.csv");
    let run = |arguments: &[&str]| -> String {
        let mut call = leukos();
        call.current_dir(bench.path("")).arg(arguments[0]);
        for argument in &arguments[1..] {
            let path = PathBuf::from(argument);
            call.arg(if *argument == "awkward.csv" { day.clone() } else { path });
        }
        let output = call.output().expect("the program starts");
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output)
    };
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("a README");
    let tour: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("leukos ")).collect();
    assert!(tour.len() >= 3, "{tour:?}");
    let said: Vec<String> = tour
        .iter()
        .map(|line| run(&line.split('#').next().unwrap_or("").split_whitespace().collect::<Vec<_>>()))
        .collect();
    assert!(said[0].contains("contexts      2") && said[0].contains("2 of them bad"), "{}", said[0]);
    assert!(said[1].contains("6500 rows written"), "{}", said[1]);
    assert!(bench.path("adaptation.png").exists() && bench.path("model.safetensors").exists());
    let pointed_out = run(&["inspect", "awkward.csv", "--label", "state"]);
    assert!(pointed_out.contains("channel 4 (Pz) reaches"), "{pointed_out}");
}
