//! Provokes every error and reads it: its fields, its message, and what is left when a run has failed.

use std::fmt::Debug;
use std::ops::ControlFlow;

use leukos::{
    Circuit, Diverged, Error, GainRule, Matrix, MultiplierRule, Offline, OfflineGains, Online, Order, Rules,
    Solver, Step, SynapseRule, Synapses, Test, UnitNorm, gradient, least_squares_gains, models, objective,
    optimal_gains, sample_objective, whitening_error,
};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::bridge::{bits, normals};

fn error_of<T>(result: leukos::Result<T>) -> Error {
    result.err().expect("an error")
}

/// The error's message, word for word.
fn assert_says<T>(result: leukos::Result<T>, message: &str) {
    assert_eq!(error_of(result).to_string(), message);
}

fn tied(n: usize, gains: Vec<f64>, leak: f64) -> leukos::Result<Circuit> {
    let k = gains.len();
    let synapses = Synapses::tied(Matrix::from_fn(n, k, |i, j| f64::from(u8::from(i == j % n))))?;
    Circuit::new(synapses, gains, leak)
}

/// The same with the feedforward synapses stored on their own.
fn untied(n: usize, gains: Vec<f64>, leak: f64) -> leukos::Result<Circuit> {
    let k = gains.len();
    let back = Matrix::from_fn(n, k, |i, j| f64::from(u8::from(i == j % n)));
    let forth = back.transpose();
    Circuit::new(Synapses::untied(back, &forth)?, gains, leak)
}

fn two() -> Circuit {
    tied(2, vec![1.0, 1.0], 1.0).unwrap()
}

fn online(circuit: Circuit, rules: Rules, solver: Solver) -> leukos::Result<Online> {
    Online::new(circuit, rules, &solver)
}

/// Advances a run; being watched keeps few neurons out of the loops of their own.
fn advance(run: &mut Online, stimuli: &[f64], responses: &mut [f64], watched: bool) -> leukos::Result<usize> {
    if watched {
        run.advance(stimuli, responses, &mut |_: &Step| ControlFlow::Continue(()))
    } else {
        run.advance(stimuli, responses, &mut ())
    }
}

fn offline(covariances: Vec<Matrix>, gains: OfflineGains) -> leukos::Result<Offline> {
    Offline::new(two(), models::multi_timescale_offline(0.1, 0.01).rules, covariances, gains)
}

// ---- Arguments ----

#[test]
fn shapes() {
    let shape = |argument: &'static str, expected: &str, found: &str| Error::Shape {
        argument: argument.into(),
        expected: expected.into(),
        found: found.into(),
    };
    let none = error_of(Synapses::<f64>::tied(Matrix::zeros(0, 3)));
    assert_eq!(none, shape("synapses", "at least one row (a primary neuron)", "none"));
    assert_eq!(none.to_string(), "synapses: expected at least one row (a primary neuron), got none");
    let forth = Matrix::<f64>::zeros(2, 3);
    assert_eq!(
        error_of(Synapses::untied(Matrix::zeros(2, 3), &forth)),
        shape("feedforward", "3 x 2", "2 x 3")
    );
    let synapses = Synapses::tied(Matrix::<f64>::identity(3)).unwrap();
    let gains = error_of(Circuit::new(synapses, vec![1.0; 2], 1.0));
    assert_eq!(gains, shape("gains", "3 numbers (one for each interneuron)", "2 numbers"));
    let multipliers = error_of(two().with_multipliers(vec![0.0; 3]));
    assert_eq!(multipliers, shape("multipliers", "2 numbers (one for each interneuron)", "3 numbers"));
    assert_eq!(
        error_of(two().with_gains(vec![])),
        shape("gains", "2 numbers (one for each interneuron)", "0 numbers")
    );
    assert_eq!(
        error_of(Matrix::from_columns(2, 2, vec![0.0; 3])),
        shape("matrix", "2 x 2 numbers", "3 numbers")
    );

    let stimuli = shape("stimuli", "a multiple of 2 numbers (one for each neuron)", "5 numbers");
    assert_eq!(error_of(two().respond(&[0.0; 5], &Solver::Direct)), stimuli);
    let mut run = online(two(), Rules::frozen(), Solver::Direct).unwrap();
    assert_eq!(error_of(run.advance(&[0.0; 5], &mut [0.0; 5], &mut ())), stimuli);
    let responses = shape("responses", "4 numbers, as many as stimuli", "6 numbers");
    assert_eq!(error_of(run.advance(&[0.0; 4], &mut [0.0; 6], &mut ())), responses);

    let covariances = vec![Matrix::identity(2), Matrix::identity(3)];
    for gains in [OfflineGains::Rule, OfflineGains::LeastSquares, OfflineGains::Optimal] {
        let error = error_of(offline(covariances.clone(), gains));
        assert_eq!(error, shape_of("covariances[1]", "2 x 2", "3 x 3"));
    }
    let mut run = offline(vec![Matrix::identity(2); 2], OfflineGains::Rule).unwrap();
    let presented = error_of(run.advance(&[0, 1, 2], 1, &mut ()));
    assert_eq!(presented, shape("presented", "contexts below 2", "2"));
    assert_eq!(run.steps(), 0, "nothing was presented");
}

