//! Tests that a recording that will not do is refused with its file, its place, what was expected and what it got instead.

use std::fs::File;
use std::io::{Cursor, ErrorKind};

use leukos_lab::recording::{
    Bytes, Format, OutputShape, Place, ReadOptions, Rows, SampleType, Sink, Source, open, open_bytes, writer,
};
use leukos_lab::usage::Usage;

use crate::bench::{Bench, Npy};
use crate::recordings::{open_file, options, read_in, shape};

fn raw(channels: usize, sample_type: SampleType) -> ReadOptions {
    options(&shape(Format::Raw, sample_type, channels))
}

fn label(name: &str) -> ReadOptions {
    ReadOptions { label: Some(name.into()), ..ReadOptions::default() }
}

/// What is said about a file with these bytes, whether it is found out at the beginning or on the way.
fn refusal(name: &str, bytes: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    let bench = Bench::new();
    let path = bench.write(name, bytes);
    let error = open_file(&path, options).and_then(|mut reader| read_in(&mut *reader, &[2]));
    let error = error.expect_err("a bad recording");
    assert!(!error.is::<Usage>(), "{error:#}");
    let said = format!("{error:#}");
    assert!(said.starts_with("recording ") && said.contains(name), "{said}");
    said
}

fn piped_refusal(bytes: &[u8], format: Format, options: &ReadOptions) -> String {
    let pipe = Bytes::of_pipe(Cursor::new(bytes.to_vec()));
    let error = open_bytes(pipe, format, options).and_then(|mut reader| read_in(&mut *reader, &[2]));
    format!("{:#}", error.expect_err("a bad recording"))
}

fn wrong_usage(name: &str, options: &ReadOptions) -> String {
    let bench = Bench::new();
    let error = open_file(&bench.write(name, "a,b\n1,2\n"), options).err().expect("wrong usage");
    assert!(error.is::<Usage>(), "{error:#}");
    format!("{error:#}")
}

fn require(said: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(said.contains(part), "expected {part:?} in {said:?}"));
}

fn array() -> Npy {
    let numbers = (0..12).map(f64::from).collect();
    Npy { dtype: "<f4", fortran_order: false, shape: vec![4, 3], numbers }
}

#[test]
fn an_empty_file_is_refused_in_every_format() {
    for (name, options) in [
        ("empty.raw", raw(2, SampleType::Int16)),
        ("empty.npy", ReadOptions::default()),
        ("empty.csv", ReadOptions::default()),
        ("empty.tsv", ReadOptions::default()),
        ("empty.edf", ReadOptions::default()),
        ("empty.bdf", ReadOptions::default()),
    ] {
        require(&refusal(name, "", &options), &["empty: expected"]);
        let format = Format::of_name(name.as_ref()).expect("a format");
        require(&piped_refusal(b"", format, &options), &["empty: expected"]);
    }
    for blank in ["\u{feff}", "\r\n\n  \n"] {
        require(&refusal("blank.csv", blank, &ReadOptions::default()), &["empty: expected"]);
    }
}

#[test]
fn bytes_that_are_no_whole_row_are_named() {
    let options = raw(3, SampleType::Int16);
    let said = "whole rows of 6 bytes (3 channels of int16), but 5 bytes are left over in row 2, at byte 12";
    require(&refusal("odd.raw", [0; 17], &options), &[said]);
    require(&piped_refusal(&[0; 17], Format::Raw, &options), &[said]);
}

#[test]
fn an_array_that_is_cut_short_or_too_long_is_refused() {
    let bytes = array().bytes();
    let start = bytes.len() - 48;
    let cut = &bytes[..start + 29];
    let said = format!("its header states 4 rows, but it ends in row 2, at byte {}", start + 29);
    require(&refusal("cut.npy", cut, &ReadOptions::default()), &["cut short", &said]);
    require(&piped_refusal(cut, Format::Npy, &ReadOptions::default()), &["cut short", &said]);
    let long = [&bytes[..], b"xyz"].concat();
    let said = format!("after the 4 rows its header states, at byte {}", bytes.len());
    require(&refusal("long.npy", &long, &ReadOptions::default()), &[&said, "3 more bytes follow"]);
    require(&piped_refusal(&long, Format::Npy, &ReadOptions::default()), &[&said, "more bytes follow"]);
    require(&refusal("header.npy", &bytes[..40], &ReadOptions::default()), &["in its header, at byte 40"]);

    let columns = Npy { fortran_order: true, ..array() }.bytes();
    let said = refusal("columns.npy", &columns[..start + 29], &ReadOptions::default());
    require(&said, &["its header states 3 columns of 4 rows, but it ends in column 1, row 3, at byte"]);
    let said = refusal("columns.npy", [&columns[..], b"x"].concat(), &ReadOptions::default());
    require(&said, &["1 more bytes follow"]);
    let said = piped_refusal(&columns, Format::Npy, &ReadOptions::default());
    require(&said, &["C order", "Fortran order", "pipe"]);
}

