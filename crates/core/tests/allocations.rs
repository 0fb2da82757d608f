//! Counts allocations, to show that a run makes none once it is under way.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

use leukos::{
    Circuit, Matrix, MultiplierRule, Offline, OfflineGains, Online, Order, Real, Rules, RunningError, Sign,
    Solver, Step, Synapses, UnitNorm, Whitener, WhitenerSettings, WhiteningMeter, models, starts,
};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

/// The system's allocator, with a count for each thread: tests run side by side.
struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    COUNT.with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is passed on to the system's allocator, and counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `work` allocates.
fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

/// The sizes at which kernels and the linear algebra change over to other code, and some between.
const SIZES: [usize; 8] = [1, 2, 3, 8, 16, 25, 64, 130];
const WARM_UP: usize = 4;

/// Twice this many steps are watched: more than the 64 updates after which every solver has factorised M afresh.
fn steps(solver: Solver) -> usize {
    if solver == Solver::Direct { 3 } else { 33 }
}

const DYNAMICS: Solver = Solver::Dynamics { rate: None, tolerance: 1e-2, max_iterations: 10_000 };
const LOOP: Solver = Solver::Loop { rate: None, iterations: 3 };
const ITERATIVE: Solver = Solver::Iterative { tolerance: 1e-4 };

fn cast<T: Real>(solver: Solver) -> Solver<T> {
    match solver {
        Solver::Direct => Solver::Direct,
        Solver::Iterative { tolerance } => Solver::Iterative { tolerance: T::from_f64(tolerance) },
        Solver::Dynamics { rate, tolerance, max_iterations } => Solver::Dynamics {
            rate: rate.map(T::from_f64),
            tolerance: T::from_f64(tolerance),
            max_iterations,
        },
        Solver::Loop { rate, iterations } => Solver::Loop { rate: rate.map(T::from_f64), iterations },
    }
}

fn tied<T: Real>(n: usize, k: usize) -> Circuit<T> {
    let weights = starts::on_sphere(n, k, &mut Pcg64::seed_from_u64(n as u64)).cast();
    Circuit::new(Synapses::tied(weights).unwrap(), vec![T::ONE; k], T::ONE).unwrap()
}

/// Separate synapses, near enough to each other that the symmetric part of M is positive definite.
fn untied<T: Real>(n: usize, k: usize) -> Circuit<T> {
    let back = starts::on_sphere(n, k, &mut Pcg64::seed_from_u64(n as u64));
    let forth = Matrix::from_fn(k, n, |i, a| back[(a, i)] * if (i + a) % 2 == 0 { 1.01 } else { 0.99 });
    let synapses = Synapses::untied(back.cast(), &forth.cast()).unwrap();
    Circuit::new(synapses, vec![T::ONE; k], T::ONE).unwrap()
}

/// Separate synapses with M = I + one number above the diagonal: all eigenvalues are 1, but xᵀMx < 0 for
/// x = (1, −1, 0, …), so that only the eigenvalues show that it is valid.
fn skewed<T: Real>(n: usize) -> Circuit<T> {
    let forth = Matrix::from_fn(n, n, |i, j| T::from_f64(if (i, j) == (0, 1) { 4.0 } else { 0.0 }));
    let synapses = Synapses::untied(Matrix::identity(n), &forth).unwrap();
    Circuit::new(synapses, vec![T::ONE; n], T::ONE).unwrap()
}

fn is_skewed<T: Real>(circuit: &Circuit<T>) -> bool {
    let m = circuit.inverse_whitening_matrix();
    m[(0, 0)] + m[(1, 1)] < m[(0, 1)] + m[(1, 0)]
}

fn stimuli<T: Real>(rows: usize, n: usize) -> Vec<T> {
    let rng = &mut Pcg64::seed_from_u64(1);
    (0..rows * n).map(|_| T::from_f64(StandardNormal.sample(rng))).collect()
}

fn rules<T: Real>(batch: usize) -> Rules<T> {
    Rules { batch, ..models::multi_timescale(T::from_f64(1e-4), T::from_f64(1e-5)).rules }
}