fn shape_of(argument: &str, expected: &str, found: &str) -> Error {
    Error::Shape { argument: argument.to_owned().into(), expected: expected.into(), found: found.into() }
}

#[test]
fn shapes_of_what_the_theory_is_asked() {
    let (two, three) = (Matrix::identity(2), Matrix::identity(3));
    for error in [
        error_of(objective(&two, &three)),
        error_of(gradient(&two, &three)),
        error_of(whitening_error(&two, &three)),
        error_of(optimal_gains(&two, &three, 1.0)),
        error_of(least_squares_gains(&two, &three, 1.0)),
    ] {
        assert_eq!(error, shape_of("covariance", "2 x 2", "3 x 3"));
    }
    assert_eq!(
        error_of(objective(&Matrix::zeros(2, 3), &two)),
        shape_of("inverse_whitening_matrix", "2 x 2", "2 x 3")
    );
    let circuit = self::two();
    assert_says(
        sample_objective(&circuit, &[0.0], &[0.0; 2]),
        "response: expected 2 numbers (one for each neuron), got 1 numbers",
    );
    assert_says(
        sample_objective(&circuit, &[0.0; 2], &[0.0; 3]),
        "stimulus: expected 2 numbers (one for each neuron), got 3 numbers",
    );
}

/// Each kind of number that is not finite, put into position `index` of zeros.
fn spoiled(length: usize, index: usize) -> impl Iterator<Item = (Vec<f64>, f64)> {
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().map(move |bad| {
        let mut values = vec![0.0; length];
        values[index] = bad;
        (values, bad)
    })
}

fn assert_not_finite<T>(result: leukos::Result<T>, name: &str, place: usize, bad: f64) {
    let error = error_of(result);
    let expected = format!("{name}: expected finite numbers, got {bad} at position {place}");
    assert_eq!(error.to_string(), expected);
    let Error::NotFinite { argument, index, value } = error else { panic!("{error:?}") };
    assert_eq!((argument.as_ref(), index, value.to_bits()), (name, place, bad.to_bits()));
}

#[test]
fn numbers_that_are_not_finite() {
    for (values, bad) in spoiled(6, 4) {
        // Matrices count column after column.
        let weights = Matrix::from_columns(3, 2, values.clone()).unwrap();
        let fine = Matrix::zeros(2, 3);
        assert_not_finite(Synapses::tied(weights.clone()), "synapses", 4, bad);
        assert_not_finite(Synapses::untied(weights.clone(), &fine), "synapses", 4, bad);
        assert_not_finite(Synapses::untied(fine, &weights), "feedforward", 4, bad);
        assert_not_finite(optimal_gains(&weights, &Matrix::identity(3), 1.0), "synapses", 4, bad);
    }
    for (values, bad) in spoiled(2, 1) {
        assert_not_finite(tied(2, values.clone(), 1.0), "gains", 1, bad);
        assert_not_finite(two().with_gains(values.clone()), "gains", 1, bad);
        assert_not_finite(two().with_multipliers(values), "multipliers", 1, bad);
    }
    for (values, bad) in spoiled(4, 2) {
        let covariance = Matrix::from_columns(2, 2, values).unwrap();
        let covariances = vec![Matrix::identity(2), covariance.clone()];
        for gains in [OfflineGains::Rule, OfflineGains::LeastSquares, OfflineGains::Optimal] {
            assert_not_finite(offline(covariances.clone(), gains), "covariances[1]", 2, bad);
        }
        assert_not_finite(objective(&Matrix::identity(2), &covariance), "covariance", 2, bad);
        assert_not_finite(whitening_error(&Matrix::identity(2), &covariance), "covariance", 2, bad);
        assert_not_finite(gradient(&covariance, &Matrix::identity(2)), "inverse_whitening_matrix", 2, bad);
    }
}

