//! Reads any bytes as text with commas, with and without a label column.

#![no_main]

mod readers;

use leukos_lab::recording::{Format, ReadOptions};
use libfuzzer_sys::fuzz_target;

const LABELS: [Option<&str>; 4] = [None, Some("s"), Some("0"), Some("2")];

fuzz_target!(|input: &[u8]| {
    readers::exercise(input, Format::Csv, |knobs| ReadOptions {
        label: LABELS[usize::from(knobs[2] % 4)].map(str::to_owned),
        ..ReadOptions::default()
    });
});
