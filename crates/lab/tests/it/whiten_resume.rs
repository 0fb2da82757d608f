//! Tests that nothing is lost: a stream killed at any moment goes on to the very bytes it would have written.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use leukos::Model;
use leukos::contexts::stream;
use leukos_lab::recording::{Rows, SampleType};
use rand::RngExt;

use crate::bench::{Bench, leukos, stderr};
use crate::whiten::{read_recording, stimuli, write_model, write_recording};

/// A stream with checkpoints.
struct Job {
    bench: Bench,
    input: PathBuf,
    out: String,
    more: Vec<String>,
}

impl Job {
    fn new(rows: usize, input: &str, out: &str, more: &[&str]) -> Self {
        let bench = Bench::new();
        write_model(&bench);
        let (values, input) = (stimuli(rows, 21), bench.path(input));
        write_recording(&input, SampleType::Float32, &Rows { values, labels: Vec::new() }, None);
        Self { bench, input, out: out.into(), more: more.iter().map(ToString::to_string).collect() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.bench.path(name)
    }

    fn output(&self) -> PathBuf {
        self.path(&self.out)
    }

    /// The output as far as it has come, under its hidden name.
    fn partial(&self) -> Option<PathBuf> {
        let (beginning, ending) = (format!(".{}.", self.out), ".partial");
        let mut names = self.bench.names().into_iter();
        names.find(|name| name.starts_with(&beginning) && name.ends_with(ending)).map(|name| self.path(&name))
    }

    fn call(&self, out: &Path) -> Command {
        let mut call = leukos();
        call.arg("whiten")
            .arg(self.path("model.safetensors"))
            .arg(&self.input)
            .arg("--out")
            .arg(out)
            .args(&self.more);
        call
    }

    /// The uninterrupted run.
    fn whole(&self) -> Vec<u8> {
        let out = self.path(&format!("whole-{}", self.out));
        let output = self.call(&out).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read(out).unwrap()
    }

    fn resumable(&self) -> Command {
        let mut call = self.call(&self.output());
        call.arg("--checkpoint").arg(self.path("state")).args(["--every", "3000", "--resume"]);
        call.stderr(Stdio::piped());
        call
    }

    fn resume(&self) -> Output {
        self.resumable().output().unwrap()
    }

    /// A child that has written a checkpoint or two.
    fn started(&self) -> Child {
        let (child, begin) = (self.resumable().spawn().unwrap(), Instant::now());
        while !self.path("state").exists() {
            assert!(begin.elapsed() < Duration::from_secs(60), "no checkpoint was written");
            std::thread::sleep(Duration::from_millis(1));
        }
        child
    }
}

/// Kills the run at random moments until one call gets through.
fn killed_again_and_again(job: &Job, kills: usize) {
    let begin = Instant::now();
    let whole = job.whole();
    let length = begin.elapsed();
    let (mut killed, mut calls) = (0, 0);
    // New moments in each run: there is no other way to have them all.
    let mut rng = stream(u64::from(std::process::id()), begin.elapsed().as_nanos() as u64);
    while killed < kills {
        calls += 1;
        assert!(calls < 50 * kills, "it ended before it could be killed, again and again");
        let mut child = job.resumable().spawn().unwrap();
        std::thread::sleep(length.mul_f64(rng.random_range(0.0..0.7)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        let status = child.wait().unwrap();
        if status.success() {
            assert!(fs::read(job.output()).unwrap() == whole, "after {killed} kills");
            fs::remove_file(job.path("state")).unwrap();
            fs::remove_file(job.output()).unwrap();
        }
    }
    let output = job.resume();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read(job.output()).unwrap() == whole);
    assert!(job.partial().is_none());
    let left = job.bench.names();
    assert!(!left.iter().any(|name| name.starts_with('.')), "{left:?}");
}

#[test]
fn killed_at_random_moments_it_writes_the_same_bytes() {
    killed_again_and_again(&Job::new(60_000, "in.npy", "out.npy", &[]), 14);
    killed_again_and_again(&Job::new(30_000, "in.npy", "out.csv", &[]), 8);
    killed_again_and_again(&Job::new(60_000, "in.npy", "out.raw", &["--frozen", "--bad-samples", "hold"]), 6);
}

#[test]
fn a_checkpoint_that_was_not_finished_is_not_looked_at() {
    let job = Job::new(20_000, "in.npy", "out.npy", &[]);
    let mut child = job.started();
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(job.path(".state.0123456789ab.partial"), "half of a checkpo").unwrap();
    fs::write(job.path(".out.npy.0123456789ab.partial"), "of another run that was killed").unwrap();
    // More of the output than the checkpoint knows of.
    let named = String::from_utf8_lossy(&fs::read(job.path("state")).unwrap()).into_owned();
    let own = |name: &String| name.starts_with(".out.npy.") && named.contains(name.as_str());
    let partial = job.path(&job.bench.names().into_iter().find(own).unwrap());
    let mut bytes = fs::read(&partial).unwrap();
    bytes.extend([7; 1000]);
    fs::write(&partial, bytes).unwrap();
    let output = job.resume();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read(job.output()).unwrap() == job.whole());
    let left = job.bench.names();
    assert!(!left.iter().any(|name| name.starts_with('.')), "orphans are removed: {left:?}");
}

#[test]
#[cfg(unix)]
fn ctrl_c_saves_the_state_and_says_how_to_go_on() {
    let job = Job::new(400_000, "in.npy", "out.npy", &[]);
    let child = job.started();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("--resume continues from"), "{}", stderr(&output));
    assert!(!job.output().exists() && job.partial().is_some());
    let output = job.resume();
    assert!(output.status.success() && stderr(&output).contains("continuing after"), "{}", stderr(&output));
    assert!(fs::read(job.output()).unwrap() == job.whole());
}

