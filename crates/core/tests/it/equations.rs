//! Checks the paper's equations and claims on the library, one test for each.
//!
//! Sections and equation numbers are the paper's; where its print and the truth differ, the test says how.

use std::ops::ControlFlow;

use leukos::starts::{on_sphere, orthogonal};
use leukos::{
    Circuit, Error, GainRule, Matrix, MultiplierRule, Online, Order, Rules, Sign, Solver, Step, Synapses,
    Test, UnitNorm, gradient, models, objective, optimal_gains, sample_objective, whitening_error,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{self, farthest, flat, nested, normals, random_covariance, sigma_points, square};
use crate::twin::{self, column, dot, matmul, matvec, solve, transpose};

/// Both rules of Algorithms 1 and 2 in one order.
fn both_rules(order: Order, gain_rate: f64, synapse_rate: f64) -> Rules {
    Rules { order, ..models::multi_timescale(gain_rate, synapse_rate).rules }
}

/// A random tied circuit of a size that the seed names, from N = 1 and K = 0 on, and one stimulus for it.
fn tied_case(seed: u64) -> (Circuit, Vec<f64>) {
    let rng = &mut Pcg64::seed_from_u64(seed);
    let (n, k) = (1 + seed as usize % 6, seed as usize % 8);
    let circuit = bridge::circuit(&bridge::random_circuit(n, k, true, rng)).unwrap();
    (circuit, normals(1, n, rng).concat())
}

/// The same circuit with one number of W, counted by columns, moved.
fn with_weight(circuit: &Circuit, index: usize, change: f64) -> Circuit {
    let mut weights = circuit.synapses().feedback().clone();
    weights.as_mut_slice()[index] += change;
    Circuit::new(Synapses::tied(weights).unwrap(), circuit.gains().to_vec(), circuit.leak()).unwrap()
}

fn with_gain(circuit: &Circuit, index: usize, change: f64) -> Circuit {
    let mut gains = circuit.gains().to_vec();
    gains[index] += change;
    circuit.clone().with_gains(gains).unwrap()
}

/// The slope at zero of a function that is quadratic: central differences are then exact, whatever the step.
fn slope(function: impl Fn(f64) -> f64) -> f64 {
    (function(0.01) - function(-0.01)) / 0.02
}

fn assert_near(ours: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((ours - expected).abs() <= tolerance, "{what}: {ours:e} is not {expected:e}");
}

// ---- Section 4: the sample objective and the three timescales ----

/// Eq. (6): each step of the recurrent dynamics is η_r times **half** the gradient of ℓ, Eq. (5), in r.
#[test]
fn responses_climb_half_the_gradient_of_the_sample_objective() {
    const RATE: f64 = 0.05;
    for seed in 0..24 {
        let (circuit, stimulus) = tied_case(seed);
        let mut response = vec![0.0; stimulus.len()];
        let mut tolerance = 1e3;
        for iteration in 0..5 {
            let dynamics = Solver::Dynamics { rate: Some(RATE), tolerance, max_iterations: 10 };
            let next = circuit.respond(&stimulus, &dynamics).unwrap();
            for a in 0..next.len() {
                let along = |change: f64| {
                    let mut moved = response.clone();
                    moved[a] += change;
                    sample_objective(&circuit, &moved, &stimulus).unwrap()
                };
                let what = format!("seed {seed}, iteration {iteration}, neuron {a}");
                assert_near((next[a] - response[a]) / RATE, 0.5 * slope(along), 1e-11, &what);
            }
            // A hair below the size of this step, so that the loop takes just one more.
            let step = farthest(&next, &response);
            tolerance = (1.0 - 1e-6) * step / twin::largest_magnitude(&stimulus);
            response = next;
        }
    }
}

/// Eq. (7): Δg is η_g times minus the gradient of ℓ in g, at the response that maximises it.
#[test]
fn gains_descend_the_gradient_of_the_sample_objective() {
    const RATE: f64 = 0.01;
    for seed in 0..24 {
        let (circuit, stimulus) = tied_case(seed);
        let rules = both_rules(Order::Concurrent, RATE, 0.01);
        let (responses, after) = bridge::online(&circuit, rules, &vec![stimulus.clone()]);
        for i in 0..circuit.interneurons() {
            let along = |change: f64| {
                sample_objective(&with_gain(&circuit, i, change), &responses[0], &stimulus).unwrap()
            };
            let step = (after.gains()[i] - circuit.gains()[i]) / RATE;
            assert_near(step, -slope(along), 1e-11, &format!("seed {seed}, gain {i}"));
        }
    }
}

/// Eq. (8): Δw is η_w times minus **half** the gradient of ℓ in w, at the response that maximises it.
#[test]
fn synapses_descend_half_the_gradient_of_the_sample_objective() {
    const RATE: f64 = 0.01;
    for seed in 0..24 {
        let (circuit, stimulus) = tied_case(seed);
        let rules = both_rules(Order::Concurrent, 0.01, RATE);
        let (responses, after) = bridge::online(&circuit, rules, &vec![stimulus.clone()]);
        let (old, new) = (circuit.synapses().feedback().as_slice(), after.synapses().feedback().as_slice());
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            let along = |change: f64| {
                sample_objective(&with_weight(&circuit, index, change), &responses[0], &stimulus).unwrap()
            };
            assert_near(
                (new - old) / RATE,
                -0.5 * slope(along),
                1e-11,
                &format!("seed {seed}, weight {index}"),
            );
        }
    }
}

