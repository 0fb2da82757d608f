//! Shows that a run whose circuit is changed by hand goes on from there, and only from a valid circuit.

use leukos::starts::on_sphere;
use leukos::{Adjustable, Circuit, Error, Matrix, Online, Rules, Solver, Synapses, models};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{flat, normals};

fn tied(n: usize, k: usize) -> Circuit {
    let weights = on_sphere(n, k, &mut Pcg64::seed_from_u64(7));
    Circuit::new(Synapses::tied(weights).unwrap(), vec![0.5; k], 1.0).unwrap()
}

fn untied(n: usize, k: usize) -> Circuit {
    let back = on_sphere(n, k, &mut Pcg64::seed_from_u64(7));
    let forth = Matrix::from_fn(k, n, |i, a| 1.01 * back[(a, i)]);
    Circuit::new(Synapses::untied(back, &forth).unwrap(), vec![0.5; k], 1.0).unwrap()
}

fn rules() -> Rules {
    models::multi_timescale(0.02, 1e-3).rules
}

/// A change of every number that is not small and keeps M valid.
fn shrink(numbers: Adjustable<'_, f64>) {
    numbers.feedback.iter_mut().for_each(|w| *w *= 0.9);
    numbers.feedforward.into_iter().flatten().for_each(|w| *w *= 0.8);
    numbers.gains.iter_mut().for_each(|gain| *gain += 0.125);
    numbers.multipliers.iter_mut().for_each(|multiplier| *multiplier += 0.25);
}

/// A changed run is the run that begins with the changed circuit, whatever loop a circuit of its size has.
#[test]
fn a_changed_run_goes_on_like_one_that_begins_there() {
    for (n, k) in [(1, 1), (2, 2), (2, 3), (5, 4), (9, 9), (100, 3)] {
        for start in [tied(n, k), untied(n, k)] {
            let stimuli = flat::<f64>(&normals(40, n, &mut Pcg64::seed_from_u64(1)));
            let (before, after) = stimuli.split_at(15 * n);
            let mut run = Online::new(start, rules(), &Solver::Direct).unwrap();
            let mut responses = vec![0.0; stimuli.len()];
            run.advance(before, &mut responses[..15 * n], &mut ()).unwrap();
            let old = run.circuit().clone();
            run.adjust(shrink).unwrap();
            assert_eq!(run.steps(), 15);
            assert_eq!(run.circuit().gains()[0], old.gains()[0] + 0.125);
            assert_eq!(run.circuit().multipliers()[0], 0.25);
            assert_eq!(run.circuit().synapses().feedback()[(0, 0)], 0.9 * old.synapses().feedback()[(0, 0)]);
            if !old.synapses().is_tied() {
                let [new, old] = [run.circuit(), &old].map(|c| c.synapses().feedforward_transposed()[(0, 0)]);
                assert_eq!(new, 0.8 * old);
            }
            let mut other = Online::new(run.circuit().clone(), rules(), &Solver::Direct).unwrap();
            let mut others = vec![0.0; after.len()];
            run.advance(after, &mut responses[15 * n..], &mut ()).unwrap();
            other.advance(after, &mut others, &mut ()).unwrap();
            assert_eq!(responses[15 * n..], others, "N = {n}, K = {k}");
            assert_eq!((run.circuit(), run.steps()), (other.circuit(), 40));
        }
    }
}

/// A change to a circuit that is not valid is refused, and the run goes on as if nobody had tried.
#[test]
fn a_change_that_leaves_no_valid_circuit_is_undone() {
    for spoil in [-5.0, f64::NAN, f64::INFINITY] {
        for start in [tied(2, 2), tied(4, 4), untied(2, 2)] {
            let n = start.neurons();
            let rng = &mut Pcg64::seed_from_u64(2);
            let stimuli: Vec<f64> = (0..10 * n).map(|_| rng.random_range(-1.0..1.0)).collect();
            let [mut run, mut other] =
                [0; 2].map(|_| Online::new(start.clone(), rules(), &Solver::Direct).unwrap());
            let [mut ours, mut theirs] = [0; 2].map(|_| vec![0.0; stimuli.len()]);
            let error = run.adjust(|numbers| numbers.gains.fill(spoil)).unwrap_err();
            assert!(matches!(error, Error::Diverged(_)), "{error:?}");
            run.advance(&stimuli, &mut ours, &mut ()).unwrap();
            other.advance(&stimuli, &mut theirs, &mut ()).unwrap();
            assert_eq!((ours, run.circuit()), (theirs, other.circuit()), "{spoil}");
        }
    }
}
