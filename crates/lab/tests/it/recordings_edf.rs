//! Tests the reader of EDF and BDF with files made here, byte by byte, as the specification says.

use std::io::Cursor;

use leukos_lab::recording::{Bytes, Format, Place, ReadOptions, Rows, open_bytes};

use crate::bench::Bench;
use crate::recordings::{bits, open_file, read_in};

/// A signal: its label, its samples in a record, and the four limits as they stand in the header.
#[derive(Clone)]
struct Signal {
    label: &'static str,
    samples: usize,
    physical: [&'static str; 2],
    digital: [&'static str; 2],
}

impl Signal {
    fn new(label: &'static str, samples: usize) -> Self {
        Self { label, samples, physical: ["-3276.8", "3276.7"], digital: ["-32768", "32767"] }
    }

    fn annotations() -> Self {
        Self { physical: ["-1", "1"], ..Self::new("EDF Annotations", 5) }
    }
}

/// A file: what its header says and, in each record, the samples of all signals one after the other.
#[derive(Clone)]
struct Edf {
    format: Format,
    reserved: &'static str,
    records: &'static str,
    duration: &'static str,
    signals: Vec<Signal>,
    data: Vec<Vec<i32>>,
}

/// A file of three channels and six records: its bytes, those of its header, those of a record, the samples in a record.
pub fn three_channels() -> (Vec<u8>, [usize; 3]) {
    let signals = ["a", "b", "c"].map(|label| Signal::new(label, 4)).to_vec();
    let record = |first: i32| (0..12).map(|i| 97 * (first + i) % 811 - 300).collect();
    let data: Vec<_> = (0..6).map(|i| record(12 * i)).collect();
    let edf = Edf { records: "6", reserved: "", signals, data, ..Edf::good() };
    (edf.bytes(), [256 * 4, 2 * 12, 4])
}

fn field(text: &str, width: usize) -> Vec<u8> {
    format!("{text:<width$}").into_bytes()
}

impl Edf {
    /// Two channels with annotations between them, three records of four samples.
    fn good() -> Self {
        let signals = vec![Signal::new("EEG Fp1", 4), Signal::annotations(), Signal::new("EEG Cz", 4)];
        let record = |first: i32| {
            let left = (0..4).map(|i| first + i);
            let right = (0..4).map(|i| -10 * (first + i) - 1);
            left.chain([0, 1, 2, 3, 4]).chain(right).collect()
        };
        let data = [100, 104, 32_000].map(record).to_vec();
        Self { format: Format::Edf, reserved: "EDF+C", records: "3", duration: "0.5", signals, data }
    }

    fn bytes(&self) -> Vec<u8> {
        let count = self.signals.len();
        let version = if self.format == Format::Edf { b"0       " } else { b"\xFFBIOSEMI" };
        let mut bytes = version.to_vec();
        for (text, width) in [("X X X X", 80), ("Startdate X X X X", 80), ("01.01.26", 8), ("00.00.00", 8)] {
            bytes.extend(field(text, width));
        }
        bytes.extend(field(&(256 * (count + 1)).to_string(), 8));
        for (text, width) in [(self.reserved, 44), (self.records, 8), (self.duration, 8)] {
            bytes.extend(field(text, width));
        }
        bytes.extend(field(&count.to_string(), 4));
        let mut all = |text: &dyn Fn(&Signal) -> String, width| {
            self.signals.iter().for_each(|signal| bytes.extend(field(&text(signal), width)));
        };
        all(&|signal| signal.label.into(), 16);
        all(&|_| "AgAgCl".into(), 80);
        all(&|_| "uV".into(), 8);
        all(&|signal| signal.physical[0].into(), 8);
        all(&|signal| signal.physical[1].into(), 8);
        all(&|signal| signal.digital[0].into(), 8);
        all(&|signal| signal.digital[1].into(), 8);
        all(&|_| "HP:0.1Hz".into(), 80);
        all(&|signal| signal.samples.to_string(), 8);
        all(&|_| String::new(), 32);
        let size = if self.format == Format::Edf { 2 } else { 3 };
        bytes.extend(
            self.data.iter().flatten().flat_map(|sample| sample.to_le_bytes().into_iter().take(size)),
        );
        bytes
    }

    fn refusal(&self) -> String {
        let bench = Bench::new();
        let name = format!("bad.{}", self.format);
        let error = open_file(&bench.write(&name, self.bytes()), &ReadOptions::default()).err();
        let said = format!("{:#}", error.expect("a bad recording"));
        assert!(said.contains(&name), "{said}");
        said
    }
}

fn require_close(values: &[f64], expected: &[f64]) {
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        // One rounding in each of the reader's three operations on numbers of up to 6554.
        assert!((value - expected).abs() <= 4.0 * 6554.0 * f64::EPSILON, "{value} {expected}");
    }
}

#[test]
fn channels_are_read_in_physical_units_and_annotations_left_out() {
    let bench = Bench::new();
    let samples: Vec<i32> = [100, 104, 32_000].into_iter().flat_map(|first| first..first + 4).collect();
    let expected: Vec<f64> =
        samples.iter().flat_map(|&x| [f64::from(x) / 10.0, f64::from(-10 * x - 1) / 10.0]).collect();
    // Only the first eight samples fit into 16 bits when multiplied by ten.
    let mut good = Edf::good();
    good.data.truncate(2);
    for (reserved, records) in [("EDF+C", "2"), ("", "2"), ("EDF+C", "-1")] {
        let file = Edf { reserved, records, ..good.clone() };
        let mut reader =
            open_file(&bench.write("good.edf", file.bytes()), &ReadOptions::default()).expect("EDF");
        let layout = reader.layout().clone();
        assert_eq!((layout.channels, layout.rows, layout.sample_rate), (2, Some(8), Some(8.0)));
        assert_eq!(layout.names, Some(vec!["EEG Fp1".into(), "EEG Cz".into()]));
        require_close(&read_in(&mut *reader, &[3]).expect("rows").values, &expected[..16]);
    }
}

#[test]
fn samples_of_24_bits_keep_their_sign() {
    let limits = Signal {
        physical: ["-8388608", "8388607"],
        digital: ["-8388608", "8388607"],
        ..Signal::new("A1", 3)
    };
    let turned = Signal { label: "A2", physical: ["8388608", "-8388607"], ..limits.clone() };
    let data = vec![vec![-8_388_608, 8_388_607, -1, -8_388_608, 8_388_607, 0]];
    for reserved in ["24BIT", "BDF+C"] {
        let signals = vec![limits.clone(), turned.clone()];
        let file =
            Edf { format: Format::Bdf, reserved, records: "1", duration: "1", signals, data: data.clone() };
        let bench = Bench::new();
        let mut reader =
            open_file(&bench.write("good.bdf", file.bytes()), &ReadOptions::default()).expect("BDF");
        let expected = [-8_388_608.0, 8_388_608.0, 8_388_607.0, -8_388_607.0, -1.0, 0.0];
        let rows = read_in(&mut *reader, &[1]).expect("rows").values;
        for (value, expected) in rows.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-7, "{value} {expected}");
        }
    }
}