/// Section 4, below Eq. (8): gains rest where the responses have unit variance along every wᵢ, and only there.
#[test]
fn gains_rest_where_the_variance_along_every_synapse_vector_is_one() {
    let rules = Rules { order: Order::Concurrent, ..models::gain_modulation(0.05).rules };
    for seed in 0..20 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let n = rng.random_range(2..=5);
        let k = rng.random_range(1..n * (n + 1) / 2);
        let covariance = random_covariance(n, rng);
        let start = bridge::circuit::<f64>(&bridge::random_circuit(n, k, true, rng)).unwrap();
        let gains = optimal_gains(start.synapses().feedback(), &square(&covariance), start.leak()).unwrap();
        let best = start.clone().with_gains(gains.clone()).unwrap();
        // Optimal gains are known to about ε^¾ = 2e-12.
        assert!(
            farthest(bridge::offline(&best, rules, &covariance, 1).gains(), &gains) < 1e-11,
            "seed {seed}"
        );
        assert_unit_variances(&best, &covariance, 1e-10);
        for i in 0..k {
            let perturbed = with_gain(&best, i, 1e-3);
            let moved = bridge::offline(&perturbed, rules, &covariance, 1);
            assert!(moved.gains()[i] < perturbed.gains()[i] - 1e-8, "seed {seed}: gain {i} does not go back");
        }
        let wherever =
            Circuit::new(Synapses::tied(orthogonal(n, n, rng)).unwrap(), vec![1.0; n], 1.0).unwrap();
        let settled = bridge::offline(&wherever, rules, &covariance, 5000);
        assert_unit_variances(&settled, &covariance, 1e-10);
    }
}

fn assert_unit_variances(circuit: &Circuit, covariance: &twin::Matrix, tolerance: f64) {
    let twin = bridge::twin_of(circuit);
    let responses = twin::response_covariance(&twin.inverse_whitening_matrix(), covariance);
    for i in 0..twin.gains.len() {
        let w = column(&twin.feedback, i);
        assert_near(dot(&w, &matvec(&responses, &w)), dot(&w, &w), tolerance, &format!("variance {i}"));
    }
}

/// Eq. (4), Eq. (5) and Appendix B.2: f_c(M) = E[max over r of ℓ] + αN (a number; the print drops "αI_N").
#[test]
fn objective_is_the_mean_of_the_maximal_sample_objective() {
    for seed in 0..24 {
        let (circuit, _) = tied_case(seed);
        let n = circuit.neurons();
        let covariance = random_covariance(n, &mut Pcg64::seed_from_u64(100 + seed));
        let points = sigma_points(&covariance);
        let responses = circuit.respond(&flat::<f64>(&points), &Solver::Direct).unwrap();
        let values = points
            .iter()
            .zip(responses.chunks_exact(n))
            .map(|(s, r)| sample_objective(&circuit, r, s).unwrap());
        let mean = values.sum::<f64>() / points.len() as f64;
        let whole = objective(&circuit.inverse_whitening_matrix(), &square(&covariance)).unwrap();
        assert_near(mean + circuit.leak() * n as f64, whole, 1e-13 * whole, &format!("seed {seed}"));
    }
}

// ---- Section 2: the objective ----

/// Section 2 and Appendix B.1: f_c(C^½) = 2 Tr C^½, where the responses are white (Eq. 1, Eq. 9) and the
/// gradient, Eq. (10), is zero.
#[test]
fn objective_is_twice_the_trace_at_its_minimum() {
    for seed in 0..20 {
        let n = 1 + seed as usize % 7;
        let covariance = random_covariance(n, &mut Pcg64::seed_from_u64(seed));
        let root = twin::square_root(&covariance);
        let (best, given) = (square(&root), square(&covariance));
        let minimum = 2.0 * twin::trace(&root);
        let tolerance = 1e-12 * minimum;
        assert_near(objective(&best, &given).unwrap(), minimum, tolerance, "f_c(M_c)");
        assert_near(whitening_error(&best, &given).unwrap(), 0.0, 1e-10, "error");
        let slopes = gradient(&best, &given).unwrap();
        assert!(slopes.as_slice().iter().all(|slope| slope.abs() < 1e-10), "{slopes:?}");
    }
}

/// Section 2: f_c is strictly convex, so that its minimum is the only one.
#[test]
fn objective_is_strictly_convex() {
    for seed in 0..100 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let n = rng.random_range(1..=6);
        let [a, b, c]: [Matrix; 3] = std::array::from_fn(|_| square(&random_covariance(n, rng)));
        let t = rng.random_range(0.1..0.9);
        let between = Matrix::from_fn(n, n, |i, j| (1.0 - t) * a[(i, j)] + t * b[(i, j)]);
        let value = |m: &Matrix| objective(m, &c).unwrap();
        assert!(value(&between) < (1.0 - t) * value(&a) + t * value(&b), "seed {seed}");
    }
}

/// Eq. (2), its footnote: f_c is infinite wherever M is not positive definite, though Tr(M⁻¹C + M) is a number there,
/// and inside the cone it rises without bound towards the edge.
#[test]
fn objective_is_infinite_off_the_cone() {
    for seed in 0..24 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let n = 1 + seed as usize % 6;
        let (c, q) = (random_covariance(n, rng), nested(&orthogonal(n, n, rng)));
        let spectrum: Vec<f64> = (0..n).map(|_| rng.random_range(0.1..3.0)).collect();
        // The first `negative` eigenvalues change their sign: indefinite, and negative definite at the end.
        for negative in 0..=n {
            let signed: Vec<f64> =
                spectrum.iter().enumerate().map(|(i, x)| if i < negative { -x } else { *x }).collect();
            let product = matmul(&scaled_columns(&q, &signed), &transpose(&q));
            let m = Matrix::from_fn(n, n, |i, j| product[i.max(j)][i.min(j)]);
            let formula = twin::trace(&matmul(&twin::inverse(&product), &c)) + twin::trace(&product);
            let value = objective(&m, &square(&c)).unwrap();
            if negative == 0 {
                // The two solve with M in different ways, each to ε times its condition, 30 at most.
                assert_near(value, formula, 1e-13 * formula, &format!("seed {seed}, on the cone"));
            } else {
                assert!(formula.is_finite(), "seed {seed}: the formula alone would not be infinite");
                assert_eq!(value, f64::INFINITY, "seed {seed}: {negative} of {n} eigenvalues are negative");
            }
        }
        // Powers of two, so that elimination is exact and finds the singular matrices singular.
        let powers: Vec<f64> = (0..n)
            .map(|_| 2_f64.powi(rng.random_range(-3..=3)) * if seed % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let edge = |last: f64| {
            Matrix::from_fn(n, n, |i, j| match (i == j, i + 1 == n) {
                (true, true) => last,
                (true, false) => powers[i].abs(),
                _ => 0.0,
            })
        };
        let rank_one = Matrix::from_fn(n, n, |i, j| powers[i] * powers[j]);
        for m in [edge(0.0), Matrix::zeros(n, n), rank_one] {
            let singular = n > 1 || m[(0, 0)] == 0.0;
            let value = objective(&m, &square(&c)).unwrap();
            assert_eq!(value == f64::INFINITY, singular, "seed {seed}: {m:?}");
        }
        for exponent in [10, 20, 40] {
            let near = objective(&edge(2_f64.powi(-exponent)), &square(&c)).unwrap();
            assert!(
                near.is_finite() && near >= c[n - 1][n - 1] * 2_f64.powi(exponent),
                "seed {seed}: {near:e}"
            );
        }
    }
}

