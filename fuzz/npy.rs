//! Reads any bytes as an array of numpy.

#![no_main]

mod readers;

use leukos_lab::recording::{Format, ReadOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| readers::exercise(input, Format::Npy, |_| ReadOptions::default()));
