//! Watches runs and stops them: what observers are shown, and where a run stands when they end it.

use std::ops::ControlFlow::{self, Break, Continue};

use leukos::{
    Circuit, Every, GainRule, MultiplierRule, Observer, Offline, OfflineGains, Online, Order, Rules, Shown,
    Sign, Solver, Step, SynapseRule, UnitNorm, models,
};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::bridge::{self, bits, flat, normals, random_covariance};

const ROWS: usize = 30;

/// A circuit that learns visibly, and stimuli for it.
fn start(n: usize, k: usize, tied: bool) -> (Circuit, Vec<f64>) {
    let rng = &mut Pcg64::seed_from_u64((10 * n + k) as u64);
    let circuit = bridge::circuit(&bridge::random_circuit(n, k, tied, rng)).unwrap();
    (circuit, flat(&normals(ROWS, n, rng)))
}

fn rules(batch: usize) -> Rules {
    Rules { batch, ..models::multi_timescale(0.02, 0.01).rules }
}

/// Small and large, the pair that has a loop of its own, and separate synapses.
fn starts() -> [(Circuit, Vec<f64>); 4] {
    [start(2, 2, true), start(3, 4, true), start(20, 20, true), start(3, 4, false)]
}

fn online(circuit: &Circuit, batch: usize) -> Online {
    Online::new(circuit.clone(), rules(batch), &Solver::Direct).unwrap()
}

fn offline(circuit: &Circuit) -> Offline {
    let rng = &mut Pcg64::seed_from_u64(5);
    let covariances = (0..3).map(|_| bridge::square(&random_covariance(circuit.neurons(), rng))).collect();
    let rules = Rules { order: Order::Concurrent, ..rules(1) };
    Offline::new(circuit.clone(), rules, covariances, OfflineGains::Rule).unwrap()
}

/// Ends a run at the step with this index.
fn stop_at(index: u64) -> impl FnMut(&Step) -> ControlFlow<()> {
    move |step| if step.index == index { Break(()) } else { Continue(()) }
}

/// Counts the steps it is shown.
fn indices(seen: &mut Vec<u64>) -> impl FnMut(&Step) -> ControlFlow<()> {
    |step| {
        seen.push(step.index);
        Continue(())
    }
}

#[test]
fn an_observer_sees_the_circuit_that_answered() {
    for (circuit, stimuli) in starts() {
        let n = circuit.neurons();
        // A second run, always one step behind the first.
        let mut behind = online(&circuit, 1);
        let mut compare = |step: &Step| {
            let Shown::Stimulus { stimulus, response } = step.shown else { panic!("{:?}", step.shown) };
            let row = step.index as usize * n..(step.index as usize + 1) * n;
            assert_eq!(stimulus, &stimuli[row]);
            assert_eq!(step.index, behind.steps());
            assert_eq!(bits(step.circuit), bits(behind.circuit()));
            assert_eq!(response, step.circuit.respond(stimulus, &Solver::Direct).unwrap());
            behind.advance(stimulus, &mut vec![0.0; n], &mut ()).unwrap();
            Continue(())
        };
        let mut run = online(&circuit, 1);
        run.advance(&stimuli, &mut vec![0.0; stimuli.len()], &mut compare).unwrap();
        assert_eq!(behind.steps(), ROWS as u64);
        assert_eq!(bits(run.circuit()), bits(behind.circuit()));
        assert_ne!(bits(run.circuit()), bits(&circuit), "it learned");
    }
}

#[test]
fn a_batch_is_answered_by_one_circuit() {
    let (circuit, stimuli) = start(3, 4, true);
    let mut seen = Vec::new();
    let mut record = |step: &Step| {
        seen.push(bits(step.circuit));
        Continue(())
    };
    online(&circuit, 5).advance(&stimuli, &mut vec![0.0; stimuli.len()], &mut record).unwrap();
    for (step, circuit) in seen.iter().enumerate() {
        assert_eq!(circuit, &seen[step / 5 * 5], "step {step}");
        assert!(step < 5 || circuit != &seen[step - 5], "step {step}");
    }
}

#[test]
fn an_offline_observer_sees_covariance_and_context() {
    let (circuit, _) = start(3, 4, true);
    let presented = [2, 0, 1];
    let mut behind = offline(&circuit);
    let mut contexts = Vec::new();
    let mut compare = |step: &Step| {
        let Shown::Covariance { covariance, context } = step.shown else { panic!("{:?}", step.shown) };
        assert_eq!((covariance.rows(), step.index), (3, behind.steps()));
        assert_eq!(bits(step.circuit), bits(behind.circuit()));
        behind.advance(&[context], 1, &mut ()).unwrap();
        contexts.push(context);
        Continue(())
    };
    let mut run = offline(&circuit);
    assert_eq!(run.advance(&presented, 2, &mut compare), Ok(3));
    assert_eq!(contexts, [2, 2, 0, 0, 1, 1]);
    assert_eq!((bits(run.circuit()), run.steps()), (bits(behind.circuit()), 6));
}