/// Eq. (10): ∇f_c(M) = I − M⁻¹CM⁻¹ is the slope of f_c in every symmetric direction.
#[test]
fn gradient_is_the_slope_of_the_objective_in_every_direction() {
    for seed in 0..20 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let n = 1 + seed as usize % 6;
        let (m, c) = (square(&random_covariance(n, rng)), square(&random_covariance(n, rng)));
        let drawn = normals(n, n, rng);
        let direction = Matrix::from_fn(n, n, |i, j| drawn[i][j] + drawn[j][i]);
        let along =
            |t: f64| objective(&Matrix::from_fn(n, n, |i, j| m[(i, j)] + t * direction[(i, j)]), &c).unwrap();
        let (h, slopes) = (1e-4, gradient(&m, &c).unwrap());
        // Fourth order, because f_c is not quadratic.
        let measured = (8.0 * (along(h) - along(-h)) - (along(2.0 * h) - along(-2.0 * h))) / (12.0 * h);
        let expected = dot(slopes.as_slice(), direction.as_slice());
        assert_near(measured, expected, 1e-8 * (1.0 + expected.abs()), &format!("seed {seed}"));
    }
}

// ---- Section 3: the models that are unified ----

/// Section 3.1 and Table 1: without leak and with gains of 1 it is the synaptic plasticity of Pehlevan and
/// Chklovskii, W ← W + η(r zᵀ − W) with r = (WWᵀ)⁻¹s.
#[test]
fn synaptic_plasticity_alone_is_recovered() {
    const RATE: f64 = 0.01;
    let rng = &mut Pcg64::seed_from_u64(1);
    let (mut w, stimuli) = (normals(3, 5, rng), normals(200, 3, rng));
    let start = Circuit::new(Synapses::tied(bridge::matrix(&w, 5)).unwrap(), vec![1.0; 5], 0.0).unwrap();
    let mut run = models::synaptic_plasticity(RATE).online(start, &Solver::Direct).unwrap();
    let mut responses = vec![0.0; 600];
    run.advance(&flat::<f64>(&stimuli), &mut responses, &mut ()).unwrap();
    for (s, ours) in stimuli.iter().zip(responses.chunks_exact(3)) {
        let r = solve(&matmul(&w, &transpose(&w)), s);
        let z = matvec(&transpose(&w), &r);
        assert!(farthest(ours, &r) < 1e-11);
        for (row, r) in w.iter_mut().zip(&r) {
            row.iter_mut().zip(&z).for_each(|(w, z)| *w += RATE * (r * z - *w));
        }
    }
    assert!(farthest(&nested(run.circuit().synapses().feedback()).concat(), &w.concat()) < 1e-11);
    assert_eq!(run.circuit().gains(), [1.0; 5]);
}

/// Section 3.2 and Table 1: with leak 1 and fixed synapses it is the gain modulation of Duong et al.,
/// g ← g + η(z∘z − ‖w‖²) with M = I + W diag(g) Wᵀ.
#[test]
fn gain_modulation_alone_is_recovered() {
    const RATE: f64 = 0.01;
    let rng = &mut Pcg64::seed_from_u64(2);
    let (w, stimuli) = (nested(&on_sphere(3, 6, rng)), normals(200, 3, rng));
    let mut g = vec![0.0; 6];
    let start = Circuit::new(Synapses::tied(bridge::matrix(&w, 6)).unwrap(), g.clone(), 1.0).unwrap();
    let mut run = models::gain_modulation(RATE).online(start, &Solver::Direct).unwrap();
    let mut responses = vec![0.0; 600];
    run.advance(&flat::<f64>(&stimuli), &mut responses, &mut ()).unwrap();
    for (s, ours) in stimuli.iter().zip(responses.chunks_exact(3)) {
        let mut m = matmul(&scaled_columns(&w, &g), &transpose(&w));
        m.iter_mut().enumerate().for_each(|(a, row)| row[a] += 1.0);
        let r = solve(&m, s);
        assert!(farthest(ours, &r) < 1e-11);
        for (i, g) in g.iter_mut().enumerate() {
            let w = column(&w, i);
            *g += RATE * (dot(&w, &r).powi(2) - dot(&w, &w));
        }
    }
    assert!(farthest(run.circuit().gains(), &g) < 1e-11);
    assert_eq!(nested(run.circuit().synapses().feedback()), w);
}

/// W diag(g).
fn scaled_columns(w: &twin::Matrix, g: &[f64]) -> twin::Matrix {
    w.iter().map(|row| row.iter().zip(g).map(|(w, g)| w * g).collect()).collect()
}

/// Section 3.2: with K ≥ N(N+1)/2 interneurons the gains alone whiten any covariance, whatever (generic) W.
#[test]
fn enough_interneurons_whiten_any_covariance_by_gains_alone() {
    for seed in 0..40 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let n = 2 + seed as usize % 4;
        let enough = n * (n + 1) / 2;
        for k in [enough, enough + 1, 2 * enough] {
            let error = error_at_the_optimum(n, k, rng);
            assert!(error < 1e-8, "seed {seed}: n {n}, k {k}, error {error:e}");
        }
        let error = error_at_the_optimum(n, enough - 1, rng);
        assert!(error > 1e-4, "seed {seed}: n {n}, one too few, error {error:e}");
    }
}