/// A stimulus that is not finite is named by its place in the call. What came before it has been answered and
/// learned from, and the run goes on after it.
#[test]
fn stimuli_that_are_not_finite() {
    for n in [2, 3] {
        for (mut stimuli, bad) in spoiled(5 * n, 3 * n + 1) {
            stimuli[..3 * n].fill(1.0);
            let circuit = tied(n, vec![1.0; n], 1.0).unwrap();
            assert_not_finite(circuit.respond(&stimuli, &Solver::Direct), "stimuli", 3 * n + 1, bad);
            for watched in [false, true] {
                let rules = models::multi_timescale(0.1, 0.01).rules;
                let mut run = online(circuit.clone(), rules, Solver::Direct).unwrap();
                let mut exact = online(circuit.clone(), rules, Solver::Direct).unwrap();
                exact.advance(&stimuli[..3 * n], &mut vec![0.0; 3 * n], &mut ()).unwrap();
                let mut responses = vec![0.0; 5 * n];
                let outcome = advance(&mut run, &stimuli, &mut responses, watched);
                assert_not_finite(outcome, "stimuli", 3 * n + 1, bad);
                assert_eq!((bits(run.circuit()), run.steps()), (bits(exact.circuit()), 3));
                assert!(responses[..3 * n].iter().all(|r| *r != 0.0 && r.is_finite()));
                run.advance(&vec![1.0; n], &mut vec![0.0; n], &mut ()).unwrap();
                assert_eq!(run.steps(), 4);
            }
        }
    }
}

fn assert_out_of_range<T>(result: leukos::Result<T>, name: &str, range: &str, number: f64) {
    let error = error_of(result);
    assert_eq!(error.to_string(), format!("{name}: expected {range}, got {number}"));
    let Error::OutOfRange { argument, expected, found } = error else { panic!("{error:?}") };
    assert_eq!((argument.as_ref(), expected.as_ref(), found.to_bits()), (name, range, number.to_bits()));
}

#[test]
fn rates_and_tolerances_out_of_range() {
    for rate in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = |rules: Rules, solver: Solver, name: &str| {
            assert_out_of_range(online(two(), rules, solver), name, "a finite number above 0", rate);
        };
        let frozen = Rules::frozen();
        refused(Rules { gains: GainRule::Gradient { rate }, ..frozen }, Solver::Direct, "gain_rate");
        refused(Rules { synapses: SynapseRule::Hebbian { rate }, ..frozen }, Solver::Direct, "synapse_rate");
        let unit_norm = UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate } };
        refused(Rules { unit_norm, ..frozen }, Solver::Direct, "multiplier_rate");
        refused(frozen, Solver::Iterative { tolerance: rate }, "tolerance");
        let dynamics = |rate, tolerance| Solver::Dynamics { rate, tolerance, max_iterations: 1 };
        refused(frozen, dynamics(None, rate), "tolerance");
        refused(frozen, dynamics(Some(rate), 1e-6), "response_rate");
        refused(frozen, Solver::Loop { rate: Some(rate), iterations: 1 }, "response_rate");
        let respond = two().respond(&[0.0; 2], &dynamics(Some(rate), 1e-6));
        assert_out_of_range(respond, "response_rate", "a finite number above 0", rate);
        let rules = Rules { gains: GainRule::Gradient { rate }, ..frozen };
        let run = Offline::new(two(), rules, vec![], OfflineGains::Rule);
        assert_out_of_range(run, "gain_rate", "a finite number above 0", rate);
    }
}

#[test]
fn counts_of_zero() {
    let run = online(two(), Rules { batch: 0, ..Rules::frozen() }, Solver::Direct);
    assert_out_of_range(run, "batch", "1 sample or more", 0.0);
    let dynamics = Solver::Dynamics { rate: None, tolerance: 1e-6, max_iterations: 0 };
    let respond = two().respond(&[0.0; 2], &dynamics);
    assert_out_of_range(respond, "max_iterations", "1 iteration or more", 0.0);
    let respond = two().respond(&[0.0; 2], &Solver::Loop { rate: None, iterations: 0 });
    assert_out_of_range(respond, "iterations", "1 iteration or more", 0.0);
}

#[test]
fn leaks_out_of_range() {
    for leak in [-1.0, -1e-300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let range = "a finite number, 0 or more";
        assert_out_of_range(tied(2, vec![1.0; 2], leak), "leak", range, leak);
        assert_out_of_range(untied(2, vec![1.0; 2], leak), "leak", range, leak);
        let (w, c) = (Matrix::identity(2), Matrix::identity(2));
        assert_out_of_range(optimal_gains(&w, &c, leak), "leak", range, leak);
        assert_out_of_range(least_squares_gains(&w, &c, leak), "leak", range, leak);
    }
    assert!(tied(2, vec![1.0; 2], 0.0).is_ok());
}

