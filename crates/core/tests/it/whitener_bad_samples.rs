//! Gives the whitener samples that cannot be used, and silence, and looks at what it puts out and what it learns.

use leukos::{BadSamples, Error, Follow, Matrix, Real, WhitenerSettings};

use crate::bridge::{bits_of, farthest, wide};
use crate::whitener_streams::{covariance, error, gaussian, narrow, trained, visible, whitened};

const CHANNELS: usize = 3;
const ROWS: usize = 400;
/// Rows that are spoiled, and in which channel.
const SPOILED: [(usize, usize); 4] = [(0, 1), (17, 2), (18, 0), (399, 1)];

fn settings(bad_samples: BadSamples) -> WhitenerSettings {
    WhitenerSettings { bad_samples, ..WhitenerSettings::default() }
}

fn context() -> Matrix {
    covariance(CHANNELS, 4)
}

fn is_spoiled(row: usize) -> bool {
    SPOILED.iter().any(|&(spoiled, _)| spoiled == row)
}

fn good() -> Vec<f64> {
    gaussian(&context(), ROWS, 4)
}

fn spoiled(with: f64) -> Vec<f64> {
    let mut rows = good();
    SPOILED.iter().for_each(|&(row, channel)| rows[row * CHANNELS + channel] = with);
    rows
}

fn without_spoiled_rows() -> Vec<f64> {
    let rows = good();
    let kept = rows.chunks_exact(CHANNELS).enumerate().filter(|(row, _)| !is_spoiled(*row));
    kept.flat_map(|(_, row)| row.to_vec()).collect()
}

/// What a whitener that never saw the spoiled rows makes of the others.
fn spared<T: Real>() -> Vec<f64> {
    let mut whitener = trained::<T>(&context(), settings(BadSamples::Mark));
    wide(&whitened(&mut whitener, &narrow(&without_spoiled_rows())))
}

/// Responses to the spoiled stream, in rows.
fn responses<T: Real>(bad_samples: BadSamples, with: f64) -> Vec<Vec<f64>> {
    let mut whitener = trained::<T>(&context(), settings(bad_samples));
    let responses = whitened(&mut whitener, &narrow(&spoiled(with)));
    assert_eq!(whitener.status().samples.bad, SPOILED.len() as u64);
    assert_eq!(whitener.status().samples.seen, ROWS as u64);
    wide(&responses).chunks_exact(CHANNELS).map(<[f64]>::to_vec).collect()
}

fn assert_good_rows_are_those_of_the_spared<T: Real>(rows: &[Vec<f64>]) {
    let kept = rows.iter().enumerate().filter(|(row, _)| !is_spoiled(*row));
    let kept: Vec<f64> = kept.flat_map(|(_, row)| row.clone()).collect();
    assert_eq!(bits_of(&kept), bits_of(&spared::<T>()));
}

#[test]
fn bad_samples_are_marked() {
    for with in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
        let rows = responses::<f64>(BadSamples::Mark, with);
        assert!(SPOILED.iter().all(|&(row, _)| rows[row].iter().all(|r| r.is_nan())), "{with}");
        assert_good_rows_are_those_of_the_spared::<f64>(&rows);
    }
    assert_good_rows_are_those_of_the_spared::<f32>(&responses::<f32>(BadSamples::Mark, f64::NAN));
}

#[test]
fn bad_samples_are_held() {
    let rows = responses::<f64>(BadSamples::Hold, f64::NAN);
    assert_eq!(rows[0], [0.0; CHANNELS]);
    assert_eq!((&rows[17], &rows[18]), (&rows[16], &rows[16]));
    assert_eq!(rows[399], rows[398]);
    assert_good_rows_are_those_of_the_spared::<f64>(&rows);
}

#[test]
fn bad_samples_are_set_to_zero() {
    let rows = responses::<f64>(BadSamples::Zero, f64::NAN);
    assert!(SPOILED.iter().all(|&(row, _)| rows[row] == [0.0; CHANNELS]));
    assert_good_rows_are_those_of_the_spared::<f64>(&rows);
}

#[test]
fn a_bad_sample_is_an_error_that_says_where_and_the_whitener_goes_on_after_it() {
    let stimuli = spoiled(f64::NAN);
    for update_every in [None, Some(7)] {
        let own = WhitenerSettings { update_every, ..settings(BadSamples::Error) };
        let mut whitener = trained::<f64>(&context(), own.clone());
        let mut responses = vec![9.0; stimuli.len()];
        let (mut from, mut met) = (0, Vec::new());
        while from < stimuli.len() {
            let Err(error) = whitener.whiten(&stimuli[from..], &mut responses[from..]) else { break };
            let Error::BadSample { index, value } = error else { panic!("{error}") };
            assert!(value.is_nan());
            let place = from + index;
            met.push((place / CHANNELS, place % CHANNELS));
            assert!(responses[place / CHANNELS * CHANNELS..].iter().all(|&r| r == 9.0), "not written yet");
            from = (place / CHANNELS + 1) * CHANNELS;
        }
        assert_eq!(met, SPOILED);
        let written = responses.chunks_exact(CHANNELS).enumerate().filter(|(row, _)| !is_spoiled(*row));
        let written: Vec<f64> = written.flat_map(|(_, row)| row.to_vec()).collect();
        let expected = whitened(&mut trained::<f64>(&context(), own), &without_spoiled_rows());
        assert_eq!(bits_of(&written), bits_of(&expected), "update every {update_every:?}");
    }
}

