//! Learns from a stream whose context switches, then shows how fast a new context is whitened by gains alone.
//!
//! `cargo run --release -p leukos --example switching_contexts`

use std::ops::ControlFlow;

use leukos::{Circuit, Matrix, Solver, Step, Synapses, models, starts, whitening_error};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

const SAMPLES: usize = 1000;

fn main() -> Result<(), leukos::Error> {
    let rng = &mut Pcg64::seed_from_u64(1);
    // Each context stretches the stimuli along two directions that all contexts share.
    let shared = Matrix::from_rows(&[[0.95, 0.20], [0.31, 0.98]]);
    let context = |rng: &mut Pcg64| -> Result<Matrix, leukos::Error> {
        let gains = vec![rng.random_range(0.0..4.0), rng.random_range(0.0..4.0)];
        Ok(Circuit::new(Synapses::tied(shared.clone())?, gains, 1.0)?.inverse_whitening_matrix())
    };

    let synapses = Synapses::tied(starts::on_sphere(2, 2, rng))?;
    let start = Circuit::new(synapses, vec![0.0, 0.0], 1.0)?;
    let mut run = models::multi_timescale(0.05, 1e-4).online(start.clone(), &Solver::Direct)?;
    let mut responses = vec![0.0; 2 * SAMPLES];
    for _ in 0..500 {
        run.advance(&stimuli(&context(rng)?, rng), &mut responses, &mut ())?;
    }
    let learned = run.into_circuit()?;

    println!("whitening error in new contexts, by samples since the switch (synapses frozen)");
    println!("{:>10} {:>18} {:>18}", "samples", "synapses as drawn", "synapses learned");
    let contexts = (0..200).map(|_| context(rng)).collect::<Result<Vec<_>, _>>()?;
    let before = errors_after_switches(&start, &contexts, rng)?;
    let after = errors_after_switches(&learned, &contexts, rng)?;
    for samples in [0, 10, 30, 100, 300, 999] {
        println!("{samples:>10} {:>18.3} {:>18.3}", before[samples], after[samples]);
    }
    Ok(())
}

/// Stimuli N(0, M²).
fn stimuli(m: &Matrix, rng: &mut Pcg64) -> Vec<f64> {
    let mut rows = Vec::with_capacity(2 * SAMPLES);
    for _ in 0..SAMPLES {
        let normal: [f64; 2] = std::array::from_fn(|_| StandardNormal.sample(rng));
        rows.extend((0..2).map(|i| m[(i, 0)] * normal[0] + m[(i, 1)] * normal[1]));
    }
    rows
}

/// The error at each sample after a switch, averaged over contexts, while only gains move.
fn errors_after_switches(
    circuit: &Circuit,
    contexts: &[Matrix],
    rng: &mut Pcg64,
) -> Result<Vec<f64>, leukos::Error> {
    let mut run = models::gain_modulation(0.05).online(circuit.clone(), &Solver::Direct)?;
    let mut responses = vec![0.0; 2 * SAMPLES];
    let mut mean = vec![0.0; SAMPLES];
    for m in contexts {
        let covariance = Matrix::from_fn(2, 2, |i, j| m[(i, 0)] * m[(0, j)] + m[(i, 1)] * m[(1, j)]);
        let mut sample = 0;
        let mut measure = |step: &Step| {
            let error = whitening_error(&step.circuit.inverse_whitening_matrix(), &covariance);
            mean[sample] += error.unwrap_or(f64::NAN) / contexts.len() as f64;
            sample += 1;
            ControlFlow::Continue(())
        };
        run.advance(&stimuli(m, rng), &mut responses, &mut measure)?;
    }
    Ok(mean)
}
