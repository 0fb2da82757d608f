//! Leaves whiteners running on abused input for a short while; `examples/soak` does it for long.

#[path = "../../examples/soak/abuse.rs"]
#[allow(dead_code)]
mod abuse;

use abuse::{Soak, Victim};
use leukos::Real;

const SAMPLES: u64 = 100_000;

fn assert_stands<T: Real>(victim: Victim) {
    for seed in [1, 2] {
        let verdict = Soak::<T>::new(victim, seed).unwrap().run(SAMPLES, 3000).unwrap();
        let case = format!("{victim:?}, seed {seed}");
        assert!(verdict.samples >= SAMPLES && verdict.outcomes.len() >= abuse::ABUSES.len(), "{case}");
        assert_eq!((verdict.indefinite, verdict.not_finite), (0, 0), "{case}");
        assert!(verdict.lost().is_empty(), "{case}: {:?}", verdict.lost());
    }
}

#[test]
fn as_many_interneurons_as_channels() {
    assert_stands::<f64>(Victim { channels: 4, interneurons: 4, plastic: false });
    assert_stands::<f32>(Victim { channels: 4, interneurons: 4, plastic: false });
}

#[test]
fn fewer_and_more_interneurons_than_channels() {
    assert_stands::<f64>(Victim { channels: 5, interneurons: 3, plastic: false });
    assert_stands::<f32>(Victim { channels: 3, interneurons: 6, plastic: false });
}

#[test]
fn synapses_that_learn_meanwhile() {
    assert_stands::<f64>(Victim { channels: 4, interneurons: 4, plastic: true });
}

#[test]
fn a_single_channel() {
    assert_stands::<f64>(Victim { channels: 1, interneurons: 1, plastic: false });
}