fn error_at_the_optimum(n: usize, k: usize, rng: &mut Pcg64) -> f64 {
    let (w, c) = (on_sphere(n, k, rng), square(&random_covariance(n, rng)));
    let gains = optimal_gains(&w, &c, 1.0).unwrap();
    let circuit = Circuit::new(Synapses::tied(w).unwrap(), gains, 1.0).unwrap();
    whitening_error(&circuit.inverse_whitening_matrix(), &c).unwrap()
}

// ---- Appendix C: the offline algorithm ----

/// Appendix C: Δg = −η_g diag[Wᵀ ∇f_c W] and ΔW = −η_w ∇f_c W diag(g), concurrently.
#[test]
fn the_offline_step_descends_the_gradient_of_the_objective() {
    for seed in 0..24 {
        let (circuit, _) = tied_case(seed);
        let covariance = random_covariance(circuit.neurons(), &mut Pcg64::seed_from_u64(100 + seed));
        let after = bridge::offline(&circuit, both_rules(Order::Concurrent, 0.02, 0.01), &covariance, 1);
        let slopes = nested(&gradient(&circuit.inverse_whitening_matrix(), &square(&covariance)).unwrap());
        let mut expected = bridge::twin_of(&circuit);
        for i in 0..circuit.interneurons() {
            let w = circuit.synapses().feedback().column(i);
            let slope = matvec(&slopes, w);
            expected.gains[i] -= 0.02 * dot(w, &slope);
            for (row, slope) in expected.feedback.iter_mut().zip(&slope) {
                row[i] -= 0.01 * slope * circuit.gains()[i];
            }
        }
        assert!(bridge::difference(&after, &expected) < 1e-12, "seed {seed}");
    }
}

/// Appendix C: the offline updates are those of Eq. (7) and Eq. (8) averaged over the context. Concurrently,
/// the whole step is the one of a batch with the same second moment, under every constraint, tied or not.
#[test]
fn a_concurrent_offline_step_is_the_mean_of_the_online_step() {
    for seed in 0..100 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (n, k) = (rng.random_range(1..=6), rng.random_range(0..=8));
        let circuit = bridge::circuit::<f64>(&bridge::random_circuit(n, k, seed % 2 == 0, rng)).unwrap();
        let covariance = random_covariance(n, rng);
        let options = twin::Options { concurrent: true, batch: 2 * n, ..bridge::random_options(rng) };
        let rules = bridge::rules(&options);
        let (_, sampled) = bridge::online(&circuit, rules, &sigma_points(&covariance));
        let expected = bridge::offline(&circuit, rules, &covariance, 1);
        let difference = bridge::difference(&sampled, &bridge::twin_of(&expected));
        assert!(difference < 1e-13, "seed {seed}: n {n}, k {k}, {options:?}: {difference:e}");
    }
}

/// Algorithms 1 and 2 as printed, sequentially: a sample's n was emitted with the old gains, the expectation
/// takes the new ones. So the offline synapses differ from the mean of the online ones by
/// η_w η_g C_rr W diag(dg) with dg = diag(Wᵀ C_rr W) − ‖w‖², and the gains not at all.
#[test]
fn a_sequential_offline_step_differs_from_the_mean_by_one_term() {
    let (gain_rate, synapse_rate) = (0.03, 0.02);
    for seed in 0..40 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (n, k) = (rng.random_range(1..=6), rng.random_range(1..=8));
        let start = bridge::random_circuit(n, k, seed % 2 == 0, rng);
        let circuit = bridge::circuit::<f64>(&start).unwrap();
        let covariance = random_covariance(n, rng);
        let rules = Rules { batch: 2 * n, ..both_rules(Order::Sequential, gain_rate, synapse_rate) };
        let (_, sampled) = bridge::online(&circuit, rules, &sigma_points(&covariance));
        let offline = bridge::twin_of(&bridge::offline(&circuit, rules, &covariance, 1));

        let responses = twin::response_covariance(&start.inverse_whitening_matrix(), &covariance);
        let mut expected = bridge::twin_of(&sampled);
        for i in 0..k {
            let listening = start.feedforward.as_ref().map_or(column(&start.feedback, i), |w| w[i].clone());
            let correlation = matvec(&responses, &listening);
            let dg = dot(&listening, &correlation) - dot(&listening, &column(&start.feedback, i));
            for (a, correlation) in correlation.iter().enumerate() {
                let term = synapse_rate * gain_rate * correlation * dg;
                expected.feedback[a][i] += term;
                if let Some(w) = &mut expected.feedforward {
                    w[i][a] += term;
                }
            }
        }
        let without = bridge::difference(&sampled, &offline);
        assert!(without > 1e-7, "seed {seed}: the term is too small to be seen");
        let difference = bridge::difference(&bridge::circuit::<f64>(&expected).unwrap(), &offline);
        assert!(difference < 1e-13, "seed {seed}: {difference:e}");
    }
}

// ---- How the length of synapse vectors drifts ----

/// One column before and after a step.
struct Column {
    gain: [f64; 2],
    square: [f64; 2],
    /// Σ (Δw)², and dg = E[z²] − ‖w‖².
    moved: f64,
    dg: f64,
}

impl Column {
    fn all(before: &Circuit, after: &Circuit, gain_rate: f64) -> Vec<Self> {
        let of = |circuit: &Circuit, i| circuit.synapses().feedback().column(i).to_vec();
        let column = |i: usize| {
            let (old, new) = (of(before, i), of(after, i));
            let change: Vec<f64> = new.iter().zip(&old).map(|(new, old)| new - old).collect();
            Self {
                gain: [before.gains()[i], after.gains()[i]],
                square: [dot(&old, &old), dot(&new, &new)],
                moved: dot(&change, &change),
                dg: (after.gains()[i] - before.gains()[i]) / gain_rate,
            }
        };
        (0..before.interneurons()).map(column).collect()
    }

    /// Δ(‖w‖² − (η_w/η_g) g²).
    fn drift(&self, gain_rate: f64, synapse_rate: f64) -> f64 {
        let squares = self.gain[1].powi(2) - self.gain[0].powi(2);
        self.square[1] - self.square[0] - synapse_rate / gain_rate * squares
    }
}