#[test]
fn an_array_that_promises_much_takes_no_memory() {
    for fortran_order in [false, true] {
        for shape in [vec![usize::MAX, 3], vec![usize::MAX / 8, 65_536]] {
            let boast = Npy { fortran_order, shape, ..array() };
            require(&refusal("boast.npy", boast.bytes(), &ReadOptions::default()), &["cut short"]);
        }
    }
    let boast = Npy { shape: vec![usize::MAX / 4, 3], ..array() };
    require(&piped_refusal(&boast.bytes(), Format::Npy, &ReadOptions::default()), &["cut short", "row 4"]);
    let mut header = array().bytes();
    header.splice(6..10, [2, 0, 255, 255, 255, 255]);
    require(&refusal("header.npy", header, &ReadOptions::default()), &["a header of up to 10000 bytes"]);
}

#[test]
fn an_array_of_another_kind_is_refused() {
    let said = refusal("kind.npy", Npy { dtype: "<i8", ..array() }.bytes(), &ReadOptions::default());
    require(&said, &["expected int16, int32, float32 or float64 numbers, got dtype \"<i8\""]);
    let said = refusal("stack.npy", Npy { shape: vec![2, 2, 3], ..array() }.bytes(), &ReadOptions::default());
    require(&said, &["expected shape (rows, channels), got (2, 2, 3)"]);
    let exchanged = Npy { shape: vec![3, 100_000], ..array() };
    let said = refusal("exchanged.npy", exchanged.bytes(), &ReadOptions::default());
    require(&said, &["rows being samples", "expected 1 to 65536 channels, got 100000"]);
    let said = refusal("text.npy", "a,b\n1,2\n", &ReadOptions::default());
    require(&said, &["expected a .npy file"]);
    let mut version = array().bytes();
    version[6] = 4;
    require(&refusal("four.npy", version, &ReadOptions::default()), &["version 1, 2 or 3", "got 4"]);
    for (from, to) in [("descr", "dtype"), ("False", "Maybe"), ("(4, 3)", "(4, x)"), ("(4, 3)", "[4, 3]")] {
        let bytes = array().bytes();
        let text: String = bytes[10..].iter().map(|&byte| char::from(byte)).collect();
        let changed: Vec<u8> = text.replace(from, to).chars().map(|letter| letter as u8).collect();
        let said = refusal("header.npy", [&bytes[..10], &changed].concat(), &ReadOptions::default());
        require(&said, &["header \"{'"]);
    }
}

#[test]
fn a_line_that_does_not_fit_is_named_with_its_column() {
    let default = ReadOptions::default();
    let said = refusal("short.csv", "a,b,c\n1,2,3\n4,5\n", &default);
    require(&said, &["line 3, at byte 12: expected 3 cells, got 2: column 2 (\"c\") is missing"]);
    let said = refusal("long.csv", "1,2\r\n3,4\r\n5,6\r\n7,8,9\r\n", &default);
    require(&said, &["line 4, at byte 15: expected 2 cells, got more: column 2 is one too many"]);
    let said = refusal("word.tsv", "left\tright\n1\t2\n3\tfour\n", &default);
    require(&said, &["line 3, at byte 15: column 1 (\"right\"): expected a number, got \"four\""]);
    let said = refusal("again.csv", "a,b\n1,2\n3,4\na,b\n5,6\n", &default);
    require(&said, &["line 4", "expected numbers, got the header again"]);
    let said = refusal("long.csv", format!("1\n{}\n", "x".repeat(1000)), &default);
    require(&said, &["line 2", "column 0", "xxx\"..."]);
    assert!(said.len() < 300, "{said}");
    let said = refusal("blank.csv", "1,2\n\n3,4\n", &default);
    require(
        &said,
        &["line 2, at byte 4: expected a row, got a blank line that is not at the end: line 3 follows"],
    );
    let said = refusal("quote.csv", "a,b\n1,\"2\n3,4\n", &default);
    require(&said, &["line 2", "column 1 (\"b\")", "quotation mark", "same line"]);
    let said = refusal("utf16.csv", b"\xff\xfe1\x00,\x002\x00", &default);
    require(&said, &["line 1", "UTF-8"]);
    let said = refusal("wide.csv", "1,".repeat(70_000), &default);
    require(&said, &["line 1", "expected 1 to 65536 channels, got 70001"]);
    let said = refusal("latin.csv", b"a,s\n1,x\n2,\xe9t\xe9\n", &label("s"));
    require(&said, &["line 3", "UTF-8", "after 2 of its bytes"]);
    let said = refusal("label.csv", "s\nrest\n", &label("s"));
    require(&said, &["expected a channel, got the label column alone"]);
}

