//! Shows what strength means, and that responses can be turned back into stimuli.

use leukos::{BadSamples, Error, Matrix, Moments, Real, Span, Whitener, WhitenerSettings, WhitenerTraining};

use crate::bridge::{farthest, wide};
use crate::twin;
use crate::whitener_streams::{
    covariance, distance_from_identity, fit, frozen, gaussian, largest, narrow, trained, whitened,
    with_channel,
};

const CHANNELS: usize = 4;
const STRENGTHS: [f64; 4] = [0.0, 0.3, 0.7, 1.0];

/// A whitener that has adapted to another context than the one it was trained on.
fn adapted<T: Real>(strength: f64) -> Whitener<T> {
    let settings = WhitenerSettings { strength, ..WhitenerSettings::default() };
    let mut whitener = trained(&covariance(CHANNELS, 1), settings);
    whitened(&mut whitener, &narrow(&other_context(1000)));
    whitener
}

fn other_context(rows: usize) -> Vec<f64> {
    gaussian(&covariance(CHANNELS, 2), rows, 3).iter().map(|s| 3.0 * s + 0.5).collect()
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let rows = |m: &Matrix| crate::bridge::nested(m);
    crate::bridge::square(&twin::matmul(&rows(a), &rows(b)))
}

#[test]
fn strength_mixes_the_whitened_with_the_scaled_input() {
    for strength in STRENGTHS {
        let mut whitener = adapted::<f64>(strength);
        let (scale, matrix) = (whitener.scale(), whitener.whitening_matrix().unwrap());
        whitener.set_strength(1.0).unwrap();
        let whole = whitener.whitening_matrix().unwrap();
        whitener.set_strength(strength).unwrap();
        assert_eq!(whitener.whitening_matrix().unwrap(), matrix);
        // F_s = (1 − s) I/σ + s F.
        let expected = Matrix::from_fn(CHANNELS, CHANNELS, |i, j| {
            strength * whole[(i, j)] + if i == j { (1.0 - strength) / scale } else { 0.0 }
        });
        assert!(farthest(matrix.as_slice(), expected.as_slice()) < 1e-12, "{strength}");
        let (mean, stimuli) = (whitener.mean(), other_context(50));
        whitener.pause();
        let responses = whitened(&mut whitener, &stimuli);
        for (s, r) in stimuli.chunks_exact(CHANNELS).zip(responses.chunks_exact(CHANNELS)) {
            let centred: Vec<f64> = s.iter().zip(&mean).map(|(s, mean)| s - mean).collect();
            let expected = twin::matvec(&crate::bridge::nested(&matrix), &centred);
            assert!(farthest(r, &expected) < 1e-12, "{strength}: {r:?}, {expected:?}");
        }
    }
}

#[test]
fn the_dewhitening_matrix_is_the_inverse_of_the_whitening_matrix() {
    for strength in STRENGTHS {
        let whitener = adapted::<f64>(strength);
        let (forth, back) = (whitener.whitening_matrix().unwrap(), whitener.dewhitening_matrix().unwrap());
        assert!(distance_from_identity(&product(&forth, &back)) < 1e-12, "{strength}");
    }
}

fn assert_frozen_round_trip<T: Real>(tolerance: f64) {
    for strength in STRENGTHS {
        let (whitener, stimuli) = (adapted::<T>(strength), narrow::<T>(&other_context(50)));
        let mut restored = vec![T::ZERO; stimuli.len()];
        whitener.unwhiten_frozen(&frozen(&whitener, &stimuli), &mut restored).unwrap();
        let difference = farthest(&wide(&restored), &wide(&stimuli)) / largest(&wide(&stimuli));
        assert!(difference < tolerance, "{strength}: {difference:e}");
    }
}

#[test]
fn frozen_responses_go_back_to_their_stimuli() {
    assert_frozen_round_trip::<f64>(1e-13);
    // Responses are rounded to 2^-24, and M of condition 10 or so enlarges that.
    assert_frozen_round_trip::<f32>(10.0 * 4.0 * 2.0_f64.powi(-24));
}