#[test]
#[cfg(unix)]
fn ctrl_c_without_a_checkpoint_leaves_nothing() {
    let job = Job::new(400_000, "in.npy", "out.npy", &[]);
    let (child, begin) = (job.call(&job.output()).stderr(Stdio::piped()).spawn().unwrap(), Instant::now());
    while job.partial().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing was written");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(!job.output().exists() && job.partial().is_none());
}

/// A stream that was killed after a checkpoint.
fn killed() -> Job {
    let job = Job::new(60_000, "in.npy", "out.npy", &[]);
    let mut child = job.started();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!job.output().exists());
    job
}

fn assert_refused(job: &Job, problem: &str) {
    let output = job.resume();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains(problem), "{}", stderr(&output));
    assert!(job.partial().is_some(), "what was written is kept");
}

#[test]
fn what_has_changed_is_refused_by_name() {
    let mut job = killed();
    job.more = vec!["--strength".into(), "0.5".into()];
    assert_refused(&job, "expected the options that the run was started with, got others");
    job.more.clear();
    let bytes = fs::read(&job.input).unwrap();
    let mut other = bytes.clone();
    other[200] ^= 1;
    fs::write(&job.input, &other).unwrap();
    assert_refused(&job, "the input has changed: its first");
    // Twelve bytes are a row; the header must promise what is there.
    write_recording(
        &job.input,
        SampleType::Float32,
        &Rows { values: stimuli(60_001, 21), labels: Vec::new() },
        None,
    );
    assert_refused(&job, "the input has changed: expected");
    fs::write(&job.input, &bytes).unwrap();
    let model = fs::read(job.path("model.safetensors")).unwrap();
    let mut other: Model = Model::from_bytes(&model).unwrap();
    other.notes.insert("another".into(), "one".into());
    fs::write(job.path("model.safetensors"), other.to_bytes().unwrap()).unwrap();
    assert_refused(&job, "expected the model that the run was started with, got another one");
    fs::write(job.path("model.safetensors"), &model).unwrap();
    let state = fs::read(job.path("state")).unwrap();
    fs::write(job.path("state"), &model).unwrap();
    assert_refused(&job, "expected a checkpoint");
    fs::write(job.path("state"), &state).unwrap();
    let output = job.resume();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read(job.output()).unwrap() == job.whole());
}