#[test]
fn set_gains_are_seen_as_they_answer() {
    let (circuit, _) = start(3, 4, true);
    let rng = &mut Pcg64::seed_from_u64(6);
    let covariance = bridge::square(&random_covariance(3, rng));
    let rules = Rules { order: Order::Concurrent, ..rules(1) };
    let mut run = Offline::new(circuit, rules, vec![covariance], OfflineGains::Optimal).unwrap();
    let mut compare = |step: &Step| {
        let Shown::Covariance { covariance, .. } = step.shown else { panic!("{:?}", step.shown) };
        let synapses = step.circuit.synapses().feedback();
        let best = leukos::optimal_gains(synapses, covariance, step.circuit.leak()).unwrap();
        assert_eq!(step.circuit.gains(), best);
        Continue(())
    };
    run.advance(&[0], 3, &mut compare).unwrap();
}

#[test]
fn a_break_ends_the_run_after_the_step_and_it_can_be_resumed() {
    for (circuit, stimuli) in starts() {
        for batch in [1, 4] {
            let n = circuit.neurons();
            let mut whole = online(&circuit, batch);
            let mut expected = vec![0.0; stimuli.len()];
            whole.advance(&stimuli, &mut expected, &mut ()).unwrap();
            for last in [0, 7, ROWS as u64 - 1] {
                let (mut run, mut exact) = (online(&circuit, batch), online(&circuit, batch));
                let mut responses = vec![f64::NAN; stimuli.len()];
                let done = run.advance(&stimuli, &mut responses, &mut stop_at(last)).unwrap();
                assert_eq!((done as u64, run.steps()), (last + 1, last + 1));
                exact.advance(&stimuli[..done * n], &mut vec![0.0; done * n], &mut ()).unwrap();
                assert_eq!(bits(run.circuit()), bits(exact.circuit()), "the step was completed");
                assert!(responses[done * n..].iter().all(|r| r.is_nan()), "nothing more was answered");

                run.advance(&stimuli[done * n..], &mut responses[done * n..], &mut stop_at(last)).unwrap();
                assert_eq!((responses, run.steps()), (expected.clone(), ROWS as u64));
                assert_eq!(bits(run.circuit()), bits(whole.circuit()));
            }
        }
    }
}

#[test]
fn a_break_tells_how_many_presentations_are_complete() {
    let (circuit, _) = start(3, 4, true);
    let presented = [0, 1, 2];
    let mut whole = offline(&circuit);
    whole.advance(&presented, 4, &mut ()).unwrap();
    for last in 0..12 {
        let (mut run, mut exact) = (offline(&circuit), offline(&circuit));
        let done = run.advance(&presented, 4, &mut stop_at(last)).unwrap();
        assert_eq!((done as u64, run.steps()), ((last + 1) / 4, last + 1));
        exact.advance(&presented[..done], 4, &mut ()).unwrap();
        let begun = run.steps() as usize - 4 * done;
        if begun > 0 {
            exact.advance(&presented[done..=done], begun, &mut ()).unwrap();
            run.advance(&presented[done..=done], 4 - begun, &mut ()).unwrap();
            exact.advance(&presented[done..=done], 4 - begun, &mut ()).unwrap();
        }
        assert_eq!(bits(run.circuit()), bits(exact.circuit()), "stopped at {last}");
        run.advance(&presented[done + usize::from(begun > 0)..], 4, &mut ()).unwrap();
        assert_eq!(bits(run.circuit()), bits(whole.circuit()), "resumed after {last}");
    }
}

#[test]
fn every_thins_by_the_index_of_the_step() {
    let (circuit, stimuli) = start(3, 4, true);
    for (period, expected) in [(1, 30), (0, 30), (7, 5), (29, 2), (30, 1), (1000, 1)] {
        let (mut run, mut seen) = (online(&circuit, 1), Vec::new());
        let mut observer = Every::new(period, indices(&mut seen));
        // In several calls: thinning goes on where it was.
        for part in stimuli.chunks(3 * 11) {
            run.advance(part, &mut vec![0.0; part.len()], &mut observer).unwrap();
        }
        drop(observer);
        assert_eq!(seen.len(), expected, "period {period}");
        assert!(seen.iter().enumerate().all(|(i, &index)| index == i as u64 * period.max(1)), "{seen:?}");
    }
    let mut run = online(&circuit, 1);
    let mut stop = Every::new(10, |step: &Step| if step.index > 0 { Break(()) } else { Continue(()) });
    assert_eq!(run.advance(&stimuli, &mut vec![0.0; stimuli.len()], &mut stop), Ok(11));
    assert!((stop.into_inner())(&Step { index: 0, ..step_of(&circuit) }).is_continue());
}

fn step_of(circuit: &Circuit) -> Step<'_> {
    Step { index: 3, circuit, shown: Shown::Stimulus { stimulus: &[], response: &[] } }
}

