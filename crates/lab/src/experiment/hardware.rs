//! Asks what machines Algorithms 1 and 3 would run on: weights and gains of a few bits, and noisy responses.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use leukos::contexts::{Contexts, Pcg64, Stimuli};
use leukos::{Adjustable, Circuit, Matrix, Online, Solver, WhiteningMeter};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::online::{WINDOW, distance, distance_from_white};
use super::online_spec::OnlineSpec;
use super::pair::Pair;
use super::plan::{Draws, Setting};
use super::spec::Scale;
use super::statistics::{Outcome, Starts, Statistic};
use super::{Experiment, Figure, FigureSpec, Origins, Records, Summary, Task};

/// The spec of the hardware.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwareSpec {
    figure: Figure,
    variants: BTreeMap<String, Machines>,
}

/// Training that is repeated on machines of limited precision, and with noisy responses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Machines {
    bits: Vec<u8>,
    /// The range of weights and that of gains; the upper end is left out.
    weights: [f64; 2],
    gains: [f64; 2],
    /// Standard deviations of the noise of responses.
    noise: Vec<f64>,
    /// The precision of machines whose responses are noisy, beside unlimited.
    noisy_bits: u8,
    training: OnlineSpec,
}

/// The hardware.
pub struct Hardware {
    spec: HardwareSpec,
    scale: Scale,
    draws: Draws,
}

/// What one start gives.
#[derive(Serialize, Deserialize)]
struct Run {
    /// Of M, over every stimulus of the last ten presentations.
    error_last10: f64,
    /// The same of the responses with their noise.
    error_responses: f64,
    distance_final: f64,
    /// The mean length of the columns of W_nr in the end.
    column_length: f64,
}

/// How a number between two that the machine can represent is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    /// The nearer one.
    Nearest,
    /// Either, at random, so that it is right on average.
    Stochastic,
}

/// The numbers that a machine can represent, evenly spaced.
#[derive(Clone, Copy, Debug)]
struct Grid {
    from: f64,
    last: f64,
    step: f64,
}

/// One machine.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Without it precision is unlimited.
    precision: Option<(u8, Rounding)>,
    noise: f64,
}

impl Grid {
    fn new([from, to]: [f64; 2], bits: u8) -> Self {
        let step = (to - from) / f64::from(bits).exp2();
        Self { from, last: to - step, step }
    }

    fn round(self, x: f64, rounding: Rounding, rng: &mut Pcg64) -> f64 {
        let up = match rounding {
            Rounding::Nearest => 0.5,
            Rounding::Stochastic => rng.random::<f64>(),
        };
        ((x / self.step + up).floor() * self.step).clamp(self.from, self.last)
    }
}

impl Machine {
    /// Its name among the cases of a variant.
    fn case(self) -> String {
        let precision = match self.precision {
            None => "unlimited".to_owned(),
            Some((bits, Rounding::Nearest)) => format!("{bits} bits, nearest"),
            Some((bits, Rounding::Stochastic)) => format!("{bits} bits, stochastic"),
        };
        format!("{precision}, noise {}", self.noise)
    }
}

impl Machines {
    fn validate(&self, name: &str) -> Result<()> {
        self.training.validate(name)?;
        let bits = self.bits.iter().chain([&self.noisy_bits]);
        ensure!(bits.clone().all(|bits| (1..=32).contains(bits)), "{name}.bits: expected 1 to 32 bits");
        for ([from, to], range) in [(self.weights, "weights"), (self.gains, "gains")] {
            let finite = from.is_finite() && to.is_finite();
            ensure!(
                finite && from < to,
                "{name}.{range}: expected two finite numbers, the smaller one first"
            );
        }
        let quiet = self.noise.iter().all(|noise| noise.is_finite() && *noise >= 0.0);
        ensure!(quiet, "{name}.noise: expected finite numbers, 0 or more");
        Ok(())
    }

