//! Shows that schedules have the laws they promise and can be resumed.

use leukos::contexts::{Drift, Schedule, Waypoint, stream};

use super::{assert_near, assert_refused};

const CONTEXTS: usize = 8;

/// Asserts that `shares` (their counts) are uniform, if each of them is a sum of independent draws.
#[track_caller]
fn assert_uniform(what: &str, counts: &[f64]) {
    let total: f64 = counts.iter().sum();
    let share = 1.0 / counts.len() as f64;
    let error = (share * (1.0 - share) / total).sqrt();
    for (i, count) in counts.iter().enumerate() {
        assert_near(&format!("{what} {i}"), count / total, share, error);
    }
}

#[test]
fn blocks_have_their_length_and_a_uniform_independent_order() {
    let (length, blocks) = (3, 80_000);
    let drawn: Vec<usize> =
        Schedule::blocks(CONTEXTS, length, stream(1, 0)).unwrap().take(length * blocks).collect();
    assert!(drawn.chunks_exact(length).all(|block| block.iter().all(|&c| c == block[0])));
    let order: Vec<usize> = drawn.into_iter().step_by(length).collect();
    let mut counts = [0.0; CONTEXTS];
    let mut pairs = [0.0; CONTEXTS * CONTEXTS];
    for &c in &order {
        counts[c] += 1.0;
    }
    for pair in order.chunks_exact(2) {
        pairs[pair[0] * CONTEXTS + pair[1]] += 1.0;
    }
    assert_uniform("context", &counts);
    assert_uniform("pair of contexts", &pairs);
}

#[test]
fn the_sticky_chain_switches_at_its_rate_to_any_other_context() {
    let (switch, samples) = (0.2, 200_000);
    let chain: Vec<usize> =
        Schedule::sticky(CONTEXTS, switch, stream(2, 0)).unwrap().take(samples + 1).collect();
    let mut jumps = [0.0; CONTEXTS];
    for pair in chain.windows(2) {
        jumps[(pair[1] + CONTEXTS - pair[0]) % CONTEXTS] += 1.0;
    }
    let error = (switch * (1.0 - switch) / samples as f64).sqrt();
    assert_near("switch rate", 1.0 - jumps[0] / samples as f64, switch, error);
    assert_uniform("distance of a switch", &jumps[1..]);
    // The chain's eigenvalue 1 − pC/(C − 1) stretches the standard error of the time spent in each context.
    let memory = 1.0 - switch * CONTEXTS as f64 / (CONTEXTS as f64 - 1.0);
    let share = 1.0 / CONTEXTS as f64;
    let error = (share * (1.0 - share) / samples as f64 * (1.0 + memory) / (1.0 - memory)).sqrt();
    for c in 0..CONTEXTS {
        let spent = chain.iter().filter(|&&context| context == c).count() as f64 / chain.len() as f64;
        assert_near("time in a context", spent, share, error);
    }
}

#[test]
fn the_first_context_of_a_chain_is_any() {
    let mut counts = [0.0; CONTEXTS];
    for index in 0..20_000 {
        counts[Schedule::sticky(CONTEXTS, 0.01, stream(3, index)).unwrap().next().unwrap()] += 1.0;
    }
    assert_uniform("first context", &counts);
}

#[test]
fn a_chain_that_never_switches_stays_and_one_that_always_does_never_stays() {
    let stays: Vec<usize> = Schedule::sticky(5, 0.0, stream(4, 0)).unwrap().take(1000).collect();
    assert!(stays.iter().all(|&c| c == stays[0]));
    let leaves: Vec<usize> = Schedule::sticky(2, 1.0, stream(4, 0)).unwrap().take(1000).collect();
    assert!(leaves.windows(2).all(|pair| pair[0] + pair[1] == 1));
    assert!(Schedule::sticky(1, 0.0, stream(4, 0)).unwrap().take(10).all(|c| c == 0));
}

#[test]
fn a_schedule_resumes_where_it_stood() {
    for schedule in [
        Schedule::blocks(CONTEXTS, 7, stream(5, 0)).unwrap(),
        Schedule::sticky(CONTEXTS, 0.3, stream(5, 0)).unwrap(),
    ] {
        let whole: Vec<usize> = schedule.clone().take(500).collect();
        let mut first = schedule;
        let mut parts: Vec<usize> = first.by_ref().take(123).collect();
        let second = first.clone();
        assert_eq!(second, first);
        parts.extend(second.take(377));
        assert_eq!(parts, whole);
    }
}

#[test]
fn a_bad_schedule_is_refused() {
    let rng = || stream(0, 0);
    assert_refused(Schedule::blocks(0, 1, rng()), "contexts: expected 1 or more, got 0");
    assert_refused(Schedule::blocks(1, 0, rng()), "length: expected 1 or more, got 0");
    assert_refused(Schedule::sticky(0, 0.5, rng()), "contexts: expected 1 or more, got 0");
    for switch in [-0.1, 1.1, f64::NAN] {
        assert_refused(Schedule::sticky(3, switch, rng()), "switch: expected a number between 0 and 1");
    }
    assert_refused(Schedule::sticky(1, 0.5, rng()), "contexts: a chain needs a second context");
}

#[test]
fn a_drift_walks_its_path_and_rests_at_the_end() {
    let way = |from, to, fraction| Waypoint { from, to, fraction };
    let mut drift = Drift::new(vec![4, 0, 2], 2).unwrap();
    let walked: Vec<Waypoint> = drift.by_ref().take(3).collect();
    assert_eq!(walked, [way(4, 0, 0.0), way(4, 0, 0.5), way(0, 2, 0.0)]);
    let resumed: Vec<Waypoint> = drift.clone().take(3).collect();
    assert_eq!(resumed, [way(0, 2, 0.5), way(2, 2, 1.0), way(2, 2, 1.0)]);
    assert_refused(Drift::new(vec![], 2), "path: expected at least one context, got none");
    assert_refused(Drift::new(vec![0], 0), "samples: expected 1 or more, got 0");
}
