//! Holds the library to what must be true of every circuit: symmetries, frozen parts, and the same bits however
//! a run is cut, watched or spread over threads.

use std::ops::ControlFlow;

use leukos::starts::orthogonal;
use leukos::{
    Circuit, Error, GainRule, Offline, OfflineGains, Online, Real, Rules, Sign, Solver, Step, SynapseRule,
    Synapses, Test, models,
};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use rayon::prelude::*;

use crate::bridge::{self, bits, bits_of, coin, farthest, flat, nested, normals, random_covariance};
use crate::cases::config;
use crate::twin::{self, matmul, matvec, transpose};

/// What a random case is made from. Proptest makes the sizes small; the seed draws the rest.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    n: usize,
    k: usize,
    tied: bool,
}

fn cases(largest: usize) -> impl Strategy<Value = Case> {
    (any::<u64>(), 1..=largest, 0..=largest + 2, any::<bool>()).prop_map(|(seed, n, k, tied)| Case {
        seed,
        n,
        k,
        tied,
    })
}

impl Case {
    fn draw(self) -> (twin::Circuit, twin::Options, Pcg64) {
        let mut rng = Pcg64::seed_from_u64(self.seed);
        let circuit = bridge::random_circuit(self.n, self.k, self.tied, &mut rng);
        let options = bridge::random_options(&mut rng);
        (circuit, options, rng)
    }

    /// The same with signs that are free, as most symmetries need them.
    fn draw_without_sign(self) -> (twin::Circuit, twin::Options, Pcg64) {
        let (circuit, options, rng) = self.draw();
        (circuit, twin::Options { nonnegative: false, ..options }, rng)
    }
}

// ---- Symmetries ----

/// Responses and final circuit of an online run and the circuit of an offline run.
fn runs(
    start: &twin::Circuit,
    options: &twin::Options,
    stimuli: &twin::Matrix,
    covariance: &twin::Matrix,
) -> (twin::Matrix, twin::Circuit, twin::Circuit) {
    let (circuit, rules) = (bridge::circuit(start).unwrap(), bridge::rules(options));
    let (responses, online) = bridge::online(&circuit, rules, stimuli);
    let offline = bridge::offline(&circuit, rules, covariance, 5);
    (responses, bridge::twin_of(&online), bridge::twin_of(&offline))
}

/// Whether an online run comes to its end: what becomes of one that diverges is for other tests.
fn lasts<T: Real>(circuit: &Circuit<T>, rules: Rules<T>, stimuli: &twin::Matrix) -> bool {
    let stimuli = flat::<T>(stimuli);
    let mut run = Online::new(circuit.clone(), rules, &Solver::Direct).unwrap();
    run.advance(&stimuli, &mut vec![T::ZERO; stimuli.len()], &mut ()).is_ok()
}

/// The same of an offline run as well.
fn both_last(circuit: &Circuit, rules: Rules, stimuli: &twin::Matrix, covariance: &twin::Matrix) -> bool {
    let covariances = vec![bridge::square(covariance)];
    let mut offline = Offline::new(circuit.clone(), rules, covariances, OfflineGains::Rule).unwrap();
    lasts(circuit, rules, stimuli) && offline.advance(&[0], 5, &mut ()).is_ok()
}

fn away(a: &twin::Circuit, b: &twin::Circuit) -> f64 {
    bridge::difference(&bridge::circuit::<f64>(a).unwrap(), b)
}

