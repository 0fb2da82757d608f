//! Shows that the synthetic family has the axes, strengths and contexts of the paper.

use leukos::contexts::{Axes, Blank, Contexts, Synthetic, SyntheticContexts, Waypoint, stream};
use leukos::{Circuit, Matrix, Synapses, whitening_error};

use super::{apart, assert_near, assert_refused, times};

fn draw(family: &Synthetic, seed: u64) -> SyntheticContexts {
    family.draw(&mut stream(seed, 0)).unwrap()
}

/// The acute angles between the first two columns of `count` draws, in degrees.
fn angles(axes: &Axes, count: u64) -> Vec<f64> {
    let family = Synthetic { axes: axes.clone(), contexts: 1, ..Synthetic::published() };
    let angle = |seed| {
        let v = draw(&family, seed).axes;
        let (cosine, sine) =
            (v[(0, 0)] * v[(0, 1)] + v[(1, 0)] * v[(1, 1)], v[(0, 0)] * v[(1, 1)] - v[(1, 0)] * v[(0, 1)]);
        sine.abs().atan2(cosine.abs()).to_degrees()
    };
    (0..count).map(angle).collect()
}

/// Asserts that numbers are uniform on a range, by their first two moments and their extremes.
#[track_caller]
fn assert_uniform(what: &str, drawn: &[f64], [least, most]: [f64; 2]) {
    let (count, width) = (drawn.len() as f64, most - least);
    let place: Vec<f64> = drawn.iter().map(|x| (x - least) / width).collect();
    assert!(place.iter().all(|x| (-1e-12..=1.0 + 1e-12).contains(x)), "{what} outside its range");
    // Uniform on [0, 1]: E x = 1/2, Var x = 1/12; E x² = 1/3, Var x² = 1/5 − 1/9.
    let mean = |power: i32| place.iter().map(|x| x.powi(power)).sum::<f64>() / count;
    assert_near(what, mean(1), 0.5, (1.0 / 12.0 / count).sqrt());
    assert_near(what, mean(2), 1.0 / 3.0, (4.0 / 45.0 / count).sqrt());
}

#[test]
fn axes_have_the_law_asked_for() {
    assert_uniform("angle on the circle", &angles(&Axes::Sphere, 4000), [0.0, 90.0]);
    let range = Axes::Angles { least: 40.0, most: 80.0 };
    assert_uniform("angle in a range", &angles(&range, 4000), [40.0, 80.0]);
    assert!(angles(&Axes::Orthogonal, 100).iter().all(|angle| (angle - 90.0).abs() < 1e-9));
    for seed in 0..100 {
        let family = Synthetic { axes: Axes::NonNegative, ..Synthetic::published() };
        assert!(draw(&family, seed).axes.as_slice().iter().all(|&v| v >= 0.0));
    }
}

#[test]
fn axes_of_any_size_have_unit_columns() {
    for (neurons, interneurons) in [(1, 1), (3, 5), (6, 4), (5, 5)] {
        for axes in [
            Axes::Sphere,
            Axes::NonNegative,
            Axes::Orthogonal,
            Axes::Angles { least: if neurons == 1 { 0.0 } else { 20.0 }, most: 90.0 },
        ] {
            let family = Synthetic { neurons, interneurons, axes, contexts: 2, ..Synthetic::published() };
            let v = draw(&family, 1).axes;
            assert_eq!((v.rows(), v.columns()), (neurons, interneurons));
            let overlaps = times(&v.transpose(), &v);
            assert!((0..interneurons).all(|k| (overlaps[(k, k)] - 1.0).abs() < 1e-12));
            if matches!(family.axes, Axes::Angles { .. }) && neurons > 1 {
                let widest = 20.0_f64.to_radians().cos();
                let pairs = (0..interneurons).flat_map(|k| (0..k).map(move |l| (k, l)));
                assert!(pairs.into_iter().all(|pair| overlaps[pair].abs() <= widest + 1e-12));
            }
        }
    }
    let given = Matrix::from_rows(&[[0.6179, 0.9170], [0.7863, 0.3988]]);
    let family = Synthetic { axes: Axes::Given(given.clone()), ..Synthetic::published() };
    assert_eq!(draw(&family, 1).axes, given);
}