#[test]
fn no_leak_and_too_few_interneurons() {
    for circuit in [tied(3, vec![1.0; 2], 0.0), untied(3, vec![1.0; 2], 0.0)] {
        let error = error_of(circuit);
        assert_eq!(error, Error::Singular { neurons: 3, interneurons: 2 });
        let message = "leak: expected more than 0 for 3 neurons and 2 interneurons, \
                       because M = W diag(g) W' has rank 2 at most; got 0";
        assert_eq!(error.to_string(), message);
    }
}

// ---- Circuits that are not valid at the start ----

const TIED: &str = "synapses, gains and leak that make M = leak I + W diag(gains) W' positive definite";
const UNTIED: &str = "synapses, gains and leak that give every eigenvalue of M a positive real part";

fn assert_invalid(circuit: leukos::Result<Circuit>, expected: &'static str, test: Test) {
    let argument = "circuit".into();
    assert_eq!(error_of(circuit), Error::NotPositiveDefinite { argument, expected, test });
}

/// Gains of 1 but for one.
fn gains_with(n: usize, index: usize, gain: f64) -> Vec<f64> {
    (0..n).map(|i| if i == index { gain } else { 1.0 }).collect()
}

#[test]
fn circuits_not_valid_at_the_start() {
    for n in [1, 2, 3, 8, 15, 16, 25, 100] {
        for pivot in [0, n / 2, n - 1] {
            // M is diagonal, with −½ or 0 in one place.
            for gain in [-1.5, -1.0] {
                let gains = gains_with(n, pivot, gain);
                assert_invalid(tied(n, gains.clone(), 1.0), TIED, Test::Cholesky { pivot });
                assert_invalid(untied(n, gains, 1.0), UNTIED, Test::Eigenvalue);
            }
        }
        assert_invalid(tied(n, vec![f64::MAX; 2 * n], 1.0), TIED, Test::Overflow);
        assert_invalid(untied(n, vec![f64::MAX; 2 * n], 1.0), UNTIED, Test::Overflow);
    }
    assert_says(
        tied(3, vec![1.0, -2.0, 1.0], 1.0),
        &format!("circuit: expected {TIED}, but pivot 1 of its Cholesky factorisation is not positive"),
    );
    assert_says(
        untied(3, vec![1.0, -2.0, 1.0], 1.0),
        &format!("circuit: expected {UNTIED}, but an eigenvalue has a real part that is not positive"),
    );
    assert_invalid(two().with_gains(vec![-1.0, 1.0]), TIED, Test::Cholesky { pivot: 0 });
}

/// Eigenvalues decide about an untied circuit, not the symmetric part: a turn by more than a right angle is
/// refused, a shear is not.
#[test]
fn untied_circuits_are_judged_by_their_eigenvalues() {
    for n in [2, 3, 4, 20] {
        let with_corner = |corner: [[f64; 2]; 2]| {
            let forth = Matrix::from_fn(n, n, |i, j| if i < 2 && j < 2 { corner[i][j] } else { 0.0 });
            let synapses = Synapses::untied(Matrix::identity(n), &forth)?;
            Circuit::new(synapses, vec![1.0; n], 1.0)
        };
        assert!(with_corner([[0.0, 50.0], [0.0, 0.0]]).is_ok(), "shear");
        assert!(with_corner([[-0.9, 50.0], [-50.0, -0.9]]).is_ok(), "a turn by nearly a right angle");
        assert_invalid(with_corner([[-1.1, 50.0], [-50.0, -1.1]]), UNTIED, Test::Eigenvalue);
        assert_invalid(with_corner([[0.0, 1.1], [1.1, 0.0]]), UNTIED, Test::Eigenvalue);
    }
}

