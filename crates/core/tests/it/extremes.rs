//! Throws numbers of every size at the library: whatever is finite gives finite numbers or an error, never a
//! panic, and never leaves an invalid circuit behind.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use leukos::{
    Circuit, Error, Matrix, Offline, OfflineGains, Online, Real, Rules, Solver, SynapseRule, Synapses, Test,
    UnitNorm, least_squares_gains, optimal_gains,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{self, bits, normal, normals};
use crate::twin;

/// A number type with its range.
trait Extreme: Real {
    /// The decimal exponents of its numbers, subnormals included.
    const DECADES: Range<f64>;
}

impl Extreme for f64 {
    const DECADES: Range<f64> = -323.0..308.0;
}

impl Extreme for f32 {
    const DECADES: Range<f64> = -45.0..38.0;
}

/// How the numbers of one case are drawn.
#[derive(Clone, Copy, Debug)]
enum Size {
    /// All near one power of ten.
    Near(f64),
    /// Each of its own size, and some zero.
    Any,
}

impl Size {
    fn draw<T: Extreme>(rng: &mut Pcg64) -> Self {
        match rng.random_range(0..4) {
            0 => Self::Any,
            1 => Self::Near(rng.random_range(T::DECADES)),
            _ => Self::Near(rng.random_range(-3.0..3.0)),
        }
    }

    fn number<T: Extreme>(self, rng: &mut Pcg64) -> T {
        let number = match self {
            Self::Any if rng.random_bool(0.1) => 0.0,
            Self::Any => normal(rng).signum() * 10.0_f64.powf(rng.random_range(T::DECADES)),
            Self::Near(decade) => normal(rng) * 10.0_f64.powf(decade),
        };
        // The range ends inside the last decade.
        let number = T::from_f64(number);
        if number.is_finite() { number } else { T::MAX }
    }

    fn numbers<T: Extreme>(self, count: usize, rng: &mut Pcg64) -> Vec<T> {
        (0..count).map(|_| self.number(rng)).collect()
    }
}

fn weights<T: Extreme>(rows: usize, columns: usize, rng: &mut Pcg64) -> Matrix<T> {
    let numbers = Size::draw::<T>(rng).numbers(rows * columns, rng);
    Matrix::from_columns(rows, columns, numbers).unwrap()
}

/// A circuit that may or may not be valid, with feedforward synapses near the feedback ones, elsewhere or none.
fn circuit<T: Extreme>(rng: &mut Pcg64) -> leukos::Result<Circuit<T>> {
    let (n, k) = ([1, 2, 2, 3, 5, 17][rng.random_range(0..6)], rng.random_range(0..7));
    let back = weights::<T>(n, k, rng);
    let synapses = match rng.random_range(0..4) {
        0 => Synapses::untied(back.clone(), &weights(k, n, rng)),
        1 => Synapses::untied(back.clone(), &back.transpose()),
        _ => Synapses::tied(back),
    }?;
    let mut gains = Size::draw::<T>(rng).numbers::<T>(k, rng);
    if rng.random_bool(0.8) {
        gains = gains.iter().map(|gain| gain.abs()).collect();
    }
    let multipliers = Size::draw::<T>(rng).numbers(k, rng);
    let leak = Size::draw::<T>(rng).number::<T>(rng).abs();
    Circuit::new(synapses, gains, leak)?.with_multipliers(multipliers)
}

fn rules<T: Extreme>(rng: &mut Pcg64) -> Rules<T> {
    let rate = |rate: Option<f64>, rng: &mut Pcg64| {
        rate.map(|_| 10.0_f64.powf(if rng.random_bool(0.5) { -2.0 } else { rng.random_range(-30.0..30.0) }))
    };
    let mut options = bridge::random_options(rng);
    options.gain_rate = rate(options.gain_rate, rng);
    options.synapse_rate = rate(options.synapse_rate, rng);
    options.multiplier_rate = rate(options.multiplier_rate, rng);
    bridge::rules(&options)
}

fn solver<T: Extreme>(tied: bool, rng: &mut Pcg64) -> Solver<T> {
    let tolerance = T::from_f64(10.0_f64.powf(rng.random_range(-8.0..0.0)));
    match rng.random_range(0..4) {
        0 if tied => Solver::Iterative { tolerance },
        1 => {
            let rate = rng.random_bool(0.5).then(|| T::from_f64(10.0_f64.powf(rng.random_range(-3.0..1.0))));
            Solver::Dynamics { rate, tolerance, max_iterations: 200 }
        }
        _ => Solver::Direct,
    }
}

