//! Trains small circuits on stimuli from synthetic contexts: what Fig. 3, Algorithm 3, the leak sweep and the
//! ablation have in common.

use std::ops::ControlFlow;

use leukos::contexts::{Pcg64, Stimuli};
use leukos::{
    Circuit, Matrix, Observer, Online, Rules, Solver, Step, SynapseRule, WhiteningMeter, basis_distance,
};
use rand::RngExt;

use super::online_spec::OnlineSpec;

/// Presentations over which errors are averaged: at the beginning, at the end, and in smoothed curves.
pub const WINDOW: usize = 10;
/// The points of a curve.
pub const POINTS: usize = 32;

/// A training run: the circuit so far, and where its stimuli come from.
pub struct Training {
    pub run: Online,
    stimuli: Stimuli,
    meter: WhiteningMeter,
    block: Vec<f64>,
    responses: Vec<f64>,
}

impl Training {
    pub fn new(circuit: Circuit, rules: Rules, stimuli: Stimuli, samples: usize) -> leukos::Result<Self> {
        let room = || vec![0.0; samples * 2];
        let meter = WhiteningMeter::new(&circuit);
        let run = Online::new(circuit, rules, &Solver::Direct)?;
        Ok(Self { run, stimuli, meter, block: room(), responses: room() })
    }

    /// Presents a context to a circuit without measuring it.
    pub fn present(&mut self, context: usize) -> leukos::Result<()> {
        self.stimuli.fill(context, &mut self.block)?;
        self.run.advance(&self.block, &mut self.responses, &mut ()).map(drop)
    }

    /// Presents a context and hands Error(t) of every stimulus to `see`, with the circuit that answered it.
    pub fn present_watched(&mut self, context: usize, see: impl FnMut(&Circuit, f64)) -> leukos::Result<()> {
        self.stimuli.fill(context, &mut self.block)?;
        let covariance = &self.stimuli.contexts().covariances()[context];
        let mut watch = Watch { meter: &mut self.meter, covariance, see };
        self.run.advance(&self.block, &mut self.responses, &mut watch).map(drop)
    }

    /// The number of stimuli in a presentation.
    fn samples(&self) -> usize {
        self.block.len() / 2
    }
}

/// Takes a number of the circuit at chosen steps of a run.
pub struct Probe<'a> {
    steps: Vec<u64>,
    measure: &'a dyn Fn(&Circuit) -> f64,
    pub values: Vec<f64>,
}

impl<'a> Probe<'a> {
    /// Measures the circuit that answers stimulus number `step`, counted from 0, for each of these ascending steps.
    pub fn new(steps: Vec<u64>, measure: &'a dyn Fn(&Circuit) -> f64) -> Self {
        Self { steps, measure, values: Vec::new() }
    }

    fn is_due_before(&self, step: u64) -> bool {
        self.steps.get(self.values.len()).is_some_and(|&due| due < step)
    }

    fn see(&mut self, step: u64, circuit: &Circuit) {
        if self.steps.get(self.values.len()) == Some(&step) {
            self.values.push((self.measure)(circuit));
        }
    }
}

struct Watch<'a, F> {
    meter: &'a mut WhiteningMeter,
    covariance: &'a Matrix,
    see: F,
}

impl<F: FnMut(&Circuit, f64)> Observer<f64> for Watch<'_, F> {
    fn see(&mut self, step: &Step<'_, f64>) -> ControlFlow<()> {
        // A circuit of a direct run is valid, so its error exists; NaN would show that it is not.
        let error = self.meter.error(step.circuit, self.covariance).unwrap_or(f64::NAN);
        (self.see)(step.circuit, error);
        ControlFlow::Continue(())
    }
}

/// Numbers from 1 to `last`, evenly spaced on a logarithmic axis as far as whole numbers can be.
#[allow(clippy::cast_sign_loss)] // Nothing here is below 1.
pub fn log_grid(last: usize, points: usize) -> Vec<usize> {
    let exponent = |i: usize| i as f64 / (points - 1) as f64 * (last as f64).ln();
    let mut grid: Vec<usize> = (0..points).map(|i| exponent(i).exp().round() as usize).collect();
    grid.dedup();
    grid
}

/// The mean errors of a training run's presentations, where they were measured.
pub struct Errors(Vec<Option<f64>>);

impl Errors {
    /// The presentations at which smoothed curves have their points.
    pub fn grid(presentations: usize) -> Vec<usize> {
        log_grid(presentations, POINTS)
    }

    /// Which presentations must be measured: ten before each point of the grid, the first ten and the last ten.
    fn measured(presentations: usize) -> Vec<bool> {
        let mut measured = vec![false; presentations];
        for end in Self::grid(presentations).into_iter().chain([WINDOW.min(presentations)]) {
            measured[end.saturating_sub(WINDOW)..end].fill(true);
        }
        measured
    }