#[test]
fn a_line_goes_on_being_counted_after_a_place() {
    let bench = Bench::new();
    let path = bench.write("places.csv", "a,b\n1,2\n3,4\n5,6\nx,8\n");
    let mut reader = open_file(&path, &ReadOptions::default()).expect("a text");
    reader.go_to(Place { row: 2, byte: 12 }).expect("a place");
    let error = read_in(&mut *reader, &[1]).expect_err("a word");
    require(&format!("{error:#}"), &["places.csv", "line 5, at byte 16", "column 0 (\"a\")"]);
}

#[test]
fn a_place_beyond_the_end_is_refused() {
    let bench = Bench::new();
    let raw = raw(3, SampleType::Int16);
    for (name, bytes, options) in [
        ("a.raw", vec![0; 12], &raw),
        ("a.npy", array().bytes(), &ReadOptions::default()),
        ("a.npy", Npy { fortran_order: true, ..array() }.bytes(), &ReadOptions::default()),
        ("a.csv", b"1,2\n".to_vec(), &ReadOptions::default()),
    ] {
        let mut reader = open_file(&bench.write(name, bytes), options).expect("a recording");
        let error = reader.go_to(Place { row: 100, byte: 1000 }).expect_err("no such place");
        require(&format!("{error:#}"), &[name, "expected a place up to its end"]);
    }
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let endless = Bytes::of_pipe(std::io::repeat(b'7'));
    let error = open_bytes(endless, Format::Csv, &ReadOptions::default()).err().expect("no line");
    require(&format!("{error:#}"), &["line 1", "lines of up to 16 MB"]);
}

#[test]
fn a_file_that_is_not_there_or_a_folder_is_refused() {
    let bench = Bench::new();
    let missing = open_file(&bench.path("missing.csv"), &ReadOptions::default()).err().expect("no file");
    require(&format!("{missing:#}"), &["missing.csv", "cannot be read"]);
    std::fs::create_dir(bench.path("folder.csv")).expect("a folder");
    let folder = open_file(&bench.path("folder.csv"), &ReadOptions::default()).err().expect("a folder");
    require(&format!("{folder:#}"), &["folder.csv", "expected a file, got a folder"]);
}