/// Checks Δ(‖w‖² − (η_w/η_g)g²) = η_w η_g `first_order` + ‖Δw‖², where ‖Δw‖² is of second order in η_w.
fn assert_drift(
    order: Order,
    first_order: impl Fn(&Column) -> f64,
    step: impl Fn(&Circuit, Rules, &mut Pcg64) -> Circuit,
) {
    let gain_rate = 0.1;
    for seed in 0..20 {
        let (circuit, _) = tied_case(seed);
        let remainders = [0.02, 0.01, 0.005].map(|synapse_rate| {
            let rng = &mut Pcg64::seed_from_u64(seed);
            let after = step(&circuit, both_rules(order, gain_rate, synapse_rate), rng);
            let remainder = |column: &Column| {
                let expected = synapse_rate * gain_rate * first_order(column);
                let remainder = column.drift(gain_rate, synapse_rate) - expected;
                assert_near(remainder, column.moved, 1e-14, &format!("seed {seed}, {order:?}"));
                remainder / synapse_rate.powi(2)
            };
            Column::all(&circuit, &after, gain_rate).iter().map(remainder).collect::<Vec<_>>()
        });
        assert!(farthest(&remainders[0], &remainders[1]) < 1e-9, "seed {seed}: not of second order");
        assert!(farthest(&remainders[0], &remainders[2]) < 1e-9, "seed {seed}: not of second order");
    }
}

fn online_step(circuit: &Circuit, rules: Rules, rng: &mut Pcg64) -> Circuit {
    bridge::online(circuit, rules, &normals(1, circuit.neurons(), rng)).1
}

fn offline_step(circuit: &Circuit, rules: Rules, rng: &mut Pcg64) -> Circuit {
    bridge::offline(circuit, rules, &random_covariance(circuit.neurons(), rng), 1)
}

/// Norms shrink under the concurrent offline algorithm: the drift is −η_w η_g dg².
#[test]
fn norms_shrink_offline_when_updates_are_concurrent() {
    assert_drift(Order::Concurrent, |column| -column.dg.powi(2), offline_step);
}

/// Norms grow under the sequential offline algorithm alone: the drift is +η_w η_g dg².
#[test]
fn norms_grow_offline_when_updates_are_sequential() {
    assert_drift(Order::Sequential, |column| column.dg.powi(2), offline_step);
}

/// Norms shrink under the concurrent online algorithm: the drift is −η_w η_g dg².
#[test]
fn norms_shrink_online_when_updates_are_concurrent() {
    assert_drift(Order::Concurrent, |column| -column.dg.powi(2), online_step);
}

/// Sequentially the online drift carries −2 η_w η_g ‖w‖² dg besides, which is zero on average at equilibrium.
#[test]
fn norms_shrink_online_when_updates_are_sequential() {
    let first_order = |column: &Column| -column.dg.powi(2) - 2.0 * column.square[0] * column.dg;
    assert_drift(Order::Sequential, first_order, online_step);
}

// ---- Appendix E.1 and E.3: unit norm and signs ----

/// Appendix E.1: with multipliers the synapses descend half the gradient of ℓ + Σ mᵢ(‖wᵢ‖² − 1), the multipliers
/// climb it (at a rate that the print forgets), and the gains aim at 1.
#[test]
fn multipliers_and_synapses_follow_the_constrained_objective() {
    const RATE: f64 = 0.01;
    for seed in 0..24 {
        let (circuit, stimulus) = tied_case(seed);
        let mut rules = models::unit_norm_alone(RATE, RATE, RATE).rules;
        rules.order = Order::Concurrent;
        let (responses, after) = bridge::online(&circuit, rules, &vec![stimulus.clone()]);
        let constrained = |moved: &Circuit, multipliers: &[f64]| {
            let square =
                |i: usize| dot(moved.synapses().feedback().column(i), moved.synapses().feedback().column(i));
            let excess = multipliers.iter().enumerate().map(|(i, m)| m * (square(i) - 1.0));
            sample_objective(moved, &responses[0], &stimulus).unwrap() + excess.sum::<f64>()
        };
        let (old, new) = (circuit.synapses().feedback().as_slice(), after.synapses().feedback().as_slice());
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            let along = |change| constrained(&with_weight(&circuit, index, change), circuit.multipliers());
            assert_near(
                (new - old) / RATE,
                -0.5 * slope(along),
                1e-11,
                &format!("seed {seed}, weight {index}"),
            );
        }
        for i in 0..circuit.interneurons() {
            let along = |change: f64| {
                let mut multipliers = circuit.multipliers().to_vec();
                multipliers[i] += change;
                constrained(&circuit, &multipliers)
            };
            let step = (after.multipliers()[i] - circuit.multipliers()[i]) / RATE;
            assert_near(step, slope(along), 1e-11, &format!("seed {seed}, multiplier {i}"));
            let z = dot(circuit.synapses().feedback().column(i), &responses[0]);
            let step = (after.gains()[i] - circuit.gains()[i]) / RATE;
            assert_near(step, z * z - 1.0, 1e-11, &format!("seed {seed}, gain {i}"));
        }
    }
}

/// Appendix E.3: a sign-constrained step is the free step, rectified.
#[test]
fn signs_are_constrained_by_rectification() {
    let mut rectified = 0;
    for seed in 0..40 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let start = bridge::random_circuit(4, 5, seed % 2 == 0, rng);
        let circuit = bridge::circuit::<f64>(&start).unwrap();
        let mut rules = models::biological(0.5, 0.2, 0.5).rules;
        rules.order = Order::Concurrent;
        let stimuli = normals(1, 4, rng);
        let (_, constrained) = bridge::online(&circuit, rules, &stimuli);
        let (_, free) = bridge::online(&circuit, Rules { sign: Sign::Free, ..rules }, &stimuli);
        let mut expected = bridge::twin_of(&free);
        let weights = expected.feedback.iter_mut().chain(expected.feedforward.iter_mut().flatten());
        for x in weights.chain([&mut expected.gains, &mut expected.multipliers]).flatten() {
            rectified += usize::from(*x < 0.0);
            *x = x.max(0.0);
        }
        assert_eq!(bridge::twin_of(&constrained), expected, "seed {seed}");
    }
    assert!(rectified > 100, "{rectified}");
}

// ---- Appendix E.2: decoupled synapses become symmetric ----

