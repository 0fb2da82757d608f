//! Trains small circuits on stimuli from synthetic contexts: what Fig. 3, Algorithm 3, the leak sweep and the
//! ablation have in common.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use anyhow::{Result, ensure};
use leukos::contexts::{Axes, Blank, Contexts, Pcg64, Schedule, Stimuli, Synthetic, SyntheticContexts};
use leukos::{
    Circuit, GainRule, Matrix, MultiplierRule, Observer, Online, Rules, Sign, Solver, Step, SynapseRule,
    Synapses, WhiteningMeter, basis_distance, least_squares_gains, starts,
};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::plan::Draws;
use super::spec::{Positive, Scale, Scaled, UnitNorm};
use super::statistics::median;

/// Presentations over which errors are averaged: at the beginning, at the end, and in smoothed curves.
pub const WINDOW: usize = 10;
/// The points of a curve.
const POINTS: usize = 32;

/// What is trained, and on what.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct OnlineSpec {
    /// The number of random starts.
    pub starts: Scaled,
    /// The family that contexts are drawn from.
    pub family: Family,
    /// The number of presentations.
    pub presentations: Scaled,
    /// The number of stimuli in each.
    pub samples: NonZeroUsize,
    /// Which context is presented when.
    pub schedule: Presented,
    /// The synapses to begin with.
    pub initial_synapses: InitialSynapses,
    /// The gains to begin with.
    pub initial_gains: InitialGains,
    /// The leak of the circuit.
    pub leak: f64,
    /// η_g; gains are frozen without it.
    pub gain_rate: Option<Positive>,
    /// η_w; synapses are frozen without it.
    pub synapse_rate: Option<Positive>,
    /// η_m; with it the synapses are untied and everything is non-negative (Algorithm 3).
    pub multiplier_rate: Option<Positive>,
    /// How the length of synapses is held at one.
    pub unit_norm: UnitNorm,
}

/// The family that contexts M = I + V Λ Vᵀ are drawn from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Family {
    /// The number of contexts.
    pub contexts: NonZeroUsize,
    /// The columns of V.
    pub axes: AxesSpec,
    /// What becomes of contexts in which every λ is zero.
    pub blank: BlankSpec,
    /// How often V and the contexts are drawn.
    pub drawn: Drawn,
}

/// The columns of V.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AxesSpec {
    /// Uniform on the circle.
    Circle,
    /// Uniform on the circle, drawn anew until they are so many degrees apart.
    Degrees([f64; 2]),
    /// Uniform on the part of the circle without negative entries.
    Quadrant,
    /// At a right angle.
    Orthogonal,
    /// These, one after another.
    Columns([[f64; 2]; 2]),
}

/// What becomes of contexts in which every λ is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlankSpec {
    /// They stay.
    Kept,
    /// They are drawn again.
    Redrawn,
}

/// How often V and the contexts are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drawn {
    /// Once, for all starts.
    Once,
    /// Anew for each start.
    EachStart,
}

/// Which context is presented when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presented {
    /// Uniformly at random.
    Random,
    /// The same, but the last ten presentations show the contexts of the first ten.
    Returning,
}

/// The synapses to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialSynapses {
    /// Columns uniform on the circle.
    Circle,
    /// Columns of a random orthogonal matrix.
    Orthogonal,
    /// Columns uniform on the part of the circle without negative entries.
    Quadrant,
    /// max(I + 0.2 normal, 0).
    NoisyIdentity,
}

/// The gains to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialGains {
    /// 0.
    Zero,
    /// 1.
    One,
    /// For each interneuron the median over contexts of the least-squares gains.
    Median,
}

impl Family {
    /// Draws V and the contexts.
    pub fn draw(&self, rng: &mut Pcg64) -> leukos::Result<SyntheticContexts> {
        let axes = match &self.axes {
            AxesSpec::Circle => Axes::Sphere,
            &AxesSpec::Degrees([least, most]) => Axes::Angles { least, most },
            AxesSpec::Quadrant => Axes::NonNegative,
            AxesSpec::Orthogonal => Axes::Orthogonal,
            AxesSpec::Columns(columns) => Axes::Given(Matrix::from_fn(2, 2, |i, j| columns[j][i])),
        };
        let blank = match self.blank {
            BlankSpec::Kept => Blank::Kept,
            BlankSpec::Redrawn => Blank::Redrawn,
        };
        Synthetic { contexts: self.contexts.get(), axes, blank, ..Synthetic::published() }.draw(rng)
    }

    /// The family in words.
    pub fn describe(&self) -> String {
        let axes = match &self.axes {
            AxesSpec::Circle => "V uniform on the circle".to_owned(),
            AxesSpec::Degrees([least, most]) => format!("V {least}-{most} degrees apart"),
            AxesSpec::Quadrant => "V uniform on the non-negative quadrant".to_owned(),
            AxesSpec::Orthogonal => "V orthogonal".to_owned(),
            AxesSpec::Columns(_) => "V given".to_owned(),
        };
        format!("synthetic, {} contexts, {axes}", self.contexts)
    }
}

/// Where the contexts of variants come from, in words.
pub fn describe<'a>(specs: impl Iterator<Item = (&'a String, &'a OnlineSpec)>) -> String {
    let describe = |(name, spec): (&String, &OnlineSpec)| format!("{name}: {}", spec.family.describe());
    specs.map(describe).collect::<Vec<_>>().join("; ")
}