/// How far rounding may part the responses and the two ends of runs that are one but for the order of their sums;
/// `None` for runs so near the edge of the cone that a small change makes them diverge.
///
/// Every step is exact for numbers that are off by about N + K + 4 roundings each, as its sums have so many terms.
/// So 20 steps may part the runs by 20(N + K + 4) ε times what a relative change of the start does to them. That is
/// measured, because it depends on how near M comes to singular on the way.
fn rounding(
    start: &twin::Circuit,
    options: &twin::Options,
    stimuli: &twin::Matrix,
    covariance: &twin::Matrix,
    rng: &mut Pcg64,
) -> Option<[f64; 3]> {
    // Large beside rounding, and small enough that a run follows in proportion.
    const CHANGE: f64 = 1.5e-8;
    let (responses, online, offline) = runs(start, options, stimuli, covariance);
    let terms = start.feedback.len() + start.gains.len() + 4;
    let roundings = (20 * terms) as f64 * f64::EPSILON;
    let mut allowed = [0.0_f64; 3];
    // One change may happen to leave an end where it was; three do not.
    for _ in 0..3 {
        let changed = changed(start, CHANGE, rng);
        if !both_last(&bridge::circuit(&changed).ok()?, bridge::rules(options), stimuli, covariance) {
            return None;
        }
        let (others, online_too, offline_too) = runs(&changed, options, stimuli, covariance);
        let moved = [
            farthest(&responses.concat(), &others.concat()),
            away(&online, &online_too),
            away(&offline, &offline_too),
        ];
        for (allowed, moved) in allowed.iter_mut().zip(moved) {
            *allowed = allowed.max(roundings * moved / CHANGE);
        }
    }
    Some(allowed)
}

fn within(parted: [f64; 3], allowed: [f64; 3]) -> bool {
    parted.iter().zip(allowed).all(|(parted, allowed)| *parted <= allowed)
}

/// The circuit with each of its numbers larger or smaller by this share.
fn changed(circuit: &twin::Circuit, change: f64, rng: &mut Pcg64) -> twin::Circuit {
    let mut changed = circuit.clone();
    let weights = changed.feedback.iter_mut().chain(changed.feedforward.iter_mut().flatten());
    let rest = [&mut changed.gains, &mut changed.multipliers];
    for x in weights.chain(rest).flatten().chain([&mut changed.leak]) {
        *x *= if coin(rng) { 1.0 + change } else { 1.0 - change };
    }
    changed
}

/// The circuit with `change` made to each of its synapse vectors, forth and back.
fn with_columns(circuit: &twin::Circuit, change: impl Fn(usize, &[f64]) -> Vec<f64>) -> twin::Circuit {
    let changed = |columns: twin::Matrix| -> twin::Matrix {
        columns.iter().enumerate().map(|(i, column)| change(i, column)).collect()
    };
    let columns = (0..circuit.gains.len()).map(|i| twin::column(&circuit.feedback, i)).collect();
    let back = changed(columns);
    let row = |a: usize| back.iter().map(|column| column[a]).collect();
    twin::Circuit {
        feedback: (0..circuit.feedback.len()).map(row).collect(),
        feedforward: circuit.feedforward.clone().map(changed),
        ..circuit.clone()
    }
}

fn permuted(circuit: &twin::Circuit, order: &[usize]) -> twin::Circuit {
    let pick = |values: &[f64]| order.iter().map(|&i| values[i]).collect::<Vec<_>>();
    twin::Circuit {
        feedback: circuit.feedback.iter().map(|row| pick(row)).collect(),
        feedforward: circuit
            .feedforward
            .as_ref()
            .map(|rows| order.iter().map(|&i| rows[i].clone()).collect()),
        gains: pick(&circuit.gains),
        multipliers: pick(&circuit.multipliers),
        leak: circuit.leak,
    }
}