#[test]
fn output_that_is_gone_is_missed() {
    let job = killed();
    let partial = job.partial().unwrap();
    let bytes = fs::read(&partial).unwrap();
    fs::write(&partial, "short").unwrap();
    assert_refused(&job, "bytes that were written before");
    // Foreign bytes, as many as there were.
    let mut foreign = bytes.clone();
    foreign[300] ^= 1;
    fs::write(&partial, &foreign).unwrap();
    assert_refused(&job, "bytes are not those that were written before");
    fs::remove_file(&partial).unwrap();
    let output = job.resume();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(".out.npy."), "{}", stderr(&output));
}

#[test]
fn a_stream_that_is_done_stays_done() {
    let job = Job::new(10_000, "in.npy", "out.npy", &[]);
    assert!(job.resume().status.success());
    let (whole, state) = (fs::read(job.output()).unwrap(), fs::read(job.path("state")).unwrap());
    assert!(whole == job.whole());
    assert!(job.resume().status.success());
    assert!(fs::read(job.output()).unwrap() == whole && fs::read(job.path("state")).unwrap() == state);
    // Killed between the last checkpoint and the renaming.
    let state_text = String::from_utf8_lossy(&state).into_owned();
    let name = state_text.find(".out.npy.").map(|at| &state_text[at..at + ".out.npy.".len() + 20]).unwrap();
    fs::rename(job.output(), job.path(name)).unwrap();
    assert!(job.resume().status.success());
    assert!(fs::read(job.output()).unwrap() == whole && job.partial().is_none());
    // Another file in its place is not touched.
    fs::write(job.output(), "precious").unwrap();
    let output = job.resume();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("out.npy"), "{}", stderr(&output));
    assert_eq!(fs::read(job.output()).unwrap(), b"precious");
}

#[test]
fn an_output_that_was_renamed_before_its_last_checkpoint_was_saved_is_gone_on_with() {
    let job = killed();
    let state = fs::read(job.path("state")).unwrap();
    assert!(job.resume().status.success());
    let whole = fs::read(job.output()).unwrap();
    // The output got to the disk, the checkpoint that says so did not.
    fs::write(job.path("state"), state).unwrap();
    let output = job.resume();
    assert!(output.status.success() && stderr(&output).contains("continuing after"), "{}", stderr(&output));
    assert!(fs::read(job.output()).unwrap() == whole && whole == job.whole());
}

#[test]
fn a_checkpoint_belongs_to_its_output_and_format_and_moves_with_its_folder() {
    let mut job = killed();
    job.out = "other.npy".into();
    let output = job.resume();
    assert_eq!(output.status.code(), Some(1));
    let complaint = "expected the output that the run was started with, out.npy, got other.npy";
    assert!(stderr(&output).contains(complaint), "{}", stderr(&output));
    assert!(!job.output().exists());
    job.out = "out.npy".into();
    let whole = job.whole();
    let moved = job.path("moved");
    fs::create_dir(&moved).unwrap();
    for name in job.bench.names().iter().filter(|name| *name != "moved" && !name.starts_with("whole")) {
        fs::rename(job.path(name), moved.join(name)).unwrap();
    }
    job.out = "moved/out.npy".into();
    job.input = moved.join("in.npy");
    let mut call = leukos();
    call.arg("whiten").arg(moved.join("model.safetensors")).arg(&job.input).arg("--out").arg(job.output());
    call.arg("--checkpoint").arg(moved.join("state")).args(["--every", "3000", "--resume"]);
    let output = call.output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("continuing after"), "{}", stderr(&output));
    assert!(fs::read(job.output()).unwrap() == whole);
}

