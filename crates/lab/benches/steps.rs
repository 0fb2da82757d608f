//! Times one online and one offline step over sizes, precisions and solvers.
//!
//! `cargo bench` prints a table; `cargo bench -- --json FILE` also writes it for `benches/python/compare.py`.
//! `--sizes 2,25`, `--seconds 0.2` (for each case and round), `--rounds 3` and `--rate 0.001` (of the gains) narrow it down.
//! The state is the same in all: unit columns, orthogonal plus 10 % noise (or Gaussian), gains uniform on
//! [0, 4], leak 1, stimuli N(0, M²), both rates on. Times are the minimum over many repetitions.

use std::time::{Duration, Instant};

use leukos::{Circuit, Matrix, OfflineGains, Real, Solver, Synapses, models, starts};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use serde_json::json;

struct Options {
    sizes: Vec<usize>,
    seconds: f64,
    rounds: usize,
    gain_rate: f64,
    json: Option<String>,
}

struct Row {
    algorithm: &'static str,
    n: usize,
    dtype: &'static str,
    solver: &'static str,
    state: &'static str,
    microseconds: f64,
}

fn main() {
    let options = options();
    // Several rounds, far apart, because other work on the machine comes and goes.
    let mut best: Vec<Row> = Vec::new();
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        let rows = options.sizes.iter().flat_map(|&n| {
            let mut rows = measure::<f64>(n, "float64", &options);
            rows.extend(measure::<f32>(n, "float32", &options));
            rows
        });
        keep_best(&mut best, rows.collect());
    }
    println!(
        "{:<8} {:>5} {:<8} {:<10} {:<10} {:>12}",
        "", "N = K", "dtype", "solver", "weights", "µs a step"
    );
    best.iter().for_each(Row::print);
    if let Some(file) = &options.json {
        let rows: Vec<_> = best.iter().map(Row::json).collect();
        std::fs::write(file, json!({ "rows": rows }).to_string()).expect("the file can be written");
    }
}

/// Rounds measure the same rows in the same order.
fn keep_best(best: &mut Vec<Row>, rows: Vec<Row>) {
    if best.is_empty() {
        *best = rows;
        return;
    }
    for (best, row) in best.iter_mut().zip(rows) {
        best.microseconds = best.microseconds.min(row.microseconds);
    }
}

fn options() -> Options {
    let mut options = Options {
        sizes: vec![2, 5, 16, 25, 64, 256, 1024],
        seconds: 0.2,
        rounds: 3,
        gain_rate: 1e-3,
        json: None,
    };
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} needs a value"));
        match name.as_str() {
            "--sizes" => options.sizes = value.split(',').map(|n| n.parse().expect("a size")).collect(),
            "--seconds" => options.seconds = value.parse().expect("a number of seconds"),
            "--rounds" => options.rounds = value.parse().expect("a number of rounds"),
            "--rate" => options.gain_rate = value.parse().expect("a gain rate"),
            "--json" => options.json = Some(value),
            _ => panic!("unknown option {name}"),
        }
    }
    options
}

impl Row {
    fn json(&self) -> serde_json::Value {
        json!({ "algorithm": self.algorithm, "n": self.n, "dtype": self.dtype, "solver": self.solver,
                "state": self.state, "microseconds": self.microseconds })
    }

    fn print(&self) {
        let Self { algorithm, n, dtype, solver, state, microseconds } = self;
        println!("{algorithm:<8} {n:>5} {dtype:<8} {solver:<10} {state:<10} {microseconds:>12.4}");
    }
}

fn measure<T: Real>(n: usize, dtype: &'static str, options: &Options) -> Vec<Row> {
    // Single precision cannot resolve a residual of 1e-10; the rivals stop at 1e-6, too.
    let tolerance = T::from_f64(if dtype == "float64" { 1e-10 } else { 1e-6 });
    let solvers = [("direct", Solver::Direct), ("iterative", Solver::Iterative { tolerance })];
    let mut rows = Vec::new();
    for state in ["orthogonal", "Gaussian"] {
        for (solver, choice) in &solvers {
            let microseconds = online::<T>(n, state, choice, options);
            rows.push(Row { algorithm: "online", n, dtype, solver, state, microseconds });
        }
    }
    let microseconds = offline::<T>(n, options);
    let (solver, state) = ("direct", "orthogonal");
    rows.push(Row { algorithm: "offline", n, dtype, solver, state, microseconds });
    rows
}