/// Fails when an online run allocates after its first steps, whether it is watched or not.
fn assert_online<T: Real>(circuit: &Circuit<T>, rules: Rules<T>, solver: Solver) -> Circuit<T> {
    let n = circuit.neurons();
    let mut run = Online::new(circuit.clone(), rules, &cast(solver)).unwrap();
    let (warm_up, rest) = (WARM_UP * rules.batch * n, steps(solver) * rules.batch * n);
    let stimuli = stimuli((WARM_UP + 2 * steps(solver)) * rules.batch, n);
    let mut responses = vec![T::ZERO; stimuli.len()];
    run.advance(&stimuli[..warm_up], &mut responses[..warm_up], &mut ()).unwrap();
    let mut watch = |_: &Step<T>| ControlFlow::Continue(());
    let count = allocations(|| {
        run.advance(&stimuli[..rest], &mut responses[..rest], &mut ()).unwrap();
        run.advance(&stimuli[rest..2 * rest], &mut responses[rest..2 * rest], &mut watch).unwrap();
    });
    assert_eq!(count, 0, "{solver:?}, n {n}, k {}, {rules:?}", circuit.interneurons());
    run.into_circuit().unwrap()
}

fn assert_offline<T: Real>(circuit: &Circuit<T>, rules: Rules<T>) -> Circuit<T> {
    let n = circuit.neurons();
    let covariance = |size: f64| Matrix::diagonal(&vec![T::from_f64(size); n]);
    let covariances = vec![covariance(1.0), covariance(2.0)];
    let mut run = Offline::new(circuit.clone(), rules, covariances, OfflineGains::Rule).unwrap();
    run.advance(&[0, 1], WARM_UP, &mut ()).unwrap();
    let count = allocations(|| {
        run.advance(&[1, 0], 3, &mut ()).unwrap();
    });
    assert_eq!(count, 0, "offline, n {n}, k {}, {rules:?}", circuit.interneurons());
    run.into_circuit()
}

/// Fewer interneurons than neurons, as many, and more.
fn counts(n: usize) -> [usize; 3] {
    [n / 2, n, n + 3]
}

fn for_each_size(check: impl Fn(usize, usize)) {
    for n in SIZES {
        for k in counts(n) {
            check(n, k);
        }
    }
}

#[test]
fn direct_tied() {
    for_each_size(|n, k| {
        assert_online(&tied::<f64>(n, k), rules(1), Solver::Direct);
        assert_online(&tied::<f32>(n, k), rules(1), Solver::Direct);
    });
}

#[test]
fn direct_untied() {
    for_each_size(|n, k| {
        assert_online(&untied::<f64>(n, k), rules(1), Solver::Direct);
        assert_online(&untied::<f32>(n, k), rules(1), Solver::Direct);
    });
}

#[test]
fn direct_where_only_eigenvalues_certify() {
    for n in SIZES.into_iter().filter(|&n| n > 1) {
        assert!(is_skewed(&skewed::<f64>(n)));
        assert!(is_skewed(&assert_online(&skewed::<f64>(n), rules(1), Solver::Direct)));
        assert!(is_skewed(&assert_online(&skewed::<f32>(n), rules(1), Solver::Direct)));
        assert!(is_skewed(&assert_offline(&skewed::<f64>(n), rules(1))));
    }
}

#[test]
fn iterative() {
    for_each_size(|n, k| {
        assert_online(&tied::<f64>(n, k), rules(1), ITERATIVE);
        assert_online(&tied::<f32>(n, k), rules(1), ITERATIVE);
    });
}

#[test]
fn dynamics() {
    for_each_size(|n, k| {
        assert_online(&tied::<f64>(n, k), rules(1), DYNAMICS);
        assert_online(&tied::<f32>(n, k), rules(1), DYNAMICS);
        assert_online(&untied::<f64>(n, k), rules(1), DYNAMICS);
        assert_online(&untied::<f32>(n, k), rules(1), DYNAMICS);
    });
}

