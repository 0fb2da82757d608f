//! Shows where the whitener comes to rest, and that both of its forms go there on the same way.

use leukos::contexts::stream;
use leukos::starts::orthogonal;
use leukos::{Matrix, Span, Whitener, WhitenerSettings, eigenbasis};

use crate::bridge::farthest;
use crate::whitener_streams::{covariance, error, gaussian, whitened};

const CHANNELS: usize = 5;
const ROWS: usize = 60_000;

fn projections(synapses: &Matrix, responses: &[f64], i: usize) -> Vec<f64> {
    let project = |r: &[f64]| r.iter().zip(synapses.column(i)).map(|(r, w)| r * w).sum();
    responses.chunks_exact(synapses.rows()).map(project).collect()
}

/// Fails when the mean of zᵢ² is further from 1 than five of its standard errors.
fn assert_unit_variance(synapses: &Matrix, responses: &[f64]) {
    for i in 0..synapses.columns() {
        let squares: Vec<f64> = projections(synapses, responses, i).iter().map(|z| z * z).collect();
        let count = squares.len() as f64;
        let mean = squares.iter().sum::<f64>() / count;
        let variance = squares.iter().map(|square| (square - mean).powi(2)).sum::<f64>() / count;
        let standard_error = (variance / count).sqrt();
        assert!((mean - 1.0).abs() < 5.0 * standard_error, "{i}: {mean}, standard error {standard_error}");
    }
}

#[test]
fn every_interneuron_rests_at_unit_variance() {
    let own = covariance(CHANNELS, 2);
    let synapses = eigenbasis(&own).unwrap();
    let mut whitener = Whitener::<f64>::new(synapses.clone(), WhitenerSettings::default()).unwrap();
    let responses = whitened(&mut whitener, &gaussian(&own, ROWS, 2));
    assert_unit_variance(&synapses, &responses[responses.len() / 2..]);
    // The variance along an axis scatters about 1 by √(1/τ) = 0.032; the error is the largest of five.
    let error = error(&whitener, &own);
    assert!(error < 4.0 * 0.032, "{error}");
}

#[test]
fn the_short_cut_for_orthonormal_synapses_gives_the_responses_of_the_general_form() {
    let own = covariance(CHANNELS, 2);
    let stimuli = gaussian(&own, 5000, 3);
    for k in [0, 2, CHANNELS] {
        let synapses = orthogonal(CHANNELS, k, &mut stream(3, 0));
        // Synapses that take 1e15 samples to learn stand still, but make the whitener use the general form.
        let never = Some(Span::Samples(1e15));
        let general = WhitenerSettings { synapse_time_constant: never, ..WhitenerSettings::default() };
        let mut short = Whitener::<f64>::new(synapses.clone(), WhitenerSettings::default()).unwrap();
        let mut long = Whitener::<f64>::new(synapses, general).unwrap();
        let difference = farthest(&whitened(&mut short, &stimuli), &whitened(&mut long, &stimuli));
        // Both forms compute the same numbers in another order. The gains forget what rounding did to them after a
        // thousand steps, so a thousand roundings of numbers up to ten or so are the most that can be seen.
        assert!(difference < 1000.0 * 10.0 * f64::EPSILON * 10.0, "K {k}: {difference:e}");
    }
}

#[test]
fn without_a_leak_it_rests_at_the_same_place() {
    let own = covariance(CHANNELS, 2);
    let synapses = eigenbasis(&own).unwrap();
    let settings = WhitenerSettings { leak: 0.0, ..WhitenerSettings::default() };
    let mut whitener = Whitener::<f64>::new(synapses, settings).unwrap();
    whitened(&mut whitener, &gaussian(&own, 10_000, 2));
    let error = error(&whitener, &own);
    assert!(error < 4.0 * 0.032, "{error}");
}

#[test]
fn the_interneuron_of_a_single_channel_rests_at_unit_variance() {
    let synapses = Matrix::identity(1);
    let mut whitener = Whitener::<f64>::new(synapses.clone(), WhitenerSettings::default()).unwrap();
    let responses = whitened(&mut whitener, &gaussian(&Matrix::identity(1), 400_000, 2));
    assert_unit_variance(&synapses, &responses[responses.len() / 2..]);
}
