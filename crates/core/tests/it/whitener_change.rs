//! Changes units and contexts under a whitener, and counts what it notices.

use leukos::contexts::Law;
use leukos::{Matrix, SampleCounts, Span, Whitener, WhitenerSettings};

use crate::whitener_streams::{covariance, drawn, error, gaussian, scaled, trained, whitened};

const CHANNELS: usize = 12;

fn context() -> Matrix {
    covariance(CHANNELS, 1)
}

fn in_units(covariance: &Matrix, factor: f64) -> Matrix {
    let entries = scaled(covariance.as_slice(), factor * factor);
    Matrix::from_columns(CHANNELS, CHANNELS, entries).unwrap()
}

/// A covariance of N channels from n independent samples has an error of about 2 √(N/n) + N/n; half as much again is
/// safe.
fn settled(rows: f64) -> f64 {
    let share = CHANNELS as f64 / rows;
    1.5 * (2.0 * share.sqrt() + share)
}

#[test]
fn a_change_of_units_is_noticed_and_whitened_again_and_so_is_the_way_back() {
    for factor in [1e5, 1e-5] {
        let mut whitener = trained::<f64>(&context(), WhitenerSettings::default());
        whitened(&mut whitener, &gaussian(&context(), 3000, 1));
        assert_eq!(whitener.status().samples.switches, 0);
        for (stretch, factor) in [factor, 1.0].into_iter().enumerate() {
            whitened(&mut whitener, &scaled(&gaussian(&context(), 2000, 2), factor));
            let noticed = whitener.status().samples.switches;
            assert_eq!(noticed, stretch as u64 + 1, "after x {factor:e}");
            let error = error(&whitener, &in_units(&context(), factor));
            assert!(error < settled(2000.0), "{error} after x {factor:e}");
        }
    }
}

/// The new context is believed soon after it has lasted as long as the shortest memory, wherever in a block it began.
#[test]
fn a_change_is_whitened_within_a_few_shortest_memories_also_where_state_moves_in_blocks() {
    for update_every in [None, Some(1), Some(32)] {
        for begins in [3000, 3011] {
            let settings = WhitenerSettings { update_every, ..WhitenerSettings::default() };
            let mut whitener = trained::<f64>(&context(), settings);
            whitened(&mut whitener, &gaussian(&context(), begins, 1));
            whitened(&mut whitener, &scaled(&gaussian(&context(), 200, 2), 1e5));
            let status = whitener.status();
            let at = status.last_change.unwrap();
            // A change begins with the block in which it is seen.
            let earliest = begins - update_every.unwrap_or(CHANNELS / 3);
            assert!(
                (earliest as u64..begins as u64 + 100).contains(&at),
                "{at} for {begins}, {update_every:?}"
            );
            let error = error(&whitener, &in_units(&context(), 1e5));
            assert!(error < settled(100.0), "{error}, {update_every:?}");
        }
    }
}

/// What a stretch of rank one leaves behind stays possible for a while, and is then forgotten.
#[test]
fn after_a_stretch_of_rank_one_it_is_as_good_as_one_that_was_spared() {
    let n = 12;
    let own = covariance(n, 1);
    for length in [500, 1500] {
        let [mut whitener, mut spared] = [(); 2].map(|()| trained::<f64>(&own, WhitenerSettings::default()));
        let mut rank_one = gaussian(&own, length, 5);
        for row in rank_one.chunks_exact_mut(n) {
            let first = row[0];
            row.iter_mut().enumerate().for_each(|(j, s)| *s = first * (1.0 + j as f64));
        }
        whitened(&mut whitener, &rank_one);
        let ordinary = gaussian(&own, 12_000, 6);
        whitened(&mut whitener, &ordinary);
        whitened(&mut spared, &ordinary);
        let (error, expected) = (error(&whitener, &own), error(&spared, &own));
        assert!(error < 1.5 * expected, "{error} against {expected} after {length} rows");
    }
}

#[test]
fn without_interneurons_it_whitens_all_the_same() {
    let mut whitener = Whitener::<f64>::new(Matrix::zeros(CHANNELS, 0), WhitenerSettings::default()).unwrap();
    whitened(&mut whitener, &gaussian(&context(), 4000, 1));
    let error = error(&whitener, &context());
    assert!(error < settled(4000.0), "{error}");
    assert!(whitener.gains().unwrap().is_empty());
}

#[test]
fn a_change_of_context_is_noticed_without_being_told() {
    for seed in 0..5 {
        let other = in_units(&covariance(CHANNELS, 7), 2.0);
        let mut whitener = trained::<f64>(&context(), WhitenerSettings::default());
        whitened(&mut whitener, &gaussian(&context(), 3000, seed));
        assert_eq!(whitener.status().samples.switches, 0, "seed {seed}");
        whitened(&mut whitener, &gaussian(&other, 1000, seed + 10));
        let samples = whitener.status().samples;
        assert_eq!(samples.switches, 1, "seed {seed}: {samples:?}");
        let error = error(&whitener, &other);
        assert!(error < settled(1000.0), "seed {seed}: {error}");
    }
}

fn counts_in(law: Law, rows: usize, settings: WhitenerSettings) -> SampleCounts {
    let mut whitener = trained::<f64>(&context(), settings);
    whitened(&mut whitener, &drawn(&context(), law, rows, 1));
    whitener.status().samples
}

/// Rows of infinite kurtosis look like a change once in a few hundred thousand.
#[test]
fn next_to_no_change_is_noticed_where_there_is_none() {
    let laws = [Law::Gaussian, Law::Autocorrelated { coefficient: 0.95 }, Law::StudentT { degrees: 3.0 }];
    for (law, most) in laws.into_iter().zip([0, 0, 1]) {
        let samples = counts_in(law, 50_000, WhitenerSettings::default());
        assert!(samples.switches <= most && samples.exclusions == 0, "{law:?}: {samples:?}");
    }
}

/// What changes faster than the time constant is signal.
#[test]
fn a_longer_time_constant_is_calmer() {
    let contexts = [context(), covariance(CHANNELS, 7)];
    let noticed = |time_constant| {
        let settings = WhitenerSettings { time_constant, ..WhitenerSettings::default() };
        let mut whitener = trained::<f64>(&context(), settings);
        for visit in 0..20 {
            whitened(&mut whitener, &gaussian(&contexts[visit % 2], 2000, visit as u64));
        }
        whitener.status().samples.switches
    };
    let auto = noticed(None);
    assert!((17..=19).contains(&auto), "{auto} of 19 changes");
    assert_eq!(noticed(Some(Span::Samples(10_000.0))), 0);
}

/// Who follows nothing still needs a map to answer with.
#[test]
fn a_new_whitener_that_follows_nothing_stays_with_its_first_rows() {
    let settings = WhitenerSettings { follow: leukos::Follow::Nothing, ..WhitenerSettings::default() };
    let mut whitener = Whitener::<f64>::new(Matrix::identity(CHANNELS), settings).unwrap();
    let responses = whitened(&mut whitener, &gaussian(&context(), 3000, 1));
    assert!(responses[100 * CHANNELS..].iter().any(|r| *r != 0.0));
    let map = whitener.whitening_matrix().unwrap();
    whitened(&mut whitener, &scaled(&gaussian(&context(), 3000, 2), 10.0));
    assert_eq!(whitener.whitening_matrix().unwrap(), map);
}
