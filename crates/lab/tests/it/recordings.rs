//! Tests that what is written can be read: every format and sample type, in blocks of any size, from files and pipes.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;

use leukos_lab::recording::{
    Bytes, Format, Layout, Misfits, OutputShape, Place, ReadOptions, Reader, Rows, SampleType, Sink, Source,
    continue_writing, open, open_bytes, writer,
};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::bench::{Bench, Npy};

const TYPES: [SampleType; 4] =
    [SampleType::Int16, SampleType::Int32, SampleType::Float32, SampleType::Float64];
const WRITTEN: [Format; 4] = [Format::Raw, Format::Npy, Format::Csv, Format::Tsv];

fn is_text(format: Format) -> bool {
    matches!(format, Format::Csv | Format::Tsv)
}

pub fn shape(format: Format, sample_type: SampleType, channels: usize) -> OutputShape {
    OutputShape { format, channels, names: None, label: None, sample_type, rows: None, scale: 1.0 }
}

pub fn options(shape: &OutputShape) -> ReadOptions {
    let raw = shape.format == Format::Raw;
    ReadOptions {
        format: Some(shape.format),
        channels: raw.then_some(shape.channels),
        sample_type: raw.then_some(shape.sample_type),
        label: shape.label.clone(),
        ..ReadOptions::default()
    }
}

pub fn open_file(path: &Path, options: &ReadOptions) -> anyhow::Result<Box<dyn Reader>> {
    open(&Source::File(path.to_owned()), options)
}

/// Everything that comes in blocks of these sizes, the last of which goes on for ever.
pub fn read_in(reader: &mut dyn Reader, blocks: &[usize]) -> anyhow::Result<Rows> {
    let (mut all, mut block) = (Rows::default(), Rows::default());
    let last = blocks.last().expect("a block size");
    for &most in blocks.iter().chain(std::iter::repeat(last)) {
        reader.read(most, &mut block)?;
        assert!(block.values.len() <= most.saturating_mul(reader.layout().channels));
        if block.values.is_empty() {
            return Ok(all);
        }
        all.values.append(&mut block.values);
        all.labels.append(&mut block.labels);
    }
    unreachable!("the last block size is repeated for ever")
}

pub fn bits(rows: &Rows) -> Vec<u64> {
    rows.values.iter().map(|x| x.to_bits()).collect()
}

fn write_file(path: &Path, shape: &OutputShape, blocks: &[Rows]) -> Misfits {
    let mut writer = writer(Sink::File(File::create(path).expect("a file")), shape).expect("a writer");
    blocks.iter().for_each(|rows| writer.write(rows).expect("rows are written"));
    let bytes = writer.flush().expect("written");
    assert_eq!(bytes, path.metadata().expect("a file").len());
    writer.finish().expect("finished");
    assert_eq!(bytes, path.metadata().expect("a file").len());
    writer.misfits()
}

/// Numbers that each sample type holds exactly, some of them not finite where the type has such.
fn random_value(rng: &mut Pcg64, sample_type: SampleType) -> f64 {
    match (sample_type, rng.random_range(0..20)) {
        (SampleType::Int16, _) => f64::from(rng.random::<i16>()),
        (SampleType::Int32, _) => f64::from(rng.random::<i32>()),
        (_, 0) => f64::NAN,
        (_, 1) => f64::INFINITY,
        (_, 2) => -0.0,
        (SampleType::Float32, _) => f64::from(f32::from_bits(rng.random::<u32>() & 0xBFFF_FFFF)),
        (SampleType::Float64, 3) => 5e-324,
        (SampleType::Float64, _) => rng.random_range(-1.0..1.0) * 10f64.powi(rng.random_range(-300..300)),
    }
}

fn random_rows(rng: &mut Pcg64, shape: &OutputShape, count: usize) -> Rows {
    let values = (0..count * shape.channels).map(|_| random_value(rng, shape.sample_type)).collect();
    let words = ["rest", "eyes, closed", "a \"b\"", "", " left\t", "7"];
    let labelled = if shape.label.is_some() { count } else { 0 };
    let labels = (0..labelled).map(|_| words[rng.random_range(0..words.len())].to_owned()).collect();
    Rows { values, labels }
}

/// What is read when these blocks are written: the same, but that the digits of a single number stand for another double.
fn expected_of(blocks: &[Rows], shape: &OutputShape) -> Rows {
    let digits = is_text(shape.format) && shape.sample_type == SampleType::Float32;
    let read = |value: f64| {
        if digits { (value as f32).to_string().parse().expect("a number") } else { value }
    };
    let values = blocks.iter().flat_map(|rows| rows.values.clone()).map(read).collect();
    Rows { values, labels: blocks.iter().flat_map(|rows| rows.labels.clone()).collect() }
}

