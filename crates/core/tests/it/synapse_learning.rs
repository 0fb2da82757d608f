//! Shows that the offline learner minimises Eq. (3): its gradient, its descent, and the optimum it finds.

use leukos::{
    Circuit, Error, LearningProgress, LearningState, Matrix, SynapseLearner, Synapses, align, gap,
    optimal_gains, starts, whitening_error,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{random_covariance, square};
use crate::natural;

fn random_covariances(contexts: usize, n: usize, rng: &mut Pcg64) -> Vec<Matrix> {
    (0..contexts).map(|_| square(&random_covariance(n, rng))).collect()
}

/// (leak I + V diag(λ) V')², which synapses V whiten perfectly.
fn member(v: &Matrix, lambda: &[f64], leak: f64) -> Matrix {
    let n = v.rows();
    let m = Matrix::from_fn(n, n, |i, j| {
        let sum: f64 = lambda.iter().enumerate().map(|(k, l)| v[(i, k)] * l * v[(j, k)]).sum();
        if i == j { sum + leak } else { sum }
    });
    Matrix::from_fn(n, n, |i, j| m.column(i).iter().zip(m.column(j)).map(|(x, y)| x * y).sum())
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// How far apart the columns are, whatever their order and signs.
fn aligned_distance(a: &Matrix, b: &Matrix) -> f64 {
    align(a, b).unwrap().1
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
}

#[test]
fn gradient_agrees_with_differences_of_the_objective() {
    let rng = &mut Pcg64::seed_from_u64(1);
    for (n, k, leak, gain_cost) in [(3, 2, 1.0, 0.0), (3, 3, 0.0, 0.0), (4, 7, 0.5, 0.3), (1, 1, 0.2, 0.0)] {
        let covariances = random_covariances(3, n, rng);
        let w = starts::on_sphere(n, k, rng);
        let at = |w: Matrix| SynapseLearner::new(w, covariances.clone(), leak, gain_cost).unwrap();
        let gradient = at(w.clone()).gradient().clone();
        for j in 0..k {
            for i in 0..n {
                let moved = |step: f64| {
                    let mut w = w.clone();
                    w[(i, j)] += step;
                    at(w).progress().objective
                };
                let (found, expected) = (gradient[(i, j)], (moved(1e-5) - moved(-1e-5)) / 2e-5);
                assert!((found - expected).abs() < 1e-7, "N {n}, K {k}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn gap_is_that_of_the_optimal_gains() {
    let rng = &mut Pcg64::seed_from_u64(2);
    let covariances = random_covariances(4, 3, rng);
    let mut learner =
        SynapseLearner::new(starts::on_sphere(3, 2, rng), covariances.clone(), 1.0, 0.0).unwrap();
    let progress = learner.advance(5);
    let (mut gap, gains) = (0.0, learner.gains());
    for (c, covariance) in covariances.iter().enumerate() {
        let expected = optimal_gains(learner.synapses(), covariance, 1.0).unwrap();
        for (found, expected) in gains.column(c).iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-7, "context {c}: gain {found} for {expected}");
        }
        let synapses = Synapses::tied(learner.synapses().clone()).unwrap();
        let m = Circuit::new(synapses, expected, 1.0).unwrap().inverse_whitening_matrix();
        gap += leukos::objective(&m, covariance).unwrap() / 4.0;
        // 2 Tr C^½ is the objective's minimum, which enough synapses reach.
        let enough = starts::on_sphere(3, 6, rng);
        let least = optimal_gains(&enough, covariance, 1.0).unwrap();
        let circuit = Circuit::new(Synapses::tied(enough).unwrap(), least, 1.0).unwrap();
        gap -= leukos::objective(&circuit.inverse_whitening_matrix(), covariance).unwrap() / 4.0;
    }
    assert!((progress.gap - gap).abs() < 1e-9, "{} for {gap}", progress.gap);
}

/// Sixteen contexts with M = leak I + V diag(λ) V', and V with columns at least 40 degrees apart.
fn synthetic(n: usize, leak: f64, rng: &mut Pcg64) -> (Matrix, Vec<Matrix>) {
    let v = loop {
        let v = starts::on_sphere(n, n, rng);
        let close = |i: usize| (0..i).any(|j| dot(v.column(i), v.column(j)).abs() > 0.77);
        if !(0..n).any(close) {
            break v;
        }
    };
    let context = |_| {
        let lambda: Vec<f64> = (0..n).map(|_| rng.random_range(0.1..4.0)).collect();
        member(&v, &lambda, leak)
    };
    let covariances = (0..16).map(context).collect();
    (v, covariances)
}

#[test]
fn synapses_shared_by_synthetic_contexts_are_recovered() {
    for seed in 0..10 {
        for n in 2..=4 {
            let rng = &mut Pcg64::seed_from_u64(seed);
            let (v, covariances) = synthetic(n, 1.0, rng);
            let start = starts::mean_eigenbasis(&covariances, n, 1.0, rng).unwrap();
            let mut learner = SynapseLearner::new(start, covariances, 1.0, 0.0).unwrap();
            let progress = learner.advance(200);
            let distance = aligned_distance(learner.synapses(), &v);
            assert_eq!(progress.state, LearningState::Converged, "seed {seed}, N {n}: {progress:?}");
            assert!(progress.gap < 1e-10, "seed {seed}, N {n}: {progress:?}");
            assert!(distance < 1e-6, "seed {seed}, N {n}: {distance:e}");
        }
    }
}

#[test]
fn synapses_are_recovered_without_a_leak() {
    for seed in 0..5 {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (v, covariances) = synthetic(3, 0.0, rng);
        // Without a leak M is singular where columns coincide, which parts the starts that lead to V from others.
        let mut start = starts::on_sphere(3, 3, rng);
        for (w, v) in start.as_mut_slice().iter_mut().zip(v.as_slice()) {
            *w = v + 0.3 * *w;
        }
        let mut learner = SynapseLearner::new(start, covariances, 0.0, 0.0).unwrap();
        learner.advance(200);
        let distance = aligned_distance(learner.synapses(), &v);
        assert!(distance < 1e-6, "seed {seed}: {distance:e}");
    }
}

#[test]
fn every_iteration_keeps_unit_columns_and_lowers_the_objective() {
    for (k, gain_cost) in [(2, 0.0), (4, SynapseLearner::GAIN_COST), (7, SynapseLearner::GAIN_COST)] {
        let rng = &mut Pcg64::seed_from_u64(7);
        let covariances = random_covariances(6, 4, rng);
        let mut learner =
            SynapseLearner::new(starts::on_sphere(4, k, rng), covariances, 1.0, gain_cost).unwrap();
        let first = learner.progress().objective;
        let mut last = first;
        while learner.progress().state == LearningState::Learning && learner.progress().iterations < 300 {
            let progress = learner.advance(1);
            assert!(progress.objective <= last * (1.0 + 1e-14), "K {k}: {last} rises to {progress:?}");
            last = progress.objective;
            for j in 0..k {
                let length = dot(learner.synapses().column(j), learner.synapses().column(j)).sqrt();
                assert!((length - 1.0).abs() < 1e-14, "K {k}: column {j} has length {length}");
            }
        }
        assert_eq!(learner.progress().state, LearningState::Converged, "K {k}");
        assert!(last < first - 0.01, "K {k}: from {first} to {last} only");
    }
}

#[test]
fn a_run_in_pieces_gives_the_same_bits() {
    let rng = &mut Pcg64::seed_from_u64(11);
    let covariances = random_covariances(5, 4, rng);
    let start = starts::on_sphere(4, 4, rng);
    let learner = || SynapseLearner::new(start.clone(), covariances.clone(), 1.0, 1e-3).unwrap();
    let (mut whole, mut pieces) = (learner(), learner());
    whole.advance(9);
    pieces.advance(0);
    pieces.advance(2);
    pieces.advance(7);
    assert!(whole.progress().iterations == 9 && whole.progress() == pieces.progress());
    assert_eq!(whole.synapses(), pieces.synapses());
    assert_eq!(whole.gains(), pieces.gains());
    // The rest of the run must still have something to tell apart.
    whole.advance(1);
    assert_ne!(whole.synapses(), pieces.synapses());
}

/// One interneuron and one context: the best column is the eigenvector along which √λ is farthest from the leak,
/// and each other one leaves (√λ − α)²/α of the objective.
#[test]
fn one_interneuron_finds_the_best_eigenvector_even_from_a_saddle() {
    let roots = [0.5_f64, 1.0, 2.0, 4.0];
    let covariance = Matrix::diagonal(&roots.map(|root| root * root));
    let gap = |kept: usize| {
        let rest = roots.iter().enumerate().filter(|&(i, _)| i != kept);
        rest.map(|(_, root)| (root - 1.0).powi(2)).sum::<f64>()
    };
    let rng = &mut Pcg64::seed_from_u64(5);
    let saddle = Matrix::from_fn(4, 1, |i, _| f64::from(u8::from(i == 2)));
    for start in [saddle.clone(), starts::on_sphere(4, 1, rng), starts::on_sphere(4, 1, rng)] {
        let at_saddle = start == saddle;
        let mut learner = SynapseLearner::new(start, vec![covariance.clone()], 1.0, 0.0).unwrap();
        if at_saddle {
            assert!(learner.progress().gradient_norm < 1e-12);
            assert!((learner.progress().gap - gap(2)).abs() < 1e-12);
        }
        let progress = learner.advance(100);
        assert_eq!(progress.state, LearningState::Converged);
        assert!((progress.gap - gap(3)).abs() < 1e-10, "{progress:?}");
        assert!((learner.synapses()[(3, 0)].abs() - 1.0).abs() < 1e-7);
        assert!((learner.gains()[(0, 0)] - 3.0).abs() < 1e-7);
    }
}

#[test]
fn a_single_context_is_whitened_perfectly_with_or_without_a_leak() {
    let rng = &mut Pcg64::seed_from_u64(6);
    for leak in [0.0, 1.0] {
        let covariances = random_covariances(1, 4, rng);
        let mut learner = SynapseLearner::new(starts::orthogonal(4, 4, rng), covariances, leak, 0.0).unwrap();
        assert!(learner.progress().gap > 1e-2);
        let progress = learner.advance(300);
        assert!(progress.gap < 1e-9, "leak {leak}: {progress:?}");
    }
}

/// Ellipses of one shape at all angles: no two columns can turn one, but two columns that draw together with
/// opposite gains come ever nearer to it.
#[test]
fn the_cost_keeps_gains_within_bounds() {
    let ellipse = |i: u8| {
        let (sin, cos) = (std::f64::consts::TAU * f64::from(i) / 8.0).sin_cos();
        let m = Matrix::from_rows(&[[3.0 + cos, sin], [sin, 3.0 - cos]]);
        Matrix::from_fn(2, 2, |i, j| dot(m.column(i), m.column(j)))
    };
    let learn = |gain_cost| {
        let rng = &mut Pcg64::seed_from_u64(0);
        let start = starts::on_sphere(2, 2, rng);
        let contexts = (0..8).map(ellipse).collect();
        let mut learner = SynapseLearner::new(start, contexts, 3.0, gain_cost).unwrap();
        (learner.advance(200).state, largest(learner.gains().as_slice()))
    };
    let (free, bounded) = (learn(0.0), learn(SynapseLearner::GAIN_COST));
    assert!(bounded.0 == LearningState::Converged && bounded.1 < 10.0, "{bounded:?}");
    // Where that ends is a matter of rounding.
    assert!(free.1 > 1000.0, "{free:?}");
}

/// A column along which every context is white already has gain 0, and may point where it likes.
#[test]
fn a_column_without_use_does_no_harm() {
    let rng = &mut Pcg64::seed_from_u64(3);
    let white = vec![Matrix::identity(3), Matrix::identity(3)];
    let one_axis = vec![Matrix::diagonal(&[4.0, 1.0, 1.0]), Matrix::diagonal(&[0.5, 1.0, 1.0])];
    for covariances in [white, one_axis] {
        let start = starts::on_sphere(3, 2, rng);
        let mut learner = SynapseLearner::new(start, covariances, 1.0, 0.0).unwrap();
        let progress = learner.advance(100);
        assert_eq!(progress.state, LearningState::Converged, "{progress:?}");
        assert!(progress.gap.abs() < 1e-12, "{progress:?}");
    }
}

/// K > N(N+1)/2 and equal columns: some changes of the gains do not change M.
#[test]
fn more_interneurons_than_degrees_of_freedom_do_no_harm() {
    let rng = &mut Pcg64::seed_from_u64(8);
    let covariances = random_covariances(3, 2, rng);
    let equal = Matrix::from_fn(2, 5, |i, _| [0.6, 0.8][i]);
    for (start, gain_cost) in
        [(starts::on_sphere(2, 5, rng), 0.0), (equal.clone(), 1e-3), (starts::orthogonal(2, 6, rng), 0.0)]
    {
        let mut learner = SynapseLearner::new(start, covariances.clone(), 1.0, gain_cost).unwrap();
        let progress = learner.advance(300);
        assert!(progress.gap < 1e-5, "cost {gain_cost}: {progress:?}");
        assert!(learner.synapses().as_slice().iter().all(|w| w.is_finite()));
    }
}

#[test]
fn units_do_not_matter() {
    let rng = &mut Pcg64::seed_from_u64(9);
    let covariances = random_covariances(4, 3, rng);
    let start = starts::on_sphere(3, 4, rng);
    let learn = |unit: f64| {
        let scaled = |c: &Matrix| Matrix::from_fn(3, 3, |i, j| unit * unit * c[(i, j)]);
        let contexts = covariances.iter().map(scaled).collect();
        let mut learner = SynapseLearner::new(start.clone(), contexts, unit, 1e-3).unwrap();
        let progress = learner.advance(200);
        assert_eq!(progress.state, LearningState::Converged, "unit {unit}");
        (progress.gap / unit, learner.synapses().clone())
    };
    let (gap, synapses) = learn(1.0);
    for unit in [1e-6, 1e6] {
        let (other_gap, other) = learn(unit);
        assert!((other_gap - gap).abs() < 1e-8, "unit {unit}: {other_gap} for {gap}");
        assert!(aligned_distance(&other, &synapses) < 1e-5, "unit {unit}");
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let w = || Matrix::identity(2);
    let contexts = || vec![Matrix::identity(2)];
    let refused =
        |w, contexts, leak, gain_cost| SynapseLearner::new(w, contexts, leak, gain_cost).err().unwrap();

    assert!(matches!(refused(Matrix::zeros(0, 0), contexts(), 1.0, 0.0), Error::Shape { .. }));
    assert!(matches!(refused(Matrix::zeros(2, 0), contexts(), 1.0, 0.0), Error::Shape { .. }));
    assert!(matches!(refused(w(), vec![], 1.0, 0.0), Error::Shape { .. }));
    assert!(matches!(refused(w(), vec![Matrix::identity(3)], 1.0, 0.0), Error::Shape { .. }));
    let no_direction = refused(Matrix::zeros(2, 2), contexts(), 1.0, 0.0);
    assert!(matches!(no_direction, Error::OutOfRange { argument, .. } if argument == "synapses"));
    let nan = Matrix::diagonal(&[1.0, f64::NAN]);
    assert!(matches!(refused(nan.clone(), contexts(), 1.0, 0.0), Error::NotFinite { .. }));
    let second = refused(w(), vec![Matrix::identity(2), nan], 1.0, 0.0);
    assert!(matches!(second, Error::NotFinite { argument, .. } if argument == "covariances[1]"));
    let flat = refused(w(), vec![Matrix::diagonal(&[1.0, 0.0])], 1.0, 0.0);
    assert!(matches!(flat, Error::NotPositiveDefinite { argument, .. } if argument == "covariances[0]"));
    let skew = refused(w(), vec![Matrix::from_rows(&[[1.0, 0.5], [0.0, 1.0]])], 1.0, 0.0);
    assert!(matches!(skew, Error::NotSymmetric { .. }));
    for (leak, gain_cost) in [(-1.0, 0.0), (f64::NAN, 0.0), (1.0, -1.0), (1.0, f64::INFINITY)] {
        assert!(matches!(refused(w(), contexts(), leak, gain_cost), Error::OutOfRange { .. }));
    }
    let one = Matrix::from_fn(2, 1, |_, _| 1.0);
    assert!(matches!(refused(one, contexts(), 0.0, 0.0), Error::Singular { neurons: 2, interneurons: 1 }));
    let parallel = Matrix::from_fn(2, 2, |_, _| 1.0);
    assert!(matches!(refused(parallel, contexts(), 0.0, 0.0), Error::NotPositiveDefinite { .. }));
}

#[test]
fn the_mean_eigenbasis_puts_the_most_useful_columns_first() {
    let rng = &mut Pcg64::seed_from_u64(4);
    // Along the axes √λ is 0.2, 1 and 1.5, and the second and the third axis are mixed in one context.
    let mixed = Matrix::from_rows(&[[0.04, 0.0, 0.0], [0.0, 1.0, 0.4], [0.0, 0.4, 2.25]]);
    let other = Matrix::from_rows(&[[0.04, 0.0, 0.0], [0.0, 1.0, -0.4], [0.0, -0.4, 2.25]]);
    let contexts = [mixed, other];
    let start = |k, rng: &mut Pcg64| starts::mean_eigenbasis(&contexts, k, 1.0, rng).unwrap();
    let four = start(4, rng);
    let near = |column: &[f64], axis: usize| (column[axis].abs() - 1.0).abs() < 1e-12;
    assert!(near(four.column(0), 0) && near(four.column(1), 2) && near(four.column(2), 1), "{four:?}");
    let sum = four.column(3);
    assert!(sum[0].abs() < 1e-12 && (sum[1].abs() - sum[2].abs()).abs() < 1e-12, "{sum:?}");
    assert_eq!(start(2, rng).as_slice(), &four.as_slice()[..6]);
    let nine = start(9, rng);
    assert_ne!(nine.column(6), start(9, rng).column(6));
    for j in 0..9 {
        assert!((dot(nine.column(j), nine.column(j)) - 1.0).abs() < 1e-14);
    }
    assert!(starts::mean_eigenbasis(&[], 2, 1.0, rng).is_err());
    assert!(starts::mean_eigenbasis(&[Matrix::identity(2), Matrix::identity(3)], 2, 1.0, rng).is_err());
}

/// Four contexts of two neurons, M = I + [[a, b], [b, 0]].
///
/// The only matrices of rank one among [[a, b], [b, 0]] have b = 0, so that no two synapse vectors have gains for all
/// four contexts; but e₁ and e₁ + εe₂ come as near as one likes with gains ∓b/ε.
fn contexts_on_a_tangent() -> Vec<Matrix> {
    let one = |[a, b]: [f64; 2]| {
        let m = Matrix::from_rows(&[[1.0 + a, b], [b, 1.0]]);
        Matrix::from_fn(2, 2, |i, j| dot(m.column(i), m.column(j)))
    };
    [[2.0, 0.8], [1.0, -0.6], [3.0, 0.2], [0.5, 0.5]].map(one).to_vec()
}

/// The mean gap above 2 Tr C^½, and the largest gain.
fn mean_gap_and_largest_gain(synapses: &Matrix, contexts: &[Matrix]) -> (f64, f64) {
    let (mut sum, mut most) = (0.0, 0.0_f64);
    for covariance in contexts {
        let gains = optimal_gains(synapses, covariance, 1.0).unwrap();
        most = most.max(largest(&gains));
        let circuit = Circuit::new(Synapses::tied(synapses.clone()).unwrap(), gains, 1.0).unwrap();
        sum += gap(&circuit.inverse_whitening_matrix(), covariance).unwrap();
    }
    (sum / contexts.len() as f64, most)
}

/// Eq. (3) need not have a minimum, even with as many interneurons as neurons: here its least value is approached
/// only while two columns draw together and their gains grow without bound. A cost of gains ends that.
#[test]
fn the_least_objective_may_not_be_attained() {
    let contexts = contexts_on_a_tangent();
    let apart = [1e-1, 1e-2, 1e-3].map(|e| {
        let synapses = Matrix::from_rows(&[[1.0, 1.0], [0.0, e]]);
        mean_gap_and_largest_gain(&synapses, &contexts)
    });
    for pair in apart.windows(2) {
        // What is missed of M is bε e₂e₂ᵀ, whose square is the gap; a tenth of ε takes gains ten times as large.
        let (gaps, gains) = (pair[0].0 / pair[1].0, pair[1].1 / pair[0].1);
        assert!((50.0..200.0).contains(&gaps) && (8.0..12.0).contains(&gains), "{apart:?}");
    }
    let rng = &mut Pcg64::seed_from_u64(9);
    for _ in 0..100 {
        let (gap, _) = mean_gap_and_largest_gain(&starts::on_sphere(2, 2, rng), &contexts);
        assert!(gap > 0.0, "{gap}");
    }
    let learned = |gain_cost: f64| {
        let (synapses, progress) = learn(Matrix::identity(2), &contexts, gain_cost, 60);
        let (_, gain) = mean_gap_and_largest_gain(&synapses, &contexts);
        (dot(synapses.column(0), synapses.column(1)).abs(), gain, progress)
    };
    // Down to a gap of rounding, the square of ε: so ε is 1e-6 or so, give or take what the learner cares to do.
    let (cosine, gain, progress) = learned(0.0);
    assert!(cosine > 0.9999 && gain > 100.0 && progress.gap < 1e-8, "{cosine}, {gain}, {progress:?}");
    let (cosine, gain, progress) = learned(SynapseLearner::GAIN_COST);
    assert!(cosine < 0.98 && gain < 5.0 && progress.gap < 1e-2, "{cosine}, {gain}, {progress:?}");
}

/// The test contexts of a split; the others are for training.
struct Split {
    test: [usize; 6],
    /// The gap and the two errors at the optimum of K = N, rounded up.
    bars: [f64; 3],
}

/// The split of the natural-image figure, and one whose test contexts are unlike the others.
const SPLITS: [Split; 2] = [
    Split { test: [12, 26, 30, 33, 37, 45], bars: [0.2215, 0.335, 0.380] },
    Split { test: [3, 7, 24, 25, 30, 34], bars: [0.191, 0.325, 0.435] },
];

/// The mean whitening error with the optimal gains of each context.
fn mean_error(synapses: &Matrix, contexts: &[Matrix]) -> f64 {
    let error = |covariance| {
        let gains = optimal_gains(synapses, covariance, 1.0).unwrap();
        let circuit = Circuit::new(Synapses::tied(synapses.clone()).unwrap(), gains, 1.0).unwrap();
        whitening_error(&circuit.inverse_whitening_matrix(), covariance).unwrap()
    };
    contexts.iter().map(error).sum::<f64>() / contexts.len() as f64
}

impl Split {
    fn train_and_test(&self, stack: &[Matrix]) -> (Vec<Matrix>, Vec<Matrix>) {
        let of = |test: bool| {
            let chosen = stack.iter().enumerate().filter(|(i, _)| self.test.contains(i) == test);
            chosen.map(|(_, covariance)| covariance.clone()).collect()
        };
        (of(false), of(true))
    }
}

/// The mean eigenbasis for seed 0, a random orthogonal start for the others.
fn natural_start(contexts: &[Matrix], interneurons: usize, seed: u64) -> Matrix {
    let rng = &mut Pcg64::seed_from_u64(seed);
    match seed {
        0 => starts::mean_eigenbasis(contexts, interneurons, 1.0, rng).unwrap(),
        _ => starts::orthogonal(contexts[0].rows(), interneurons, rng),
    }
}

fn learn(
    start: Matrix,
    contexts: &[Matrix],
    gain_cost: f64,
    iterations: usize,
) -> (Matrix, LearningProgress) {
    let mut learner = SynapseLearner::new(start, contexts.to_vec(), 1.0, gain_cost).unwrap();
    let progress = learner.advance(iterations);
    (learner.synapses().clone(), progress)
}

#[test]
fn natural_contexts_lead_to_one_optimum_from_any_start() {
    let Some(stack) = natural::covariances() else { return };
    for split in &SPLITS {
        let (train, test) = split.train_and_test(&stack);
        for seed in 0..5 {
            let start = natural_start(&train, 25, seed);
            let (synapses, progress) = learn(start, &train, 0.0, 100);
            let found = [progress.gap, mean_error(&synapses, &train), mean_error(&synapses, &test)];
            assert_eq!(progress.state, LearningState::Converged, "seed {seed}: {progress:?}");
            let below = found.iter().zip(&split.bars).all(|(found, bar)| found <= bar);
            assert!(below, "seed {seed}, test contexts {:?}: {found:?}", split.test);
        }
    }
}

#[test]
fn twice_as_many_interneurons_as_neurons_whiten_natural_contexts_better() {
    let Some(stack) = natural::covariances() else { return };
    for split in &SPLITS {
        let (train, test) = split.train_and_test(&stack);
        let start = natural_start(&train, 50, 0);
        let (synapses, progress) = learn(start, &train, SynapseLearner::GAIN_COST, 60);
        let (train, test) = (mean_error(&synapses, &train), mean_error(&synapses, &test));
        assert!(progress.gap <= 0.075, "{progress:?}");
        assert!(train <= 0.2 && test <= 0.27, "train {train}, test {test}");
    }
}
