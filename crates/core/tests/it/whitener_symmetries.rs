//! Holds the whitener to what must not matter: units, offset, how a stream is cut; and to what must hold at every step.

use leukos::contexts::stream;
use leukos::starts::on_sphere;
use leukos::{Matrix, Moments, Real, Span, Whitener, WhitenerSettings, WhitenerTraining};
use proptest::prelude::*;
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::bridge::{bits_of, farthest, wide};
use crate::cases::config;
use crate::whitener_streams::{
    covariance, fit, gaussian, is_positive_definite, largest, mistreated, narrow, scaled, trained, visible,
    whitened,
};

const CHANNELS: usize = 4;
const ROWS: usize = 3000;

fn ordinary() -> Vec<f64> {
    gaussian(&covariance(CHANNELS, 1), ROWS, 1)
}

/// Responses of a whitener that takes mean and scale from the stream, and of one that was trained in the same units.
fn responses_in_units<T: Real>(stimuli: &[f64], factor: f64) -> [Vec<f64>; 2] {
    let stimuli: Vec<T> = narrow(&scaled(stimuli, factor));
    let own = covariance(CHANNELS, 1);
    let synapses = on_sphere(CHANNELS, CHANNELS + 1, &mut stream(1, 4));
    let mut cold = Whitener::new(synapses, WhitenerSettings::default()).unwrap();
    let entries = scaled(own.as_slice(), factor * factor);
    let units = Matrix::from_columns(CHANNELS, CHANNELS, entries).unwrap();
    let mut warm = trained(&units, WhitenerSettings::default());
    [wide(&whitened(&mut cold, &stimuli)), wide(&whitened(&mut warm, &stimuli))]
}

#[test]
fn units_that_differ_by_a_power_of_two_give_the_same_bits() {
    let stimuli: Vec<f64> = wide(&narrow::<f32>(&ordinary()));
    for exponent in [-60, -1, 3, 60] {
        let factor = 2.0_f64.powi(exponent);
        for (own, other) in
            responses_in_units::<f64>(&stimuli, 1.0).iter().zip(&responses_in_units::<f64>(&stimuli, factor))
        {
            assert_eq!(bits_of(own), bits_of(other), "f64, 2^{exponent}");
        }
        for (own, other) in
            responses_in_units::<f32>(&stimuli, 1.0).iter().zip(&responses_in_units::<f32>(&stimuli, factor))
        {
            assert_eq!(bits_of(own), bits_of(other), "f32, 2^{exponent}");
        }
    }
}

#[test]
fn units_from_a_millionth_to_a_million_give_the_same_to_rounding() {
    let stimuli = ordinary();
    for exponent in [-6, -3, 1, 6] {
        let factor = 10.0_f64.powi(exponent);
        for (own, other) in
            responses_in_units::<f64>(&stimuli, 1.0).iter().zip(&responses_in_units::<f64>(&stimuli, factor))
        {
            let difference = farthest(own, other) / largest(own);
            assert!(difference < 1e-9, "f64, 1e{exponent}: {difference:e}");
        }
        // A rounding of f32 is 2^-24; M⁻¹ of condition 10 or so passes it on enlarged, from N inputs and with a few
        // more of its own, and the gains remember a thousand of them, whose mean is smaller than one.
        let bound = 2.0_f64.powi(-24) * 10.0 * 4.0 * CHANNELS as f64;
        for (own, other) in
            responses_in_units::<f32>(&stimuli, 1.0).iter().zip(&responses_in_units::<f32>(&stimuli, factor))
        {
            let difference = farthest(own, other) / largest(own);
            assert!(difference < bound, "f32, 1e{exponent}: {difference:e}, bound {bound:e}");
        }
    }
}

#[test]
fn an_offset_of_1e8_costs_no_more_than_the_rounding_of_the_input() {
    let moved: Vec<f64> = ordinary().iter().map(|s| s + 1e8).collect();
    let stimuli: Vec<f64> = moved.iter().map(|s| s - 1e8).collect();
    let synapses = || on_sphere(CHANNELS, CHANNELS, &mut stream(1, 4));
    let mut near = Whitener::<f64>::new(synapses(), WhitenerSettings::default()).unwrap();
    let mut far = Whitener::<f64>::new(synapses(), WhitenerSettings::default()).unwrap();
    let difference = farthest(&whitened(&mut near, &stimuli), &whitened(&mut far, &moved));
    // Numbers near 1e8 lie 2^-26 apart. The running mean is rounded as often as it moves, at random.
    let rounding = 2.0_f64.powi(-26) * (ROWS as f64).sqrt();
    let amplification = largest(near.whitening_matrix().unwrap().as_slice()) * CHANNELS as f64;
    assert!(difference <= rounding * amplification, "{difference:e}, {:e}", rounding * amplification);
    let means = farthest(&near.mean(), &far.mean().iter().map(|mean| mean - 1e8).collect::<Vec<_>>());
    assert!(means <= rounding, "{means:e}, {rounding:e}");
}

