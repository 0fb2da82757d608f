//! Shows that a stream is a matter of seed and index alone.

use std::collections::HashSet;

use leukos::contexts::{Law, Schedule, Stimuli, stream};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::{assert_near, two_contexts};

/// A piece of work as an experiment would do it: a schedule and its stimuli, from streams of their own.
fn work(index: u64) -> Vec<u64> {
    let laws = [Law::Gaussian, Law::StudentT { degrees: 3.0 }, Law::Autocorrelated { coefficient: 0.5 }];
    let law = laws[index as usize % 3];
    let schedule = Schedule::sticky(2, 0.1, stream(5, 2 * index)).unwrap();
    let mut stimuli = Stimuli::new(two_contexts(), law, stream(5, 2 * index + 1)).unwrap();
    let mut drawn = vec![0.0_f64; 3 * 400];
    for (stimulus, context) in drawn.chunks_exact_mut(3).zip(schedule) {
        stimuli.fill(context, stimulus).unwrap();
    }
    drawn.into_iter().map(f64::to_bits).collect()
}

fn on_threads(threads: usize) -> Vec<Vec<u64>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| (0..64).into_par_iter().map(work).collect())
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let alone: Vec<Vec<u64>> = (0..64).map(work).collect();
    assert_eq!(on_threads(1), alone);
    assert_eq!(on_threads(4), alone);
    assert_ne!(alone[0], alone[3], "two streams gave the same numbers");
}

const GOLDEN: [u64; 4] =
    [0xfce5_3727_767d_0d45, 0xac62_b63d_2985_3f3b, 0xb8d9_aabe_2611_25b0, 0xb462_386c_2a50_8b11];

#[test]
fn bits_are_those_of_the_documented_recipe() {
    // From the definitions of PCG XSL RR 128/64 and of SplitMix64's finaliser, computed apart.
    let first = |seed, index| stream(seed, index).random::<u64>();
    assert_eq!(first(0, 0), GOLDEN[0]);
    assert_eq!(first(1, 0), GOLDEN[1]);
    assert_eq!(first(0, 1), GOLDEN[2]);
    assert_eq!(first(u64::MAX, 123_456_789), GOLDEN[3]);
}

#[test]
fn pairs_have_streams_of_their_own() {
    let firsts: HashSet<u64> =
        (0..200).flat_map(|seed| (0..200).map(move |index| stream(seed, index).random())).collect();
    assert_eq!(firsts.len(), 200 * 200);
}

#[test]
fn neighbouring_streams_are_not_correlated() {
    let samples = 100_000;
    for ((seed, index), (other_seed, other_index)) in
        [((0, 0), (0, 1)), ((0, 0), (1, 0)), ((3, 4), (4, 3)), ((0, 1), (0, 1 << 63))]
    {
        let (mut a, mut b) = (stream(seed, index), stream(other_seed, other_index));
        let mut draw = || -> f64 {
            let (x, y): (f64, f64) = (StandardNormal.sample(&mut a), StandardNormal.sample(&mut b));
            x * y
        };
        let correlation = (0..samples).map(|_| draw()).sum::<f64>() / f64::from(samples);
        assert_near("correlation", correlation, 0.0, 1.0 / f64::from(samples).sqrt());
    }
}