    /// Machines of each number of bits.
    fn rounding(&self, rounding: Rounding) -> Vec<Machine> {
        let machine = |&bits: &u8| Machine { precision: Some((bits, rounding)), noise: 0.0 };
        self.bits.iter().map(machine).collect()
    }

    /// Machines with each noise.
    fn noisy(&self, precision: Option<(u8, Rounding)>) -> Vec<Machine> {
        self.noise.iter().map(|&noise| Machine { precision, noise }).collect()
    }

    /// Series of machines by name; a machine may be in two.
    fn series(&self) -> [(&'static str, Vec<Machine>); 5] {
        [
            ("unlimited", vec![Machine { precision: None, noise: 0.0 }]),
            ("nearest", self.rounding(Rounding::Nearest)),
            ("stochastic", self.rounding(Rounding::Stochastic)),
            ("noisy", self.noisy(None)),
            ("coarse", self.noisy(Some((self.noisy_bits, Rounding::Stochastic)))),
        ]
    }

    /// All machines by their cases.
    fn machines(&self) -> BTreeMap<String, Machine> {
        let all = self.series().into_iter().flat_map(|(_, machines)| machines);
        all.map(|machine| (machine.case(), machine)).collect()
    }

    fn work(&self, scale: Scale) -> u64 {
        3 * self.training.work(scale)
    }
}

impl FigureSpec for HardwareSpec {
    fn experiment(self, setting: &Setting) -> Result<Box<dyn Experiment>> {
        self.variants.iter().try_for_each(|(name, variant)| variant.validate(name))?;
        Ok(Box::new(Hardware { spec: self, scale: setting.scale, draws: setting.draws(Figure::Hardware) }))
    }
}

/// A run on a machine.
struct Training<'a> {
    run: Online,
    meter: WhiteningMeter,
    machine: Machine,
    grids: [Grid; 2],
    /// White noise.
    white: Stimuli,
    /// For rounding.
    rng: Pcg64,
    covariances: &'a [Matrix],
}

impl Training<'_> {
    /// Presents the stimuli of a context; `measure` gets the errors of M and of the responses.
    fn present(
        &mut self,
        context: usize,
        stimuli: &[f64],
        mut measure: Option<impl FnMut(f64, f64)>,
    ) -> leukos::Result<()> {
        let mut response = [0.0; 2];
        for &stimulus in stimuli.as_chunks::<2>().0 {
            if let Some(measure) = &mut measure {
                let covariance = &self.covariances[context];
                let error = self.meter.error(self.run.circuit(), covariance)?;
                let filter = self.run.circuit().whitening_matrix()?;
                measure(error, distance_from_white(&filter, covariance, self.machine.noise));
            }
            let noise = self.noise()?;
            let heard = [stimulus[0] + noise[0], stimulus[1] + noise[1]];
            self.run.advance(&heard, &mut response, &mut ())?;
            self.round()?;
        }
        Ok(())
    }

    /// What must be added to the stimulus for noise ξ to be added to the response: Mξ.
    fn noise(&mut self) -> leukos::Result<[f64; 2]> {
        let mut noise = [0.0; 2];
        if self.machine.noise == 0.0 {
            return Ok(noise);
        }
        self.white.fill(0, &mut noise)?;
        let noise = noise.map(|x| self.machine.noise * x);
        let circuit = self.run.circuit();
        let mut current = noise.map(|x| circuit.leak() * x);
        for (i, gain) in circuit.gains().iter().enumerate() {
            let [back, forth] = [circuit.synapses().feedback(), circuit.synapses().feedforward_transposed()];
            let [back, forth] = [back, forth].map(|weights| weights.column(i));
            let output = gain * (forth[0] * noise[0] + forth[1] * noise[1]);
            current = [current[0] + output * back[0], current[1] + output * back[1]];
        }
        Ok(current)
    }

    /// Rounds weights and gains to what the machine has.
    fn round(&mut self) -> leukos::Result<()> {
        let Some((_, rounding)) = self.machine.precision else { return Ok(()) };
        let ([weights, gains], rng) = (self.grids, &mut self.rng);
        self.run.adjust(|numbers: Adjustable<'_, f64>| {
            let all = numbers.feedback.iter_mut().chain(numbers.feedforward.into_iter().flatten());
            all.for_each(|weight| *weight = weights.round(*weight, rounding, rng));
            numbers.gains.iter_mut().for_each(|gain| *gain = gains.round(*gain, rounding, rng));
        })
    }
}