#[test]
fn options_that_make_no_sense_are_wrong_usage_and_named() {
    let default = ReadOptions::default;
    let channels = ReadOptions { channels: Some(2), ..default() };
    let dtype = ReadOptions { sample_type: Some(SampleType::Int16), ..default() };
    let rate = |rate| ReadOptions { sample_rate: Some(rate), ..default() };
    require(&wrong_usage("a.csv", &channels), &["--channels: does not apply to csv recordings"]);
    require(&wrong_usage("a.npy", &channels), &["--channels: does not apply to npy recordings"]);
    require(&wrong_usage("a.tsv", &dtype), &["--dtype: does not apply to tsv recordings"]);
    require(&wrong_usage("a.edf", &rate(250.0)), &["--sample-rate: does not apply to edf recordings"]);
    require(&wrong_usage("a.csv", &rate(f64::NAN)), &["--sample-rate: expected a positive number"]);
    require(&wrong_usage("a.npy", &label("b")), &["--label: does not apply to npy recordings"]);
    require(&wrong_usage("a.raw", &dtype), &["--channels: expected the number of channels of a raw"]);
    require(&wrong_usage("a.dat", &channels), &["--dtype: expected the type of the numbers of a raw"]);
    require(&wrong_usage("a.bin", &raw(0, SampleType::Int16)), &["--channels: expected 1 to 65536"]);
    require(
        &wrong_usage("a.csv", &label("c")),
        &["--label c: expected one of \"a, b\", or a number from 0 to 1"],
    );
    require(&wrong_usage("a.csv", &label("2")), &["--label 2: expected one of"]);
    require(&wrong_usage("a.xyz", &default()), &["a.xyz", ".raw, .bin, .dat, .npy", "--format", "got .xyz"]);
    require(&wrong_usage("a", &default()), &["got no ending"]);
    let stdin = open(&"-".parse::<Source>().expect("a source"), &default()).err().expect("no format");
    assert!(stdin.is::<Usage>());
    require(&stdin.to_string(), &["--format: expected the format of standard input"]);
    let missing = open_file(&Bench::new().path("missing.raw"), &default()).err().expect("two faults");
    assert!(missing.is::<Usage>(), "what was asked for is looked at before the file: {missing:#}");
    let twice = open_file(&Bench::new().write("a.csv", "a,s,s\n"), &label("s")).err().expect("two");
    require(&format!("{twice:#}"), &["--label s: columns 1 and 2 both"]);
}

#[test]
fn what_cannot_be_written_is_wrong_usage() {
    let refused = |shape: &OutputShape, sink| {
        let error = writer(sink, shape).err().expect("wrong usage");
        assert!(error.is::<Usage>(), "{error:#}");
        error.to_string()
    };
    for format in [Format::Edf, Format::Bdf] {
        let said = refused(&shape(format, SampleType::Int16, 1), Sink::Stdout);
        require(&said, &[&format!("got {format}, which leukos only reads"), "raw, npy, csv, tsv"]);
    }
    let said = refused(&shape(Format::Npy, SampleType::Int16, 1), Sink::Stdout);
    require(&said, &["npy: expected a file", "number of rows"]);
    let still = OutputShape { scale: 0.0, ..shape(Format::Raw, SampleType::Int16, 1) };
    require(&refused(&still, Sink::Stdout), &["--scale: expected a positive number, got 0"]);
}

#[test]
fn a_label_that_would_break_its_line_is_refused() {
    let bench = Bench::new();
    let labelled = OutputShape { label: Some("s".into()), ..shape(Format::Csv, SampleType::Int16, 1) };
    let mut writer =
        writer(Sink::File(File::create(bench.path("a.csv")).expect("a file")), &labelled).expect("a writer");
    let rows = |labels: &[&str]| Rows {
        values: vec![1.0],
        labels: labels.iter().map(ToString::to_string).collect(),
    };
    require(&writer.write(&rows(&["a\nb"])).expect_err("two lines").to_string(), &["without an end of line"]);
    require(
        &writer.write(&rows(&[])).expect_err("no label").to_string(),
        &["a label for each of 1 rows, got 0"],
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    for format in [Format::Raw, Format::Csv] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let mut writer = writer(Sink::File(full), &shape(format, SampleType::Float64, 1)).expect("a writer");
        let rows = Rows { values: vec![1.0; 100_000], labels: Vec::new() };
        let error = writer.write(&rows).and_then(|()| writer.flush()).expect_err("a full disk");
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        assert_eq!(kind, Some(ErrorKind::StorageFull), "{error:#}");
        require(&format!("{error:#}"), &["cannot be written"]);
    }
}

#[test]
#[cfg(unix)]
fn a_closed_pipe_can_be_told_from_other_errors() {
    for format in [Format::Raw, Format::Csv] {
        let (reading, writing) = std::io::pipe().expect("a pipe");
        let pipe = File::from(std::os::fd::OwnedFd::from(writing));
        let mut writer = writer(Sink::File(pipe), &shape(format, SampleType::Int16, 1)).expect("a writer");
        drop(reading);
        let rows = Rows { values: vec![1.0], labels: Vec::new() };
        let error = writer.write(&rows).and_then(|()| writer.flush()).expect_err("a closed pipe");
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        assert_eq!(kind, Some(ErrorKind::BrokenPipe), "{error:#}");
    }
}