/// Reads a file in several ways and from several places, and as a pipe; all must give the same.
fn require_same_in_any_blocks(path: &Path, options: &ReadOptions, expected: &Rows, rng: &mut Pcg64) {
    let random: Vec<usize> = (0..rng.random_range(1..5)).map(|_| rng.random_range(1..9)).collect();
    for blocks in [&[usize::MAX][..], &[1], &random] {
        let mut reader = open_file(path, options).expect("a recording");
        let read = read_in(&mut *reader, blocks).expect("rows");
        assert_eq!((bits(&read), &read.labels), (bits(expected), &expected.labels), "{blocks:?}");
    }
    let mut reader = open_file(path, options).expect("a recording");
    let mut first = Rows::default();
    reader.read(random[0], &mut first).expect("rows");
    let place = reader.place();
    assert_eq!(place.row as usize, first.values.len() / reader.layout().channels);
    let rest = read_in(&mut *reader, &[3]).expect("rows");
    reader.go_to(place).expect("a file can be read again");
    assert_eq!(reader.place(), place);
    let again = read_in(&mut *reader, &[5]).expect("rows");
    assert_eq!((bits(&again), &again.labels), (bits(&rest), &rest.labels));

    let pipe = Bytes::of_pipe(Trickle(Cursor::new(std::fs::read(path).expect("bytes"))));
    let mut piped = open_bytes(pipe, options.format.expect("a format"), options).expect("a recording");
    let read = read_in(&mut *piped, &random).expect("rows");
    assert_eq!((bits(&read), &read.labels), (bits(expected), &expected.labels));
    assert!(piped.go_to(place).expect_err("a pipe").to_string().contains("pipe"));
}

/// A pipe that hands out a few bytes at a time.
struct Trickle(Cursor<Vec<u8>>);

impl std::io::Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let few = buffer.len().min(7);
        self.0.read(&mut buffer[..few])
    }
}

#[test]
fn every_format_and_type_comes_back_bit_for_bit() {
    let bench = Bench::new();
    let mut rng = Pcg64::new(7, 1);
    for format in WRITTEN {
        for sample_type in TYPES.into_iter().cycle().take(24) {
            let mut shape = shape(format, sample_type, rng.random_range(1..6));
            if is_text(format) && rng.random::<bool>() {
                shape.names = Some((0..shape.channels).map(|i| format!("EEG {i}, \"left\"")).collect());
                shape.label = rng.random::<bool>().then(|| "state".to_owned());
            }
            let counts = [rng.random_range(1..40), 1, rng.random_range(0..7)];
            let blocks = counts.map(|count| random_rows(&mut rng, &shape, count));
            let path = bench.path(&format!("round.{format}"));
            assert_eq!(write_file(&path, &shape, &blocks), Misfits::default());
            let expected = expected_of(&blocks, &shape);
            let options = options(&shape);
            require_same_in_any_blocks(&path, &options, &expected, &mut rng);
            let layout = open_file(&path, &options).expect("a recording").layout().clone();
            assert_eq!((layout.channels, &layout.names), (shape.channels, &shape.names));
            assert_eq!(layout.sample_type, if is_text(format) { SampleType::Float64 } else { sample_type });
            let rows = (expected.values.len() / shape.channels) as u64;
            assert_eq!(layout.rows, (!is_text(format)).then_some(rows));
        }
    }
}

#[test]
fn a_recording_that_is_gone_on_with_equals_one_written_at_once() {
    let bench = Bench::new();
    let mut rng = Pcg64::new(8, 1);
    for format in WRITTEN {
        let names = Some(vec!["a".to_owned(), "b".to_owned()]);
        let shape = OutputShape { names, ..shape(format, SampleType::Float32, 2) };
        let blocks = [5, 4, 3].map(|count| random_rows(&mut rng, &shape, count));
        let (whole, parts) = (bench.path("whole"), bench.path("parts"));
        write_file(&whole, &shape, &blocks);
        let mut begun = writer(Sink::File(File::create(&parts).expect("a file")), &shape).expect("a writer");
        begun.write(&blocks[0]).expect("written");
        let place = Place { row: 5, byte: begun.flush().expect("written") };
        begun.write(&blocks[2]).expect("written, and to be cut off");
        drop(begun);
        let file = || File::options().write(true).open(&parts).expect("a file");
        let mut again = continue_writing(file(), &shape, place).expect("a writer");
        again.write(&blocks[1]).expect("written");
        again.write(&blocks[2]).expect("written");
        assert_eq!(again.flush().expect("written"), whole.metadata().expect("a file").len());
        again.finish().expect("finished");
        assert_eq!(std::fs::read(&parts).expect("bytes"), std::fs::read(&whole).expect("bytes"), "{format}");

        let beyond = Place { row: 5000, byte: 50_000 };
        let error = continue_writing(file(), &shape, beyond).err().expect("a file that is too short");
        assert!(error.to_string().contains("at least the 50000 bytes"), "{error:#}");
    }
}

