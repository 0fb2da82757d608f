//! Says on which random cases a property is tested: always the same ones, or new ones where `LEUKOS_SEED` is a number.

use proptest::test_runner::{Config, RngSeed};

/// So many times as many cases are tried where they are new ones.
const MORE: u32 = 16;

/// So many cases from this seed; with `LEUKOS_SEED` more of them, from that and this seed together.
pub fn config(cases: u32, seed: u64) -> Config {
    let given = std::env::var("LEUKOS_SEED").ok();
    let given = given.map(|word| word.parse::<u64>().expect("LEUKOS_SEED: expected a whole number"));
    if let Some(given) = given {
        // Shown where a test fails.
        println!("LEUKOS_SEED={given}");
    }
    let (cases, seed) = given.map_or((cases, seed), |given| (cases * MORE, given.wrapping_add(seed)));
    Config {
        cases,
        // A property that passes over more, as where a run diverges, shows little. One run in a thousand does.
        max_global_rejects: cases / 10,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    }
}
