//! Runs the paper's circuit of two neurons and two interneurons for somebody who plays with its context.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leukos::contexts::stream;
use leukos::{
    Circuit, GainRule, Matrix, Online, Rules, Solver, SynapseRule, Synapses, UnitNorm, optimal_gains,
    whitening_error,
};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;
use serde::Deserialize;
use serde_json::{Value, json};

use super::frame::{Latest, column, number, toy_frame};
use super::whole;

/// What a player may change; what is not given stays as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    /// The covariance [[a, b], [b, c]] of the stimuli, as a, b, c.
    context: Option<[f64; 3]>,
    adapt: Option<Adapt>,
    gain_rate: Option<f64>,
    synapse_rate: Option<f64>,
    /// Samples a second.
    speed: Option<f64>,
    #[serde(default)]
    new_context: bool,
    #[serde(default)]
    restart: bool,
}

/// What adapts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Adapt {
    Nothing,
    Gains,
    Both,
}

impl Adapt {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Gains => "gains",
            Self::Both => "both",
        }
    }
}

/// So many samples and moments are shown.
const SHOWN: usize = 64;
const MOMENTS: usize = 400;
/// How often the circuit is given its samples.
const TICK: Duration = Duration::from_millis(20);
/// The widest ellipse has this variance, the thinnest this one.
const VARIANCES: [f64; 2] = [0.05, 40.0];
const RATES: [f64; 2] = [1e-6, 0.5];
const SPEEDS: [f64; 2] = [1.0, 20_000.0];

/// A circuit, its context, and what became of both.
pub(super) struct Toy(Mutex<Played>);

struct Played {
    run: String,
    sequence: u64,
    rng: Pcg64,
    circuit: Option<Online>,
    context: [f64; 3],
    adapt: Adapt,
    gain_rate: f64,
    synapse_rate: f64,
    speed: f64,
    samples: u64,
    /// Samples that are due but not drawn, less than one.
    owed: f64,
    /// Of each sample the stimulus and the response.
    shown: Latest<[f64; 4]>,
    moments: Latest<(u64, f64, [f64; 2])>,
}

impl Toy {
    pub fn new(run: String, seed: u64) -> leukos::Result<Self> {
        let mut rng = stream(seed, 0);
        let start = Circuit::new(Synapses::tied(first_synapses())?, vec![0.5; 2], 1.0)?;
        let mut played = Played {
            run,
            sequence: 0,
            context: random_context(&mut rng),
            rng,
            circuit: None,
            adapt: Adapt::Gains,
            gain_rate: 0.01,
            synapse_rate: 1e-3,
            speed: 500.0,
            samples: 0,
            owed: 0.0,
            shown: Latest::new(SHOWN),
            moments: Latest::new(MOMENTS),
        };
        played.go_on(start)?;
        Ok(Self(Mutex::new(played)))
    }

    /// Plays until `stop` is set.
    ///
    /// # Errors
    /// When the circuit cannot be begun anew.
    pub fn play(&self, stop: &AtomicBool) -> leukos::Result<()> {
        let mut last = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
            // A machine that slept owes nothing.
            let passed = last.elapsed().min(5 * TICK);
            last = Instant::now();
            self.played().advance(passed)?;
        }
        Ok(())
    }

    pub fn frame(&self, since: u64) -> Value {
        self.played().frame(since)
    }

    /// Does what a player wishes.
    ///
    /// # Errors
    /// When a value makes no sense; the error names it.
    pub fn wish(&self, wish: &Wish) -> Result<(), String> {
        self.played().change(wish)
    }

    fn played(&self) -> MutexGuard<'_, Played> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two directions that are not orthogonal, as in Fig. 3.
fn first_synapses() -> Matrix {
    let directions = [20_f64, 85.0].map(|degrees| degrees.to_radians().sin_cos());
    Matrix::from_fn(2, 2, |row, column| if row == 0 { directions[column].1 } else { directions[column].0 })
}

/// An ellipse of any direction, up to three times as long as wide.
fn random_context(rng: &mut impl Rng) -> [f64; 3] {
    let [angle, long, wide] =
        [0.0..std::f64::consts::PI, 4.0..16.0, 0.8..3.0].map(|range| rng.random_range(range));
    let (sin, cos) = angle.sin_cos();
    [long * cos * cos + wide * sin * sin, (long - wide) * sin * cos, long * sin * sin + wide * cos * cos]
}

fn symmetric([a, b, c]: [f64; 3]) -> Matrix {
    Matrix::from_fn(2, 2, |i, j| [a, b, b, c][2 * i + j])
}

fn three(matrix: &Matrix) -> [f64; 3] {
    [matrix[(0, 0)], matrix[(0, 1)], matrix[(1, 1)]]
}

/// The root of a positive definite matrix of two rows: (C + √det I)/√(trace + 2√det).
fn root([a, b, c]: [f64; 3]) -> [f64; 3] {
    let determinant = (a * c - b * b).max(0.0).sqrt();
    let scale = (a + c + 2.0 * determinant).sqrt();
    [(a + determinant) / scale, b / scale, (c + determinant) / scale]
}