#[test]
fn matrices_that_are_no_covariances() {
    let skew = Matrix::from_rows(&[[2.0, 0.5], [0.25, 2.0]]);
    let negative = Matrix::from_rows(&[[1.0, 2.0], [2.0, 1.0]]);
    for gains in [OfflineGains::Rule, OfflineGains::LeastSquares, OfflineGains::Optimal] {
        let with = |covariance: &Matrix| offline(vec![Matrix::identity(2), covariance.clone()], gains);
        let error = error_of(with(&skew));
        let argument = "covariances[1]".into();
        assert_eq!(error, Error::NotSymmetric { argument, row: 1, column: 0, difference: 0.25 });
        let message =
            "covariances[1]: expected a symmetric matrix, but entries (1, 0) and (0, 1) differ by 2.5e-1";
        assert_eq!(error.to_string(), message);
        assert_says(
            with(&negative),
            "covariances[1]: expected a covariance, which has no negative eigenvalue, \
             but an eigenvalue has a real part that is not positive",
        );
    }
    assert!(matches!(error_of(objective(&skew, &negative)), Error::NotSymmetric { .. }));
    assert!(matches!(error_of(objective(&Matrix::identity(2), &skew)), Error::NotSymmetric { .. }));
    let error = error_of(gradient(&negative, &Matrix::identity(2)));
    let Error::NotPositiveDefinite { argument, test: Test::Cholesky { pivot: 1 }, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(argument, "inverse_whitening_matrix");
    let error = error_of(whitening_error(&Matrix::zeros(2, 2), &Matrix::identity(2)));
    assert!(matches!(error, Error::NotPositiveDefinite { test: Test::Singular, .. }), "{error:?}");
    assert_eq!(objective(&negative, &Matrix::identity(2)), Ok(f64::INFINITY), "no error: off the cone");
}

#[test]
fn gains_that_do_not_exist() {
    let (narrow, flat) = (Matrix::from_rows(&[[1.0], [0.0]]), Matrix::diagonal(&[1.0, 0.0]));
    let error = error_of(optimal_gains(&narrow, &Matrix::identity(2), 0.0));
    assert!(matches!(error, Error::NotPositiveDefinite { test: Test::Singular, .. }), "{error:?}");
    assert!(error.to_string().starts_with("synapses: "), "{error}");
    let error = error_of(optimal_gains(&narrow, &flat, 1.0));
    assert!(error.to_string().starts_with("covariance: expected a positive definite matrix"), "{error}");
}

// ---- Choices that do not go together ----

fn assert_incompatible<T>(result: leukos::Result<T>, name: &str, says: &str) {
    let error = error_of(result);
    let Error::Incompatible { argument, reason } = &error else { panic!("{error:?}") };
    assert_eq!((argument.as_ref(), *reason), (name, says));
    assert_eq!(error.to_string(), format!("{name}: {says}"));
}

#[test]
fn choices_that_need_tied_synapses() {
    let circuit = || untied(2, vec![1.0; 2], 1.0).unwrap();
    let iterative = Solver::Iterative { tolerance: 1e-6 };
    let reason = "the iterative solver is conjugate gradients, which needs tied synapses; \
                  use the direct solver or the dynamics";
    assert_incompatible(online(circuit(), Rules::frozen(), iterative), "solver", reason);
    assert_incompatible(circuit().respond(&[0.0; 2], &iterative), "solver", reason);
    for gains in [OfflineGains::LeastSquares, OfflineGains::Optimal] {
        let run = Offline::new(circuit(), Rules::frozen(), vec![Matrix::identity(2)], gains);
        let reason = "gains can be set by least squares or to their optimum only with tied synapses; \
                      use the gain rule";
        assert_incompatible(run, "gains", reason);
    }
    let value = sample_objective(&circuit(), &[0.0; 2], &[0.0; 2]);
    assert_incompatible(value, "circuit", "the objective is that of tied synapses");
}

#[test]
fn models_refuse_circuits_that_are_not_theirs() {
    let (tied, untied) = (two, || untied(2, vec![1.0; 2], 1.0).unwrap());
    let refuse = |model: models::Algorithm, circuit: Circuit, reason: &str| {
        assert_incompatible(model.online(circuit.clone(), &Solver::Direct), "circuit", reason);
        assert_incompatible(model.offline(circuit, vec![], OfflineGains::Rule), "circuit", reason);
    };
    let needs_tied = "this model has tied synapses; make the circuit without a feedforward matrix";
    for model in [
        models::multi_timescale(0.1, 0.1),
        models::multi_timescale_offline(0.1, 0.1),
        models::synaptic_plasticity(0.1),
        models::gain_modulation(0.1),
        models::unit_norm_alone(0.1, 0.1, 0.1),
        models::sign_alone(0.1, 0.1),
    ] {
        refuse(model, untied(), needs_tied);
    }
    let needs_untied = "this model has separate feedforward and feedback synapses; make the circuit untied";
    refuse(models::decoupled_alone(0.1, 0.1), tied(), needs_untied);
    refuse(models::biological(0.1, 0.1, 0.1), tied(), needs_untied);
    refuse(models::synaptic_plasticity(0.1), tied(), "this model has leak 0");
    refuse(models::gain_modulation(0.1), self::tied(2, vec![1.0; 2], 0.5).unwrap(), "this model has leak 1");
    let gains = self::tied(2, vec![1.0, 2.0], 0.0).unwrap();
    refuse(models::synaptic_plasticity(0.1), gains, "this model has no gains: all of them are 1");
    let needs_sign = "this model starts from synapses, gains and multipliers that are not negative";
    let negative_back = Matrix::from_rows(&[[1.0, -0.1], [0.0, 1.0]]);
    for circuit in [
        untied().with_gains(vec![1.0, -0.1]).unwrap(),
        untied().with_multipliers(vec![0.0, -0.1]).unwrap(),
        Circuit::new(
            Synapses::untied(negative_back.clone(), &Matrix::identity(2)).unwrap(),
            vec![1.0; 2],
            1.0,
        )
        .unwrap(),
        Circuit::new(Synapses::untied(Matrix::identity(2), &negative_back).unwrap(), vec![1.0; 2], 1.0)
            .unwrap(),
    ] {
        refuse(models::biological(0.1, 0.1, 0.1), circuit, needs_sign);
    }
}

// ---- Runs that leave the set of valid circuits ----

fn diverged<T: Debug>(result: leukos::Result<T>) -> Diverged {
    match result {
        Err(Error::Diverged(diverged)) => *diverged,
        other => panic!("{other:?}"),
    }
}

/// Rules under which a gain falls by nearly ½ in each step of near silence.
fn falling() -> Rules {
    models::multi_timescale(0.5, 1e-3).rules
}

fn near_silence(rows: usize, n: usize) -> Vec<f64> {
    let rng = &mut Pcg64::seed_from_u64(n as u64);
    normals(rows, n, rng).concat().iter().map(|x| 1e-3 * x).collect()
}

/// Runs until it diverges. Says at which step, and checks all that must hold then: the last valid circuit is the
/// one of a run that stops a step earlier, and the run goes on from there like that one.
fn assert_diverges(circuit: &Circuit, rules: Rules, watched: bool, test: Test) -> u64 {
    let n = circuit.neurons();
    let stimuli = near_silence(10 * rules.batch, n);
    let mut run = online(circuit.clone(), rules, Solver::Direct).unwrap();
    let mut responses = vec![f64::NAN; stimuli.len()];
    let failure = diverged(advance(&mut run, &stimuli, &mut responses, watched));
    let before = failure.step as usize * n;
    assert_eq!((failure.test, failure.last_valid_step, run.steps()), (test, failure.step, failure.step));
    assert!(responses[..before].iter().all(|r| r.is_finite()), "all before was answered");

    let mut exact = online(circuit.clone(), rules, Solver::Direct).unwrap();
    exact.advance(&stimuli[..before], &mut responses[..before], &mut ()).unwrap();
    assert_eq!(bits(&failure.circuit), bits(exact.circuit()));
    assert_eq!(bits(run.circuit()), bits(exact.circuit()));
    if rules.batch == 1 {
        let loud = vec![1.0; 4 * n];
        run.advance(&loud, &mut vec![0.0; 4 * n], &mut ()).unwrap();
        exact.advance(&loud, &mut vec![0.0; 4 * n], &mut ()).unwrap();
        assert_eq!(bits(run.circuit()), bits(exact.circuit()), "the run goes on");
    }
    failure.step
}

/// M = 1.2 I becomes 0.7 I and 0.2 I in near silence, and then negative.
#[test]
fn tied_runs_that_lose_definiteness() {
    for n in [1, 2, 3, 5, 7, 16, 30] {
        let circuit = tied(n, vec![1.1; n], 0.1).unwrap();
        for watched in [false, true] {
            let step = assert_diverges(&circuit, falling(), watched, Test::Cholesky { pivot: 0 });
            assert_eq!(step, 2, "n {n}");
            let batches = Rules { batch: 3, ..falling() };
            let step = assert_diverges(&circuit, batches, watched, Test::Cholesky { pivot: 0 });
            assert_eq!(step, 8, "n {n}: the last sample of the third batch");
        }
        let late = tied(n, gains_with(n, n - 1, 0.6), 0.1).unwrap();
        assert_diverges(&late, falling(), false, Test::Cholesky { pivot: n - 1 });
    }
}

#[test]
fn untied_runs_that_lose_stability() {
    for n in [1, 2, 3, 16, 30] {
        let circuit = untied(n, vec![1.1; n], 0.1).unwrap();
        for watched in [false, true] {
            assert_eq!(assert_diverges(&circuit, falling(), watched, Test::Eigenvalue), 2, "n {n}");
        }
    }
}

#[test]
fn a_diverged_run_says_so() {
    let mut run = online(tied(3, vec![1.1; 3], 0.1).unwrap(), falling(), Solver::Direct).unwrap();
    assert_says(
        run.advance(&[0.0; 30], &mut [0.0; 30], &mut ()),
        "the run diverged at step 2: M is no longer valid, pivot 0 of its Cholesky factorisation is not positive \
         (last step known to be valid: 2); smaller rates may help",
    );
}

/// Numbers that overflow in the first step are kept out of the circuit, also where M does not contain them.
#[test]
fn runs_whose_numbers_run_over() {
    let synapses = models::multi_timescale(1e-3, 1e300).rules;
    // Weights of length √10 push their multiplier out of range; the concurrent order reads it a step later.
    let unit_norm = UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate: 1e308 } };
    let multipliers =
        Rules { unit_norm, order: Order::Concurrent, ..models::multi_timescale(1e-3, 1e-3).rules };
    for rules in [synapses, multipliers] {
        for n in [2, 3, 16] {
            let weights = Matrix::diagonal(&vec![10.0_f64.sqrt(); n]);
            let circuit = Circuit::new(Synapses::tied(weights).unwrap(), vec![1.0; n], 0.1).unwrap();
            for watched in [false, true] {
                let mut run = online(circuit.clone(), rules, Solver::Direct).unwrap();
                let failure = diverged(advance(&mut run, &vec![1.0; n], &mut vec![0.0; n], watched));
                assert_eq!((failure.test, failure.step, &failure.circuit), (Test::Overflow, 0, &circuit));
                assert_eq!(run.circuit(), &circuit);
            }
        }
    }
}

