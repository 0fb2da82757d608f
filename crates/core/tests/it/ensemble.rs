//! Shows that each circuit of an ensemble moves exactly as it would alone.

use leukos::{Circuit, Ensemble, Error, Online, Real, Rules, Solver, models};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{self, normal};

const SAMPLES: usize = 300;

fn circuits<T: Real>(count: usize, rng: &mut Pcg64) -> Vec<Circuit<T>> {
    (0..count).map(|_| bridge::circuit(&bridge::random_circuit(2, 2, true, rng)).unwrap()).collect()
}

/// Stimuli in the ensemble's layout: sample, neuron, circuit.
fn stimuli<T: Real>(count: usize, scale: f64, rng: &mut Pcg64) -> Vec<T> {
    (0..2 * SAMPLES * count).map(|_| T::from_f64(scale * normal(rng))).collect()
}

fn of_circuit<T: Copy>(block: &[T], count: usize, circuit: usize) -> Vec<T> {
    block.chunks_exact(count).map(|row| row[circuit]).collect()
}

/// Runs circuits together and one by one; every bit must agree, also of those that diverge.
fn assert_same_bits<T: Real>(count: usize, rules: Rules<T>, scale: f64, seed: u64) -> usize {
    let rng = &mut Pcg64::seed_from_u64(seed);
    let (circuits, stimuli) = (circuits::<T>(count, rng), stimuli::<T>(count, scale, rng));
    let mut ensemble = Ensemble::new(&circuits, rules).unwrap();
    let mut responses = vec![T::ZERO; stimuli.len()];
    // In two calls of uneven length.
    let cut = 2 * count * rng.random_range(0..SAMPLES);
    ensemble.advance(&stimuli[..cut], &mut responses[..cut]).unwrap();
    ensemble.advance(&stimuli[cut..], &mut responses[cut..]).unwrap();

    let mut fallen = 0;
    for (i, (circuit, together)) in circuits.into_iter().zip(ensemble.circuits()).enumerate() {
        let mut run = Online::new(circuit, rules, &Solver::Direct).unwrap();
        let mut alone = vec![T::from_f64(f64::NAN); 2 * SAMPLES];
        let outcome = run.advance(&of_circuit(&stimuli, count, i), &mut alone, &mut ());
        match (outcome, together) {
            (Ok(_), Ok(circuit)) => assert_eq!(*run.circuit(), circuit),
            (Err(Error::Diverged(alone)), Err(Error::Diverged(together))) => {
                assert_eq!(alone, together);
                fallen += 1;
            }
            (alone, together) => panic!("circuit {i}: alone {alone:?}, together {together:?}"),
        }
        let bits = |values: &[T]| values.iter().map(|x| x.to_f64().to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&alone), bits(&of_circuit(&responses, count, i)), "responses of circuit {i}");
    }
    fallen
}

#[test]
fn each_lane_gives_the_bits_of_the_scalar_run() {
    for seed in 0..20 {
        let options = bridge::random_options(&mut Pcg64::seed_from_u64(seed));
        let options = crate::twin::Options { batch: 1, ..options };
        let count = [1, 7, 16, 17, 40][seed as usize % 5];
        assert_same_bits::<f64>(count, bridge::rules(&options), 1.0, seed);
        assert_same_bits::<f32>(count, bridge::rules(&options), 1.0, seed);
    }
}

#[test]
fn circuits_that_diverge_leave_the_others_alone() {
    let rules = models::multi_timescale(0.2, 0.02).rules;
    let fallen: usize = (0..10).map(|seed| assert_same_bits::<f64>(40, rules, 2.0, seed)).sum();
    assert!(fallen > 20 && fallen < 380, "{fallen} of 400 diverged");
    // Overflow, in the response and in the update.
    assert_same_bits::<f64>(20, models::multi_timescale(1e-2, 1e-4).rules, 1e160, 0);
    assert_same_bits::<f32>(20, models::multi_timescale(1e-2, 1e-4).rules, 1e30, 0);
}

#[test]
fn an_ensemble_refuses_what_it_cannot_run() {
    let rng = &mut Pcg64::seed_from_u64(0);
    let rules = models::multi_timescale(1e-2, 1e-4).rules;
    let other: Circuit = bridge::circuit(&bridge::random_circuit(3, 2, true, rng)).unwrap();
    assert!(matches!(Ensemble::new(&[other], rules), Err(Error::Incompatible { .. })));
    let untied: Circuit = bridge::circuit(&bridge::random_circuit(2, 2, false, rng)).unwrap();
    assert!(matches!(Ensemble::new(&[untied], rules), Err(Error::Incompatible { .. })));
    let mut ensemble = Ensemble::new(&circuits::<f64>(3, rng), rules).unwrap();
    assert!(matches!(ensemble.advance(&[0.0; 7], &mut [0.0; 7]), Err(Error::Shape { .. })));
    assert!(matches!(ensemble.advance(&[f64::NAN; 6], &mut [0.0; 6]), Err(Error::NotFinite { .. })));
    assert_eq!(ensemble.steps(), 0);
    let mut nobody = Ensemble::<f64>::new(&[], rules).unwrap();
    nobody.advance(&[], &mut []).unwrap();
}