impl Played {
    fn circuit(&self) -> Option<&Circuit> {
        self.circuit.as_ref().map(Online::circuit)
    }

    /// Goes on from this circuit, with the rules as they are now.
    fn go_on(&mut self, circuit: Circuit) -> leukos::Result<()> {
        let gains = match self.adapt {
            Adapt::Nothing => GainRule::Frozen,
            Adapt::Gains | Adapt::Both => GainRule::Gradient { rate: self.gain_rate },
        };
        let synapses = match self.adapt {
            Adapt::Both => SynapseRule::Hebbian { rate: self.synapse_rate },
            Adapt::Nothing | Adapt::Gains => SynapseRule::Frozen,
        };
        let rules = Rules { gains, synapses, unit_norm: UnitNorm::Projected, ..Rules::frozen() };
        self.circuit = Some(Online::new(circuit, rules, &Solver::Direct)?);
        Ok(())
    }

    fn restart(&mut self) -> leukos::Result<()> {
        self.go_on(Circuit::new(Synapses::tied(first_synapses())?, vec![0.5; 2], 1.0)?)
    }

    fn change(&mut self, wish: &Wish) -> Result<(), String> {
        let within = |name: &str, value: Option<f64>, [least, most]: [f64; 2]| match value {
            Some(x) if !(least..=most).contains(&x) => {
                Err(format!("{name}: expected a number from {least} to {most}, got {x}"))
            }
            _ => Ok(()),
        };
        within("gain_rate", wish.gain_rate, RATES)?;
        within("synapse_rate", wish.synapse_rate, RATES)?;
        within("speed", wish.speed, SPEEDS)?;
        if let Some([a, b, c]) = wish.context {
            let [least, most] = VARIANCES;
            let (middle, half) = (0.5 * (a + c), (0.25 * (a - c) * (a - c) + b * b).sqrt());
            if !(middle - half >= 0.99 * least && middle + half <= 1.01 * most) {
                return Err(format!(
                    "context: expected variances from {least} to {most}, got [{a}, {b}, {c}]"
                ));
            }
            self.context = [a, b, c];
        }
        if wish.new_context {
            self.context = random_context(&mut self.rng);
        }
        self.adapt = wish.adapt.unwrap_or(self.adapt);
        self.gain_rate = wish.gain_rate.unwrap_or(self.gain_rate);
        self.synapse_rate = wish.synapse_rate.unwrap_or(self.synapse_rate);
        self.speed = wish.speed.unwrap_or(self.speed);
        let circuit = self.circuit().cloned().filter(|_| !wish.restart);
        let done = match circuit {
            Some(circuit) => self.go_on(circuit),
            None => self.restart(),
        };
        done.map_err(|error| error.to_string())
    }

    fn advance(&mut self, passed: Duration) -> leukos::Result<()> {
        self.owed += self.speed * passed.as_secs_f64();
        let count = whole(self.owed) as usize;
        if count == 0 {
            return Ok(());
        }
        self.owed -= count as f64;
        let stimuli: Vec<f64> = (0..count).flat_map(|_| self.draw()).collect();
        let mut responses = vec![0.0; stimuli.len()];
        let Some(circuit) = &mut self.circuit else { return Ok(()) };
        if circuit.advance(&stimuli, &mut responses, &mut ()).is_err() {
            // Rates that are too high for the context: what is left is the last valid circuit.
            let last = circuit.circuit().clone();
            return self.go_on(last).or_else(|_| self.restart());
        }
        self.samples += count as u64;
        for (s, r) in stimuli.chunks_exact(2).zip(responses.chunks_exact(2)).rev().take(SHOWN).rev() {
            self.shown.push([s[0], s[1], r[0], r[1]]);
        }
        if let Some(circuit) = self.circuit() {
            let gains = [circuit.gains()[0], circuit.gains()[1]];
            let error = whitening_error(&circuit.inverse_whitening_matrix(), &symmetric(self.context))?;
            self.moments.push((self.samples, error, gains));
        }
        Ok(())
    }

    /// A Gaussian stimulus, by the factor of Cholesky.
    fn draw(&mut self) -> [f64; 2] {
        let [a, b, c] = self.context;
        let u: f64 = self.rng.sample(rand_distr::StandardNormal);
        let v: f64 = self.rng.sample(rand_distr::StandardNormal);
        let down = b / a.sqrt();
        [a.sqrt() * u, down * u + (c - down * down).max(0.0).sqrt() * v]
    }

    fn frame(&mut self, since: u64) -> Value {
        self.sequence += 1;
        let toy = self.circuit().map(|circuit| self.toy(circuit, since));
        toy_frame(&self.run, self.sequence, &toy.unwrap_or(Value::Null))
    }

