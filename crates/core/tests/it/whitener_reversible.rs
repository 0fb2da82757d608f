//! Shows that a run which learns from what is written of its responses can be undone, whatever the rounding.

use leukos::{BadSamples, Error, GroupedWhitener, Matrix, Model, Real, Span, Whitener, WhitenerSettings};

use crate::bridge::{farthest, wide};
use crate::whitener_streams::{covariance, gaussian, narrow, trained, with_channel};

const CHANNELS: usize = 4;
/// What a response of one is as a whole number.
const SCALE: f64 = 200.0;

fn start<T: Real>(settings: &WhitenerSettings) -> Whitener<T> {
    trained(&covariance(CHANNELS, 1), settings.clone())
}

fn stimuli(rows: usize) -> Vec<f64> {
    gaussian(&covariance(CHANNELS, 2), rows, 3).iter().map(|s| 3.0 * s + 0.5).collect()
}

/// As 16 bits hold it: rounded, clipped, and zero for what is no number.
fn to_int16<T: Real>(row: &mut [T]) {
    for r in row {
        let whole = (r.to_f64() * SCALE).round_ties_even().clamp(-32768.0, 32767.0);
        *r = T::from_f64(if whole.is_nan() { 0.0 } else { whole * (1.0 / SCALE) });
    }
}

fn to_single<T: Real>(row: &mut [T]) {
    row.iter_mut().for_each(|r| *r = T::from_f64(f64::from(r.to_f64() as f32)));
}

fn all_settings() -> Vec<WhitenerSettings> {
    let settings = |strength, update_every, synapse_time_constant| WhitenerSettings {
        time_constant: Some(Span::Samples(200.0)),
        strength,
        update_every: Some(update_every),
        synapse_time_constant,
        ..WhitenerSettings::default()
    };
    let slow = Some(Span::Samples(3000.0));
    vec![
        settings(1.0, 1, None),
        settings(0.7, 8, None),
        settings(1.0, 8, slow),
        settings(0.7, 1, slow),
        settings(1.0, 32, None),
    ]
}

fn state<T: Real>(whitener: &Whitener<T>) -> Vec<u8> {
    Model::from(whitener.clone()).to_checkpoint().unwrap()
}

/// Whitens row by row and undoes it; every stimulus that was not clipped must come back within what half a step of
/// rounding becomes under the matrix that was in force. Returns how many rows were looked at.
fn assert_comes_back(settings: &WhitenerSettings, stimuli: &[f64]) -> usize {
    let (mut forth, mut back) = (start::<f64>(settings), start::<f64>(settings));
    let mut compared = 0;
    for (row, s) in stimuli.chunks_exact(CHANNELS).enumerate() {
        let (matrix, revivals) = (forth.dewhitening_matrix().unwrap(), forth.samples().revivals);
        let (mut written, mut restored) = ([0.0; CHANNELS], [0.0; CHANNELS]);
        forth.whiten_written(s, &mut written, &mut to_int16).unwrap();
        back.unwhiten(&written, &mut restored).unwrap();
        let clipped = written.iter().any(|r| r.abs() >= 32767.0 / SCALE);
        // With a channel that comes back the matrix is another one.
        let revived = forth.samples().revivals > revivals;
        if clipped || revived || s.iter().any(|s| s.is_nan()) {
            continue;
        }
        for i in 0..CHANNELS {
            let most: f64 = (0..CHANNELS).map(|j| matrix[(i, j)].abs() * 0.5 / SCALE).sum();
            if matrix[(i, i)] != 0.0 {
                let difference = (restored[i] - s[i]).abs();
                assert!(difference <= most * (1.0 + 1e-9), "{settings:?}, row {row}: {difference} > {most}");
                compared += 1;
            }
        }
    }
    assert!(state(&forth) == state(&back), "{settings:?}: both stand where the other does");
    compared
}

#[test]
fn rounded_responses_go_back_to_their_stimuli_within_the_rounding() {
    for settings in all_settings() {
        assert_eq!(assert_comes_back(&settings, &stimuli(3000)), 3000 * CHANNELS);
    }
}

#[test]
fn learning_from_exact_responses_is_what_cannot_be_undone() {
    let settings = &all_settings()[0];
    let stimuli = stimuli(3000);
    let mut responses = vec![0.0; stimuli.len()];
    start::<f64>(settings).whiten(&stimuli, &mut responses).unwrap();
    responses.chunks_exact_mut(CHANNELS).for_each(to_int16);
    let mut restored = vec![0.0; stimuli.len()];
    let mut back = start::<f64>(settings);
    back.unwhiten(&responses, &mut restored).unwrap();
    let mut forth = start::<f64>(settings);
    forth.whiten(&stimuli, &mut vec![0.0; stimuli.len()]).unwrap();
    assert!(state(&forth) != state(&back));
}