/// A response out of range stops the run before it learns from it.
#[test]
fn responses_that_run_over() {
    for n in [1, 2, 3, 16] {
        let circuit = tied(n, vec![0.0; n], 1e-3).unwrap();
        let too_loud = vec![1e307; n];
        let error = error_of(circuit.respond(&too_loud, &Solver::Direct));
        assert!(matches!(error, Error::NotPositiveDefinite { test: Test::Overflow, .. }), "{error:?}");
        let mut run =
            online(circuit.clone(), models::multi_timescale(1e-3, 1e-3).rules, Solver::Direct).unwrap();
        let failure = diverged(run.advance(&too_loud, &mut vec![0.0; n], &mut ()));
        assert_eq!((failure.test, failure.step, failure.circuit), (Test::Overflow, 0, circuit));
        run.advance(&vec![1e-3; n], &mut vec![0.0; n], &mut ()).unwrap();
    }
}

/// Solvers that do not factorise at every step find out later, and go back to the last circuit they have checked.
#[test]
fn runs_that_are_checked_now_and_then() {
    let rules = models::multi_timescale(0.05, 1e-3).rules;
    let iterative = Solver::Iterative { tolerance: 1e-9 };
    let dynamics = Solver::Dynamics { rate: None, tolerance: 1e-9, max_iterations: 100_000 };
    for (solver, tests) in [
        (iterative, [Test::Curvature, Test::Cholesky { pivot: 0 }]),
        (dynamics, [Test::Dynamics, Test::Cholesky { pivot: 0 }]),
    ] {
        for (lively, silent) in [(0, 45), (100, 45), (200, 60), (7, 200)] {
            let rng = &mut Pcg64::seed_from_u64(lively as u64);
            let circuit = tied(3, vec![0.5; 3], 0.5).unwrap();
            let mut stimuli = normals(lively, 3, rng).concat();
            stimuli.extend(vec![0.0; 3 * silent]);
            stimuli.extend(vec![1.0; 3 * 64]);
            let mut run = online(circuit.clone(), rules, solver).unwrap();
            let failure = diverged(run.advance(&stimuli, &mut vec![0.0; stimuli.len()], &mut ()));
            let what = format!("{solver:?}, {lively} lively and {silent} silent steps: {failure:?}");
            assert!(tests.contains(&failure.test), "{what}");
            assert!(failure.last_valid_step <= failure.step && failure.step == run.steps(), "{what}");
            assert!(failure.step - failure.last_valid_step < 64, "{what}");
            failure.circuit.whitening_matrix().unwrap();
            assert_eq!(bits(run.circuit()), bits(&failure.circuit), "{what}");

            let mut exact = online(circuit, rules, solver).unwrap();
            let before = 3 * failure.last_valid_step as usize;
            exact.advance(&stimuli[..before], &mut vec![0.0; before], &mut ()).unwrap();
            assert_eq!(bits(exact.circuit()), bits(&failure.circuit), "{what}");
            run.advance(&[1.0; 12], &mut [0.0; 12], &mut ()).unwrap();
            run.into_circuit().unwrap();
        }
    }
}