    fn toy(&self, circuit: &Circuit, since: u64) -> Value {
        let (synapses, context) = (circuit.synapses().feedback(), symmetric(self.context));
        let reached = circuit.inverse_whitening_matrix();
        let error = |matrix: &Matrix| whitening_error(matrix, &context).unwrap_or(f64::NAN);
        let best = optimal_gains(synapses, &context, circuit.leak()).ok();
        let best_matrix = best
            .clone()
            .and_then(|gains| Some(circuit.clone().with_gains(gains).ok()?.inverse_whitening_matrix()));
        let new: Vec<_> = self.moments.since(since).collect();
        let pair = |pair: [f64; 2]| column(pair.into_iter());
        let pairs =
            |from: usize| self.shown.iter().map(|row| pair([row[from], row[from + 1]])).collect::<Vec<_>>();
        json!({
            "context": self.context,
            "synapses": (0..2).map(|k| [synapses[(0, k)], synapses[(1, k)]]).collect::<Vec<_>>(),
            "gains": circuit.gains(),
            "best_gains": best,
            "error": number(error(&reached)),
            "best_error": number(best_matrix.as_ref().map_or(f64::NAN, error)),
            "response": responses_of(three(&reached), self.context),
            "target": root(self.context),
            "reached": three(&reached),
            "samples": self.samples,
            "adapt": self.adapt.name(),
            "gain_rate": self.gain_rate,
            "synapse_rate": self.synapse_rate,
            "speed": self.speed,
            "stimuli": pairs(0),
            "responses": pairs(2),
            "points": {
                "first": self.moments.first(),
                "id": new.iter().map(|(id, _)| id).collect::<Vec<_>>(),
                "sample": new.iter().map(|(_, (sample, ..))| sample).collect::<Vec<_>>(),
                "error": column(new.iter().map(|(_, (_, error, _))| *error)),
                "gains": new.iter().map(|(_, (.., gains))| pair(*gains)).collect::<Vec<_>>(),
            },
        })
    }
}

/// The covariance M⁻¹CM⁻¹ of the responses.
fn responses_of([a, b, c]: [f64; 3], context: [f64; 3]) -> [f64; 3] {
    let determinant = a * c - b * b;
    let inverse = [c / determinant, -b / determinant, a / determinant];
    let apply = |[x, y]: [f64; 2]| [inverse[0] * x + inverse[1] * y, inverse[1] * x + inverse[2] * y];
    let [first, second] = [apply([context[0], context[1]]), apply([context[1], context[2]])];
    let [left, right] = [apply([first[0], second[0]]), apply([first[1], second[1]])];
    [left[0], 0.5 * (left[1] + right[0]), right[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_and_responses_are_those_of_matrices() {
        let context = [5.0, 1.5, 2.0];
        let [a, b, c] = root(context);
        let square = [a * a + b * b, a * b + b * c, b * b + c * c];
        context.iter().zip(square).for_each(|(x, y)| assert!((x - y).abs() < 1e-12, "{square:?}"));
        let white = responses_of(root(context), context);
        [1.0, 0.0, 1.0].iter().zip(white).for_each(|(x, y)| assert!((x - y).abs() < 1e-12, "{white:?}"));
    }

    #[test]
    fn gains_whiten_a_context_within_their_reach_and_wishes_are_checked() {
        let toy = Toy::new(String::new(), 3).expect("a toy");
        let inside = {
            let synapses = first_synapses();
            let reached = Circuit::new(Synapses::tied(synapses).expect("synapses"), vec![1.5, 0.4], 1.0);
            let m = three(&reached.expect("a circuit").inverse_whitening_matrix());
            [m[0] * m[0] + m[1] * m[1], m[0] * m[1] + m[1] * m[2], m[1] * m[1] + m[2] * m[2]]
        };
        let wish = Wish { context: Some(inside), gain_rate: Some(0.005), ..Wish::default() };
        toy.wish(&wish).expect("a wish");
        for _ in 0..400 {
            toy.played().advance(TICK).expect("a step");
        }
        let frame = toy.frame(0);
        assert!(frame["toy"]["error"].as_f64().expect("an error") < 0.35, "{}", frame["toy"]);
        assert!(frame["toy"]["best_error"].as_f64().expect("an error") < 1e-6, "{}", frame["toy"]);
        for (wish, words) in [
            (
                Wish { gain_rate: Some(2.0), ..Wish::default() },
                "gain_rate: expected a number from 0.000001 to 0.5, got 2",
            ),
            (Wish { context: Some([1.0, 2.0, 1.0]), ..Wish::default() }, "context: expected variances"),
            (Wish { speed: Some(f64::NAN), ..Wish::default() }, "speed: expected"),
        ] {
            let said = toy.wish(&wish).expect_err("no wish");
            assert!(said.starts_with(words), "{said}");
        }
    }

    #[test]
    fn rates_that_are_too_high_do_not_end_the_game() {
        let toy = Toy::new(String::new(), 4).expect("a toy");
        let wish = Wish {
            gain_rate: Some(0.5),
            synapse_rate: Some(0.5),
            adapt: Some(Adapt::Both),
            ..Wish::default()
        };
        toy.wish(&wish).expect("a wish");
        for _ in 0..500 {
            toy.played().advance(TICK).expect("a step");
        }
        assert!(toy.frame(0)["toy"]["gains"][0].is_number());
    }
}