    /// Trains a circuit on presentations of contexts, and lets a probe look at it now and then.
    pub fn train(
        training: &mut Training,
        presented: &[usize],
        probe: &mut Probe<'_>,
    ) -> leukos::Result<Self> {
        let mut errors = Vec::with_capacity(presented.len());
        for (&context, measured) in presented.iter().zip(Self::measured(presented.len())) {
            let from = training.run.steps();
            let until = from + training.samples() as u64;
            if !measured && !probe.is_due_before(until) {
                training.present(context)?;
                errors.push(None);
                continue;
            }
            let (mut sum, mut step) = (0.0, from);
            training.present_watched(context, |circuit, error| {
                probe.see(step, circuit);
                sum += error;
                step += 1;
            })?;
            errors.push(Some(sum / training.samples() as f64));
        }
        Ok(Self(errors))
    }

    /// The mean over every sample of the first ten presentations.
    pub fn first(&self) -> f64 {
        self.before(WINDOW.min(self.0.len()))
    }

    /// The mean over every sample of the last ten presentations.
    pub fn last(&self) -> f64 {
        self.before(self.0.len())
    }

    /// The smoothed curve: at each point of the grid the mean over the ten presentations that end there.
    pub fn curve(&self) -> Vec<f64> {
        Self::grid(self.0.len()).into_iter().map(|end| self.before(end)).collect()
    }

    fn before(&self, end: usize) -> f64 {
        let window = &self.0[end.saturating_sub(WINDOW)..end];
        window.iter().map(|error| error.unwrap_or(f64::NAN)).sum::<f64>() / window.len() as f64
    }
}

/// Five contexts, one after another, with frozen synapses: how the gains alone manage.
pub struct FiveContexts {
    /// Error(t).
    pub trace: Vec<f64>,
    /// The mean of Error(t) over the second half of each presentation.
    pub late_error: f64,
}

impl FiveContexts {
    /// Contexts drawn without repetition, five where there are as many.
    pub fn draw(contexts: usize, rng: &mut Pcg64) -> Vec<usize> {
        let mut all: Vec<usize> = (0..contexts).collect();
        let count = contexts.min(5);
        for i in 0..count {
            all.swap(i, rng.random_range(i..contexts));
        }
        all.truncate(count);
        all
    }

    /// Presents them to a circuit whose gains alone adapt.
    pub fn present(
        circuit: &Circuit,
        spec: &OnlineSpec,
        stimuli: Stimuli,
        presented: &[usize],
    ) -> leukos::Result<Self> {
        let (samples, mut rules) = (spec.samples.get(), spec.rules());
        rules.synapses = SynapseRule::Frozen;
        let mut training = Training::new(circuit.clone(), rules, stimuli, samples)?;
        let mut errors = Vec::with_capacity(samples * presented.len());
        for &context in presented {
            training.present_watched(context, |_, error| errors.push(error))?;
        }
        let late = errors.iter().enumerate().filter(|(t, _)| t % samples >= samples / 2);
        let (sum, count) = late.fold((0.0, 0), |(sum, count), (_, error)| (sum + error, count + 1));
        let late_error = sum / f64::from(count);
        Ok(Self { trace: errors, late_error })
    }
}

/// How far the directions of a circuit's feedback synapses are from V.
pub fn distance(circuit: &Circuit, axes: &Matrix) -> leukos::Result<f64> {
    basis_distance(circuit.synapses().feedback(), axes)
}

/// How far the responses F s + ξ of two neurons are from white, in the operator norm: Eq. (9) for a filter that need not
/// be the inverse of an M, with noise ξ of this standard deviation.
pub fn distance_from_white(filter: &Matrix, covariance: &Matrix, noise: f64) -> f64 {
    let entry = |i: usize, j: usize| -> f64 {
        let pairs = (0..2).flat_map(|k| (0..2).map(move |l| (k, l)));
        let sum: f64 = pairs.map(|(k, l)| filter[(i, k)] * covariance[(k, l)] * filter[(j, l)]).sum();
        sum + if i == j { noise * noise } else { 0.0 }
    };
    let (mean, apart) = (0.5 * (entry(0, 0) + entry(1, 1)), 0.5 * (entry(0, 0) - entry(1, 1)));
    let reach = apart.hypot(entry(0, 1));
    (mean + reach - 1.0).abs().max((mean - reach - 1.0).abs())
}

/// A matrix as nested columns.
pub fn columns(matrix: &Matrix) -> Vec<Vec<f64>> {
    (0..matrix.columns()).map(|j| matrix.column(j).to_vec()).collect()
}