fn finite<T: Real>(values: &[T]) -> bool {
    values.iter().all(|x| x.is_finite())
}

/// What every circuit that leaves the library must be: finite, and certified when it is put together again.
fn assert_valid<T: Real>(circuit: &Circuit<T>, what: &str) {
    let again = Circuit::new(circuit.synapses().clone(), circuit.gains().to_vec(), circuit.leak())
        .and_then(|again| again.with_multipliers(circuit.multipliers().to_vec()));
    assert_eq!(again.map(|again| bits(&again)), Ok(bits(circuit)), "{what}");
}

/// A run may fail only by diverging or by not settling, and leaves a valid circuit behind.
fn assert_failure<T: Real>(error: &Error, what: &str) {
    match error {
        Error::Diverged(diverged) => {
            assert!(diverged.last_valid_step <= diverged.step, "{what}: {error}");
            assert_valid(&diverged.circuit.cast::<T>(), what);
        }
        Error::NotConverged { change, .. } => assert!(!change.is_nan(), "{what}: {error}"),
        other => panic!("{what}: {other:?}"),
    }
}

/// What became of a case, so that a test can say that it has seen enough of each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Refused,
    Failed,
    Done,
}

fn online<T: Extreme>(seed: u64) -> Outcome {
    let rng = &mut Pcg64::seed_from_u64(seed);
    let Ok(start) = circuit::<T>(rng) else { return Outcome::Refused };
    let n = start.neurons();
    let (rules, solver) = (rules(rng), solver(start.synapses().is_tied(), rng));
    let what = format!("seed {seed}: {solver:?}, {rules:?}, {start:?}");
    let mut run = Online::new(start, rules, &solver).unwrap();
    let mut outcome = Outcome::Done;
    // Several calls, so that the run goes on after an error.
    for _ in 0..4 {
        let stimuli = Size::draw::<T>(rng).numbers::<T>(12 * n, rng);
        let mut responses = vec![T::ZERO; stimuli.len()];
        let steps = run.steps();
        if let Err(error) = run.advance(&stimuli, &mut responses, &mut ()) {
            assert_failure::<T>(&error, &what);
            outcome = Outcome::Failed;
        }
        let answered = (run.steps() - steps) as usize;
        assert!(finite(&responses[..answered * n]), "{what}: {responses:?}");
        if solver == Solver::Direct {
            assert_valid(run.circuit(), &what);
        }
    }
    match run.into_circuit() {
        Ok(circuit) => assert_valid(&circuit, &what),
        Err(error) => assert_failure::<T>(&error, &what),
    }
    outcome
}

fn frozen<T: Extreme>(seed: u64) -> Outcome {
    let rng = &mut Pcg64::seed_from_u64(seed);
    let Ok(start) = circuit::<T>(rng) else { return Outcome::Refused };
    let solver = solver(start.synapses().is_tied(), rng);
    let what = format!("seed {seed}: {solver:?}, {start:?}");
    if let Ok(inverse) = start.whitening_matrix() {
        assert!(finite(inverse.as_slice()), "{what}: {inverse:?}");
    }
    assert!(finite(start.inverse_whitening_matrix().as_slice()), "{what}");
    match start.respond(&Size::draw::<T>(rng).numbers::<T>(4 * start.neurons(), rng), &solver) {
        Ok(responses) => {
            assert!(finite(&responses), "{what}: {responses:?}");
            Outcome::Done
        }
        Err(Error::NotPositiveDefinite { .. } | Error::NotConverged { .. }) => Outcome::Failed,
        Err(other) => panic!("{what}: {other:?}"),
    }
}

/// A A', which is a covariance unless it overflows.
fn covariance<T: Extreme>(n: usize, rng: &mut Pcg64) -> Matrix<T> {
    let a = weights::<T>(n, n + 1, rng);
    let entry = |i: usize, j: usize| (0..=n).map(|l| a[(i, l)] * a[(j, l)]).sum::<T>();
    Matrix::from_fn(n, n, |i, j| if i < j { entry(i, j) } else { entry(j, i) })
}

