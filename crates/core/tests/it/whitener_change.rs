//! Changes units and contexts under a whitener, and counts what it notices.

use leukos::contexts::Law;
use leukos::{Matrix, Moments, SampleCounts, Span, Whitener, WhitenerSettings, WhitenerTraining};

use crate::whitener_streams::{covariance, drawn, error, fit, gaussian, scaled, trained, whitened};

const CHANNELS: usize = 5;

fn context() -> Matrix {
    covariance(CHANNELS, 1)
}

fn in_units(covariance: &Matrix, factor: f64) -> Matrix {
    let entries = scaled(covariance.as_slice(), factor * factor);
    Matrix::from_columns(CHANNELS, CHANNELS, entries).unwrap()
}

/// √(1/τ) = 0.032 along each of five axes; four times that is safe.
const SETTLED: f64 = 4.0 * 0.032;

#[test]
fn a_change_of_units_is_noticed_and_whitened_again_and_so_is_the_way_back() {
    for factor in [1e5, 1e-5] {
        let mut whitener = trained::<f64>(&context(), WhitenerSettings::default());
        whitened(&mut whitener, &gaussian(&context(), 3000, 1));
        assert_eq!(whitener.status().samples.recalibrations, 0);
        for (stretch, factor) in [factor, 1.0].into_iter().enumerate() {
            whitened(&mut whitener, &scaled(&gaussian(&context(), 8000, 2), factor));
            let noticed = whitener.status().samples.recalibrations;
            assert!(noticed > stretch as u64, "{noticed} after x {factor:e}");
            let error = error(&whitener, &in_units(&context(), factor));
            assert!(error < SETTLED, "{error} after x {factor:e}");
        }
    }
}

/// Twenty surprising samples suggest to look back, wherever in a block they end.
#[test]
fn the_way_back_is_short_also_where_state_moves_in_blocks() {
    let settings = WhitenerSettings { update_every: 32, ..WhitenerSettings::default() };
    let mut whitener = trained::<f64>(&context(), settings);
    let scale = whitener.scale();
    whitened(&mut whitener, &gaussian(&context(), 3200, 1));
    whitened(&mut whitener, &scaled(&gaussian(&context(), 6400, 2), 1e5));
    assert!(whitener.scale() > 1e3 * scale, "{}", whitener.scale());
    whitened(&mut whitener, &gaussian(&context(), 96, 3));
    assert_eq!(whitener.scale(), scale);
}

/// While all channels follow one signal, gains along oblique synapses balance one another, large and of both signs, and
/// lead back slowly. Responses are then of an ordinary size, but for a direction or two, so that only the likelihood
/// tells: by their size alone the error is still seven to nine times the twin's after this time constant.
#[test]
fn after_a_stretch_of_rank_one_the_prior_leads_back() {
    let n = 12;
    let contexts: Vec<Matrix> = (1..=4).map(|seed| covariance(n, seed)).collect();
    let moments = contexts.iter().map(|c| Moments::of_covariance(c, 1000).unwrap()).collect();
    let training = WhitenerTraining { moments, ..WhitenerTraining::default() };
    let settings = WhitenerSettings { time_constant: Span::Samples(200.0), ..WhitenerSettings::default() };
    for length in [500, 1500] {
        let [mut whitener, mut spared] = [(); 2].map(|()| fit::<f64>(&training, settings.clone()));
        let mut rank_one = gaussian(&contexts[0], length, 5);
        for row in rank_one.chunks_exact_mut(n) {
            let first = row[0];
            row.iter_mut().enumerate().for_each(|(j, s)| *s = first * (1.0 + j as f64));
        }
        whitened(&mut whitener, &rank_one);
        let ordinary = gaussian(&contexts[0], 200, 6);
        whitened(&mut whitener, &ordinary);
        whitened(&mut spared, &ordinary);
        let (error, expected) = (error(&whitener, &contexts[0]), error(&spared, &contexts[0]));
        assert!(error < 1.5 * expected, "{error} against {expected} after {length} rows");
    }
}

#[test]
fn without_interneurons_a_scale_that_fits_is_kept() {
    let mut whitener = Whitener::<f64>::new(Matrix::zeros(CHANNELS, 0), WhitenerSettings::default()).unwrap();
    whitened(&mut whitener, &gaussian(&context(), 3000, 1));
    whitened(&mut whitener, &scaled(&gaussian(&context(), 20_000, 2), 1e5));
    assert_eq!(whitener.status().samples.recalibrations, 1);
    assert!(whitener.scale() > 1e4, "{}", whitener.scale());
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
        assert!(samples.switches >= 1, "seed {seed}: {samples:?}");
    }
}

fn counts_in(law: Law, rows: usize, seed: u64) -> SampleCounts {
    let mut whitener = trained::<f64>(&context(), WhitenerSettings::default());
    whitened(&mut whitener, &drawn(&context(), law, rows, seed));
    whitener.status().samples
}

#[test]
fn no_change_is_noticed_where_there_is_none() {
    let samples = counts_in(Law::Gaussian, 50_000, 1);
    assert_eq!((samples.switches, samples.recalibrations, samples.exclusions), (0, 0, 0), "{samples:?}");
}

/// What is usual is learned, so autocorrelation and heavy tails cause alarms only at first, and seldom. An alarm
/// costs about 200 samples of quick adaptation: one in 2500 samples would leave nine tenths of the stream alone.
#[test]
fn few_changes_are_noticed_in_autocorrelated_and_heavy_tailed_input() {
    for law in [Law::Autocorrelated { coefficient: 0.95 }, Law::StudentT { degrees: 3.0 }] {
        let samples = counts_in(law, 50_000, 2);
        println!("{law:?}: {samples:?}");
        assert!(samples.switches <= 20, "{law:?}: {samples:?}");
        assert_eq!((samples.recalibrations, samples.exclusions), (0, 0), "{law:?}: {samples:?}");
    }
}