#[test]
fn whole_numbers_are_scaled_rounded_and_clipped_with_a_count() {
    let bench = Bench::new();
    let values = vec![1.25, 0.15, -0.25, 3276.7, 3276.76, -1e9, f64::INFINITY, f64::NAN, -3276.8];
    let rows = [Rows { values, labels: Vec::new() }];
    // Ten times 1.25 and −0.25 lie between two whole numbers: the even one is taken.
    let expected = [12.0, 2.0, -2.0, 32767.0, 32767.0, -32768.0, 32767.0, 0.0, -32768.0];
    for format in WRITTEN {
        let shape = OutputShape { scale: 10.0, ..shape(format, SampleType::Int16, 1) };
        let path = bench.path("scaled");
        let misfits = write_file(&path, &shape, &rows);
        assert_eq!(misfits, Misfits { clipped: 3, not_numbers: 1 }, "{format}");
        let read = read_in(&mut *open_file(&path, &options(&shape)).expect("a recording"), &[4]);
        assert_eq!(read.expect("rows").values, expected, "{format}");
    }
    let path = bench.path("int32.raw");
    let wide = OutputShape { scale: 2.0, ..shape(Format::Raw, SampleType::Int32, 1) };
    let rows = [Rows { values: vec![1e9, 1.1e9, -1.2e9], labels: Vec::new() }];
    assert_eq!(write_file(&path, &wide, &rows).clipped, 2);
    let read = read_in(&mut *open_file(&path, &options(&wide)).expect("a recording"), &[4]);
    assert_eq!(read.expect("rows").values, [2e9, 2_147_483_647.0, -2_147_483_648.0]);
}

#[test]
fn a_finite_number_does_not_become_infinite() {
    let bench = Bench::new();
    let shape = shape(Format::Npy, SampleType::Float32, 1);
    let rows = [Rows { values: vec![1e39, -1e39, f64::INFINITY, f64::NAN], labels: Vec::new() }];
    let path = bench.path("single.npy");
    assert_eq!(write_file(&path, &shape, &rows), Misfits { clipped: 2, not_numbers: 0 });
    let read = read_in(&mut *open_file(&path, &options(&shape)).expect("a recording"), &[4]).expect("rows");
    let most = f64::from(f32::MAX);
    assert_eq!(read.values[..3], [most, -most, f64::INFINITY]);
    assert!(read.values[3].is_nan());
}

#[test]
fn every_layout_of_an_array_gives_the_same_rows() {
    let bench = Bench::new();
    let (rows, channels) = (700, 3);
    let value =
        |row: usize, channel: usize| f64::from(i16::try_from(row * 7 + channel * 1000).expect("small"));
    let numbers: Vec<f64> = (0..rows * channels).map(|at| value(at / channels, at % channels)).collect();
    let columns: Vec<f64> = (0..rows * channels).map(|at| value(at % rows, at / rows)).collect();
    let mut rng = Pcg64::new(9, 1);
    for dtype in ["<i2", ">i2", "<i4", ">i4", "<f4", ">f4", "<f8", ">f8"] {
        let shape = vec![rows, channels];
        let by_rows = Npy { dtype, fortran_order: false, shape: shape.clone(), numbers: numbers.clone() };
        let expected = Rows { values: numbers.clone(), labels: Vec::new() };
        let options = ReadOptions { format: Some(Format::Npy), ..ReadOptions::default() };
        let path = bench.write("rows.npy", by_rows.bytes());
        require_same_in_any_blocks(&path, &options, &expected, &mut rng);
        let by_columns = Npy { dtype, fortran_order: true, shape, numbers: columns.clone() };
        let path = bench.write("columns.npy", by_columns.bytes());
        let mut reader = open_file(&path, &options).expect("a recording");
        assert_eq!(read_in(&mut *reader, &[1, 300, 5]).expect("rows").values, numbers);
        for row in [699, 0, 350, 700] {
            let skipped = channels * usize::try_from(row).expect("small");
            let start = by_columns.bytes().len() - rows * channels * reader.layout().sample_type.size();
            let byte = (start + skipped * reader.layout().sample_type.size()) as u64;
            reader.go_to(Place { row, byte }).expect("a place");
            assert_eq!(read_in(&mut *reader, &[100]).expect("rows").values, numbers[skipped..]);
        }
    }
}