impl Hardware {
    fn train(&self, task: &Task) -> leukos::Result<Run> {
        let variant = &self.spec.variants[&task.variant];
        let machine = variant.machines()[&task.case];
        let spec = &variant.training;
        let drawn = spec.contexts(self.draws, task.start)?;
        let circuit =
            Pair { spec, scale: self.scale, draws: self.draws }.initial(&drawn.contexts, task.start)?;
        let white = Contexts::new(vec![Matrix::identity(2)])?;
        let bits = machine.precision.map_or(0, |(bits, _)| bits);
        let mut training = Training {
            meter: WhiteningMeter::new(&circuit),
            run: Online::new(circuit, spec.rules(), &Solver::Direct)?,
            machine,
            grids: [variant.weights, variant.gains].map(|range| Grid::new(range, bits)),
            white: Stimuli::gaussian(white, self.draws.start("noise", task.start)),
            rng: self.draws.start("rounding", task.start),
            covariances: drawn.contexts.covariances(),
        };
        training.round()?;
        let mut stimuli = Stimuli::gaussian(drawn.contexts.clone(), self.draws.start("stimuli", task.start));
        let mut block = vec![0.0; 2 * spec.samples.get()];
        let presented = spec.presented(self.scale, self.draws, task.start)?;
        let last = presented.len().saturating_sub(WINDOW);
        let (mut sums, mut count) = ([0.0; 2], 0);
        for (i, &context) in presented.iter().enumerate() {
            stimuli.fill(context, &mut block)?;
            let measure = (i >= last).then_some(|error, responses| {
                sums = [sums[0] + error, sums[1] + responses];
                count += 1;
            });
            training.present(context, &block, measure)?;
        }
        let circuit = training.run.circuit();
        Ok(Run {
            error_last10: sums[0] / f64::from(count),
            error_responses: sums[1] / f64::from(count),
            distance_final: distance(circuit, &drawn.axes)?,
            column_length: column_length(circuit),
        })
    }
}

/// What is reported of a series of machines: a list, but of unlimited precision the only entry.
fn listed(series: &str, list: Value) -> Value {
    if series == "unlimited" { list[0].clone() } else { list }
}

/// The mean length of the columns of W_nr.
fn column_length(circuit: &Circuit) -> f64 {
    let weights = circuit.synapses().feedback();
    let length = |j: usize| weights.column(j).iter().map(|w| w * w).sum::<f64>().sqrt();
    (0..weights.columns()).map(length).sum::<f64>() / weights.columns() as f64
}

impl Experiment for Hardware {
    fn origins(&self) -> Origins {
        let origin = |(name, variant): (&String, &Machines)| (name.clone(), variant.training.family.origin());
        self.spec.variants.iter().map(origin).collect()
    }

    fn tasks(&self) -> Vec<(Task, u64)> {
        let mut tasks = Vec::new();
        for (name, variant) in &self.spec.variants {
            let (starts, work) = (variant.training.starts.at(self.scale), variant.work(self.scale));
            for case in variant.machines().keys() {
                tasks.extend(Task::starts(name, case, starts).into_iter().map(|task| (task, work)));
            }
        }
        tasks
    }

    fn run(&self, task: &Task) -> Result<Value> {
        Outcome::record(self.train(task))
    }

