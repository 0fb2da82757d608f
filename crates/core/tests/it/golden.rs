//! Shows that the library reproduces every golden case to 1e-9, at the end and along the way.

use std::ops::ControlFlow;

use leukos::{
    Offline, OfflineGains, Online, Shown, Solver, Step, align, gradient, least_squares_gains, objective,
    optimal_gains, whitening_error,
};

use crate::bridge::{self, farthest, flat};
use crate::golden_cases::{self as cases, options, tied};
use crate::npz::Npz;
use crate::twin;

const TOLERANCE: f64 = 1e-9;

#[test]
fn online_cases() {
    let names = [&cases::ONLINE[..], &cases::BATCH, &cases::FROZEN, &cases::UNIT_NORM, &cases::SIGN].concat();
    for case in names {
        let golden = Npz::golden(case);
        let mut expected = tied(&golden, "W0", "g0");
        expected.feedback = golden.matrix("W");
        expected.gains = golden.vector("g");
        expected.multipliers = if golden.has("m") { golden.vector("m") } else { Vec::new() };
        check_online(case, &golden, &tied(&golden, "W0", "g0"), &options(&golden), &expected);
    }
}

#[test]
fn biological_cases() {
    for case in cases::BIOLOGICAL {
        let golden = Npz::golden(case);
        let (from, to) = cases::biological(&golden);
        check_online(case, &golden, &from, &cases::biological_options(&golden), &to);
    }
}

fn check_online(case: &str, golden: &Npz, from: &twin::Circuit, options: &twin::Options, to: &twin::Circuit) {
    let stimuli: Vec<f64> = flat(&golden.matrix("S"));
    let mut responses = vec![0.0; stimuli.len()];
    let circuit = bridge::circuit(from).unwrap();
    let mut run = Online::new(circuit, bridge::rules(options), &Solver::Direct).unwrap();
    run.advance(&stimuli, &mut responses, &mut ()).unwrap();
    assert!(farthest(&responses, &flat::<f64>(&golden.matrix("R"))) < TOLERANCE, "{case}: responses");
    assert!(bridge::difference(run.circuit(), to) < TOLERANCE, "{case}: circuit");
}

#[test]
fn offline_cases() {
    for case in cases::OFFLINE {
        let golden = Npz::golden(case);
        let covariances = golden.stack("covs").iter().map(bridge::square).collect();
        let circuit = bridge::circuit(&tied(&golden, "W0", "g0")).unwrap();
        let rules = bridge::rules(&options(&golden));
        let mut run = Offline::new(circuit, rules, covariances, OfflineGains::Rule).unwrap();
        let mut errors = Vec::new();
        let mut measure = |step: &Step| {
            let Shown::Covariance { covariance, .. } = step.shown else { unreachable!() };
            errors.push(whitening_error(&step.circuit.inverse_whitening_matrix(), covariance).unwrap());
            ControlFlow::Continue(())
        };
        run.advance(&golden.index("presented"), golden.index("J")[0], &mut measure).unwrap();
        assert!(farthest(&errors, &flat::<f64>(&golden.matrix("error"))) < TOLERANCE, "{case}: errors");
        let expected = twin::Circuit {
            feedback: golden.matrix("W"),
            gains: golden.vector("g"),
            ..tied(&golden, "W0", "g0")
        };
        assert!(bridge::difference(run.circuit(), &expected) < TOLERANCE, "{case}: circuit");
    }
}

#[test]
fn dynamics_cases() {
    for case in cases::DYNAMICS {
        let golden = Npz::golden(case);
        let circuit = bridge::circuit(&tied(&golden, "W", "g")).unwrap();
        let stimuli = golden.matrix("S");
        let expected = golden.matrix("R_dynamics");
        for (i, iterations) in golden.index("iterations").into_iter().enumerate() {
            let dynamics = |max_iterations| Solver::Dynamics {
                rate: Some(golden.scalar("response_rate")),
                tolerance: golden.scalar("tolerance"),
                max_iterations,
            };
            let response = circuit.respond(&stimuli[i], &dynamics(iterations)).unwrap();
            assert!(farthest(&response, &expected[i]) < TOLERANCE, "{case}: response {i}");
            assert!(
                circuit.respond(&stimuli[i], &dynamics(iterations - 1)).is_err(),
                "{case}: iterations {i}"
            );
        }
    }
}

#[test]
fn metrics_cases() {
    for case in cases::METRICS {
        let golden = Npz::golden(case);
        let w = golden.matrix("W");
        let (c, m) = (bridge::square(&golden.matrix("C")), bridge::square(&golden.matrix("M")));
        let (w, leak) = (bridge::matrix(&w, w[0].len()), golden.scalar("alpha"));
        let near = |name: &str, ours: f64| {
            assert!((ours - golden.scalar(name)).abs() < TOLERANCE, "{case}: {name}");
        };
        near("objective", objective(&m, &c).unwrap());
        near("error", whitening_error(&m, &c).unwrap());
        let slope = flat::<f64>(&bridge::nested(&gradient(&m, &c).unwrap()));
        assert!(farthest(&slope, &flat::<f64>(&golden.matrix("gradient"))) < TOLERANCE, "{case}: gradient");
        let (aligned, distance) = align(&w, &bridge::matrix(&golden.matrix("B"), w.columns())).unwrap();
        near("distance", distance);
        let aligned = flat::<f64>(&bridge::nested(&aligned));
        assert_eq!(aligned, flat::<f64>(&golden.matrix("W_aligned")), "{case}: aligned");
        let least_squares = least_squares_gains(&w, &c, leak).unwrap();
        assert!(farthest(&least_squares, &golden.vector("least_squares_gains")) < TOLERANCE, "{case}: gains");
        let best = leukos::Circuit::new(
            leukos::Synapses::tied(w.clone()).unwrap(),
            optimal_gains(&w, &c, leak).unwrap(),
            leak,
        );
        let best = best.unwrap().inverse_whitening_matrix();
        near("objective_at_optimal_gains", objective(&best, &c).unwrap());
        let error = whitening_error(&best, &c).unwrap();
        // The error is not stationary at the optimum, so it shows the gains' own accuracy, and the oracle's.
        assert!(
            (error - golden.scalar("error_at_optimal_gains")).abs() < 1e-6,
            "{case}: error at the optimum"
        );
    }
}