#[test]
fn bad_samples_outliers_and_channels_that_come_and_go_do_not_part_the_two() {
    let mut awkward =
        with_channel(
            &stimuli(4000),
            CHANNELS,
            2,
            |row, s| {
                if (500..1500).contains(&row) { 1.5 } else { s[2] }
            },
        );
    awkward = with_channel(&awkward, CHANNELS, 1, |row, s| match row {
        2000..2600 => f64::NAN,
        3000 => 1e6,
        _ => s[1],
    });
    awkward.iter_mut().step_by(401).for_each(|s| *s = f64::NAN);
    for settings in all_settings() {
        let compared = assert_comes_back(&settings, &awkward);
        assert!(compared > 2500 * CHANNELS, "{compared}");
    }
}

/// The whole run in one call, also of groups, and in the precision of a float32 file.
#[test]
fn the_same_bits_however_it_is_cut_and_in_groups() {
    let settings = &all_settings()[1];
    let stimuli = stimuli(700);
    let whole = |write: &mut dyn FnMut(&mut [f64])| {
        let (mut whitener, mut responses) = (start::<f64>(settings), vec![0.0; stimuli.len()]);
        whitener.whiten_written(&stimuli, &mut responses, write).unwrap();
        (state(&whitener), responses)
    };
    let (expected, written) = whole(&mut to_int16);
    let mut pieces = start::<f64>(settings);
    let mut responses = vec![0.0; stimuli.len()];
    for (s, r) in stimuli.chunks(CHANNELS * 37).zip(responses.chunks_mut(CHANNELS * 37)) {
        pieces.whiten_written(s, r, &mut to_int16).unwrap();
    }
    assert!(state(&pieces) == expected && responses == written);

    let (_, single) = whole(&mut to_single);
    let mut restored = vec![0.0; stimuli.len()];
    start::<f64>(settings).unwhiten(&single, &mut restored).unwrap();
    assert!(farthest(&restored, &stimuli) < 1e-5);

    let grouped = || {
        let reversed: Vec<usize> = (0..CHANNELS).rev().collect();
        GroupedWhitener::new(vec![(reversed, start::<f64>(settings))]).unwrap()
    };
    let mut written = vec![0.0; stimuli.len()];
    grouped().whiten_written(&stimuli, &mut written, &mut to_int16).unwrap();
    grouped().unwhiten(&written, &mut restored).unwrap();
    assert!(farthest(&restored, &stimuli) < 0.1);
}

#[test]
fn single_precision_is_undone_too() {
    let settings = &all_settings()[0];
    let stimuli: Vec<f32> = narrow(&stimuli(2000));
    let (mut forth, mut back) = (start::<f32>(settings), start::<f32>(settings));
    let (mut written, mut restored) = (vec![0.0; stimuli.len()], vec![0.0; stimuli.len()]);
    forth.whiten_written(&stimuli, &mut written, &mut to_int16).unwrap();
    back.unwhiten(&written, &mut restored).unwrap();
    assert!(state(&forth) == state(&back));
    assert!(farthest(&wide(&restored), &wide(&stimuli)) < 0.1);
}

#[test]
fn what_cannot_be_undone_is_refused() {
    let mut fresh = Whitener::<f64>::new(Matrix::identity(CHANNELS), WhitenerSettings::default()).unwrap();
    let settings = WhitenerSettings { bad_samples: BadSamples::Hold, ..WhitenerSettings::default() };
    for whitener in [&mut fresh, &mut start(&settings)] {
        let outcome = whitener.whiten_written(&[0.0; CHANNELS], &mut [0.0; CHANNELS], &mut to_int16);
        assert!(matches!(outcome, Err(Error::Incompatible { .. })), "{outcome:?}");
    }
    let strict = WhitenerSettings { bad_samples: BadSamples::Error, ..WhitenerSettings::default() };
    let mut rows = stimuli(2);
    rows[CHANNELS + 1] = f64::NAN;
    let outcome = start::<f64>(&strict).whiten_written(&rows, &mut [0.0; 2 * CHANNELS], &mut to_int16);
    assert!(matches!(outcome, Err(Error::BadSample { index, .. }) if index == CHANNELS + 1), "{outcome:?}");
}