fn offline<T: Extreme>(seed: u64) -> Outcome {
    let rng = &mut Pcg64::seed_from_u64(seed);
    let Ok(start) = circuit::<T>(rng) else { return Outcome::Refused };
    let gains = [OfflineGains::Rule, OfflineGains::Rule, OfflineGains::LeastSquares, OfflineGains::Optimal]
        [rng.random_range(0..4)];
    let (rules, covariance) = (rules(rng), covariance(start.neurons(), rng));
    let what = format!("seed {seed}: {gains:?}, {rules:?}, {start:?}, {covariance:?}");
    let Ok(mut run) = Offline::new(start, rules, vec![covariance], gains) else { return Outcome::Refused };
    let mut outcome = Outcome::Done;
    for _ in 0..3 {
        match run.advance(&[0], 3, &mut ()) {
            Ok(_) => {}
            // Gains that are set can be refused by what sets them.
            Err(Error::NotPositiveDefinite { .. } | Error::Incompatible { .. })
                if gains != OfflineGains::Rule =>
            {
                outcome = Outcome::Failed;
            }
            Err(error) => {
                assert_failure::<T>(&error, &what);
                outcome = Outcome::Failed;
            }
        }
        assert_valid(run.circuit(), &what);
    }
    outcome
}

/// The gains that a covariance asks for.
fn gains(seed: u64) -> Outcome {
    let rng = &mut Pcg64::seed_from_u64(seed);
    let (n, k) = (rng.random_range(1..5), rng.random_range(0..7));
    let (w, c) = (weights::<f64>(n, k, rng), covariance::<f64>(n, rng));
    let leak = Size::draw::<f64>(rng).number::<f64>(rng).abs();
    let what = format!("seed {seed}: {w:?}, {c:?}, {leak:e}");
    let found = [least_squares_gains(&w, &c, leak), optimal_gains(&w, &c, leak)];
    for gains in found.iter().flatten() {
        assert!(finite(gains), "{what}: {gains:?}");
    }
    if found[1].is_ok() { Outcome::Done } else { Outcome::Refused }
}

/// Runs all seeds and reports the first that fails, and what became of them.
fn sweep(cases: u64, one: fn(u64) -> Outcome) -> [usize; 3] {
    let mut counts = [0; 3];
    for seed in 0..cases {
        let outcome = catch_unwind(AssertUnwindSafe(|| one(seed)));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed} panics"));
        counts[outcome as usize] += 1;
    }
    println!("{counts:?} refused, failed and done");
    counts
}

#[test]
fn online_runs_stay_finite() {
    for counts in [sweep(4000, online::<f64>), sweep(4000, online::<f32>)] {
        assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
    }
}

#[test]
fn responses_stay_finite() {
    for counts in [sweep(4000, frozen::<f64>), sweep(4000, frozen::<f32>)] {
        assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
    }
}

#[test]
fn offline_runs_stay_finite() {
    for counts in [sweep(4000, offline::<f64>), sweep(4000, offline::<f32>)] {
        assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
    }
}

#[test]
fn gains_stay_finite() {
    let [refused, _, done] = sweep(4000, gains);
    assert!(refused > 100 && done > 100, "{refused} {done}");
}

// ---- Scale has no meaning ----

/// ‖a / scale − b‖ / ‖b‖.
fn distance<T: Real>(a: &[T], b: &[f64], scale: f64) -> f64 {
    let length = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a.to_f64() / scale - b).collect();
    length(&difference) / length(b)
}

/// A circuit, stimuli of order one, and its responses to them.
fn ordinary(n: usize, tied: bool) -> (twin::Circuit, Vec<f64>, Vec<f64>) {
    let rng = &mut Pcg64::seed_from_u64(n as u64);
    let circuit = bridge::random_circuit(n, n + 1, tied, rng);
    let stimuli = normals(3, n, rng).concat();
    let responses = bridge::circuit::<f64>(&circuit).unwrap().respond(&stimuli, &Solver::Direct).unwrap();
    (circuit, stimuli, responses)
}

fn scaled<T: Real>(values: &[f64], scale: f64) -> Vec<T> {
    values.iter().map(|x| T::from_f64(x * scale)).collect()
}

fn assert_stimuli_of_every_size<T: Real>(decades: Range<i32>, tolerance: f64) {
    for n in [1, 2, 3, 20] {
        let (circuit, stimuli, expected) = ordinary(n, true);
        let circuit = bridge::circuit::<T>(&circuit).unwrap();
        let small = T::from_f64(tolerance);
        let dynamics = Solver::Dynamics { rate: None, tolerance: small, max_iterations: 100_000 };
        for solver in [Solver::Direct, Solver::Iterative { tolerance: small }, dynamics] {
            for decade in decades.clone() {
                let scale = 10.0_f64.powi(decade);
                let responses = circuit.respond(&scaled(&stimuli, scale), &solver);
                let responses = responses.unwrap_or_else(|error| panic!("1e{decade}, {solver:?}: {error}"));
                let distance = distance(&responses, &expected, scale);
                assert!(distance < 100.0 * tolerance, "n {n}, 1e{decade}, {solver:?}: {distance:e}");
            }
        }
    }
}

