//! Gives the whitener channels that carry nothing, or nothing of their own, and lets them come back.

use leukos::contexts::stream;
use leukos::starts::orthogonal;
use leukos::{Exclusion, Matrix, Span, Whitener, WhitenerSettings};

use crate::whitener_streams::{
    covariance, distance_from_identity, error, gaussian, largest, second_moment, trained, whitened,
    with_channel,
};

/// Two channels that are correlated and one on its own, so that W for all of them is also W for the pair.
fn pair_and_single() -> Matrix {
    Matrix::from_rows(&[[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
}

/// The same axes with other variances along them: 2 C for the pair.
fn pair_twice_as_large() -> Matrix {
    Matrix::from_rows(&[[4.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.5]])
}

const SINGLE: usize = 2;
const STRETCH: usize = 4000;

fn quick() -> WhitenerSettings {
    WhitenerSettings { time_constant: Some(Span::Samples(200.0)), ..WhitenerSettings::default() }
}

/// How far the responses of the pair are from white.
fn pair_distance(responses: &[f64]) -> f64 {
    let pair: Vec<f64> = responses.chunks_exact(3).flat_map(|r| [r[0], r[1]]).collect();
    distance_from_identity(&second_moment(&pair, 2))
}

/// The mean of n squares of Gaussian numbers is off by √(2/n); gains with τ = 200 add half as much once more, and
/// five times that is safe.
fn tolerance(rows: usize) -> f64 {
    5.0 * 1.5 * (2.0 / rows as f64).sqrt()
}

fn assert_left_out_and_back(dead: f64, why: Exclusion) {
    let mut whitener = trained::<f64>(&pair_and_single(), quick());
    whitened(&mut whitener, &gaussian(&pair_and_single(), STRETCH, 1));
    // Meanwhile the pair has another context: what is left goes on adapting.
    let rest = gaussian(&pair_twice_as_large(), STRETCH, 2);
    let responses = whitened(&mut whitener, &with_channel(&rest, 3, SINGLE, |_, _| dead));
    let status = whitener.status();
    assert_eq!(status.excluded, [(SINGLE, why)]);
    assert_eq!(status.samples.exclusions, 1);
    assert!(status.to_string().contains("channel 2     left out"), "{status}");
    let late = &responses[responses.len() / 2..];
    assert!(late.chunks_exact(3).all(|r| r[SINGLE] == 0.0));
    assert!(largest(late) < 10.0, "{}", largest(late));
    assert!(pair_distance(late) < tolerance(STRETCH / 2), "{}", pair_distance(late));
    let back = whitened(&mut whitener, &gaussian(&pair_and_single(), STRETCH, 3));
    assert_eq!((whitener.status().excluded, whitener.status().samples.revivals), (vec![], 1));
    assert!(largest(&back) < 20.0, "{}", largest(&back));
    // √(1/τ) = 0.07 along each axis.
    assert!(error(&whitener, &pair_and_single()) < 4.0 * 0.071, "{}", error(&whitener, &pair_and_single()));
}

#[test]
fn a_channel_that_stops_varying_is_left_out_and_comes_back() {
    assert_left_out_and_back(0.0, Exclusion::Constant);
    assert_left_out_and_back(1.25, Exclusion::Constant);
}

#[test]
fn a_channel_without_numbers_is_left_out_and_comes_back() {
    assert_left_out_and_back(f64::NAN, Exclusion::Bad);
    assert_left_out_and_back(f64::INFINITY, Exclusion::Bad);
}

#[test]
fn while_a_channel_without_numbers_is_not_yet_left_out_its_rows_are_bad() {
    let mut whitener = trained::<f64>(&pair_and_single(), quick());
    let rows = with_channel(&gaussian(&pair_and_single(), 1000, 2), 3, SINGLE, |_, _| f64::NAN);
    let responses = whitened(&mut whitener, &rows);
    // The patience with a channel is one time constant.
    assert_eq!(whitener.status().samples.bad, 200);
    assert!(responses[..600].iter().all(|r| r.is_nan()) && responses[600..].iter().all(|r| r.is_finite()));
}

#[test]
fn a_channel_that_never_varied_is_left_out_until_it_does() {
    let synapses = orthogonal(3, 3, &mut stream(1, 0));
    for level in [0.0, -7.5, 1e6] {
        let mut whitener = Whitener::<f64>::new(synapses.clone(), quick()).unwrap();
        let rows = with_channel(&gaussian(&pair_and_single(), STRETCH, 2), 3, SINGLE, |_, _| level);
        let responses = whitened(&mut whitener, &rows);
        assert_eq!(whitener.status().excluded, [(SINGLE, Exclusion::Constant)], "{level}");
        assert!(largest(&responses) < 20.0, "{level}: {}", largest(&responses));
        whitened(&mut whitener, &gaussian(&pair_and_single(), STRETCH, 3));
        assert_eq!((whitener.status().excluded, whitener.status().samples.revivals), (vec![], 1), "{level}");
    }
}

#[test]
fn a_channel_that_repeats_another_is_named_and_amplifies_nothing() {
    let rows = gaussian(&covariance(4, 6), 2 * STRETCH, 2);
    for factor in [1.0, -3.0] {
        let repeated = with_channel(&rows, 4, 3, |_, row| factor * row[1]);
        let mut whitener =
            Whitener::<f64>::new(orthogonal(4, 4, &mut stream(1, 0)), WhitenerSettings::default()).unwrap();
        let responses = whitened(&mut whitener, &repeated);
        let status = whitener.status();
        assert_eq!(status.duplicates, [(1, 3)], "{factor}");
        assert_eq!(status.rank, Some(3));
        assert!(
            status.to_string().contains("channel 3     carries the same signal as channel 1"),
            "{status}"
        );
        assert!(largest(&responses) < 20.0, "{factor}: {}", largest(&responses));
    }
}

#[test]
fn an_average_reference_costs_a_rank_and_amplifies_nothing() {
    let own = covariance(4, 6);
    let mut rows = gaussian(&own, 10 * STRETCH, 2);
    for row in rows.chunks_exact_mut(4) {
        let mean = row.iter().sum::<f64>() / 4.0;
        row.iter_mut().for_each(|s| *s -= mean);
    }
    let mut whitener = trained::<f64>(&second_moment(&rows, 4), WhitenerSettings::default());
    let responses = whitened(&mut whitener, &rows);
    let status = whitener.status();
    assert_eq!(status.rank, Some(3), "{status}");
    assert_eq!(status.samples.switches, 0, "an empty direction is no new context");
    assert!(largest(&responses) < 10.0, "{}", largest(&responses));
    // The responses are white in the three directions that there are: I − 11ᵀ/4.
    let white = Matrix::from_fn(4, 4, |i, j| if i == j { 0.75 } else { -0.25 });
    let moment = second_moment(&responses[responses.len() / 2..], 4);
    let distance = crate::bridge::farthest(moment.as_slice(), white.as_slice());
    assert!(distance < tolerance(5 * STRETCH), "{distance}");
}
