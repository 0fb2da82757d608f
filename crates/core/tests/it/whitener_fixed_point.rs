//! Shows where the whitener comes to rest: at the symmetric root of the covariance, and its circuit where the paper's
//! rests, E[zᵢ²] = ‖wᵢ‖².

use leukos::contexts::stream;
use leukos::starts::orthogonal;
use leukos::{Matrix, Span, Whitener, WhitenerSettings, eigenbasis};

use crate::bridge::farthest;
use crate::whitener_streams::{covariance, error, gaussian, second_moment, whitened};

const CHANNELS: usize = 5;
const ROWS: usize = 60_000;

#[test]
fn it_rests_at_the_symmetric_root_of_the_covariance() {
    let own = covariance(CHANNELS, 2);
    let mut whitener = Whitener::<f64>::new(eigenbasis(&own).unwrap(), WhitenerSettings::default()).unwrap();
    let stimuli = gaussian(&own, ROWS, 2);
    let responses = whitened(&mut whitener, &stimuli);
    let map = whitener.whitening_matrix().unwrap();
    assert_eq!(map, map.transpose());
    // 2 √(5/60000) = 0.018 of a covariance from all rows, and a share of it that is in shorter memories.
    let error = error(&whitener, &own);
    assert!(error < 0.03, "{error}");
    let late = &responses[responses.len() / 2..];
    let moment = second_moment(late, CHANNELS);
    let off = farthest(moment.as_slice(), Matrix::<f64>::identity(CHANNELS).as_slice());
    assert!(off < 5.0 * (2.0 / (ROWS as f64 / 2.0)).sqrt(), "{off}");
}

#[test]
fn the_circuit_rests_where_the_papers_does() {
    let own = covariance(CHANNELS, 2);
    for k in [2, CHANNELS, CHANNELS + 3] {
        let synapses = orthogonal(CHANNELS, k, &mut stream(3, 0));
        let mut whitener = Whitener::<f64>::new(synapses.clone(), WhitenerSettings::default()).unwrap();
        whitened(&mut whitener, &gaussian(&own, ROWS, 2));
        let circuit = whitener.circuit().unwrap();
        // E[z z'] of the covariance in force C is W' M^-1 C M^-1 W in units of the scale.
        let root = whitener.dewhitening_matrix().unwrap();
        let scale = whitener.scale();
        let inverse = circuit.whitening_matrix().unwrap();
        for i in 0..k {
            let w = synapses.column(i);
            let filtered: Vec<f64> =
                (0..CHANNELS).map(|a| (0..CHANNELS).map(|b| inverse[(a, b)] * w[b]).sum::<f64>()).collect();
            let through: Vec<f64> = (0..CHANNELS)
                .map(|a| (0..CHANNELS).map(|b| root[(a, b)] * filtered[b]).sum::<f64>() / scale)
                .collect();
            let square: f64 = through.iter().map(|x| x * x).sum();
            assert!((square - 1.0).abs() < 1e-6, "K {k}, interneuron {i}: {square}");
        }
    }
}

#[test]
fn a_single_channel_rests_at_unit_variance() {
    let mut whitener = Whitener::<f64>::new(Matrix::identity(1), WhitenerSettings::default()).unwrap();
    let responses = whitened(&mut whitener, &gaussian(&Matrix::identity(1), 100_000, 2));
    let late = &responses[responses.len() / 2..];
    let mean = late.iter().map(|r| r * r).sum::<f64>() / late.len() as f64;
    assert!((mean - 1.0).abs() < 5.0 * (2.0 / late.len() as f64).sqrt(), "{mean}");
}

/// Synapses drift from random ones towards those that serve the contexts met.
#[test]
fn synapses_learn_what_contexts_share() {
    let axes = eigenbasis(&covariance(CHANNELS, 9)).unwrap();
    let context = |exponents: [i32; CHANNELS]| {
        Matrix::from_fn(CHANNELS, CHANNELS, |i, j| {
            (0..CHANNELS).map(|k| axes[(i, k)] * 2.0_f64.powi(exponents[k]) * axes[(j, k)]).sum()
        })
    };
    let contexts = [context([4, 0, 2, 1, 3]), context([0, 3, 1, 4, 2]), context([2, 1, 4, 0, 0])];
    let settings = |plastic: bool| WhitenerSettings {
        synapse_time_constant: plastic.then_some(Span::Samples(2000.0)),
        ..WhitenerSettings::default()
    };
    let left = |plastic: bool| {
        let synapses = orthogonal(CHANNELS, CHANNELS, &mut stream(5, 0));
        let mut whitener = Whitener::<f64>::new(synapses, settings(plastic)).unwrap();
        for visit in 0..60 {
            whitened(&mut whitener, &gaussian(&contexts[visit % 3], 1000, visit as u64));
        }
        leukos::align(whitener.synapses(), &axes).unwrap().1
    };
    let (still, learned) = (left(false), left(true));
    assert!(learned < 0.6 * still, "{learned} after learning, {still} before");
}