/// All solvers answer stimuli of every size alike, though the squares of most are out of range.
#[test]
fn stimuli_of_every_size_are_answered() {
    assert_stimuli_of_every_size::<f64>(-300..300, 1e-9);
    assert_stimuli_of_every_size::<f32>(-32..36, 1e-5);
}

/// A circuit with gains and leak of any size answers like the one of order one, though det M is out of range.
#[test]
fn circuits_of_every_size_answer() {
    for (n, tied) in [(1, true), (1, false), (2, true), (2, false), (3, true), (3, false), (20, true)] {
        let (mut circuit, stimuli, expected) = ordinary(n, tied);
        let (gains, leak) = (circuit.gains.clone(), circuit.leak);
        for decade in -300..300 {
            let scale = 10.0_f64.powi(decade);
            (circuit.gains, circuit.leak) = (scaled(&gains, scale), leak * scale);
            let circuit = bridge::circuit::<f64>(&circuit);
            let circuit = circuit.unwrap_or_else(|error| panic!("n {n}, tied {tied}, 1e{decade}: {error}"));
            let responses = circuit.respond(&scaled(&stimuli, scale), &Solver::Direct).unwrap();
            let distance = distance(&responses, &expected, 1.0);
            assert!(distance < 1e-12, "n {n}, tied {tied}, 1e{decade}: {distance:e}");
        }
    }
}

/// Conjugate gradients answer such circuits too, where the products they are made of are out of range.
#[test]
fn circuits_of_every_size_answer_iteratively() {
    let solver = Solver::Iterative { tolerance: 1e-9 };
    for (n, decade, loudness) in [(3, 298, 1e-6), (20, 298, 1e-6), (3, -299, 1e5), (20, -299, 1e5)] {
        let (mut circuit, stimuli, expected) = ordinary(n, true);
        let scale = 10.0_f64.powi(decade);
        (circuit.gains, circuit.leak) = (scaled(&circuit.gains, scale), circuit.leak * scale);
        let circuit = bridge::circuit::<f64>(&circuit).unwrap();
        let responses = circuit.respond(&scaled(&stimuli, loudness), &solver).unwrap();
        let distance = distance(&responses, &expected, loudness / scale);
        assert!(distance < 1e-7, "n {n}, 1e{decade}: {distance:e}");
    }
}

/// A run on faint stimuli goes on as exactly as any: conjugate gradients do not take for settled what underflows.
#[test]
fn faint_stimuli_are_answered_as_exactly_as_others() {
    let (circuit, ..) = ordinary(5, true);
    let circuit = bridge::circuit::<f64>(&circuit).unwrap();
    let stimuli = normals(20, 5, &mut Pcg64::seed_from_u64(1)).concat();
    let rules = leukos::models::gain_modulation(1e-2).rules;
    let answers = |decade: i32, solver: &Solver| {
        let mut run = Online::new(circuit.clone(), rules, solver).unwrap();
        let mut responses = vec![0.0; stimuli.len()];
        run.advance(&scaled::<f64>(&stimuli, 10.0_f64.powi(decade)), &mut responses, &mut ()).unwrap();
        responses
    };
    for decade in -300..-5 {
        let scale = 10.0_f64.powi(decade);
        let exact: Vec<f64> = answers(decade, &Solver::Direct).iter().map(|r| r / scale).collect();
        let iterated = answers(decade, &Solver::Iterative { tolerance: 1e-12 });
        let distance = distance(&iterated, &exact, scale);
        assert!(distance < 1e-11, "1e{decade}: {distance:e}");
    }
}

/// Two neurons whose M has entries of very different sizes, also where a negative one hides behind the range.
/// The gains, in units of `unit`, of an online and of an offline run in which everything is measured in such units.
fn gains_in_units(n: usize, units: [f32; 2]) -> [Vec<f32>; 2] {
    let rng = &mut Pcg64::seed_from_u64(n as u64);
    let weights: Matrix<f32> = leukos::starts::orthogonal(n, n, rng).cast();
    let covariance: Matrix<f32> = bridge::square(&bridge::random_covariance(n, rng));
    let stimuli: Vec<f32> = normals(20, n, rng).concat().iter().map(|&x| x as f32).collect();
    let start = |unit: f32| {
        let gains = (0..n).map(|i| unit * (2.0 + i as f32 / 8.0)).collect();
        let circuit = Circuit::new(Synapses::tied(weights.clone()).unwrap(), gains, 0.0).unwrap();
        (circuit, leukos::models::multi_timescale(unit * 0.01, 0.001 / unit).rules)
    };
    let gains = |circuit: &Circuit<f32>, unit: f32| circuit.gains().iter().map(|gain| gain / unit).collect();

    let (circuit, rules) = start(units[0]);
    let stimuli: Vec<f32> = stimuli.iter().map(|x| units[0] * x).collect();
    let mut online = Online::new(circuit, rules, &Solver::Direct).unwrap();
    online.advance(&stimuli, &mut vec![0.0; stimuli.len()], &mut ()).unwrap();

    let (circuit, rules) = start(units[1]);
    let covariance = Matrix::from_fn(n, n, |i, j| units[1] * units[1] * covariance[(i, j)]);
    let mut offline = Offline::new(circuit, rules, vec![covariance], OfflineGains::Rule).unwrap();
    offline.advance(&[0], 20, &mut ()).unwrap();
    [gains(online.circuit(), units[0]), gains(offline.circuit(), units[1])]
}