#[test]
fn strengths_are_zero_half_the_time_and_uniform_else() {
    let family = Synthetic { contexts: 20_000, ..Synthetic::published() };
    let drawn = draw(&family, 2);
    let strengths = drawn.strengths.as_slice();
    let positive: Vec<f64> = strengths.iter().copied().filter(|&strength| strength > 0.0).collect();
    let half = positive.len() as f64 / strengths.len() as f64;
    assert_near("share of strengths above 0", half, 0.5, (0.25 / strengths.len() as f64).sqrt());
    assert_uniform("strength", &positive, [0.0, 4.0]);
    let blank = (0..20_000).filter(|&c| drawn.strengths.column(c) == [0.0, 0.0]).count();
    assert_near("share of blank contexts", blank as f64 / 2e4, 0.25, (0.25_f64 * 0.75 / 2e4).sqrt());
    let other =
        Synthetic { sparsity: 0.1, strengths: [2.0, 3.0], contexts: 20_000, ..Synthetic::published() };
    let strengths = draw(&other, 2).strengths;
    let positive: Vec<f64> = strengths.as_slice().iter().copied().filter(|&x| x > 0.0).collect();
    assert_near("share of strengths above 0", positive.len() as f64 / 4e4, 0.9, (0.09_f64 / 4e4).sqrt());
    assert_uniform("strength", &positive, [2.0, 3.0]);
}

#[test]
fn blank_contexts_are_kept_or_drawn_again() {
    let blank = |drawn: &SyntheticContexts| -> Vec<usize> {
        (0..drawn.contexts.len()).filter(|&c| drawn.strengths.column(c) == [0.0, 0.0]).collect()
    };
    let kept = draw(&Synthetic { leak: 0.5, ..Synthetic::published() }, 3);
    assert!(!blank(&kept).is_empty());
    for c in blank(&kept) {
        assert_eq!(kept.contexts.covariances()[c], Matrix::diagonal(&[0.25, 0.25]));
    }
    let redrawn = draw(&Synthetic { blank: Blank::Redrawn, contexts: 2000, ..Synthetic::published() }, 3);
    assert_eq!(blank(&redrawn), [0; 0]);
    // Of the contexts that are left, those with one strength at 0 are twice as many as those with none.
    let sparse = redrawn.strengths.as_slice().iter().filter(|&&strength| strength == 0.0).count();
    assert_near("share of sparse contexts", sparse as f64 / 2e3, 2.0 / 3.0, (2.0_f64 / 9.0 / 2e3).sqrt());
}

#[test]
fn contexts_are_what_axes_strengths_and_leak_make_them() {
    for leak in [1.0, 0.3] {
        let family = Synthetic { neurons: 4, interneurons: 3, leak, ..Synthetic::published() };
        let drawn = draw(&family, 4);
        for (c, (root, covariance)) in
            drawn.contexts.roots().iter().zip(drawn.contexts.covariances()).enumerate()
        {
            let spread = times(&drawn.axes, &Matrix::diagonal(drawn.strengths.column(c)));
            let spread = times(&spread, &drawn.axes.transpose());
            let expected = Matrix::from_fn(4, 4, |i, j| spread[(i, j)] + if i == j { leak } else { 0.0 });
            assert!(apart(root, &expected) < 1e-14);
            assert!(apart(covariance, &times(&expected, &expected)) < 1e-13);
            assert_eq!(*covariance, covariance.transpose());
        }
        Contexts::new(drawn.contexts.covariances().to_vec()).expect("a stack like any other");
    }
}