/// The circuits of an untied run with multipliers: before each step, and at the end.
fn decoupled_history(order: Order, steps: usize) -> Vec<twin::Circuit> {
    let rng = &mut Pcg64::seed_from_u64(7);
    let (back, noise) = (on_sphere(3, 4, rng), normals(4, 3, rng));
    let forth = Matrix::from_fn(4, 3, |i, a| back[(a, i)] + 0.1 * noise[i][a]);
    let start = Circuit::new(Synapses::untied(back, &forth).unwrap(), vec![1.0; 4], 1.0).unwrap();
    let mut model = models::decoupled_alone(0.01, SYMMETRY_RATE);
    model.rules.unit_norm = UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate: 0.01 } };
    model.rules.order = order;
    let mut run = model.online(start, &Solver::Direct).unwrap();
    let mut history = Vec::new();
    let mut record = |step: &Step| {
        history.push(bridge::twin_of(step.circuit));
        ControlFlow::Continue(())
    };
    let strong: Vec<f64> = normals(steps, 3, rng).concat().iter().map(|x| 3.0 * x).collect();
    run.advance(&strong, &mut vec![0.0; 3 * steps], &mut record).unwrap();
    history.push(bridge::twin_of(run.circuit()));
    history
}

const SYMMETRY_RATE: f64 = 0.02;

/// D = `W_rn`ᵀ − `W_nr`, column after column.
fn asymmetry(circuit: &twin::Circuit) -> twin::Matrix {
    let forth = circuit.feedforward.as_ref().unwrap();
    forth.iter().enumerate().map(|(i, w)| bridge::minus(w, &column(&circuit.feedback, i))).collect()
}

/// `D_0` ∏ (I_K − η_w diag(g + m)) over the g and m of these circuits.
fn decayed<'a>(start: &twin::Circuit, seen: impl Iterator<Item = &'a twin::Circuit>) -> Vec<f64> {
    let mut gap = asymmetry(start);
    for circuit in seen {
        for (i, column) in gap.iter_mut().enumerate() {
            let factor = 1.0 - SYMMETRY_RATE * (circuit.gains[i] + circuit.multipliers[i]);
            for d in column {
                *d *= factor;
            }
        }
    }
    gap.concat()
}

/// Appendix E.2: the asymmetry `W_rn`ᵀ − `W_nr` decays by I_K − η_w diag(g + m) in each step, with the g and m
/// that the synapses read: the new ones sequentially, the old ones concurrently. The print has I_N and a
/// power with constant g and m, which is another number as soon as those learn.
#[test]
fn asymmetry_decays_by_the_gains_and_multipliers_of_each_step() {
    const STEPS: usize = 150;
    for order in [Order::Sequential, Order::Concurrent] {
        let history = decoupled_history(order, STEPS);
        let (start, end) = (&history[0], &history[STEPS]);
        let measured = asymmetry(end).concat();
        let (old, new) = (decayed(start, history[..STEPS].iter()), decayed(start, history[1..].iter()));
        let (right, wrong) = if order == Order::Sequential { (new, old) } else { (old, new) };
        assert!(farthest(&measured, &right) < 1e-13, "{order:?}: {:e}", farthest(&measured, &right));
        assert!(farthest(&measured, &wrong) > 1e-6, "{order:?}: old and new cannot be told apart");
        for constant in [start, end] {
            let printed = decayed(start, std::iter::repeat_n(constant, STEPS));
            assert!(farthest(&measured, &printed) > 1e-3, "{order:?}: the printed power");
        }
        let size = |gap: &[f64]| dot(gap, gap).sqrt();
        assert!(size(&measured) < 0.5 * size(&asymmetry(start).concat()), "{order:?}: it does decay");
    }
}

/// The length of each column of the asymmetry.
fn lengths(circuit: &twin::Circuit) -> Vec<f64> {
    asymmetry(circuit).iter().map(|column| dot(column, column).sqrt()).collect()
}

/// An untied circuit of three neurons with these gains, whose synapse vectors have about this length and differ forth
/// and back by a tenth of it.
fn uneven(gains: &[f64], length: f64, rng: &mut Pcg64) -> Circuit {
    let k = gains.len();
    let (back, noise) = (on_sphere(3, k, rng), on_sphere(3, k, rng));
    let forth = Matrix::from_fn(k, 3, |i, a| length * (back[(a, i)] + 0.1 * noise[(a, i)]));
    let back = Matrix::from_fn(3, k, |a, i| length * back[(a, i)]);
    Circuit::new(Synapses::untied(back, &forth).unwrap(), gains.to_vec(), 1.0).unwrap()
}

/// Appendix E.2 with constant g and m, as its formula has them: column i of the asymmetry is multiplied by
/// 1 − η_w(gᵢ + mᵢ) in every step, and so decays where gᵢ + mᵢ is in (0, 2/η_w), rests at either end, and grows
/// outside.
#[test]
fn asymmetry_decays_inside_the_interval_and_grows_outside() {
    const RATE: f64 = 0.1;
    const STEPS: usize = 10;
    // η_w(g + m) of each column, and the part of it that is η_w m: with it g alone would tell another story.
    const SUMS: [f64; 7] = [-0.3, 0.0, 0.4, 1.0, 1.7, 2.0, 2.2];
    const MULTIPLIERS: [f64; 7] = [-0.5, -0.5, 0.5, 0.0, -0.5, 0.5, 0.5];
    for with_multipliers in [false, true] {
        for seed in 0..10 {
            let rng = &mut Pcg64::seed_from_u64(seed);
            let m: Vec<f64> =
                MULTIPLIERS.iter().map(|m| if with_multipliers { m / RATE } else { 0.0 }).collect();
            let g: Vec<f64> = SUMS.iter().zip(&m).map(|(sum, m)| sum / RATE - m).collect();
            let mut model = models::decoupled_alone(0.01, RATE);
            model.rules.gains = GainRule::Frozen;
            if with_multipliers {
                model.rules.unit_norm = UnitNorm::Multiplier { rule: MultiplierRule::Frozen };
            }
            // Short vectors and weak stimuli, so that M stays valid while columns grow and gains are negative.
            let start = uneven(&g, 0.02, rng).with_multipliers(m).unwrap();
            let weak: Vec<f64> = normals(STEPS, 3, rng).concat().iter().map(|x| 0.1 * x).collect();
            let mut run = model.online(start.clone(), &Solver::Direct).unwrap();
            run.advance(&weak, &mut vec![0.0; weak.len()], &mut ()).unwrap();

            let (start, end) = (bridge::twin_of(&start), bridge::twin_of(run.circuit()));
            // Each step rounds the weights, of which those that grow are the largest at the end.
            let weights = twin::largest_magnitude(&end.feedback.concat()).max(0.02);
            let tolerance = 4.0 * STEPS as f64 * f64::EPSILON * weights;
            let (before, after) = (lengths(&start), lengths(&end));
            for (i, sum) in SUMS.into_iter().enumerate() {
                let what = format!("seed {seed}, η_w(g + m) = {sum}: {:e} to {:e}", before[i], after[i]);
                let power: f64 = std::iter::repeat_n(1.0 - sum, STEPS).product();
                let expected: Vec<f64> = asymmetry(&start)[i].iter().map(|d| power * d).collect();
                assert!(farthest(&asymmetry(&end)[i], &expected) <= tolerance, "{what}");
                if sum == 0.0 || sum == 2.0 {
                    assert_near(after[i], before[i], 2.0 * tolerance, &what);
                } else if (0.0..2.0).contains(&sum) {
                    assert!(after[i] < 0.1 * before[i], "{what}");
                } else {
                    assert!(after[i] > 5.0 * before[i], "{what}");
                }
            }
        }
    }
}