#[test]
fn any_blocks_any_place_and_a_pipe_give_the_same_rows() {
    let bench = Bench::new();
    let bytes = Edf::good().bytes();
    let path = bench.write("good.edf", &bytes);
    let mut reader = open_file(&path, &ReadOptions::default()).expect("EDF");
    let whole = read_in(&mut *reader, &[usize::MAX]).expect("rows");
    for blocks in [&[1][..], &[3, 5], &[4], &[7, 1, 2]] {
        let mut reader = open_file(&path, &ReadOptions::default()).expect("EDF");
        assert_eq!(bits(&read_in(&mut *reader, blocks).expect("rows")), bits(&whole));
    }
    let mut block = Rows::default();
    for taken in 0..=12 {
        reader.go_to(Place { row: 0, byte: 1024 }).expect("the beginning");
        reader.read(taken, &mut block).expect("rows");
        let place = reader.place();
        assert_eq!(place.row, taken as u64);
        read_in(&mut *reader, &[5]).expect("the rest");
        reader.go_to(place).expect("a place");
        assert_eq!(bits(&read_in(&mut *reader, &[2]).expect("rows")), bits(&whole)[2 * taken..]);
    }
    let error = reader.go_to(Place { row: 13, byte: 1024 }).expect_err("beyond the end");
    assert!(error.root_cause().to_string().contains("up to its end after 12 rows"), "{error:#}");

    for records in ["3", "-1"] {
        let bytes = Edf { records, ..Edf::good() }.bytes();
        let pipe = Bytes::of_pipe(Cursor::new(bytes));
        let mut piped = open_bytes(pipe, Format::Edf, &ReadOptions::default()).expect("EDF");
        assert_eq!(piped.layout().rows, (records == "3").then_some(12));
        assert_eq!(bits(&read_in(&mut *piped, &[5]).expect("rows")), bits(&whole));
    }
}