    /// Synapses that miss V are what this figure shows, so only divergence counts as failure here.
    fn summarise(&self, records: &Records) -> Result<Summary> {
        let mut summary = Summary::default();
        for (name, variant) in &self.spec.variants {
            let seeds = variant.training.starts.at(self.scale);
            let mut numbers = json!({
                "seeds": seeds, "bits": variant.bits, "noise": variant.noise, "noisy_bits": variant.noisy_bits,
            });
            let mut panels = json!({
                "seeds": seeds, "bits": variant.bits, "noise": variant.noise, "noisy_bits": variant.noisy_bits,
            });
            for (series, machines) in variant.series() {
                let sets = variant.training.sets(self.scale);
                let starts = |machine: &Machine| Ok(records.starts(name, &machine.case())?.in_sets(sets));
                let starts = machines.iter().map(starts).collect::<Result<Vec<Starts<Run>>>>()?;
                let mut sum_up = |key: &str, value: &dyn Fn(&Run) -> &f64| {
                    let statistics: Vec<Statistic> =
                        starts.iter().map(|starts| starts.statistic(|run| *value(run))).collect();
                    let quartiles = |starts: &Starts<Run>| {
                        starts.quartiles(|run| std::slice::from_ref(value(run))).first().copied().flatten()
                    };
                    let quartiles: Vec<Option<[f64; 2]>> = starts.iter().map(quartiles).collect();
                    numbers[format!("{series}_{key}")] = listed(series, json!(statistics));
                    panels[format!("{series}_{key}")] =
                        json!({ "over_starts": statistics, "quartiles": quartiles });
                };
                sum_up("error", &|run| &run.error_last10);
                sum_up("error_responses", &|run| &run.error_responses);
                sum_up("distance", &|run| &run.distance_final);
                sum_up("column_length", &|run| &run.column_length);
                let diverged: Vec<_> = starts.iter().map(Starts::divergence).collect();
                numbers[format!("{series}_diverged")] = listed(series, json!(diverged));
                let lost: Vec<usize> = diverged.iter().map(|of| of.map_or(0, |of| of.count)).collect();
                numbers[format!("{series}_lost")] = listed(series, json!(lost));
                panels[format!("{series}_lost")] = json!(lost);
            }
            summary.add(name, numbers, panels)?;
        }
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use leukos::contexts::stream;

    use super::*;

    #[test]
    fn a_grid_has_two_to_the_number_of_bits_numbers() {
        let (grid, rng) = (Grid::new([-1.0, 7.0], 4), &mut stream(0, 0));
        let numbers = (-200..=800).map(|i| grid.round(f64::from(i) / 100.0, Rounding::Nearest, rng));
        let mut numbers: Vec<f64> = numbers.collect();
        numbers.dedup();
        assert_eq!(numbers, (0..16).map(|i| 0.5 * f64::from(i) - 1.0).collect::<Vec<_>>());
        assert_eq!(grid.round(0.24, Rounding::Nearest, rng), 0.0);
        assert_eq!(grid.round(0.26, Rounding::Nearest, rng), 0.5);
    }

    #[test]
    fn rounding_at_random_is_right_on_average_and_keeps_what_is_on_the_grid() {
        let (grid, rng) = (Grid::new([-2.0, 2.0], 3), &mut stream(0, 1));
        for x in [-0.9, 0.1, 0.3] {
            let rounded: Vec<f64> = (0..10_000).map(|_| grid.round(x, Rounding::Stochastic, rng)).collect();
            assert!(rounded.iter().all(|y| (y - x).abs() < grid.step));
            // Five standard errors of a number that is one of two a step of .5 apart.
            let mean = rounded.iter().sum::<f64>() / 10_000.0;
            assert!((mean - x).abs() < 5.0 * 0.25 / 100.0, "{x}: {mean}");
        }
        assert!((0..100).all(|_| grid.round(-0.5, Rounding::Stochastic, rng) == -0.5));
    }
}