/// What a random case is made from. Proptest makes the sizes small; the seed draws the rest.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    n: usize,
    k: usize,
    update_every: usize,
    strength: f64,
    plastic: bool,
    trained: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1..=6_usize).prop_flat_map(|n| (Just(n), 0..=2 * n, 1..=40_usize));
    let strength = prop_oneof![Just(1.0), Just(0.0), 0.0..1.0];
    (any::<u64>(), sizes, strength, any::<bool>(), any::<bool>()).prop_map(
        |(seed, (n, k, update_every), strength, plastic, trained)| Case {
            seed,
            n,
            k,
            update_every,
            strength,
            plastic,
            trained,
        },
    )
}

impl Case {
    fn rng(self) -> Pcg64 {
        stream(self.seed, 0)
    }

    /// So short of memory that everything happens to it within a thousand rows.
    fn settings(self) -> WhitenerSettings {
        WhitenerSettings {
            time_constant: Some(Span::Samples(40.0)),
            synapse_time_constant: self.plastic.then_some(Span::Samples(600.0)),
            strength: self.strength,
            update_every: Some(self.update_every),
            ..WhitenerSettings::default()
        }
    }

    fn whitener<T: Real>(self) -> Whitener<T> {
        if !self.trained {
            let synapses = on_sphere(self.n, self.k, &mut self.rng());
            return Whitener::new(synapses, self.settings()).unwrap();
        }
        let mut moments = Moments::new(self.n);
        moments.update(&gaussian(&covariance(self.n, self.seed), 200, self.seed)).unwrap();
        let (moments, interneurons) = (vec![moments], Some(self.k));
        fit(&WhitenerTraining { moments, interneurons, ..Default::default() }, self.settings())
    }

    fn stream(self) -> Vec<f64> {
        mistreated(self.n, 1500, &mut stream(self.seed, 5))
    }
}

/// Whitens in pieces of random lengths.
fn whitened_in_pieces<T: Real>(whitener: &mut Whitener<T>, stimuli: &[T], rng: &mut Pcg64) -> Vec<T> {
    let n = whitener.channels();
    let (mut responses, mut rest) = (Vec::new(), stimuli);
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(rest.len().min(n * rng.random_range(0..60_usize)));
        responses.extend(whitened(whitener, piece));
        rest = others;
    }
    responses
}

fn assert_cutting_changes_nothing<T: Real>(case: Case) {
    let stimuli: Vec<T> = narrow(&case.stream());
    let (mut whole, mut cut, mut single) = (case.whitener(), case.whitener(), case.whitener());
    let responses = whitened(&mut whole, &stimuli);
    let in_pieces = whitened_in_pieces(&mut cut, &stimuli, &mut case.rng());
    let one_by_one: Vec<T> =
        stimuli.chunks_exact(case.n).flat_map(|row| whitened(&mut single, row)).collect();
    for (other, whitener) in [(in_pieces, cut), (one_by_one, single)] {
        assert_eq!(bits_of(&responses), bits_of(&other));
        assert_eq!(visible(&whole), visible(&whitener));
        assert_eq!(whole.clone().status(), whitener.clone().status());
    }
}

/// One row at a time, with the map looked at after each, and now and then the circuit.
fn assert_every_step_is_valid<T: Real>(case: Case) {
    let stimuli: Vec<T> = narrow(&case.stream());
    let mut whitener = case.whitener();
    for (index, row) in stimuli.chunks_exact(case.n).enumerate() {
        let response = whitened(&mut whitener, row);
        let usable = row.iter().all(|s| s.is_finite());
        assert!(!usable || response.iter().all(|r| r.is_finite()), "row {index}: {row:?} to {response:?}");
        let Ok(map) = whitener.whitening_matrix() else { continue };
        let live: Vec<usize> = (0..case.n).filter(|&j| map[(j, j)] != 0.0).collect();
        let own = Matrix::from_fn(live.len(), live.len(), |i, j| map[(live[i], live[j])]);
        assert!(is_positive_definite(&own), "after row {index}: {own:?}");
        if index % 100 == 0 {
            let m = whitener.circuit().unwrap().inverse_whitening_matrix();
            assert!(is_positive_definite(&m), "after row {index}: {m:?}");
        }
    }
    let samples = whitener.status().samples;
    assert_eq!(samples.seen, (stimuli.len() / case.n) as u64);
    assert!(samples.learned + samples.bad + samples.outliers + samples.silent <= samples.seen);
}

proptest! {
    #![proptest_config(config(48, 6))]

    #[test]
    fn how_a_stream_is_cut_changes_no_bit(case in cases()) {
        assert_cutting_changes_nothing::<f64>(case);
        assert_cutting_changes_nothing::<f32>(case);
    }

    #[test]
    fn the_map_is_positive_definite_and_the_output_finite_at_every_step(case in cases()) {
        assert_every_step_is_valid::<f64>(case);
        assert_every_step_is_valid::<f32>(case);
    }
}
