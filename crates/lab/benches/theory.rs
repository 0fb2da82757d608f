//! Times what stands beside the single step: ensembles of small circuits.
//!
//! `cargo bench --bench theory`. Data is made off the clock; times are the minimum over many repetitions.

use std::time::{Duration, Instant};

use leukos::{Circuit, Ensemble, Online, Solver, Synapses, models, starts};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

fn main() {
    ensembles();
}

/// Time for one circuit and one sample, alone and in an ensemble of 256.
fn ensembles() {
    const COUNT: usize = 256;
    // Few enough to stay near the processor, as they do where they are drawn block by block.
    const SAMPLES: usize = 64;
    let rng = &mut Pcg64::seed_from_u64(0);
    let circuit = |rng: &mut Pcg64| {
        Circuit::new(Synapses::tied(starts::orthogonal(2, 2, rng)).expect("finite"), vec![1.0, 2.0], 1.0)
            .expect("valid")
    };
    let circuits: Vec<Circuit> = (0..COUNT).map(|_| circuit(rng)).collect();
    let stimuli: Vec<f64> =
        (0..2 * COUNT * SAMPLES).map(|_| StandardNormal.sample(rng)).map(|x: f64| 2.0 * x).collect();
    let mut responses = vec![0.0; stimuli.len()];
    let rules = models::multi_timescale(0.01, 1e-4).rules;

    let mut alone = Online::new(circuits[0].clone(), rules, &Solver::Direct).expect("a valid start");
    let own = &stimuli[..2 * SAMPLES];
    let single = minimum(|| {
        alone.advance(own, &mut responses[..2 * SAMPLES], &mut ()).expect("stays valid");
    }) / SAMPLES as f64;
    let mut ensemble = Ensemble::new(&circuits, rules).expect("valid starts");
    let each = minimum(|| {
        ensemble.advance(&stimuli, &mut responses).expect("finite stimuli");
    }) / (SAMPLES * COUNT) as f64;
    println!(
        "N = K = 2, one step: alone {:.2} ns, in an ensemble of {COUNT} {:.2} ns each, {:.1} times the rate",
        1e9 * single,
        1e9 * each,
        single / each
    );
}

/// The shortest of many runs, in seconds.
fn minimum(mut run: impl FnMut()) -> f64 {
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < 1.0 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed());
    }
    best.as_secs_f64()
}
