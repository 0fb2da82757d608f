//! Describes the training of small circuits: contexts to draw, synapses and gains to begin with, rates.

use std::num::NonZeroUsize;

use anyhow::{Result, ensure};
use leukos::contexts::{Axes, Blank, Contexts, Pcg64, Schedule, Synthetic, SyntheticContexts};
use leukos::{
    Circuit, GainRule, Matrix, MultiplierRule, Rules, Sign, SynapseRule, Synapses, least_squares_gains,
    starts,
};
use serde::{Deserialize, Serialize};

use super::online::{POINTS, WINDOW, log_grid};
use super::origin::{Origin, Origins, Source};
use super::plan::Draws;
use super::spec::{Positive, Scale, Scaled, UnitNorm};
use super::statistics::median;

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
    /// Uniform on the circle, drawn again until they are this many degrees apart.
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
    /// So many times; starts take turns with them.
    Sets(NonZeroUsize),
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
    /// V and the contexts of one start, for so many neurons and interneurons.
    pub fn of_start(&self, neurons: usize, draws: Draws, start: usize) -> leukos::Result<SyntheticContexts> {
        match self.drawn {
            Drawn::Once => self.draw(neurons, &mut draws.shared("contexts")),
            Drawn::Sets(sets) => self.draw(neurons, &mut draws.start("sets of contexts", start % sets.get())),
            Drawn::EachStart => self.draw(neurons, &mut draws.start("contexts", start)),
        }
    }

    /// How many times V and the contexts are drawn for so many starts.
    pub fn sets(&self, starts: usize) -> usize {
        match self.drawn {
            Drawn::Once => 1,
            Drawn::Sets(sets) => sets.get(),
            Drawn::EachStart => starts,
        }
    }

    fn draw(&self, neurons: usize, rng: &mut Pcg64) -> leukos::Result<SyntheticContexts> {
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
        let (contexts, interneurons) = (self.contexts.get(), neurons);
        Synthetic { neurons, interneurons, contexts, axes, blank, ..Synthetic::published() }.draw(rng)
    }

    /// Where its contexts come from.
    pub fn origin(&self) -> Origin {
        Origin { source: Source::Synthetic, words: self.describe() }
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

/// Where the contexts of variants come from.
pub fn origins<'a>(specs: impl Iterator<Item = (&'a String, &'a OnlineSpec)>) -> Origins {
    specs.map(|(name, spec)| (name.clone(), spec.family.origin())).collect()
}

impl OnlineSpec {
    pub fn validate(&self, variant: &str) -> Result<()> {
        let leak = self.leak;
        ensure!(
            leak.is_finite() && leak >= 0.0,
            "{variant}.leak: expected a finite number, 0 or more, got {leak}"
        );
        Ok(())
    }

    /// How many times V and the contexts are drawn.
    pub fn sets(&self, scale: Scale) -> usize {
        self.family.sets(self.starts.at(scale))
    }

    /// V and the contexts of one start.
    pub fn contexts(&self, draws: Draws, start: usize) -> leukos::Result<SyntheticContexts> {
        self.family.of_start(2, draws, start)
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
