//! Times what stands beside the single step: ensembles of small circuits, measures, optimal gains, the learner.
//!
//! `cargo bench --bench theory`. Data is made off the clock; times are the minimum over many repetitions.
//! Optimal gains and the learner need the stack of covariances that `LEUKOS_CONTEXTS` names.

use std::hint::black_box;
use std::time::{Duration, Instant};

use leukos::{
    Circuit, Ensemble, Matrix, Online, OptimalGains, Solver, SynapseLearner, Synapses, WhiteningMeter, align,
    models, starts,
};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

fn main() {
    ensembles();
    meters();
    alignment();
    let Some(contexts) = natural_covariances() else {
        println!("optimal gains and the learner: not measured, LEUKOS_CONTEXTS names no stack");
        return;
    };
    optimal_gains(&contexts);
    learner(&contexts);
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
    // Long enough for the call itself not to count.
    let own = &stimuli[..COUNT * SAMPLES];
    let single = minimum(|| {
        alone.advance(own, &mut responses[..own.len()], &mut ()).expect("stays valid");
    }) / (own.len() / 2) as f64;
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

/// Time of one whitening error.
fn meters() {
    const REPEATS: u32 = 1000;
    let rng = &mut Pcg64::seed_from_u64(1);
    for n in [2, 25] {
        let weights = starts::on_sphere(n, n, rng);
        let tied = Synapses::tied(weights.clone()).expect("finite");
        let untied = Synapses::untied(weights.clone(), &weights.transpose()).expect("finite");
        let covariance = Matrix::from_fn(n, n, |i, j| if i == j { 3.0 } else { 0.5 });
        for (name, synapses) in [("tied", tied), ("untied", untied)] {
            let circuit = Circuit::new(synapses, vec![2.0; n], 1.0).expect("valid");
            let mut meter = WhiteningMeter::new(&circuit);
            let time = minimum(|| {
                for _ in 0..REPEATS {
                    black_box(meter.error(black_box(&circuit), black_box(&covariance)).expect("valid"));
                }
            });
            println!("N = K = {n}, {name}: whitening error {:.1} ns", 1e9 * time / f64::from(REPEATS));
        }
    }
}

/// Time of one alignment of random unit columns.
fn alignment() {
    let rng = &mut Pcg64::seed_from_u64(2);
    for (n, k) in [(2, 2), (25, 25), (25, 50), (200, 200)] {
        let (a, b) = (starts::on_sphere(n, k, rng), starts::on_sphere(n, k, rng));
        let time = minimum(|| {
            black_box(align(black_box(&a), black_box(&b)).expect("comparable"));
        });
        println!("N = {n}, K = {k}: alignment {:.2} us", 1e6 * time);
    }
}

/// Mean time and iterations of the optimal gains over the contexts.
fn optimal_gains(contexts: &[Matrix]) {
    let rng = &mut Pcg64::seed_from_u64(3);
    let count = contexts.len() as f64;
    let n = contexts[0].rows();
    let basis = starts::mean_eigenbasis(contexts, n, 1.0, rng).expect("covariances");
    let cases = [
        ("mean eigenbasis", basis),
        ("random", starts::on_sphere(n, n, rng)),
        ("random", starts::on_sphere(n, 2 * n, rng)),
    ];
    for (name, w) in cases {
        let mut iterations = 0;
        let time = minimum(|| {
            let find = |c| OptimalGains::new(&w, c, 1.0).expect("feasible").iterations;
            iterations = contexts.iter().map(find).sum();
        });
        println!(
            "N = {n}, K = {}, {name}: optimal gains {:.0} us, {:.2} iterations",
            w.columns(),
            1e6 * time / count,
            iterations as f64 / count
        );
    }
}

/// Time to learn W to its optimum from a random orthogonal start.
fn learner(contexts: &[Matrix]) {
    let n = contexts[0].rows();
    let start = starts::orthogonal(n, n, &mut Pcg64::seed_from_u64(4));
    let mut progress = None;
    let time = minimum(|| {
        let learner = SynapseLearner::new(start.clone(), contexts.to_vec(), 1.0, 0.0);
        progress = Some(learner.expect("valid").advance(200));
    });
    println!("N = K = {n}, {} contexts: learning {time:.2} s, {progress:?}", contexts.len());
}

/// The stack that `LEUKOS_CONTEXTS` names: a .npy file of float64, whose header ends where its bytes 8 and 9 say.
fn natural_covariances() -> Option<Vec<Matrix>> {
    let bytes = std::fs::read(std::env::var("LEUKOS_CONTEXTS").ok()?).ok()?;
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let numbers: Vec<f64> = bytes[start..].as_chunks().0.iter().map(|&x| f64::from_le_bytes(x)).collect();
    let stack = numbers.chunks_exact(25 * 25).map(|c| Matrix::from_columns(25, 25, c.to_vec()));
    stack.collect::<Result<_, _>>().ok()
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