#[test]
fn unequal_rates_and_gaps_are_refused_by_name() {
    let mut file = Edf::good();
    file.signals.push(Signal::new("Temp", 1));
    let said = file.refusal();
    assert!(
        said.contains(
            "one sampling rate in all channels, got 8 Hz in \"EEG Fp1, EEG Cz\" and 2 Hz in \"Temp\""
        ),
        "{said}"
    );
    let said = Edf { reserved: "EDF+D", ..Edf::good() }.refusal();
    assert!(said.contains("got a discontinuous one (EDF+D)"), "{said}");
    let signals = vec![Signal::annotations()];
    let said = Edf { signals, ..Edf::good() }.refusal();
    assert!(said.contains("annotations alone"), "{said}");
}

#[test]
fn a_truncated_or_longer_file_is_refused_with_record_and_byte() {
    let bench = Bench::new();
    let bytes = Edf::good().bytes();
    let cut = &bytes[..1024 + 2 * 26 + 7];
    let promised = "cut short: expected 3 records of 26 bytes, but it ends in record 2, at byte 1083";
    let error = open_file(&bench.write("cut.edf", cut), &ReadOptions::default()).err().expect("cut short");
    assert!(format!("{error:#}").contains(promised), "{error:#}");
    let pipe = Bytes::of_pipe(Cursor::new(cut.to_vec()));
    let mut piped = open_bytes(pipe, Format::Edf, &ReadOptions::default()).expect("a header");
    let error = read_in(&mut *piped, &[5]).expect_err("cut short");
    assert!(format!("{error:#}").contains(promised), "{error:#}");

    let unknown = Edf { records: "-1", ..Edf::good() }.bytes();
    let cut = &unknown[..unknown.len() - 1];
    let error = open_file(&bench.write("cut.edf", cut), &ReadOptions::default()).err().expect("cut short");
    assert!(format!("{error:#}").contains("whole records of 26 bytes, but it ends in record 2"), "{error:#}");

    let said = Edf { records: "2", ..Edf::good() }.refusal();
    assert!(
        said.contains("after the 2 records its header states, at byte 1076, but 26 more bytes"),
        "{said}"
    );
    let error = open_file(&bench.write("cut.edf", &bytes[..300]), &ReadOptions::default()).err();
    let said = format!("{:#}", error.expect("cut short"));
    assert!(said.contains("cut short in its header, at byte 300"), "{said}");
}

#[test]
fn a_header_that_makes_no_sense_is_refused() {
    let said = Edf { format: Format::Bdf, ..Edf::good() };
    let bench = Bench::new();
    let error = open_file(&bench.write("other.edf", said.bytes()), &ReadOptions::default()).err();
    assert!(format!("{:#}", error.expect("BDF")).contains("expected the format EDF, got BDF"));
    let error = open_file(&bench.write("no.edf", [b'x'; 300]), &ReadOptions::default()).err();
    assert!(format!("{:#}", error.expect("no EDF")).contains("expected the format EDF, but its first bytes"));

    let with = |change: &dyn Fn(&mut Signal)| {
        let mut file = Edf::good();
        change(&mut file.signals[2]);
        file.refusal()
    };
    for (said, expected) in [
        (
            with(&|signal| signal.digital = ["5", "5"]),
            "channel EEG Cz: expected a digital minimum below its maximum",
        ),
        (with(&|signal| signal.digital = ["-32769", "5"]), "from -32768 to 32767, got -32769 and 5"),
        (
            with(&|signal| signal.physical = ["2", "2"]),
            "expected a physical minimum other than its maximum, got 2",
        ),
        (
            with(&|signal| signal.physical[1] = "nan"),
            "signal 2 (EEG Cz): physical maximum: expected a number, got \"nan\"",
        ),
        (with(&|signal| signal.digital[0] = "x"), "digital minimum: expected a number, got \"x\""),
        (with(&|signal| signal.samples = 0), "samples in a record: expected at least one"),
        (Edf { records: "-2", ..Edf::good() }.refusal(), "number of records: expected 0 or more, or -1"),
        (
            Edf { records: "many", ..Edf::good() }.refusal(),
            "number of records: expected a whole number, got \"many\"",
        ),
        (Edf { duration: "0", ..Edf::good() }.refusal(), "duration of a record: expected a positive number"),
        (with(&|signal| signal.samples = 99_999_999), "one sampling rate"),
    ] {
        assert!(said.contains(expected), "expected {expected:?} in {said:?}");
    }
    for (at, expected) in
        [(252, "number of signals: expected"), (184, "number of bytes in the header: expected 1024")]
    {
        let mut bytes = Edf::good().bytes();
        bytes[at..at + 4].copy_from_slice(b"0   ");
        let error = open_file(&bench.write("bad.edf", bytes), &ReadOptions::default()).err();
        assert!(format!("{:#}", error.expect("a bad header")).contains(expected));
    }
}