proptest! {
    #![proptest_config(config(48, 1))]

    /// Interneurons have no order: permuting them permutes the result.
    #[test]
    fn interneurons_can_be_permuted(case in cases(8)) {
        let (start, options, mut rng) = case.draw();
        let (stimuli, covariance) = (normals(20, case.n, &mut rng), random_covariance(case.n, &mut rng));
        let mut order: Vec<usize> = (0..case.k).collect();
        order.shuffle(&mut rng);
        prop_assume!(both_last(&bridge::circuit(&start).unwrap(), bridge::rules(&options), &stimuli, &covariance));
        let allowed = rounding(&start, &options, &stimuli, &covariance, &mut rng);
        prop_assume!(allowed.is_some());
        let (responses, online, offline) = runs(&start, &options, &stimuli, &covariance);
        let (others, online_too, offline_too) = runs(&permuted(&start, &order), &options, &stimuli, &covariance);
        let parted = [
            farthest(&responses.concat(), &others.concat()),
            away(&permuted(&online, &order), &online_too),
            away(&permuted(&offline, &order), &offline_too),
        ];
        prop_assert!(within(parted, allowed.unwrap()), "{:?} where {:?} are allowed", parted, allowed);
    }

    /// The sign of a synapse vector has no meaning: flipping it flips it in the result and changes nothing else.
    #[test]
    fn synapse_vectors_can_change_sign(case in cases(20)) {
        let (start, options, mut rng) = case.draw_without_sign();
        let (stimuli, covariance) = (normals(20, case.n, &mut rng), random_covariance(case.n, &mut rng));
        let signs: Vec<f64> = (0..case.k).map(|_| if coin(&mut rng) { 1.0 } else { -1.0 }).collect();
        let flip = |circuit: &twin::Circuit| {
            with_columns(circuit, |i, column| column.iter().map(|w| signs[i] * w).collect())
        };
        prop_assume!(both_last(&bridge::circuit(&start).unwrap(), bridge::rules(&options), &stimuli, &covariance));
        let (responses, online, offline) = runs(&start, &options, &stimuli, &covariance);
        let (others, online_too, offline_too) = runs(&flip(&start), &options, &stimuli, &covariance);
        // Not a rounding error apart, because rounding knows no sign.
        prop_assert_eq!(responses, others);
        prop_assert_eq!(flip(&online), online_too);
        prop_assert_eq!(flip(&offline), offline_too);
    }

    /// No direction is special: turning synapses and stimuli turns responses and changes nothing else.
    #[test]
    fn coordinates_can_be_rotated(case in cases(8)) {
        let (start, options, mut rng) = case.draw_without_sign();
        let (stimuli, covariance) = (normals(20, case.n, &mut rng), random_covariance(case.n, &mut rng));
        let rotation = nested(&orthogonal(case.n, case.n, &mut rng));
        let turn = |circuit: &twin::Circuit| with_columns(circuit, |_, column| matvec(&rotation, column));
        let turn_rows = |rows: &twin::Matrix| rows.iter().map(|row| matvec(&rotation, row)).collect::<Vec<_>>();
        let turned = matmul(&matmul(&rotation, &covariance), &transpose(&rotation));
        prop_assume!(both_last(&bridge::circuit(&start).unwrap(), bridge::rules(&options), &stimuli, &covariance));
        let allowed = rounding(&start, &options, &stimuli, &covariance, &mut rng);
        prop_assume!(allowed.is_some());
        let (responses, online, offline) = runs(&start, &options, &stimuli, &covariance);
        let (others, online_too, offline_too) = runs(&turn(&start), &options, &turn_rows(&stimuli), &turned);
        let parted = [
            farthest(&turn_rows(&responses).concat(), &others.concat()),
            away(&turn(&online), &online_too),
            away(&turn(&offline), &offline_too),
        ];
        prop_assert!(within(parted, allowed.unwrap()), "{:?} where {:?} are allowed", parted, allowed);
    }

    /// Projected synapse vectors have unit length after every step that moves them.
    #[test]
    fn projected_synapses_have_unit_length(case in cases(20)) {
        let (start, options, mut rng) = case.draw();
        let synapse_rate = Some(1e-3);
        let options = twin::Options { unit_norm: twin::UnitNorm::Projected, synapse_rate, ..options };
        let (stimuli, covariance) = (normals(21, case.n, &mut rng), random_covariance(case.n, &mut rng));
        prop_assume!(both_last(&bridge::circuit(&start).unwrap(), bridge::rules(&options), &stimuli, &covariance));
        let (_, online, offline) = runs(&start, &options, &stimuli, &covariance);
        for end in [online, offline] {
            let back = (0..case.k).map(|i| twin::column(&end.feedback, i));
            for column in back.chain(end.feedforward.clone().unwrap_or_default()) {
                let square = twin::dot(&column, &column);
                // Rectification can leave nothing of a vector.
                prop_assert!((square - 1.0).abs() < 1e-14 || (options.nonnegative && square == 0.0), "{}", square);
            }
        }
    }

    // ---- Frozen parts ----

    /// What does not learn keeps every bit.
    #[test]
    fn frozen_parts_keep_every_bit(case in cases(20)) {
        let (start, options, mut rng) = case.draw();
        let (stimuli, covariance) = (normals(20, case.n, &mut rng), random_covariance(case.n, &mut rng));
        let start = bridge::circuit::<f64>(&start).unwrap();
        let rules = bridge::rules::<f64>(&options);
        let gains = Rules { gains: GainRule::Frozen, ..rules };
        let synapses = Rules { synapses: SynapseRule::Frozen, ..rules };
        let all = Rules { gains: GainRule::Frozen, synapses: SynapseRule::Frozen, ..rules };
        prop_assume!([gains, synapses, all].iter().all(|rules| both_last(&start, *rules, &stimuli, &covariance)));
        let ends = |rules| {
            [bridge::online(&start, rules, &stimuli).1, bridge::offline(&start, rules, &covariance, 5)]
        };
        for end in ends(gains) {
            prop_assert_eq!(bits_of(end.gains()), bits_of(start.gains()));
        }
        for end in ends(synapses) {
            let end = end.with_gains(start.gains().to_vec()).unwrap();
            prop_assert_eq!(bits(&end), bits(&start), "synapses and multipliers rest together");
        }
        for end in ends(all) {
            prop_assert_eq!(bits(&end), bits(&start));
        }
    }

    // ---- The same bits ----

    /// However a stream is cut into calls, watched or not, a run gives the same bits.
    #[test]
    fn cuts_do_not_change_a_bit(case in cases(20)) {
        assert_cuts::<f64>(case)?;
        assert_cuts::<f32>(case)?;
    }

    /// The same for the two neurons and two interneurons that have a loop of their own.
    #[test]
    fn cuts_do_not_change_a_bit_of_a_pair(seed: u64) {
        let case = Case { seed, n: 2, k: 2, tied: true };
        assert_cuts::<f64>(case)?;
        assert_cuts::<f32>(case)?;
    }

    /// Double precision holds single precision: there and back is exact.
    #[test]
    fn casting_up_and_down_is_exact(case in cases(8)) {
        let (start, ..) = case.draw();
        let single = bridge::circuit::<f32>(&start).unwrap();
        prop_assert_eq!(&single.cast::<f64>().cast::<f32>(), &single);
        prop_assert_eq!(bits(&single.cast::<f64>()), bits(&single));
    }
}