/// The same while the gains learn: in each step a column of the asymmetry shrinks if the gain that its synapses read
/// is in (0, 2/η_w) just then, and else grows.
#[test]
fn asymmetry_follows_gains_in_and_out_of_the_interval() {
    const RATE: f64 = 0.5;
    let (mut shrank, mut grew_below, mut grew_above) = (0, 0, 0);
    for seed in 0..10 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        // Near both ends of (0, 4); in weak stimuli gains fall, and cross them.
        let start = uneven(&[0.02, 0.1, 3.9, 4.1], 0.7, rng);
        let mut run = models::decoupled_alone(0.05, RATE).online(start, &Solver::Direct).unwrap();
        // Few steps: below 0 a gain falls the faster the more its column grows, until M is no longer valid.
        for _ in 0..10 {
            let before = lengths(&bridge::twin_of(run.circuit()));
            let weak: Vec<f64> = normals(1, 3, rng).concat().iter().map(|x| 0.1 * x).collect();
            run.advance(&weak, &mut [0.0; 3], &mut ()).unwrap();
            let after = lengths(&bridge::twin_of(run.circuit()));
            for (i, gain) in run.circuit().gains().iter().enumerate() {
                let inside = (0.0..2.0 / RATE).contains(gain);
                let what = format!("seed {seed}, gain {gain}: {:e} to {:e}", before[i], after[i]);
                assert_eq!(after[i] < before[i], inside, "{what}");
                shrank += usize::from(inside);
                grew_below += usize::from(*gain < 0.0);
                grew_above += usize::from(*gain > 2.0 / RATE);
            }
        }
    }
    assert!(shrank > 20 && grew_below > 20 && grew_above > 20, "{shrank}, {grew_below}, {grew_above}");
}

// ---- Algorithm 1: the recurrent dynamics inside a run ----

/// A run whose responses settle to a tolerance ends as far from the exact run as the tolerance is large.
#[test]
fn dynamics_miss_the_exact_run_in_proportion_to_the_tolerance() {
    let rng = &mut Pcg64::seed_from_u64(3);
    let start = bridge::circuit::<f64>(&bridge::random_circuit(4, 5, true, rng)).unwrap();
    let stimuli = flat::<f64>(&normals(500, 4, rng));
    let rules = models::multi_timescale(0.02, 1e-3).rules;
    let end = |solver: &Solver| {
        let mut run = Online::new(start.clone(), rules, solver).unwrap();
        run.advance(&stimuli, &mut vec![0.0; stimuli.len()], &mut ()).unwrap();
        bridge::twin_of(&run.into_circuit().unwrap())
    };
    let exact = bridge::circuit::<f64>(&end(&Solver::Direct)).unwrap();
    let misses = [1e-4, 1e-6, 1e-8].map(|tolerance| {
        let dynamics = Solver::Dynamics { rate: Some(0.05), tolerance, max_iterations: 10_000 };
        bridge::difference(&exact, &end(&dynamics)).log10()
    });
    for pair in misses.windows(2) {
        let slope = (pair[0] - pair[1]) / 2.0;
        assert!((0.9..1.1).contains(&slope), "{misses:?}");
    }
}

/// Dynamics that have not settled after the iterations allowed say so, and how far they were.
#[test]
fn dynamics_that_run_out_of_iterations_do_not_converge() {
    let (circuit, stimulus) = tied_case(11);
    let dynamics = Solver::Dynamics { rate: Some(0.05), tolerance: 1e-9, max_iterations: 7 };
    let expected = |error: Error| match error {
        Error::NotConverged { what, iterations: 7, change, tolerance } => {
            assert_eq!((what, tolerance), ("the recurrent dynamics", 1e-9));
            assert!(change > 1e-9 && change < 0.05, "{change}");
        }
        other => panic!("{other:?}"),
    };
    expected(circuit.respond(&stimulus, &dynamics).unwrap_err());
    let mut run = Online::new(circuit, models::multi_timescale(0.02, 1e-3).rules, &dynamics).unwrap();
    expected(run.advance(&stimulus, &mut vec![0.0; stimulus.len()], &mut ()).unwrap_err());
}