#[test]
fn batches() {
    for_each_size(|n, k| {
        for solver in [Solver::Direct, ITERATIVE, DYNAMICS, LOOP] {
            assert_online(&tied::<f64>(n, k), rules(3), solver);
        }
        assert_online(&untied::<f32>(n, k), rules(3), Solver::Direct);
    });
}

#[test]
fn constraints() {
    let multiplier = UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate: 1e-3 } };
    for n in [2, 3, 25] {
        for unit_norm in [UnitNorm::Projected, multiplier] {
            for order in [Order::Sequential, Order::Concurrent] {
                let rules = Rules { unit_norm, sign: Sign::NonNegative, order, ..rules(1) };
                assert_online(&tied::<f64>(n, n), rules, Solver::Direct);
                assert_online(&untied::<f64>(n, n), rules, Solver::Direct);
                assert_offline(&tied::<f64>(n, n), rules);
            }
        }
    }
}

#[test]
fn offline() {
    for_each_size(|n, k| {
        assert_offline(&tied::<f64>(n, k), rules(1));
        assert_offline(&tied::<f32>(n, k), rules(1));
        assert_offline(&untied::<f64>(n, k), rules(1));
        assert_offline(&untied::<f32>(n, k), rules(1));
    });
}

#[test]
fn meters() {
    for_each_size(|n, k| {
        for circuit in [tied(n, k), untied(n, k)] {
            let (covariance, mut meter) = (Matrix::identity(n), WhiteningMeter::new(&circuit));
            let measure = || assert!(meter.error(&circuit, &covariance).is_ok());
            assert_eq!(allocations(measure), 0, "N {n}, K {k}");
        }
    });
}

#[test]
fn running_errors() {
    for n in SIZES {
        let mut running = RunningError::new(n, 10.0).unwrap();
        let response = vec![1.0_f32; n];
        let mut estimate = || {
            running.update(&response).unwrap();
            assert!(running.error().is_some());
        };
        // The linear algebra takes its room at a thread's first call.
        estimate();
        assert_eq!(allocations(estimate), 0, "N {n}");
    }
}

/// Fails when a whitener allocates once it has begun.
fn assert_whitener<T: Real>(synapses: Matrix, settings: WhitenerSettings) {
    let (n, k) = (synapses.rows(), synapses.columns());
    let case = format!("N {n}, K {k}, {settings:?}");
    let mut whitener = Whitener::<T>::new(synapses, settings).unwrap();
    let stimuli = stimuli(800, n);
    let mut responses = vec![T::ZERO; stimuli.len()];
    let warm_up = 400 * n;
    whitener.whiten(&stimuli[..warm_up], &mut responses[..warm_up]).unwrap();
    let before = whitener.status().samples;
    let count = allocations(|| {
        whitener.whiten(&stimuli[warm_up..], &mut responses[warm_up..]).unwrap();
    });
    let after = whitener.status().samples;
    assert_eq!(before.switches, after.switches, "{case}");
    assert!(after.learned > before.learned + 300, "{case}: {after:?}");
    assert_eq!(count, 0, "{case}");
}

#[test]
fn whiteners() {
    let settings = |update_every| WhitenerSettings { update_every, ..WhitenerSettings::default() };
    for n in [1, 2, 8, 25, 64] {
        let rng = &mut Pcg64::seed_from_u64(n as u64);
        let orthonormal = starts::orthogonal(n, n, rng);
        let few = starts::orthogonal(n, n.div_ceil(2), rng);
        let general = starts::on_sphere(n, n.div_ceil(2), rng);
        for update_every in [None, Some(1), Some(32)] {
            for synapses in [&orthonormal, &few, &general] {
                assert_whitener::<f64>(synapses.clone(), settings(update_every));
                assert_whitener::<f32>(synapses.clone(), settings(update_every));
            }
        }
    }
}

#[test]
fn the_count_works() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1.0; 3]))), 1);
    assert_eq!(allocations(|| assert_eq!(std::hint::black_box([1.0; 3]).len(), 3)), 0);
}