/// Responses and circuit, bit by bit.
type Outcome = (Vec<u64>, Vec<u64>);

/// A run in calls of these lengths; every other call is watched when `watched`.
fn cut<T: Real>(run: &mut Online<T>, stimuli: &[T], lengths: &[usize], watched: bool) -> Outcome {
    let n = run.circuit().neurons();
    let mut responses = vec![T::ZERO; stimuli.len()];
    let mut first = 0;
    for (call, length) in lengths.iter().enumerate() {
        let (part, last) = (first * n..(first + length) * n, first + length);
        let answers = &mut responses[part.clone()];
        let answered = if watched && call % 2 == 0 {
            run.advance(&stimuli[part], answers, &mut |_: &Step<T>| ControlFlow::Continue(()))
        } else {
            run.advance(&stimuli[part], answers, &mut ())
        };
        assert_eq!(answered.unwrap(), *length);
        first = last;
    }
    assert_eq!(run.steps(), first as u64);
    (bits_of(&responses), bits(run.circuit()))
}

fn assert_cuts<T: Real>(case: Case) -> Result<(), TestCaseError> {
    const ROWS: usize = 90;
    let (start, options, mut rng) = case.draw();
    let (start, rules) = (bridge::circuit::<T>(&start).unwrap(), bridge::rules(&options));
    let stimuli = normals(ROWS, case.n, &mut rng);
    prop_assume!(lasts(&start, rules, &stimuli));
    let stimuli = flat::<T>(&stimuli);
    let tolerance = T::from_f64(1e-4);
    let dynamics = Solver::Dynamics { rate: None, tolerance, max_iterations: 100_000 };
    let solvers = [Solver::Direct, dynamics, Solver::Iterative { tolerance }];
    for solver in &solvers[..if case.tied { 3 } else { 2 }] {
        let run = || Online::new(start.clone(), rules, solver).unwrap();
        let whole = cut(&mut run(), &stimuli, &[ROWS], false);
        for lengths in [vec![1; ROWS], vec![0, 7, 64, 1, 0, 18]] {
            prop_assert_eq!(
                &cut(&mut run(), &stimuli, &lengths, false),
                &whole,
                "{:?}: {:?}",
                solver,
                lengths
            );
            prop_assert_eq!(&cut(&mut run(), &stimuli, &lengths, true), &whole, "{:?}: watched", solver);
        }
        prop_assert_eq!(&cut(&mut run(), &stimuli, &[ROWS], true), &whole, "{:?}: watched whole", solver);
    }
    Ok(())
}