#[test]
fn synapses_equal_to_the_axes_whiten_every_context_and_every_point_between() {
    let drawn = draw(&Synthetic::released(), 5);
    let error = |gains: Vec<f64>, covariance: &Matrix| {
        let circuit = Circuit::new(Synapses::tied(drawn.axes.clone()).unwrap(), gains, 1.0).unwrap();
        whitening_error(&circuit.inverse_whitening_matrix(), covariance).unwrap()
    };
    for (c, covariance) in drawn.contexts.covariances().iter().enumerate() {
        assert!(error(drawn.strengths.column(c).to_vec(), covariance) < 1e-12);
    }
    for c in 1..drawn.contexts.len() {
        let point = Waypoint { from: 0, to: c, fraction: 0.3 };
        let (from, to) = (drawn.strengths.column(0), drawn.strengths.column(c));
        let gains = from.iter().zip(to).map(|(from, to)| 0.7 * from + 0.3 * to).collect();
        assert!(error(gains, &drawn.contexts.covariance_at(point).unwrap()) < 1e-12);
    }
}

#[test]
fn the_presets_are_the_papers_and_the_authors() {
    let published = Synthetic::published();
    assert_eq!((published.neurons, published.interneurons, published.contexts), (2, 2, 64));
    assert_eq!((published.sparsity, published.strengths, published.leak), (0.5, [0.0, 4.0], 1.0));
    assert_eq!((published.axes.clone(), published.blank), (Axes::Sphere, Blank::Kept));
    let released = Synthetic::released();
    assert_eq!(released.axes, Axes::Angles { least: 40.0, most: 80.0 });
    assert_eq!(released.blank, Blank::Redrawn);
    assert_eq!(Synthetic { axes: Axes::Sphere, blank: Blank::Kept, ..released }, published);
}

#[test]
fn a_bad_family_is_refused() {
    let published = Synthetic::published;
    let refused = |family: &Synthetic, start| assert_refused(family.draw(&mut stream(0, 0)), start);
    refused(&Synthetic { neurons: 0, ..published() }, "neurons: expected 1 or more");
    refused(&Synthetic { contexts: 0, ..published() }, "contexts: expected 1 or more");
    for sparsity in [-0.1, 1.5, f64::NAN] {
        refused(&Synthetic { sparsity, ..published() }, "sparsity: expected a number between 0 and 1");
    }
    for strengths in [[-1.0, 4.0], [3.0, 2.0], [0.0, f64::INFINITY], [f64::NAN, 1.0], [0.0, f64::NAN]] {
        refused(&Synthetic { strengths, ..published() }, "strengths: expected two finite numbers");
    }
    for leak in [0.0, -1.0, f64::NAN] {
        refused(&Synthetic { leak, ..published() }, "leak: expected a finite number above 0");
    }
    for (least, most) in [(-1.0, 80.0), (80.0, 40.0), (40.0, f64::NAN)] {
        let axes = Axes::Angles { least, most };
        refused(&Synthetic { axes, ..published() }, "angles: expected two finite numbers");
    }
    let axes = Axes::Angles { least: 40.0, most: 91.0 };
    refused(&Synthetic { axes, ..published() }, "angles: expected at most 90 degrees");
    let axes = Axes::Angles { least: 61.0, most: 90.0 };
    refused(&Synthetic { axes, interneurons: 3, ..published() }, "axes: 100000 draws");
    refused(&Synthetic { axes: Axes::Given(Matrix::zeros(2, 3)), ..published() }, "axes: expected 2 x 2");
    let axes = Axes::Given(Matrix::diagonal(&[1.0, f64::INFINITY]));
    refused(&Synthetic { axes, ..published() }, "axes: expected finite numbers");
    let axes = Axes::Given(Matrix::diagonal(&[1e200, 1.0]));
    refused(&Synthetic { axes, ..published() }, "covariances[");
    let never = Synthetic { sparsity: 1.0, ..published() };
    assert!(never.draw(&mut stream(0, 0)).is_ok());
    refused(&Synthetic { blank: Blank::Redrawn, ..never }, "blank: 100000 draws");
}