#[test]
fn an_array_of_one_dimension_is_one_channel_and_headers_of_all_versions_are_read() {
    let bench = Bench::new();
    let flat =
        Npy { dtype: "<f8", fortran_order: false, shape: vec![3], numbers: vec![1.0, 2.0, 3.0] }.bytes();
    let end = flat.len() - 24;
    for version in [1, 2, 3_u8] {
        let mut bytes = [b"\x93NUMPY", &[version, 0][..]].concat();
        let length = u32::try_from(end - 10).expect("short").to_le_bytes();
        bytes.extend(if version == 1 { &length[..2] } else { &length[..] });
        bytes.extend(&flat[10..]);
        let mut reader =
            open_file(&bench.write("flat.npy", bytes), &ReadOptions::default()).expect("an array");
        assert_eq!(reader.layout().channels, 1);
        assert_eq!(read_in(&mut *reader, &[2]).expect("rows").values, [1.0, 2.0, 3.0]);
    }
}

#[test]
fn one_channel_and_two_thousand() {
    let bench = Bench::new();
    let mut rng = Pcg64::new(10, 1);
    for format in WRITTEN {
        for channels in [1, 2000] {
            let shape = shape(format, SampleType::Float32, channels);
            let blocks = [random_rows(&mut rng, &shape, 9)];
            let path = bench.path("wide");
            write_file(&path, &shape, &blocks);
            let expected = expected_of(&blocks, &shape);
            require_same_in_any_blocks(&path, &options(&shape), &expected, &mut rng);
        }
    }
}

#[test]
fn a_text_as_other_programs_write_it_is_read() {
    let bench = Bench::new();
    let text = "\u{feff}time, \"Fp1, left\" ,state,Cz\r\n 1 ,2e1,rest,-.5\r\n\"3\",,\"eyes \"\"shut\"\"\",NaN\r\n+5,inf,,-Infinity\r\n\r\n  \r\n";
    for label in ["state", "2"] {
        let options =
            ReadOptions { label: Some(label.into()), sample_rate: Some(250.0), ..ReadOptions::default() };
        let mut reader = open_file(&bench.write("awkward.CSV", text), &options).expect("a text");
        let names = Some(["time", "Fp1, left", "Cz"].map(str::to_owned).to_vec());
        let sample_type = SampleType::Float64;
        let layout = Layout { channels: 3, names, sample_type, sample_rate: Some(250.0), rows: None };
        assert_eq!(*reader.layout(), layout);
        let rows = read_in(&mut *reader, &[2]).expect("rows");
        let infinity = f64::INFINITY;
        assert_eq!(rows.values[..4], [1.0, 20.0, -0.5, 3.0]);
        assert!(rows.values[4].is_nan() && rows.values[5].is_nan());
        assert_eq!(rows.values[6..], [5.0, infinity, -infinity]);
        assert_eq!(rows.labels, ["rest", "eyes \"shut\"", ""]);
    }
}

#[test]
fn a_text_without_a_header_may_have_labels_in_a_column_with_a_number() {
    let bench = Bench::new();
    let options = ReadOptions { label: Some("0".into()), ..ReadOptions::default() };
    let path = bench.write("plain.tsv", "a b\t1\t2\nc\t3\t4");
    let mut reader = open_file(&path, &options).expect("a text");
    assert_eq!((reader.layout().channels, &reader.layout().names), (2, &None));
    let rows = read_in(&mut *reader, &[9]).expect("rows");
    assert_eq!(rows.values, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(rows.labels, ["a b", "c"]);
}

#[test]
fn text_has_no_more_digits_than_its_type_needs() {
    let bench = Bench::new();
    let path = bench.path("digits.csv");
    let rows = [Rows { values: vec![0.1_f32.into(), 1e-30_f32.into(), -2.0, f64::NAN], labels: Vec::new() }];
    for (sample_type, expected) in [
        (SampleType::Float32, "0.1,1e-30,-2.0,nan\n"),
        (SampleType::Float64, "0.10000000149011612,1.0000000031710769e-30,-2.0,nan\n"),
        (SampleType::Int32, "0,0,-2,0\n"),
    ] {
        write_file(&path, &shape(Format::Csv, sample_type, 4), &rows);
        assert_eq!(std::fs::read_to_string(&path).expect("text"), expected);
    }
}