#[test]
#[cfg(unix)]
fn an_input_that_cannot_be_read_again_has_no_checkpoint() {
    let job = Job::new(1000, "in.npy", "out.npy", &[]);
    let fifo = job.path("fifo.npy");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut call = leukos();
    call.arg("whiten").arg(job.path("model.safetensors")).arg(&fifo).arg("--out").arg(job.output());
    let output = call.arg("--checkpoint").arg(job.path("state")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--checkpoint: expected plain files"), "{}", stderr(&output));
}

#[test]
fn two_processes_do_not_write_one_output() {
    let job = Job::new(400_000, "in.npy", "out.npy", &[]);
    let mut first = job.started();
    let output = job.resume();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("another leukos process is writing it"), "{}", stderr(&output));
    let mut other = job.call(&job.path("other.npy"));
    let output = other.arg("--checkpoint").arg(job.path("state")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("--checkpoint"), "{}", stderr(&output));
    assert!(first.wait().unwrap().success());
    assert!(fs::read(job.output()).unwrap() == job.whole());
}

#[test]
fn a_new_stream_takes_the_place_of_a_checkpoint_and_of_nothing_else() {
    let job = killed();
    let begin = |job: &Job| {
        let mut call = job.call(&job.output());
        call.arg("--checkpoint").arg(job.path("state")).args(["--every", "50000"]).output().unwrap()
    };
    fs::write(job.path("precious"), "not a model").unwrap();
    fs::rename(job.path("state"), job.path("aside")).unwrap();
    fs::rename(job.path("precious"), job.path("state")).unwrap();
    let output = begin(&job);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("checkpoint"), "{}", stderr(&output));
    assert_eq!(fs::read(job.path("state")).unwrap(), b"not a model");
    fs::rename(job.path("aside"), job.path("state")).unwrap();
    let output = begin(&job);
    assert!(output.status.success() && !stderr(&output).contains("going on"), "{}", stderr(&output));
    assert!(fs::read(job.output()).unwrap() == job.whole());
}

#[test]
fn bad_samples_are_those_of_this_recording() {
    let job = Job::new(10_000, "in.npy", "out.npy", &[]);
    let mut values = stimuli(10_000, 21);
    for row in [10, 7000] {
        values[3 * row] = f64::NAN;
    }
    write_recording(&job.input, SampleType::Float32, &Rows { values, labels: Vec::new() }, None);
    for mode in [vec![], vec!["--frozen".to_owned()]] {
        let job = Job { more: mode, bench: Bench::new(), input: job.input.clone(), out: job.out.clone() };
        write_model(&job.bench);
        assert!(job.resume().status.success());
        let output = job.resume();
        assert!(
            stderr(&output).contains("10000 rows written, 2 of them from bad samples"),
            "{}",
            stderr(&output)
        );
        // What a model met in an earlier recording is not counted again.
        fs::rename(job.path("state"), job.path("model.safetensors")).unwrap();
        let output = job.resume();
        assert!(
            stderr(&output).contains("10000 rows written, 2 of them from bad samples"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_checkpoint_is_the_model_as_it_has_adapted_and_as_a_model_it_goes_on() {
    let job = Job::new(10_000, "in.npy", "out.npy", &[]);
    assert!(job.resume().status.success());
    let mut expected: Model<f32> =
        Model::from_bytes(&fs::read(job.path("model.safetensors")).unwrap()).unwrap();
    let whiten = |model: &mut Model<f32>, seed: u64| -> Vec<f32> {
        let values: Vec<f32> = stimuli(10_000, seed).iter().map(|&s| s as f32).collect();
        let mut responses = vec![0.0; values.len()];
        model.whitener.whiten(&values, &mut responses).unwrap();
        responses
    };
    whiten(&mut expected, 21);
    let mut adapted: Model<f32> = Model::from_bytes(&fs::read(job.path("state")).unwrap()).unwrap();
    assert!(adapted.notes.remove("checkpoint").is_some());
    assert!(adapted.to_checkpoint() == expected.to_checkpoint());

    fs::rename(job.path("state"), job.path("model.safetensors")).unwrap();
    let rows = Rows { values: stimuli(10_000, 22), labels: Vec::new() };
    write_recording(&job.input, SampleType::Float32, &rows, None);
    job.whole();
    let found = read_recording(&job.path("whole-out.npy"), SampleType::Float32);
    assert!(found.into_iter().map(|r| r as f32).eq(whiten(&mut expected, 22)));
}
