//! Measures the memory that work takes, to show that it is no more than was tried out before it began.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

use leukos::contexts::{Contexts, Fields, Patch, Synthetic, stream};
use leukos::{
    Circuit, Matrix, Model, Moments, Offline, OfflineGains, Online, RunningMoments, Solver, Synapses,
    Whitener, WhitenerSettings, WhitenerTraining, align, gradient, least_squares_gains, models, objective,
    optimal_gains, size, starts, whitening_error,
};

/// The system's allocator, which keeps account for each thread: tests run side by side.
struct Metered;

thread_local! {
    /// Bytes that are in use, and the most there have been.
    static USED: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    /// The largest trial.
    static TRIED: Cell<isize> = const { Cell::new(0) };
}

/// What a trial has beyond the matrices it is for; nothing else here is as large.
const BESIDES: isize = 8 << 20;

fn took(bytes: usize) {
    let bytes = bytes.cast_signed();
    if bytes >= BESIDES {
        TRIED.set(TRIED.get().max(bytes));
        return;
    }
    USED.set(USED.get() + bytes);
    MOST.set(MOST.get().max(USED.get()));
}

fn gave(bytes: usize) {
    if bytes.cast_signed() < BESIDES {
        USED.set(USED.get() - bytes.cast_signed());
    }
}

