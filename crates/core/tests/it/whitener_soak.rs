//! Leaves whiteners running on abused input for a short while; `examples/soak` does it for long.

#[path = "../../examples/soak/abuse.rs"]
#[allow(dead_code)]
mod abuse;

use abuse::{Soak, Victim};
use leukos::TrainingRule;

const SAMPLES: u64 = 60_000;

fn assert_stands(victim: Victim) {
    for seed in [1, 2, 3] {
        let verdict = Soak::<f64>::new(victim, seed).unwrap().run(SAMPLES).unwrap();
        let case = format!("{victim:?}, seed {seed}");
        assert!(verdict.samples >= SAMPLES && verdict.episodes > 0, "{case}");
        assert_eq!((verdict.indefinite, verdict.not_finite), (0, 0), "{case}");
        assert!(verdict.failures().is_empty(), "{case}: {:?}", verdict.failures());
    }
}

#[test]
fn as_many_interneurons_as_channels() {
    assert_stands(Victim { channels: 4, interneurons: 4, rule: TrainingRule::None, plastic: false });
}

#[test]
fn fewer_interneurons_than_channels() {
    assert_stands(Victim { channels: 5, interneurons: 3, rule: TrainingRule::Optimal, plastic: false });
}

#[test]
fn synapses_that_learn_meanwhile() {
    assert_stands(Victim { channels: 4, interneurons: 4, rule: TrainingRule::Optimal, plastic: true });
}