/// Replays a run of a whitener that starts as trained. Rows of NaN count as the same.
fn replay_difference(settings: &WhitenerSettings, stimuli: &[f64]) -> f64 {
    let start = || trained::<f64>(&covariance(CHANNELS, 1), settings.clone());
    let responses = whitened(&mut start(), stimuli);
    let mut restored = vec![0.0; stimuli.len()];
    start().unwhiten(&responses, &mut restored).unwrap();
    let rows = stimuli.chunks_exact(CHANNELS).zip(restored.chunks_exact(CHANNELS));
    let differences = rows.map(|(s, restored)| {
        let bad = s.iter().any(|s| s.is_nan());
        assert_eq!(bad, restored.iter().all(|s| s.is_nan()), "{s:?} restored as {restored:?}");
        if bad { 0.0 } else { farthest(s, restored) / largest(s) }
    });
    differences.fold(0.0, f64::max)
}

fn replayed() -> Vec<WhitenerSettings> {
    let settings = |strength, update_every| WhitenerSettings {
        time_constant: Some(Span::Samples(200.0)),
        strength,
        update_every: Some(update_every),
        ..WhitenerSettings::default()
    };
    vec![settings(1.0, 1), settings(0.7, 8), settings(1.0, 8), settings(0.7, 1)]
}

#[test]
fn an_adapting_run_is_replayed_with_its_bad_samples() {
    let mut stimuli = other_context(2000);
    stimuli.iter_mut().step_by(401).for_each(|s| *s = f64::NAN);
    for settings in replayed() {
        let difference = replay_difference(&settings, &stimuli);
        assert!(difference < 1e-6, "{settings:?}: {difference:e}");
    }
}

#[test]
fn an_adapting_run_is_replayed_while_a_channel_is_dead() {
    let stimuli =
        with_channel(&other_context(2000), CHANNELS, 2, |row, s| if row < 500 { s[2] } else { 1.5 });
    for settings in replayed() {
        let difference = replay_difference(&settings, &stimuli);
        assert!(difference < 1e-6, "{settings:?}: {difference:e}");
    }
}

#[test]
fn an_adapting_run_is_replayed_with_a_channel_that_dies_and_revives() {
    let dead = 500..1500;
    let stimuli =
        with_channel(
            &other_context(3000),
            CHANNELS,
            2,
            |row, s| if dead.contains(&row) { 1.5 } else { s[2] },
        );
    for settings in replayed() {
        let difference = replay_difference(&settings, &stimuli);
        assert!(difference < 1e-6, "{settings:?}: {difference:e}");
    }
}

#[test]
fn a_run_that_cannot_be_replayed_is_refused() {
    let argument = |whitener: &mut Whitener, named: &str| {
        let error = whitener.unwhiten(&[0.0; CHANNELS], &mut [0.0; CHANNELS]).unwrap_err();
        assert!(matches!(&error, Error::Incompatible { argument, .. } if argument == named), "{error}");
    };
    argument(
        &mut Whitener::new(Matrix::identity(CHANNELS), WhitenerSettings::default()).unwrap(),
        "whitener",
    );
    for bad_samples in [BadSamples::Hold, BadSamples::Zero] {
        let settings = WhitenerSettings { bad_samples, ..WhitenerSettings::default() };
        argument(&mut trained(&covariance(CHANNELS, 1), settings), "bad_samples");
    }
}

#[test]
fn a_channel_that_is_left_out_goes_back_to_its_last_value() {
    let rows = with_channel(&other_context(300), CHANNELS, 1, |_, _| 2.5);
    let mut moments = Moments::new(CHANNELS);
    moments.update(&rows).unwrap();
    let training = WhitenerTraining { moments: vec![moments], ..Default::default() };
    let whitener = fit::<f64>(&training, WhitenerSettings::default());
    let (responses, mut restored) = (frozen(&whitener, &rows), vec![0.0; rows.len()]);
    assert!(responses.chunks_exact(CHANNELS).all(|r| r[1] == 0.0));
    whitener.unwhiten_frozen(&responses, &mut restored).unwrap();
    assert!(farthest(&restored, &rows) / largest(&rows) < 1e-12);
}
