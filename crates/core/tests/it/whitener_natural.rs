//! Sets the whitener beside the paper's plain rule on natural images.

use leukos::contexts::{Contexts, Stimuli, stream};
use leukos::{
    Circuit, Matrix, Moments, Online, Solver, SynapseLearner, Synapses, TrainingRule, TrainingSynapses,
    Whitener, WhitenerSettings, WhitenerTraining, eigenbasis, models, optimal_gains, whitening_error,
};
use rayon::prelude::*;

use crate::natural;
use crate::whitener_streams::{error, fit};

const TEST: [usize; 6] = [12, 26, 30, 33, 37, 45];
const RATES: [f64; 6] = [0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
const SEEDS: u64 = 10;
const SAMPLES: usize = 10_000;
/// When the early error is taken, from when the late one, and how often.
const EARLY: usize = 300;
const LATE: usize = 5000;
const EVERY: usize = 100;

/// The error after the first 300 samples, and the mean error of the later half.
#[derive(Clone, Copy, Default)]
struct Errors {
    early: f64,
    late: f64,
}

/// Feeds one test context to a learner, given as a function of samples that returns its error.
fn errors(stimuli: &[f64], n: usize, mut learn: impl FnMut(&[f64]) -> f64) -> Errors {
    let mut errors = Errors::default();
    for (index, samples) in stimuli.chunks_exact(EVERY * n).enumerate() {
        let (error, seen) = (learn(samples), (index + 1) * EVERY);
        if seen == EARLY {
            errors.early = error;
        }
        if seen > LATE {
            errors.late += error / ((SAMPLES - LATE) / EVERY) as f64;
        }
    }
    errors
}

struct Comparison {
    covariances: Vec<Matrix>,
    whitener: Whitener,
    circuit: Circuit,
}

impl Comparison {
    /// Both have the synapses that are best for the training contexts, and gains at the mean of the optimal ones.
    fn new(covariances: Vec<Matrix>) -> Self {
        let training: Vec<Matrix> =
            (0..covariances.len()).filter(|i| !TEST.contains(i)).map(|i| covariances[i].clone()).collect();
        let start = eigenbasis(&Contexts::new(training.clone()).unwrap().mean_covariance()).unwrap();
        let mut learner =
            SynapseLearner::new(start, training.clone(), 1.0, SynapseLearner::GAIN_COST).unwrap();
        learner.advance(300);
        let synapses = learner.synapses().clone();
        let best: Vec<Vec<f64>> =
            training.iter().map(|c| optimal_gains(&synapses, c, 1.0).unwrap()).collect();
        let mean =
            |i: usize| best.iter().map(|gains: &Vec<f64>| gains[i]).sum::<f64>() / training.len() as f64;
        let gains = (0..synapses.columns()).map(mean).collect();
        let circuit = Circuit::new(Synapses::tied(synapses.clone()).unwrap(), gains, 1.0).unwrap();
        let moments = training.iter().map(|c| Moments::of_covariance(c, 1000).unwrap()).collect();
        let (synapses, rule) = (TrainingSynapses::Given(synapses), TrainingRule::None);
        let training = WhitenerTraining { moments, interneurons: None, synapses, rule };
        let whitener = fit(&training, WhitenerSettings::default());
        Self { covariances, whitener, circuit }
    }

    /// The whitener's errors and then those of every rate, in one context.
    fn in_context(&self, context: usize, seed: u64) -> Vec<Errors> {
        let n = self.circuit.neurons();
        let covariance = &self.covariances[context];
        let contexts = Contexts::new(vec![covariance.clone()]).unwrap();
        let (mut stimuli, mut responses) = (vec![0.0; SAMPLES * n], vec![0.0; EVERY * n]);
        Stimuli::gaussian(contexts, stream(seed, context as u64)).fill(0, &mut stimuli).unwrap();
        let mut whitener = self.whitener.clone();
        let mut all = vec![errors(&stimuli, n, |samples| {
            whitener.whiten(samples, &mut responses).unwrap();
            error(&whitener, covariance)
        })];
        for rate in RATES {
            let mut run = models::gain_modulation(rate).online(self.circuit.clone(), &Solver::Direct).unwrap();
            all.push(errors(&stimuli, n, |samples| plain_error(&mut run, samples, covariance)));
        }
        all
    }

    /// The mean over test contexts.
    fn over_contexts(&self, seed: u64) -> Vec<Errors> {
        let mut means = vec![Errors::default(); RATES.len() + 1];
        for context in TEST {
            for (mean, own) in means.iter_mut().zip(self.in_context(context, seed)) {
                mean.early += own.early / TEST.len() as f64;
                mean.late += own.late / TEST.len() as f64;
            }
        }
        means
    }
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

#[test]
fn it_is_at_least_as_good_as_the_plain_rule_at_its_best_rate_early_and_late() {
    let Some(covariances) = natural::covariances() else { return };
    let comparison = Comparison::new(covariances);
    let seeds: Vec<Vec<Errors>> =
        (0..SEEDS).into_par_iter().map(|seed| comparison.over_contexts(seed)).collect();
    for (name, part) in [("early", (|e| e.early) as fn(&Errors) -> f64), ("late", |e| e.late)] {
        let medians: Vec<f64> =
            (0..=RATES.len()).map(|i| median(seeds.iter().map(|seed| part(&seed[i])).collect())).collect();
        println!("{name}: whitener {:.4}, plain {:.4?} at rates {RATES:?}", medians[0], &medians[1..]);
        let best = medians[1..].iter().copied().fold(f64::INFINITY, f64::min);
        assert!(medians[0] <= best, "{name}: {} against {best}", medians[0]);
    }
}
