//! Tests that pipes are live: what has arrived is answered before more comes.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use leukos_lab::recording::{Rows, SampleType};

use crate::bench::{Bench, leukos, stderr};
use crate::recordings_edf::three_channels;
use crate::whiten::{CHANNELS, stimuli, write_model, write_recording};

/// Far longer than an answer takes; without it a test of a program that waits for more would wait as well.
const TOO_LONG: Duration = Duration::from_secs(20);

/// A program that whitens what comes over a pipe, and its answers as they come.
struct Answering {
    child: Child,
    input: ChildStdin,
    output: Receiver<Vec<u8>>,
}

impl Answering {
    fn start(model: &Path, flags: &[&str]) -> Self {
        let mut call = leukos();
        call.arg("whiten").arg(model).args(["-", "--out", "-", "--quiet"]).args(flags);
        let mut child =
            call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(got @ 1..) = stdout.read(&mut bytes) {
                let _ = sender.send(bytes[..got].to_vec());
            }
        });
        Self { child, input, output }
    }

    /// Gives bytes and waits until the answers have this many bytes more; how long that took.
    fn ask(&mut self, bytes: &[u8], answers: &mut Vec<u8>, enough: impl Fn(&[u8]) -> bool) -> Duration {
        let begun = Instant::now();
        self.input.write_all(bytes).unwrap();
        self.input.flush().unwrap();
        while !enough(answers) {
            answers.extend(self.output.recv_timeout(TOO_LONG).expect("an answer to a whole row"));
        }
        begun.elapsed()
    }

    fn finish(self) {
        drop(self.input);
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

/// Feeds the pieces one after another, each only when the one before is answered: the answers, and the typical wait.
fn trickle(
    model: &Path,
    flags: &[&str],
    header: &[u8],
    pieces: &[&[u8]],
    enough: impl Fn(&[u8], usize) -> bool,
) -> (Vec<u8>, Duration) {
    let mut program = Answering::start(model, flags);
    program.input.write_all(header).unwrap();
    let mut answers = Vec::new();
    let mut waits = Vec::new();
    for (done, piece) in pieces.iter().enumerate() {
        // A row comes in two halves, as it may from a wire.
        let (first, second) = piece.split_at(piece.len() / 2);
        program.input.write_all(first).unwrap();
        waits.push(program.ask(second, &mut answers, |answers| enough(answers, done + 1)));
    }
    program.finish();
    waits.sort_unstable();
    (answers, waits[waits.len() / 2])
}

/// What `whiten` makes of a file of the same rows.
fn of_file(bench: &Bench, model: &Path, input: &Path, flags: &[&str], ending: &str) -> Vec<u8> {
    let out = bench.path(&format!("file.{ending}"));
    let output =
        leukos().arg("whiten").arg(model).arg(input).arg("--out").arg(&out).args(flags).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    fs::read(out).unwrap()
}

const ROWS: usize = 40;

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

#[test]
fn each_row_is_answered_as_it_comes() {
    let bench = Bench::new();
    let model = write_model(&bench);
    let rows = Rows { values: stimuli(ROWS, 5), labels: Vec::new() };

    let raw = bench.path("rows.raw");
    write_recording(&raw, SampleType::Float32, &rows, None);
    let bytes = fs::read(&raw).unwrap();
    let flags = ["--format", "raw", "--channels", "3", "--dtype", "float32"];
    let pieces: Vec<&[u8]> = bytes.chunks(4 * CHANNELS).collect();
    let (answers, wait) = trickle(&model, &flags, b"", &pieces, |answers, rows| answers.len() == rows * 12);
    assert_eq!(answers, of_file(&bench, &model, &raw, &flags, "raw"));
    assert!(wait < Duration::from_millis(100), "raw: {wait:?}");

    let csv = bench.path("rows.csv");
    write_recording(&csv, SampleType::Float64, &rows, Some(&["a", "b", "c"]));
    let bytes = fs::read(&csv).unwrap();
    let given = lines(&bytes);
    let lines_of = |answers: &[u8]| lines(answers).len();
    let (answers, wait) = trickle(&model, &["--format", "csv"], given[0], &given[1..], |answers, rows| {
        lines_of(answers) == rows + 1
    });
    assert_eq!(answers, of_file(&bench, &model, &csv, &[], "csv"));
    assert!(wait < Duration::from_millis(100), "csv: {wait:?}");

    let npy = bench.path("rows.npy");
    write_recording(&npy, SampleType::Float64, &rows, None);
    let bytes = fs::read(&npy).unwrap();
    let (header, body) = bytes.split_at(bytes.len() - ROWS * CHANNELS * 8);
    let pieces: Vec<&[u8]> = body.chunks(8 * CHANNELS).collect();
    let whole = |answers: &[u8], rows: usize| answers.len() == header.len() + rows * 24;
    let (answers, wait) = trickle(&model, &["--format", "npy"], header, &pieces, whole);
    assert_eq!(answers, of_file(&bench, &model, &npy, &[], "npy"));
    assert!(wait < Duration::from_millis(100), "npy: {wait:?}");
}

#[test]
fn each_record_of_an_edf_is_answered_as_it_comes() {
    let bench = Bench::new();
    let model = write_model(&bench);
    let (bytes, [header, record, samples]) = three_channels();
    let edf = bench.write("rows.edf", &bytes);
    let pieces: Vec<&[u8]> = bytes[header..].chunks(record).collect();
    let flags = ["--format", "edf", "--out-format", "raw"];
    let whole = |answers: &[u8], records: usize| answers.len() == records * samples * CHANNELS * 8;
    let (answers, wait) = trickle(&model, &flags, &bytes[..header], &pieces, whole);
    assert_eq!(answers, of_file(&bench, &model, &edf, &["--out-format", "raw"], "raw"));
    assert!(wait < Duration::from_millis(100), "{wait:?}");
}

#[test]
fn a_blank_line_at_the_end_holds_no_row_back() {
    let bench = Bench::new();
    let model = write_model(&bench);
    let mut program = Answering::start(&model, &["--format", "csv"]);
    let mut answers = Vec::new();
    program.ask(b"1,2,3\n4,5,6\n\n", &mut answers, |answers| lines(answers).len() == 2);
    program.finish();
}