#[test]
fn offline_runs_that_lose_definiteness() {
    for (circuit, test) in [
        (tied(3, vec![1.1; 3], 0.1).unwrap(), Test::Cholesky { pivot: 0 }),
        (untied(3, vec![1.1; 3], 0.1).unwrap(), Test::Eigenvalue),
    ] {
        let covariances = || vec![Matrix::diagonal(&[1e-6; 3]), Matrix::identity(3)];
        let start = |circuit| Offline::new(circuit, falling(), covariances(), OfflineGains::Rule).unwrap();
        let (mut run, mut exact) = (start(circuit.clone()), start(circuit));
        let failure = diverged(run.advance(&[0], 10, &mut ()));
        assert_eq!((failure.test, failure.step, failure.last_valid_step), (test, 2, 2));
        exact.advance(&[0], 2, &mut ()).unwrap();
        assert_eq!(bits(&failure.circuit), bits(exact.circuit()));
        assert_eq!((bits(run.circuit()), run.steps()), (bits(exact.circuit()), 2));
        run.advance(&[1], 1, &mut ()).unwrap();
        exact.advance(&[1], 1, &mut ()).unwrap();
        assert_eq!(bits(run.circuit()), bits(exact.circuit()), "the run goes on");
    }
}

/// Single precision diverges alike, and its circuit is handed out exactly.
#[test]
fn single_precision_circuits_are_handed_out_exactly() {
    let circuit = tied(3, vec![1.1; 3], 0.1).unwrap().cast::<f32>();
    let rules = models::multi_timescale(0.5_f32, 1e-3).rules;
    let mut run = Online::new(circuit, rules, &Solver::Direct).unwrap();
    let failure = diverged(run.advance(&[1e-3; 30], &mut [0.0; 30], &mut ()));
    assert_eq!(failure.step, 2);
    assert_eq!(&failure.circuit.cast::<f32>(), run.circuit());
    assert_eq!(bits(&failure.circuit), bits(run.circuit()));
}

