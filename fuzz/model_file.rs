//! Opens any bytes as a model or a checkpoint: what opens must whiten, and must be the same after it is put away and
//! opened again.

#![no_main]

mod mutate;
mod seal;

use leukos::{GroupedWhitener, Model, Real};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    // One in eight is opened as it came, so that a wrong checksum is tried, too.
    if bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) % 8 != 0 {
        seal::seal(&mut bytes);
    }
    let bytes = &bytes[..];
    // Either precision, as the bytes have it.
    if bytes.iter().fold(0, |sum, byte| sum ^ byte) & 1 == 0 {
        exercise::<f64>(bytes);
    } else {
        exercise::<f32>(bytes);
    }
});

fuzz_mutator!(|bytes: &mut [u8], size: usize, most: usize, seed: u32| {
    let changed = if seed % 8 == 0 { None } else { mutate::changed(&bytes[..size], seed / 8) };
    match changed.filter(|changed| changed.len() <= most) {
        Some(changed) => {
            bytes[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        None => fuzzer_mutate(bytes, size, most),
    }
});

const ROWS: usize = 6;

fn exercise<T: Real>(bytes: &[u8]) {
    let Ok(mut model) = Model::<T>::from_bytes(bytes) else { return };
    let mut twin = put_away(&model);
    let (first, second) = (whiten(&mut model), whiten(&mut twin));
    let bits = |rows: &[T]| rows.iter().map(|x| x.to_f64().to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&first), bits(&second), "the same responses");
    assert_eq!(put_away(&model).to_checkpoint(), put_away(&twin).to_checkpoint(), "the same state");
    for (own, other) in model.whitener.whiteners_mut().zip(twin.whitener.whiteners_mut()) {
        assert_eq!(own.status(), other.status());
    }
    model.whitener.begin_context();
    whiten(&mut model);
    put_away(&model);
}

fn put_away<T: Real>(model: &Model<T>) -> Model<T> {
    let learned = model.to_bytes().expect("what was opened can be put away as a model");
    Model::<T>::from_bytes(&learned).expect("and be opened");
    let bytes = model.to_checkpoint().expect("what was opened can be put away");
    let again = Model::from_checkpoint(&bytes).expect("what was put away can be opened");
    assert_eq!(again.to_checkpoint().as_ref(), Ok(&bytes), "the same bytes");
    again
}

/// A few rows of ordinary input in the units of the model, one at a time: finite responses unless the row counts as bad.
fn whiten<T: Real>(model: &mut Model<T>) -> Vec<T> {
    let whitener = &mut model.whitener;
    let mean = whitener.mean();
    let scale = whitener.whiteners().fold(1e-6_f64, |most, group| most.max(group.scale()));
    let mut all = Vec::new();
    for row in 0..ROWS {
        let stimulus = |j: usize| mean[j] + scale * ((row * 7 + j * 3) % 5) as f64 - 2.0 * scale;
        let stimuli: Vec<T> = (0..mean.len()).map(|j| T::from_f64(stimulus(j))).collect();
        let mut responses = vec![T::ZERO; stimuli.len()];
        let bad_before = bad(whitener);
        let outcome = whitener.whiten(&stimuli, &mut responses);
        let usable = outcome.is_ok() && bad(whitener) == bad_before;
        assert!(!usable || responses.iter().all(|r| r.is_finite()), "row {row}: {responses:?}");
        all.extend(responses);
    }
    all
}

fn bad<T: Real>(whitener: &mut GroupedWhitener<T>) -> u64 {
    whitener.whiteners_mut().map(|group| group.status().samples.bad).sum()
}
