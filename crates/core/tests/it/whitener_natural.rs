//! Sets the whitener beside the paper's plain rule on natural images.

use std::ops::Range;

use leukos::contexts::{Contexts, Stimuli, stream};
use leukos::{
    Circuit, Matrix, Online, Solver, SynapseLearner, Synapses, Whitener, WhitenerSettings, eigenbasis,
    models, optimal_gains, whitening_error,
};
use rayon::prelude::*;

use crate::natural;
use crate::whitener_streams::{error, trained_on, whitened};

const TEST: [usize; 6] = [12, 26, 30, 33, 37, 45];
const RATES: [f64; 6] = [0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
/// Errors are taken after every so many samples.
const EVERY: usize = 100;

/// The mean over a window of samples of the error of a learner, which is a function of samples.
fn mean_error(stimuli: &[f64], window: &Range<usize>, learn: impl FnMut(&[f64]) -> f64) -> f64 {
    let chunk = stimuli.len() / window.end * EVERY;
    let errors: Vec<f64> = stimuli.chunks_exact(chunk).map(learn).collect();
    let late = &errors[window.start / EVERY..];
    late.iter().sum::<f64>() / late.len() as f64
}

struct Comparison {
    covariances: Vec<Matrix>,
    whitener: Whitener,
    circuit: Circuit,
}

impl Comparison {
    /// Both have synapses that are best for the training contexts, and gains at the mean of the optimal ones: the
    /// whitener in units in which the stimuli have a scale of one, the plain rule in those of the stimuli.
    fn new(covariances: Vec<Matrix>) -> Self {
        let training: Vec<Matrix> =
            (0..covariances.len()).filter(|i| !TEST.contains(i)).map(|i| covariances[i].clone()).collect();
        let whitener = trained_on(&training.iter().collect::<Vec<_>>(), WhitenerSettings::default());
        let circuit = plain_circuit(&training);
        Self { covariances, whitener, circuit }
    }

    /// The whitener's error and then that of every rate, in one context.
    fn in_context(&self, context: usize, seed: u64, window: &Range<usize>) -> Vec<f64> {
        let n = self.circuit.neurons();
        let covariance = &self.covariances[context];
        let contexts = Contexts::new(vec![covariance.clone()]).unwrap();
        let mut stimuli = vec![0.0; window.end * n];
        Stimuli::gaussian(contexts, stream(seed, context as u64)).fill(0, &mut stimuli).unwrap();
        let mut whitener = self.whitener.clone();
        let own = mean_error(&stimuli, window, |samples| {
            whitened(&mut whitener, samples);
            error(&whitener, covariance)
        });
        let plain = RATES.iter().map(|&rate| {
            let mut run =
                models::gain_modulation(rate).online(self.circuit.clone(), &Solver::Direct).unwrap();
            mean_error(&stimuli, window, |samples| plain_error(&mut run, samples, covariance))
        });
        std::iter::once(own).chain(plain).collect()
    }

    /// For the whitener and for every rate, the median over seeds of the mean over test contexts.
    fn medians(&self, seeds: u64, window: &Range<usize>) -> Vec<f64> {
        let over_contexts = |seed| {
            let contexts: Vec<_> =
                TEST.iter().map(|&context| self.in_context(context, seed, window)).collect();
            let mean = |i: usize| contexts.iter().map(|errors| errors[i]).sum::<f64>() / TEST.len() as f64;
            (0..=RATES.len()).map(mean).collect()
        };
        let errors: Vec<Vec<f64>> = (0..seeds).into_par_iter().map(over_contexts).collect();
        (0..=RATES.len()).map(|i| median(errors.iter().map(|errors| errors[i]).collect())).collect()
    }
}

fn plain_circuit(training: &[Matrix]) -> Circuit {
    let start = eigenbasis(&Contexts::new(training.to_vec()).unwrap().mean_covariance()).unwrap();
    let mut learner = SynapseLearner::new(start, training.to_vec(), 1.0, SynapseLearner::GAIN_COST).unwrap();
    learner.advance(300);
    let synapses = learner.synapses().clone();
    let best: Vec<_> = training.iter().map(|c| optimal_gains(&synapses, c, 1.0).unwrap()).collect();
    let mean = |i: usize| best.iter().map(|gains| gains[i]).sum::<f64>() / training.len() as f64;
    let gains = (0..synapses.columns()).map(mean).collect();
    Circuit::new(Synapses::tied(synapses).unwrap(), gains, 1.0).unwrap()
}

/// A run that has diverged has an infinite error.
fn plain_error(run: &mut Online, samples: &[f64], covariance: &Matrix) -> f64 {
    let mut responses = vec![0.0; samples.len()];
    match run.advance(samples, &mut responses, &mut ()) {
        Ok(_) => whitening_error(&run.circuit().inverse_whitening_matrix(), covariance).unwrap(),
        Err(_) => f64::INFINITY,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[values.len() / 2], values[(values.len() - 1) / 2])
}

/// Late it is better than the plain rule at any rate, since its map is not limited to what gains can reach. Early it is
/// not: it estimates a covariance, and 300 samples of 25 channels say less of that than of 25 gains.
#[test]
fn it_is_better_than_the_plain_rule_at_its_best_rate_late() {
    let Some(covariances) = natural::covariances() else { return };
    let comparison = Comparison::new(covariances);
    // Late takes a minute with ten seeds on one core, so it has three here.
    for (name, seeds, window, share) in [("early", 10, 200..300, 1.6), ("late", 3, 5000..10_000, 0.6)] {
        let medians = comparison.medians(seeds, &window);
        println!("{name}: whitener {:.4}, plain {:.4?} at rates {RATES:?}", medians[0], &medians[1..]);
        let best = medians[1..].iter().copied().fold(f64::INFINITY, f64::min);
        assert!(medians[0] <= share * best, "{name}: {} against {best}", medians[0]);
    }
}