/// Every test says what it found.
#[test]
fn tests_have_words() {
    for (test, words) in [
        (Test::Cholesky { pivot: 4 }, "pivot 4 of its Cholesky factorisation is not positive"),
        (Test::Eigenvalue, "an eigenvalue has a real part that is not positive"),
        (Test::Curvature, "conjugate gradients met a direction of negative curvature"),
        (Test::Singular, "it is singular to working precision"),
        (Test::Overflow, "a number is too large for its precision"),
        (Test::Dynamics, "the recurrent dynamics grow without bound"),
    ] {
        assert_eq!(test.to_string(), words);
    }
}

/// A run whose dynamics do not settle keeps its circuit and goes on with the next stimulus.
#[test]
fn unsettled_runs_go_on() {
    let dynamics = Solver::Dynamics { rate: Some(0.1), tolerance: 1e-6, max_iterations: 40 };
    let mut run = online(two(), models::multi_timescale(1e-3, 1e-3).rules, dynamics).unwrap();
    let before = bits(run.circuit());
    let error = error_of(run.advance(&[1.0, 1.0], &mut [0.0; 2], &mut ()));
    assert_eq!(
        error.to_string().split(':').next(),
        Some("the recurrent dynamics did not converge in 40 iterations")
    );
    assert_eq!((bits(run.circuit()), run.steps()), (before, 0));
    run.advance(&[0.0, 0.0], &mut [0.0; 2], &mut ()).unwrap();
    run.into_circuit().unwrap();
}

/// A covariance that was rounded to single precision is judged by that precision.
#[test]
fn single_precision_covariances_are_judged_by_their_precision() {
    let circuit =
        || Circuit::new(Synapses::tied(Matrix::<f32>::identity(3)).unwrap(), vec![0.0; 3], 1.0).unwrap();
    let rank_one = |sign: f32| {
        let v = [0.3_f32, -1.7, 0.9];
        Matrix::from_fn(3, 3, |i, j| v[i] * v[j] - if i == j && sign < 0.0 { 0.01 } else { 0.0 })
    };
    let rules = models::multi_timescale_offline(0.01, 0.001).rules;
    let start = |covariance| Offline::new(circuit(), rules, vec![covariance], OfflineGains::Rule);
    assert!(start(rank_one(1.0)).is_ok());
    assert!(matches!(start(rank_one(-1.0)), Err(Error::NotPositiveDefinite { .. })));
}