#[test]
fn values_at_the_saturation_limit_are_bad_and_those_below_it_are_not() {
    let limited = WhitenerSettings { saturation: Some(50.0), ..WhitenerSettings::default() };
    for (with, bad) in [(50.0, 4), (-50.0, 4), (60.0, 4), (49.9, 0), (-49.9, 0)] {
        let mut whitener = trained::<f64>(&context(), limited.clone());
        let responses = whitened(&mut whitener, &spoiled(with));
        assert_eq!(whitener.status().samples.bad, bad, "{with}");
        assert_eq!(responses.iter().filter(|r| r.is_nan()).count() as u64, bad * CHANNELS as u64);
    }
    let strict = WhitenerSettings { bad_samples: BadSamples::Error, ..limited };
    let mut whitener = trained::<f64>(&context(), strict);
    let error = whitener.whiten(&spoiled(60.0), &mut vec![0.0; ROWS * CHANNELS]).unwrap_err();
    assert_eq!(error, Error::BadSample { index: 1, value: 60.0 });
    assert!(error.to_string().contains("60 at position 1"), "{error}");
}

#[test]
fn silence_changes_neither_gains_nor_mean() {
    let before = gaussian(&context(), 3000, 4);
    let last = &before[before.len() - CHANNELS..];
    for silence in [[0.0; CHANNELS].to_vec(), last.to_vec(), [1e3; CHANNELS].to_vec()] {
        let mut whitener = trained::<f64>(&context(), WhitenerSettings::default());
        whitened(&mut whitener, &before);
        // It takes ten rows to know that this is silence; from then on nothing moves, not even by a bit.
        whitened(&mut whitener, &silence.repeat(20));
        let rested = visible(&whitener);
        whitened(&mut whitener, &silence.repeat(20_000));
        assert_eq!(visible(&whitener), rested, "{silence:?}");
        let samples = whitener.status().samples;
        assert!(samples.silent >= 20_000 && samples.exclusions == 0, "{samples:?}");
        assert_eq!(samples.switches, 0, "{samples:?}");
    }
}

#[test]
fn what_ten_rows_before_silence_is_known_teach_is_little() {
    let before = gaussian(&context(), 3000, 4);
    let mut whitener = trained::<f64>(&context(), WhitenerSettings::default());
    whitened(&mut whitener, &before);
    let before = whitener.whitening_matrix().unwrap();
    whitened(&mut whitener, &[0.0; CHANNELS].repeat(20_000));
    // Eleven rows among the 4000 that the covariance in force rests on.
    let moved = farthest(whitener.whitening_matrix().unwrap().as_slice(), before.as_slice());
    assert!(moved < 0.005 * before.trace(), "{moved}");
}

#[test]
fn a_paused_whitener_moves_no_bit_and_a_resumed_one_adapts() {
    let mut whitener = trained::<f64>(&context(), WhitenerSettings::default());
    let stimuli = gaussian(&covariance(CHANNELS, 5), 3000, 5);
    let rested = visible(&whitener);
    whitener.pause();
    let responses = whitened(&mut whitener, &stimuli);
    assert_eq!(visible(&whitener), rested);
    assert!(!whitener.status().adapting);
    let mut expected = vec![0.0; stimuli.len()];
    whitener.whiten_frozen(&stimuli, &mut expected).unwrap();
    assert!(farthest(&responses, &expected) < 1e-12, "a pause is frozen use");
    whitener.resume();
    whitened(&mut whitener, &stimuli);
    assert_ne!(visible(&whitener), rested);
    assert!(whitener.status().adapting);
}

#[test]
fn a_context_that_is_announced_is_learned_sooner() {
    let (one, two) = (context(), covariance(CHANNELS, 5));
    let mut told = trained::<f64>(&one, WhitenerSettings::default());
    let mut alone = told.clone();
    told.begin_context();
    let rows = gaussian(&two, 25, 5);
    whitened(&mut told, &rows);
    whitened(&mut alone, &rows);
    let (told, alone) = (error(&told, &two), error(&alone, &two));
    assert!(told < 0.5 * alone, "{told} told, {alone} not");
}

#[test]
fn one_that_follows_nothing_stays_as_it_was_fitted() {
    let settings = WhitenerSettings { follow: Follow::Nothing, ..WhitenerSettings::default() };
    let mut whitener = trained::<f64>(&context(), settings);
    let before = visible(&whitener);
    whitened(&mut whitener, &gaussian(&covariance(CHANNELS, 5), 3000, 5));
    assert_eq!(visible(&whitener), before);
}

/// Spikes: one row in twenty has a channel eight deviations away.
#[test]
fn what_is_excluded_does_not_count() {
    let own = context();
    let mut rows = gaussian(&own, 20_000, 6);
    for row in rows.chunks_exact_mut(CHANNELS).step_by(20) {
        row[1] += 8.0 * own[(1, 1)].sqrt();
    }
    let after = |exclude_above| {
        let settings = WhitenerSettings { exclude_above, ..WhitenerSettings::default() };
        let mut whitener = trained::<f64>(&own, settings);
        whitened(&mut whitener, &rows);
        (error(&whitener, &own), whitener.status().samples.outliers)
    };
    let ((with, left_out), (without, none)) = (after(Some(5.0)), after(None));
    // Rows whose Gaussian part points the other way stay within five deviations.
    assert!((900..=1001).contains(&left_out) && none == 0, "{left_out}, {none}");
    assert!(with < 0.1 && without > 0.5, "{with} with, {without} without");
}