/// Powers of two pass through every operation without a rounding, so a run in other units gives the same bits as long
/// as nothing on the way leaves the range of numbers. Online that range is narrower for a pair, which scales late.
#[test]
fn runs_in_other_units_are_the_same() {
    for n in [1, 2, 3, 5, 7, 8, 25] {
        let usual = gains_in_units(n, [1.0; 2]);
        for exponents in [[-30, -60], [30, 58]] {
            let units = exponents.map(|exponent| 2.0_f32.powi(exponent));
            assert_eq!(gains_in_units(n, units), usual, "n {n}, units 2^{exponents:?}");
        }
    }
}

#[test]
fn pairs_of_uneven_size_answer() {
    let pair = |a: f64, d: f64| {
        let synapses = Synapses::tied(Matrix::identity(2))?;
        Circuit::new(synapses, vec![a, d], 0.0)
    };
    for (a, d) in [(1e-300, 1e-100), (1e300, 1e100), (1e-300, 1e300), (1e-170, 1e-170), (1e170, 1e170)] {
        for (a, d) in [(a, d), (d, a)] {
            let responses = pair(a, d).unwrap().respond(&[a, d], &Solver::Direct).unwrap();
            assert!(
                (responses[0] - 1.0).abs() < 1e-15 && (responses[1] - 1.0).abs() < 1e-15,
                "{responses:?}"
            );
            assert!(pair(a, -d).is_err() && pair(-a, d).is_err() && pair(-a, -d).is_err());
        }
    }
}

fn assert_unit_length<T: Real>(decades: Range<i32>, tolerance: f64) {
    let synapses = SynapseRule::Hebbian { rate: T::from_f64(1e-3) };
    let rules = Rules { synapses, unit_norm: UnitNorm::Projected, ..Rules::frozen() };
    for decade in decades {
        let scale = 10.0_f64.powi(decade);
        let weights = Matrix::from_columns(3, 1, scaled::<T>(&[2.0, 3.0, -6.0], scale)).unwrap();
        // A gain of 0 keeps M out of it.
        let circuit = Circuit::new(Synapses::tied(weights).unwrap(), vec![T::ZERO], T::ONE).unwrap();
        let mut run = Online::new(circuit, rules, &Solver::Direct).unwrap();
        run.advance(&[T::ONE; 3], &mut [T::ZERO; 3], &mut ()).unwrap();
        let unit = run.circuit().synapses().feedback().as_slice();
        let distance = distance(unit, &[2.0 / 7.0, 3.0 / 7.0, -6.0 / 7.0], 1.0);
        assert!(distance < tolerance, "1e{decade}: {unit:?}");
    }
}

/// Weights of every size are brought to unit length, though the squares of most are out of range.
#[test]
fn synapses_of_every_size_come_to_unit_length() {
    assert_unit_length::<f64>(-305..307, 1e-14);
    assert_unit_length::<f32>(-36..37, 1e-6);
}

/// Eigenvalues that cannot be bounded in range leave no rate for the dynamics: an error, not silence.
#[test]
fn dynamics_without_a_rate_in_range_are_refused() {
    let synapses = Synapses::tied(Matrix::from_rows(&[[1.0, 1.0]])).unwrap();
    let circuit = Circuit::new(synapses, vec![1.5e308, -1e308], 1.0).unwrap();
    let dynamics = Solver::Dynamics { rate: None, tolerance: 1e-6, max_iterations: 1000 };
    let error = circuit.respond(&[1e308], &dynamics).unwrap_err();
    assert!(matches!(error, Error::NotPositiveDefinite { test: Test::Overflow, .. }), "{error:?}");
}