impl OnlineSpec {
    pub fn validate(&self, variant: &str) -> Result<()> {
        let leak = self.leak;
        ensure!(
            leak.is_finite() && leak >= 0.0,
            "{variant}.leak: expected a finite number, 0 or more, came {leak}"
        );
        Ok(())
    }

    /// V and the contexts of one start.
    pub fn contexts(&self, draws: Draws, start: usize) -> leukos::Result<SyntheticContexts> {
        match self.family.drawn {
            Drawn::Once => self.family.draw(&mut draws.shared("contexts")),
            Drawn::EachStart => self.family.draw(&mut draws.start("contexts", start)),
        }
    }

    /// The context of each presentation.
    pub fn presented(&self, scale: Scale, draws: Draws, start: usize) -> leukos::Result<Vec<usize>> {
        let rng = draws.start("schedule", start);
        let count = self.presentations.at(scale);
        let mut presented: Vec<usize> =
            Schedule::blocks(self.family.contexts.get(), 1, rng)?.take(count).collect();
        if self.schedule == Presented::Returning {
            let window = WINDOW.min(count / 2);
            presented.copy_within(..window, count - window);
        }
        Ok(presented)
    }

    pub fn rules(&self) -> Rules {
        let rules = Rules::frozen();
        Rules {
            gains: self.gain_rate.map_or(GainRule::Frozen, |rate| GainRule::Gradient { rate: rate.0 }),
            synapses: self
                .synapse_rate
                .map_or(SynapseRule::Frozen, |rate| SynapseRule::Hebbian { rate: rate.0 }),
            unit_norm: self.multiplier_rate.map_or(self.unit_norm.rule(), |rate| {
                leukos::UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate: rate.0 } }
            }),
            sign: if self.multiplier_rate.is_some() { Sign::NonNegative } else { Sign::Free },
            ..rules
        }
    }

    /// The circuit that a start begins with.
    pub fn circuit(&self, contexts: &Contexts, draws: Draws, start: usize) -> leukos::Result<Circuit> {
        let mut rng = draws.start("synapses", start);
        let feedback = self.draw_synapses(&mut rng);
        let gains = self.gains(&feedback, contexts)?;
        let synapses = if self.multiplier_rate.is_some() {
            Synapses::untied(feedback, &self.draw_synapses(&mut rng).transpose())?
        } else {
            Synapses::tied(feedback)?
        };
        Circuit::new(synapses, gains, self.leak)
    }

    fn draw_synapses(&self, rng: &mut Pcg64) -> Matrix {
        match self.initial_synapses {
            InitialSynapses::Circle => starts::on_sphere(2, 2, rng),
            InitialSynapses::Orthogonal => starts::orthogonal(2, 2, rng),
            InitialSynapses::Quadrant => starts::non_negative(2, 2, rng),
            InitialSynapses::NoisyIdentity => starts::noisy_identity(2, 2, 0.2, rng),
        }
    }

    fn gains(&self, synapses: &Matrix, contexts: &Contexts) -> leukos::Result<Vec<f64>> {
        match self.initial_gains {
            InitialGains::Zero => Ok(vec![0.0; 2]),
            InitialGains::One => Ok(vec![1.0; 2]),
            InitialGains::Median => {
                let mut gains = median_gains(synapses, contexts, self.leak)?;
                if self.multiplier_rate.is_some() {
                    gains.iter_mut().for_each(|gain| *gain = gain.max(0.0));
                }
                Ok(gains)
            }
        }
    }

    /// The steps at which a run is probed, evenly spaced on a logarithmic axis.
    pub fn probed(&self, scale: Scale) -> Vec<u64> {
        let steps = self.presentations.at(scale) * self.samples.get();
        log_grid(steps, POINTS).into_iter().map(|step| step as u64 - 1).collect()
    }

    /// About how many microseconds one start takes.
    pub fn work(&self, scale: Scale) -> u64 {
        let samples = (self.presentations.at(scale) * self.samples.get()) as u64;
        samples / if self.multiplier_rate.is_some() { 5 } else { 16 } + 1
    }
}

/// For each interneuron the median over contexts of the least-squares gains.
fn median_gains(synapses: &Matrix, contexts: &Contexts, leak: f64) -> leukos::Result<Vec<f64>> {
    let gains = |covariance| least_squares_gains(synapses, covariance, leak);
    let gains = contexts.covariances().iter().map(gains).collect::<leukos::Result<Vec<_>>>()?;
    let of = |i: usize| {
        let mut values: Vec<f64> = gains.iter().map(|gains| gains[i]).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    };
    Ok((0..synapses.columns()).map(of).collect())
}

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

    /// Presents a context to a circuit that nobody watches.
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
        // A circuit that a direct run shows is valid, so there is an error; NaN would show that it is not so.
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
    /// Error(t), every fourth sample.
    pub trace: Vec<f64>,
    /// The mean of Error(t) over the second half of each presentation.
    pub late_error: f64,
}

/// Every how many samples a trace is kept.
pub const TRACE_STEP: usize = 4;

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
        Ok(Self { trace: errors.into_iter().step_by(TRACE_STEP).collect(), late_error })
    }
}

/// How far the directions of a circuit's feedback synapses are from V.
pub fn distance(circuit: &Circuit, axes: &Matrix) -> leukos::Result<f64> {
    basis_distance(circuit.synapses().feedback(), axes)
}

/// A matrix as nested columns.
pub fn columns(matrix: &Matrix) -> Vec<Vec<f64>> {
    (0..matrix.columns()).map(|j| matrix.column(j).to_vec()).collect()
}