fn start(n: usize, state: &str, rng: &mut Pcg64) -> Circuit {
    let mut weights = match state {
        "orthogonal" => starts::orthogonal(n, n, rng),
        _ => Matrix::zeros(n, n),
    };
    let noise = if state == "orthogonal" { 0.1 } else { 1.0 } / (n as f64).sqrt();
    for w in weights.as_mut_slice() {
        let normal: f64 = StandardNormal.sample(rng);
        *w += noise * normal;
    }
    for i in 0..n {
        let length = weights.column(i).iter().map(|w| w * w).sum::<f64>().sqrt();
        weights.column_mut(i).iter_mut().for_each(|w| *w /= length);
    }
    let gains = (0..n).map(|_| rng.random_range(0.0..4.0)).collect();
    Circuit::new(Synapses::tied(weights).expect("finite"), gains, 1.0).expect("positive definite")
}

/// Stimuli N(0, M²): M times a normal vector, which is what the circuit answers with that vector.
fn stimuli<T: Real>(circuit: &Circuit, samples: usize, rng: &mut Pcg64) -> Vec<T> {
    let (n, m) = (circuit.neurons(), circuit.inverse_whitening_matrix());
    let mut rows = Vec::with_capacity(samples * n);
    for _ in 0..samples {
        let normal: Vec<f64> = (0..n).map(|_| StandardNormal.sample(rng)).collect();
        rows.extend((0..n).map(|i| T::from_f64((0..n).map(|j| m[(i, j)] * normal[j]).sum())));
    }
    rows
}

fn online<T: Real>(n: usize, state: &str, solver: &Solver<T>, options: &Options) -> f64 {
    let rng = &mut Pcg64::seed_from_u64(n as u64);
    let circuit = start(n, state, rng);
    // Long enough for an iterative solver to grow old in, too short to learn the sample by heart.
    let samples = (200_000 / (n * n)).clamp(64, 4096);
    let stimuli = stimuli::<T>(&circuit, samples, rng);
    let mut responses = vec![T::ZERO; stimuli.len()];
    let model =
        models::multi_timescale(T::from_f64(options.gain_rate), T::from_f64(1e-2 * options.gain_rate));
    let circuit = circuit.cast();
    let fresh = || model.online(circuit.clone(), solver).expect("a valid start");
    minimum(options.seconds, fresh, |run| {
        run.advance(&stimuli, &mut responses, &mut ()).expect("the run stays valid");
    }) / samples as f64
}

fn offline<T: Real>(n: usize, options: &Options) -> f64 {
    let rng = &mut Pcg64::seed_from_u64(n as u64);
    let circuit = start(n, "orthogonal", rng);
    let gains = (0..n).map(|_| rng.random_range(0.0..4.0)).collect();
    let m = circuit.clone().with_gains(gains).expect("positive definite").inverse_whitening_matrix();
    let covariance = Matrix::from_fn(n, n, |i, j| (0..n).map(|k| m[(i, k)] * m[(k, j)]).sum::<f64>());
    let covariance = Matrix::from_fn(n, n, |i, j| covariance[(i.min(j), i.max(j))]).cast();
    let model = models::multi_timescale_offline(T::from_f64(1e-2), T::from_f64(1e-3));
    let circuit = circuit.cast();
    let fresh = || {
        model.offline(circuit.clone(), vec![covariance.clone()], OfflineGains::Rule).expect("a valid start")
    };
    let steps = (50_000 / (n * n)).clamp(2, 1000);
    minimum(options.seconds, fresh, |run| {
        run.advance(&[0], steps, &mut ()).expect("the run stays valid");
    }) / steps as f64
}

/// The shortest of many runs, each from a fresh start made off the clock, in microseconds.
fn minimum<R>(seconds: f64, fresh: impl Fn() -> R, mut advance: impl FnMut(&mut R)) -> f64 {
    let mut best = Duration::MAX;
    let begin = Instant::now();
    let mut repetitions = 0;
    while repetitions < 3 || begin.elapsed().as_secs_f64() < seconds {
        let mut run = fresh();
        let start = Instant::now();
        advance(&mut run);
        best = best.min(start.elapsed());
        repetitions += 1;
    }
    best.as_secs_f64() * 1e6
}