/// A seed gives the same bits on any number of threads.
#[test]
fn threads_do_not_change_a_bit() {
    let one = |seed: u64| {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (n, k) = (2 + seed as usize % 24, 2 + seed as usize % 30);
        let start =
            bridge::circuit::<f64>(&bridge::random_circuit(n, k, !seed.is_multiple_of(3), rng)).unwrap();
        let rules = bridge::rules(&bridge::random_options(rng));
        let (responses, online) = bridge::online(&start, rules, &normals(30, n, rng));
        let offline = bridge::offline(&start, rules, &random_covariance(n, rng), 5);
        (bits_of(&responses.concat()), bits(&online), bits(&offline))
    };
    let alone: Vec<_> = (0..60).map(one).collect();
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let together: Vec<_> = pool.install(|| (0..60).into_par_iter().map(one).collect());
        assert_eq!(together, alone, "{threads} threads");
    }
}

// ---- What a run hands out ----

/// Solvers that do not check every step check the last one: no circuit leaves a run without a certificate.
#[test]
fn into_circuit_certifies() {
    let solvers = [
        Solver::Iterative { tolerance: 1e-9 },
        Solver::Dynamics { rate: None, tolerance: 1e-9, max_iterations: 100_000 },
    ];
    for solver in solvers {
        for (silent_steps, valid) in [(1, true), (2, false), (63, false)] {
            // In silence each gain falls by ½ a step: M = 1.2 I becomes 0.7 I and 0.2 I, then negative.
            let synapses = Synapses::tied(leukos::Matrix::identity(3)).unwrap();
            let circuit = Circuit::new(synapses, vec![0.7; 3], 0.1).unwrap();
            let rules = models::multi_timescale(0.5, 1e-3).rules;
            let mut run = Online::new(circuit, rules, &solver).unwrap();
            let silence = vec![0.0; 3 * silent_steps];
            run.advance(&silence, &mut vec![0.0; silence.len()], &mut ()).unwrap();
            match run.into_circuit() {
                Ok(circuit) => {
                    assert!(valid, "{solver:?} after {silent_steps}");
                    circuit.whitening_matrix().unwrap();
                }
                Err(Error::Diverged(diverged)) => {
                    assert!(!valid, "{solver:?} after {silent_steps}");
                    assert_eq!(diverged.test, Test::Cholesky { pivot: 0 });
                    assert_eq!((diverged.step, diverged.last_valid_step), (silent_steps as u64, 0));
                    diverged.circuit.whitening_matrix().unwrap();
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

/// Under [`Sign::NonNegative`] what starts without a negative number stays without one.
#[test]
fn signs_are_kept() {
    for seed in 0..40 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let mut start = bridge::random_circuit(4, 5, seed % 2 == 0, rng);
        start = with_columns(&start, |_, column| column.iter().map(|w| w.abs()).collect());
        let options = twin::Options { nonnegative: true, ..bridge::random_options(rng) };
        let circuit = bridge::circuit::<f64>(&start).unwrap();
        let rules = Rules { sign: Sign::NonNegative, ..bridge::rules(&options) };
        let (_, end) = bridge::online(&circuit, rules, &normals(200, 4, rng));
        let parts = bridge::twin_of(&end);
        let weights =
            parts.feedback.concat().into_iter().chain(parts.feedforward.unwrap_or_default().concat());
        assert!(weights.chain(parts.gains).chain(parts.multipliers).all(|x| x >= 0.0), "seed {seed}");
    }
}