// SAFETY: everything is passed on to the system's allocator, and keeping account does not allocate.
unsafe impl GlobalAlloc for Metered {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there for a moment.
        took(size);
        gave(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        gave(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Metered = Metered;

/// Requires that work takes no more memory than it has tried out.
fn assert_within_trial<T>(name: &str, work: impl FnOnce() -> leukos::Result<T>) {
    // The first product on a thread allocates what all others use.
    let _ = whitening_error(&Matrix::identity(140), &Matrix::identity(140));
    USED.set(0);
    MOST.set(0);
    TRIED.set(0);
    let outcome = work();
    let (most, tried) = (MOST.get(), TRIED.get() - BESIDES);
    println!("{name}: {most} bytes of {tried} that were tried out, {:.2}", most as f64 / tried as f64);
    assert!(outcome.is_ok(), "{name}: {:?}", outcome.err());
    assert!(most <= tried, "{name} took {most} bytes, and tried {tried}");
}

/// A covariance of so many channels.
fn covariance(n: usize, seed: u64) -> Matrix {
    let w = starts::on_sphere(n, 2 * n, &mut stream(seed, 0));
    let entry = |i, j| (0..2 * n).map(|k| w[(i, k)] * w[(j, k)]).sum::<f64>();
    Matrix::from_fn(n, n, |i, j| entry(i, j) + f64::from(u8::from(i == j)))
}

fn circuit(n: usize, k: usize) -> leukos::Result<Circuit> {
    let w = starts::on_sphere(n, k, &mut stream(3, 0));
    Circuit::new(Synapses::tied(w)?, vec![0.1; k], 1.0)
}

fn untied(n: usize, k: usize) -> leukos::Result<Circuit> {
    let w = starts::on_sphere(n, k, &mut stream(3, 0));
    Circuit::new(Synapses::untied(w.clone(), &w.transpose())?, vec![0.1; k], 1.0)
}

#[test]
fn circuits_and_runs() {
    for (n, k) in [(60, 60), (120, 120), (120, 10), (20, 400)] {
        let w = starts::on_sphere(n, k, &mut stream(3, 0));
        let synapses = Synapses::tied(w).unwrap();
        assert_within_trial("circuit", || Circuit::new(synapses.clone(), vec![0.1; k], 1.0));
        assert_within_trial("untied circuit", || untied(n, k));
        for made in [circuit(n, k).unwrap(), untied(n, k).unwrap()] {
            assert_within_trial("whitening matrix", || made.whitening_matrix());
            assert_within_trial("responder", || made.responder(&Solver::Direct).map(|_| ()));
            let stimuli = vec![0.5; 3 * n];
            assert_within_trial("online", || {
                let rules = models::multi_timescale(1e-3, 1e-4).rules;
                let mut run = Online::new(made.clone(), rules, &Solver::Direct)?;
                run.advance(&stimuli, &mut vec![0.0; 3 * n], &mut ())
            });
        }
    }
}

#[test]
fn offline_runs_and_gains() {
    for (n, k) in [(60, 60), (120, 120), (100, 30), (20, 200)] {
        let (c, w) = (covariance(n, 1), starts::on_sphere(n, k, &mut stream(2, 0)));
        for gains in [OfflineGains::Rule, OfflineGains::LeastSquares, OfflineGains::Optimal] {
            let (made, covariances) = (circuit(n, k).unwrap(), vec![c.clone(), covariance(n, 5)]);
            assert_within_trial("offline", || {
                let rules = models::multi_timescale_offline(1e-3, 1e-4).rules;
                let mut run = Offline::new(made, rules, covariances, gains)?;
                run.advance(&[0, 1], 2, &mut ())
            });
        }
        assert_within_trial("optimal gains", || optimal_gains(&w, &c, 1.0));
        assert_within_trial("least-squares gains", || least_squares_gains(&w, &c, 1.0));
        assert_within_trial("align", || align(&w, &starts::on_sphere(n, k, &mut stream(7, 0))));
    }
}

#[test]
fn measures_and_contexts() {
    for n in [60, 140] {
        let (m, c) = (covariance(n, 1), covariance(n, 2));
        assert_within_trial("objective", || objective(&m, &c));
        assert_within_trial("gradient", || gradient(&m, &c));
        assert_within_trial("whitening error", || whitening_error(&m, &c));
        assert_within_trial("contexts", || {
            Contexts::new(vec![m.clone(), c.clone()])?.controls(&mut stream(0, 0))
        });
    }
    for (n, k) in [(60, 60), (20, 300), (100, 5)] {
        let family = Synthetic { neurons: n, interneurons: k, contexts: 9, ..Synthetic::published() };
        assert_within_trial("synthetic", || family.draw(&mut stream(0, 0)));
    }
    let patch = Patch { height: 9, width: 8, spacing: 2 };
    let fields = Fields { patch, contexts: 7, condition: 1e3, ..Fields::two_dimensional() };
    assert_within_trial("fields", || fields.draw(&mut stream(0, 0)));
}

fn moments(n: usize, seed: u64) -> Moments {
    Moments::of_covariance(&covariance(n, seed), 1000).unwrap()
}

#[test]
fn fits() {
    for (n, k, contexts) in [(60, 60, 1), (60, 60, 3), (150, 20, 1), (30, 120, 2), (10, 200, 1), (40, 40, 8)]
    {
        let all = (0..contexts).map(|seed| moments(n, seed)).collect();
        let training =
            WhitenerTraining { moments: all, interneurons: Some(k), ..WhitenerTraining::default() };
        let fit = || {
            let mut few = 0;
            training.fit(WhitenerSettings::default(), &mut stream(0, 0), |_| {
                few += 1;
                if few < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        };
        assert_within_trial("fit", || fit().map(|_: Whitener| ()));
        let model = Model::from(fit().unwrap() as Whitener);
        let bytes = model.to_bytes().unwrap();
        assert_within_trial("writing a model", || model.to_bytes());
        assert_within_trial("reading a model", || Model::<f64>::from_bytes(&bytes));
        let mut whitener = model.whitener.clone();
        assert_within_trial("whitening", || {
            size::require_whitener(n, k)?;
            whitener.clone().whiten(&vec![0.5; 300 * n], &mut vec![0.0; n * 300])?;
            whitener.whitening_matrix()?;
            whitener.frozen_inverse().map(|_| whitener.status())
        });
    }
}

#[test]
fn sums() {
    for n in [60, 300] {
        let rows = vec![0.25; 700 * n];
        assert_within_trial("moments", || {
            size::require_moments(n, 1)?;
            let mut running = RunningMoments::new(n);
            running.update(&rows)?;
            running.finish()
        });
    }
}