#[test]
fn a_pair_of_observers_both_see_and_either_can_stop() {
    let (circuit, stimuli) = start(3, 4, true);
    let mut seen = Vec::new();
    let mut both = (indices(&mut seen), stop_at(4));
    let done = online(&circuit, 1).advance(&stimuli, &mut vec![0.0; stimuli.len()], &mut both);
    drop(both);
    assert_eq!((done, seen), (Ok(5), vec![0, 1, 2, 3, 4]));

    let mut seen = Vec::new();
    let mut both = (stop_at(4), (Every::new(2, indices(&mut seen)), ()));
    let done = online(&circuit, 1).advance(&stimuli, &mut vec![0.0; stimuli.len()], &mut both);
    drop(both);
    assert_eq!((done, seen), (Ok(5), vec![0, 2, 4]), "the second sees the step that the first stops at");
}

#[test]
fn nobody_watching_is_the_same_as_somebody() {
    fn watches<O: Observer<f64>>(_: &O) -> bool {
        O::WATCHES
    }
    assert!(!watches(&()) && !watches(&((), ())) && !watches(&Every::new(3, ())));
    assert!(watches(&stop_at(3)) && watches(&((), stop_at(3))) && watches(&(stop_at(3), ())));
    assert!(watches(&Every::new(3, stop_at(3))));
    let (circuit, stimuli) = start(2, 2, true);
    assert!(().see(&step_of(&circuit)).is_continue());

    for (circuit, stimuli) in starts().into_iter().chain([(circuit, stimuli)]) {
        let (mut alone, mut watched) = (online(&circuit, 1), online(&circuit, 1));
        let mut responses = [vec![0.0; stimuli.len()], vec![0.0; stimuli.len()]];
        assert_eq!(alone.advance(&stimuli, &mut responses[0], &mut ()), Ok(ROWS));
        assert_eq!(watched.advance(&stimuli, &mut responses[1], &mut ((), stop_at(u64::MAX))), Ok(ROWS));
        assert_eq!(responses[0], responses[1]);
        assert_eq!(bits(alone.circuit()), bits(watched.circuit()));
    }
}

/// Small circuits that nobody watches run in loops of their own, with their size known to the compiler.
#[test]
fn loops_of_their_own_give_the_same_bits() {
    let multiplier = UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate: 0.1 } };
    let unit_norms = [UnitNorm::Free, UnitNorm::Projected, multiplier];
    let learning = models::multi_timescale(0.02, 0.01).rules;
    let frozen = [
        learning,
        Rules { gains: GainRule::Frozen, ..learning },
        Rules { synapses: SynapseRule::Frozen, ..learning },
    ];
    for n in 1..=9 {
        for k in [0, 1, n - 1, n, n + 1, 2 * n] {
            for (unit_norm, rules) in unit_norms.into_iter().zip(frozen) {
                for (order, sign) in [(Order::Sequential, Sign::Free), (Order::Concurrent, Sign::NonNegative)]
                {
                    let rules = Rules { unit_norm, order, sign, ..rules };
                    assert_watching_changes_nothing(n, k, rules);
                }
            }
        }
    }
}

fn assert_watching_changes_nothing(n: usize, k: usize, rules: Rules) {
    let (circuit, stimuli) = start(n, k, true);
    let run = || Online::new(circuit.clone(), rules, &Solver::Direct).unwrap();
    let (mut alone, mut watched, mut in_parts) = (run(), run(), run());
    let mut responses = [0; 3].map(|_| vec![0.0; stimuli.len()]);
    assert_eq!(alone.advance(&stimuli, &mut responses[0], &mut ()), Ok(ROWS));
    assert_eq!(watched.advance(&stimuli, &mut responses[1], &mut stop_at(u64::MAX)), Ok(ROWS));
    for (stimuli, responses) in stimuli.chunks(7 * n).zip(responses[2].chunks_mut(7 * n)) {
        in_parts.advance(stimuli, responses, &mut ()).unwrap();
    }
    assert_eq!(responses[0], responses[1], "n {n}, k {k}, {rules:?}");
    assert_eq!(responses[0], responses[2], "n {n}, k {k}, {rules:?}");
    for other in [&watched, &in_parts] {
        assert_eq!(bits(alone.circuit()), bits(other.circuit()), "n {n}, k {k}, {rules:?}");
        assert_eq!(alone.steps(), other.steps());
    }

    let covariance = bridge::square(&random_covariance(n, &mut Pcg64::seed_from_u64(6)));
    let run = || Offline::new(circuit.clone(), rules, vec![covariance.clone()], OfflineGains::Rule).unwrap();
    let (mut alone, mut watched) = (run(), run());
    let outcomes = [
        alone.advance(&[0, 0], 10, &mut ()).map_err(|error| error.to_string()),
        watched.advance(&[0, 0], 10, &mut stop_at(u64::MAX)).map_err(|error| error.to_string()),
    ];
    assert_eq!(outcomes[0], outcomes[1], "n {n}, k {k}, {rules:?}");
    assert_eq!(bits(alone.circuit()), bits(watched.circuit()), "n {n}, k {k}, {rules:?}");
    assert_eq!(alone.steps(), watched.steps());
}
