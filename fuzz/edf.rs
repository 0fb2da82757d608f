//! Reads any bytes as EDF or, if they begin like it, as BDF.

#![no_main]

mod readers;

use leukos_lab::recording::{Format, ReadOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let format = if input.get(4) == Some(&0xFF) { Format::Bdf } else { Format::Edf };
    readers::exercise(input, format, |_| ReadOptions::default());
});
