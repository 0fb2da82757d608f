//! Shows that the library and the slow twin agree over random sizes, rules and orders.

use std::ops::ControlFlow;

use leukos::{Offline, OfflineGains, Online, Real, Shown, Solver, Step, whitening_error};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{self, coin, farthest, flat, normals};
use crate::twin;

/// N in 1…40 with the small sizes, where kernels have their special cases, drawn more often; K in 0…2N.
fn random_size(rng: &mut Pcg64) -> (usize, usize) {
    let n = if coin(rng) { rng.random_range(1..=9) } else { rng.random_range(1..=40) };
    (n, rng.random_range(0..=2 * n))
}

/// A random case, and the worst deviations of responses and circuit after an online run.
fn online_deviation<T: Real>(seed: u64, solver: &Solver<T>, only_tied: bool) -> (f64, String) {
    let rng = &mut Pcg64::seed_from_u64(seed);
    let (n, k) = random_size(rng);
    let mut circuit = bridge::random_circuit(n, k, only_tied || rng.random_bool(0.7), rng);
    let options = bridge::random_options(rng);
    let stimuli = normals(40, n, rng);
    let case = format!("seed {seed}: n {n}, k {k}, tied {}, {options:?}", circuit.feedforward.is_none());

    let start = bridge::circuit::<T>(&circuit).unwrap();
    let mut run = Online::new(start, bridge::rules(&options), solver).unwrap();
    let given: Vec<T> = flat(&stimuli);
    let mut responses = vec![T::ZERO; given.len()];
    run.advance(&given, &mut responses, &mut ()).unwrap_or_else(|error| panic!("{case}: {error}"));

    let expected = twin::online(&mut circuit, &stimuli, &options);
    let responses = farthest(&bridge::wide(&responses), &flat::<f64>(&expected));
    (responses.max(bridge::difference(run.circuit(), &circuit)), case)
}

fn assert_online<T: Real>(cases: u64, solver: &Solver<T>, only_tied: bool, tolerance: f64) {
    for seed in 0..cases {
        let (deviation, case) = online_deviation(seed, solver, only_tied);
        assert!(deviation < tolerance, "{case}: {deviation:e}");
    }
}

#[test]
fn online_direct() {
    assert_online::<f64>(400, &Solver::Direct, false, 1e-11);
}

#[test]
fn online_direct_in_single_precision() {
    assert_online::<f32>(200, &Solver::Direct, false, 1e-3);
}

#[test]
fn online_iterative() {
    assert_online::<f64>(150, &Solver::Iterative { tolerance: 1e-13 }, true, 1e-10);
}

#[test]
fn online_dynamics() {
    let solver = Solver::Dynamics { rate: None, tolerance: 1e-13, max_iterations: 100_000 };
    assert_online::<f64>(100, &solver, false, 1e-9);
}

#[test]
fn offline() {
    for seed in 0..200 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (n, k) = random_size(rng);
        let mut circuit = bridge::random_circuit(n, k, rng.random_bool(0.7), rng);
        let options = twin::Options { batch: 1, ..bridge::random_options(rng) };
        let covariances: Vec<_> = (0..3).map(|_| bridge::random_covariance(n, rng)).collect();
        let presented = [0, 2, 1, 2];
        let case = format!("seed {seed}: n {n}, k {k}, {options:?}");

        let start = bridge::circuit::<f64>(&circuit).unwrap();
        let given = covariances.iter().map(bridge::square).collect();
        let mut run = Offline::new(start, bridge::rules(&options), given, OfflineGains::Rule).unwrap();
        let mut errors = Vec::new();
        let mut measure = |step: &Step| {
            let Shown::Covariance { covariance, .. } = step.shown else { unreachable!() };
            errors.push(whitening_error(&step.circuit.inverse_whitening_matrix(), covariance).unwrap());
            ControlFlow::Continue(())
        };
        run.advance(&presented, 3, &mut measure).unwrap_or_else(|error| panic!("{case}: {error}"));

        let expected = twin::offline(&mut circuit, &covariances, &presented, 3, &options);
        let deviation = bridge::difference(run.circuit(), &circuit);
        assert!(deviation < 1e-11, "{case}: circuit {deviation:e}");
        let deviation = farthest(&errors, &flat::<f64>(&expected));
        assert!(deviation < 1e-9, "{case}: errors {deviation:e}");
    }
}

/// Tiles, blocks and what is left of them change with every size, up to where the linear-algebra crate takes over.
#[test]
fn every_size() {
    let options = twin::Options { batch: 1, ..bridge::random_options(&mut Pcg64::seed_from_u64(0)) };
    for n in (1..=48).chain([63, 64, 65, 94, 95, 96, 97]) {
        let rng = &mut Pcg64::seed_from_u64(n as u64);
        let circuit = bridge::random_circuit(n, n + n % 3, true, rng);
        let (start, rules) = (bridge::circuit(&circuit).unwrap(), bridge::rules(&options));

        let (stimuli, mut online) = (normals(3, n, rng), circuit.clone());
        let (responses, ours) = bridge::online(&start, rules, &stimuli);
        let expected = twin::online(&mut online, &stimuli, &options);
        let deviation = farthest(&flat::<f64>(&responses), &flat::<f64>(&expected));
        let deviation = deviation.max(bridge::difference(&ours, &online));
        assert!(deviation < 1e-11, "online, n {n}: {deviation:e}");

        let (covariance, mut offline) = (bridge::random_covariance(n, rng), circuit);
        let ours = bridge::offline(&start, rules, &covariance, 2);
        twin::offline(&mut offline, &[covariance], &[0], 2, &options);
        let deviation = bridge::difference(&ours, &offline);
        assert!(deviation < 1e-11, "offline, n {n}: {deviation:e}");
    }
}
