//! Reads any bytes as a raw recording.

#![no_main]

mod readers;

use leukos_lab::recording::{Format, ReadOptions, SampleType};
use libfuzzer_sys::fuzz_target;

const TYPES: [SampleType; 4] =
    [SampleType::Int16, SampleType::Int32, SampleType::Float32, SampleType::Float64];

fuzz_target!(|input: &[u8]| {
    readers::exercise(input, Format::Raw, |knobs| ReadOptions {
        channels: Some(1 + usize::from(knobs[2])),
        sample_type: Some(TYPES[usize::from(knobs[3] % 4)]),
        ..ReadOptions::default()
    });
});