/// So many iterations of Eq. (6) from r = 0 reach (I − (I − η_r M)^T) M⁻¹ s, alone and in a run, whose circuit then
/// learns from that response.
#[test]
fn a_loop_of_so_many_iterations_reaches_its_closed_form() {
    const RATE: f64 = 0.05;
    for seed in 0..24 {
        let (circuit, stimulus) = tied_case(seed);
        let m = nested(&circuit.inverse_whitening_matrix());
        let exact = solve(&m, &stimulus);
        let mut missing = exact.clone();
        for iterations in 1..=20 {
            // r_∞ − r_T = (I − η_r M)^T r_∞.
            let current = matvec(&m, &missing);
            missing.iter_mut().zip(current).for_each(|(missing, current)| *missing -= RATE * current);
            let reached: Vec<f64> =
                exact.iter().zip(&missing).map(|(exact, missing)| exact - missing).collect();
            let solver = Solver::Loop { rate: Some(RATE), iterations };
            let responses = circuit.respond(&stimulus, &solver).unwrap();
            let rounding = 1e-13 * (1.0 + twin::operator_norm(&m));
            assert!(farthest(&responses, &reached) < rounding, "seed {seed}, {iterations}");
            let mut run = Online::new(circuit.clone(), models::gain_modulation(0.01).rules, &solver).unwrap();
            let mut answer = vec![0.0; stimulus.len()];
            run.advance(&stimulus, &mut answer, &mut ()).unwrap();
            assert_eq!(answer, responses, "seed {seed}, {iterations}");
            for (i, (new, old)) in run.circuit().gains().iter().zip(circuit.gains()).enumerate() {
                let w = circuit.synapses().feedback().column(i);
                let expected = old + 0.01 * (dot(w, &answer).powi(2) - dot(w, w));
                assert_near(*new, expected, 1e-13 * (1.0 + expected.abs()), "gain");
            }
        }
    }
}

/// With a rate of the library's choice a loop of many iterations is the exact response, and one above twice the inverse
/// of the largest eigenvalue runs away.
#[test]
fn a_long_loop_settles_or_runs_away() {
    for seed in 0..24 {
        let (circuit, stimulus) = tied_case(seed);
        let exact = circuit.respond(&stimulus, &Solver::Direct).unwrap();
        let long = |rate| circuit.respond(&stimulus, &Solver::Loop { rate, iterations: 20_000 });
        assert!(farthest(&long(None).unwrap(), &exact) < 1e-9, "seed {seed}");
        let largest = twin::operator_norm(&nested(&circuit.inverse_whitening_matrix()));
        let error = long(Some(1.03 * 2.0 / largest)).unwrap_err();
        assert!(matches!(error, Error::NotPositiveDefinite { test: Test::Dynamics, .. }), "{error:?}");
    }
}

/// The loop of Eq. (6) is stable for η_r < 2/λ_max(M) and runs away above.
#[test]
fn dynamics_settle_below_twice_the_inverse_of_the_largest_eigenvalue_and_run_away_above() {
    for seed in 0..24 {
        let (circuit, stimulus) = tied_case(seed);
        let largest = twin::operator_norm(&nested(&circuit.inverse_whitening_matrix()));
        let dynamics = |share: f64| Solver::Dynamics {
            rate: Some(share * 2.0 / largest),
            tolerance: 1e-9,
            max_iterations: 100_000,
        };
        let exact = circuit.respond(&stimulus, &Solver::Direct).unwrap();
        let settled = circuit.respond(&stimulus, &dynamics(0.97)).unwrap();
        assert!(farthest(&settled, &exact) < 1e-6, "seed {seed}");
        let error = circuit.respond(&stimulus, &dynamics(1.03)).unwrap_err();
        assert!(matches!(error, Error::NotPositiveDefinite { test: Test::Dynamics, .. }), "{error:?}");
        let rules = models::multi_timescale(0.02, 1e-3).rules;
        let mut run = Online::new(circuit.clone(), rules, &dynamics(1.03)).unwrap();
        let error = run.advance(&stimulus, &mut vec![0.0; stimulus.len()], &mut ()).unwrap_err();
        let Error::Diverged(diverged) = error else { panic!("{error:?}") };
        assert_eq!((diverged.test, diverged.step, diverged.last_valid_step), (Test::Dynamics, 0, 0));
        assert_eq!(diverged.circuit, circuit);
    }
}

/// A rate that the library chooses settles on every valid circuit, also where M has complex eigenvalues so
/// far from the real axis that a bound on their size alone would let the loop run away.
#[test]
fn a_chosen_rate_always_settles() {
    let mut beyond_the_bound = 0;
    for seed in 0..60 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (n, k) = (rng.random_range(1..=8), rng.random_range(0..=10));
        assert_settles(&bridge::circuit(&bridge::random_circuit(n, k, true, rng)).unwrap(), rng);
        let (leak, turn) = (rng.random_range(0.5..1.0), rng.random_range(0.1..8.0));
        assert_settles(&turning(leak, &[turn]), rng);
        assert_settles(&turning(leak, &[0.5 * turn, 0.1, turn]), rng);
        beyond_the_bound += usize::from(1.0 / (leak + turn) > 2.0 * leak / (leak * leak + turn * turn));
    }
    assert!(beyond_the_bound > 20, "{beyond_the_bound}");
    // Here the bound gives the very rate at which the loop neither settles nor runs away.
    assert_settles(&turning(1.0, &[1.0 + 2.0_f64.sqrt()]), &mut Pcg64::seed_from_u64(60));
}

/// An untied circuit whose M turns each pair of coordinates: it has the eigenvalues α ± i·turn.
fn turning(leak: f64, turns: &[f64]) -> Circuit {
    let n = 2 * turns.len();
    let forth = Matrix::from_fn(n, n, |i, j| match (i % 2, j) {
        (0, j) if j == i + 1 => turns[i / 2],
        (1, j) if j + 1 == i => -turns[i / 2],
        _ => 0.0,
    });
    Circuit::new(Synapses::untied(Matrix::identity(n), &forth).unwrap(), vec![1.0; n], leak).unwrap()
}

fn assert_settles(circuit: &Circuit, rng: &mut Pcg64) {
    let stimulus = normals(1, circuit.neurons(), rng).concat();
    let dynamics = Solver::Dynamics { rate: None, tolerance: 1e-10, max_iterations: 20_000 };
    let settled = circuit.respond(&stimulus, &dynamics).unwrap();
    let exact = circuit.respond(&stimulus, &Solver::Direct).unwrap();
    assert!(farthest(&settled, &exact) < 1e-7, "{circuit:?}: {:e}", farthest(&settled, &exact));
}
