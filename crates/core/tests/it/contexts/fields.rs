//! Shows that the field generator computes what it says and gives contexts like those of natural images.

use std::f64::consts::{PI, TAU};

use leukos::contexts::{Field, FieldContexts, Fields, Patch, Schedule, stream};
use leukos::{Circuit, Matrix, Offline, OfflineGains, Synapses, UnitNorm, models, starts};

use super::{apart, assert_near, assert_refused, eigen, times};

const SQUARE: Patch = Patch { height: 5, width: 5, spacing: 1 };

/// The covariance of a patch by the whole Fourier sum, frequency by frequency, as the definition has it.
/// On the grid 128 and −128 are one frequency, so each counts half.
fn slow_covariance(field: &Field, patch: Patch) -> Matrix {
    let (sine, cosine) = field.angle.sin_cos();
    let stretch = field.log_stretch.exp();
    let share = |f: i32| if f.abs() == 128 { 0.5 } else { 1.0 };
    let mut spectrum = Vec::new();
    for (k, l) in (-128..=128).flat_map(|k| (-128..=128).map(move |l| (k, l))) {
        let (fx, fy) = (f64::from(k), f64::from(l));
        let length = (stretch * (cosine * fx + sine * fy)).hypot((cosine * fy - sine * fx) / stretch);
        let power = if length == 0.0 { 0.0 } else { length.powf(-field.exponent) };
        spectrum.push((fx, fy, share(k) * share(l) * power));
    }
    let at = |x: f64, y: f64| -> f64 {
        spectrum.iter().map(|(fx, fy, power)| power * (TAU * (fx * x + fy * y) / 256.0).cos()).sum()
    };
    let variance = at(0.0, 0.0);
    let place = |pixel: usize| {
        let (y, x) = (pixel / patch.width * patch.spacing, pixel % patch.width * patch.spacing);
        (x as f64, y as f64)
    };
    let pixels = patch.height * patch.width;
    Matrix::from_fn(pixels, pixels, |p, q| {
        let ((x, y), (u, v)) = (place(p), place(q));
        at(x - u, y - v) / variance + if p == q { field.noise } else { 0.0 }
    })
}

#[test]
fn covariances_are_those_of_the_whole_fourier_sum() {
    let upright = Field { exponent: 1.3, log_stretch: 0.4, angle: 0.0, noise: 0.2 };
    let oblique = Field { exponent: 0.9, log_stretch: -0.5, angle: 0.7, noise: 0.0 };
    for (field, patch) in [
        (upright, Patch { height: 2, width: 3, spacing: 1 }),
        (oblique, Patch { height: 3, width: 2, spacing: 1 }),
        (oblique, Patch { height: 2, width: 2, spacing: 37 }),
        (oblique, Patch { height: 1, width: 2, spacing: 128 }),
    ] {
        let off = apart(&field.covariance(patch).unwrap(), &slow_covariance(&field, patch));
        assert!(off < 1e-12, "{field:?}, {patch:?}: {off:e}");
    }
}

/// The covariance with rows and columns of the patch turned round where asked.
fn reflected(covariance: &Matrix, patch: Patch, upside_down: bool, left_right: bool) -> Matrix {
    let place = |pixel: usize| {
        let (y, x) = (pixel / patch.width, pixel % patch.width);
        let y = if upside_down { patch.height - 1 - y } else { y };
        let x = if left_right { patch.width - 1 - x } else { x };
        y * patch.width + x
    };
    Matrix::from_fn(covariance.rows(), covariance.rows(), |p, q| covariance[(place(p), place(q))])
}

#[test]
fn upright_fields_are_symmetric_under_reflections_and_oblique_ones_under_half_turns() {
    let patch = Patch { height: 3, width: 4, spacing: 1 };
    let at = |angle| Field { exponent: 1.2, log_stretch: 0.5, angle, noise: 0.3 }.covariance(patch).unwrap();
    let upright = at(0.0);
    assert_eq!(reflected(&upright, patch, true, false), upright);
    assert_eq!(reflected(&upright, patch, false, true), upright);
    let oblique = at(PI / 5.0);
    assert_eq!(reflected(&oblique, patch, true, true), oblique);
    assert!(apart(&reflected(&oblique, patch, false, true), &oblique) > 0.01);
    // A mirror image of the field is the field at the opposite angle.
    assert!(apart(&reflected(&oblique, patch, false, true), &at(-PI / 5.0)) < 1e-12);
}

#[test]
fn stretched_frequencies_are_shrunk_distances() {
    let field = Field { exponent: 1.2, log_stretch: 0.5, angle: 0.0, noise: 0.0 };
    let patch = Patch { height: 2, width: 2, spacing: 1 };
    let covariance = field.covariance(patch).unwrap();
    let (beside, below) = (covariance[(0, 1)], covariance[(0, 2)]);
    assert!(beside > below + 0.05, "power along x is at low frequencies: {beside} beside, {below} below");
    let spread = field.covariance(Patch { spacing: 4, ..patch }).unwrap();
    assert!(spread[(0, 1)] < beside);
}

fn assert_conditioned(family: &Fields, drawn: &FieldContexts) {
    assert_eq!(drawn.contexts.len(), family.contexts);
    assert_eq!(drawn.fields.len(), family.contexts);
    assert!(drawn.drawn >= family.contexts);
    for (covariance, field) in drawn.contexts.covariances().iter().zip(&drawn.fields) {
        let values = eigen(covariance).0;
        let (least, most) = (values[0], values[values.len() - 1]);
        assert!((most - family.norm).abs() < 1e-11, "spectral norm {most}");
        assert!(most / least < family.condition, "condition {}", most / least);
        let scale = covariance[(0, 0)] / (1.0 + field.noise);
        let mut expected = field.covariance(family.patch).unwrap();
        expected.as_mut_slice().iter_mut().for_each(|x| *x *= scale);
        assert!(apart(covariance, &expected) < 1e-12);
    }
}

#[test]
fn contexts_have_the_condition_and_the_norm_asked_for() {
    for family in [
        Fields::two_dimensional(),
        Fields::one_dimensional(),
        Fields { condition: 6.0, norm: 3.0, contexts: 12, ..Fields::two_dimensional() },
        Fields { patch: Patch { spacing: 3, ..SQUARE }, ..Fields::two_dimensional() },
    ] {
        assert_conditioned(&family, &family.draw(&mut stream(1, 0)).unwrap());
    }
    let (two, one) = (Fields::two_dimensional(), Fields::one_dimensional());
    assert_eq!((two.contexts, two.condition, two.norm), (56, 20.0, 10.0));
    assert_eq!((two.patch, one.patch), (SQUARE, Patch { height: 1, width: 16, spacing: 1 }));
    let dropped = two.draw(&mut stream(2, 0)).unwrap();
    assert!(dropped.drawn > 56, "the condition dropped nothing");
}

#[test]
fn fields_have_the_parameters_of_their_family() {
    let patch = Patch { height: 1, width: 2, spacing: 1 };
    let family = Fields { contexts: 600, patch, condition: 1e6, ..Fields::two_dimensional() };
    let drawn = family.draw(&mut stream(3, 0)).unwrap();
    assert_eq!(drawn.drawn, 600);
    let all = |what: fn(&Field) -> f64| drawn.fields.iter().map(what).collect::<Vec<f64>>();
    for (name, values, [least, most]) in [
        ("exponent", all(|field| field.exponent), [0.6, 1.8]),
        ("log_stretch", all(|field| field.log_stretch), [-0.5, 0.5]),
        ("noise", all(|field| field.noise), [0.1, 0.5]),
        ("angle", all(|field| field.angle).into_iter().filter(|&a| a != 0.0).collect(), [0.0, PI]),
    ] {
        let count = values.len() as f64;
        assert!(values.iter().all(|value| (least..=most).contains(value)), "{name} outside its range");
        let place = |value: f64| (value - least) / (most - least);
        let mean = |power| values.iter().map(|&value| place(value).powi(power)).sum::<f64>() / count;
        assert_near(name, mean(1), 0.5, (1.0 / 12.0 / count).sqrt());
        assert_near(name, mean(2), 1.0 / 3.0, (4.0 / 45.0 / count).sqrt());
    }
    let upright = drawn.fields.iter().filter(|field| field.angle == 0.0).count();
    assert_near("share of upright fields", upright as f64 / 6e2, 0.7, (0.21_f64 / 6e2).sqrt());
}

/// The cosine transform's basis of n pixels: columns cos(π(2i + 1)k/2n), of unit length.
fn cosines(n: usize) -> Matrix {
    Matrix::from_fn(n, n, |i, k| {
        let scale = if k == 0 { 1.0 } else { 2.0 } / n as f64;
        scale.sqrt() * (PI * (2 * i + 1) as f64 * k as f64 / (2 * n) as f64).cos()
    })
}

/// The mean overlap |⟨w, d⟩| of unit columns with those of the cosine transform, pairing the best-matching ones first:
/// at most what the best assignment gives.
fn cosine_match(columns: &Matrix, patch: Patch) -> f64 {
    let (down, across) = (cosines(patch.height), cosines(patch.width));
    let n = columns.rows();
    let basis = Matrix::from_fn(n, n, |pixel, k| {
        down[(pixel / patch.width, k / patch.width)] * across[(pixel % patch.width, k % patch.width)]
    });
    let overlaps = times(&columns.transpose(), &basis);
    let mut pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).collect();
    pairs.sort_by(|&a, &b| overlaps[b].abs().total_cmp(&overlaps[a].abs()));
    let (mut used, mut taken, mut total) = (vec![false; n], vec![false; n], 0.0);
    for (i, j) in pairs {
        if !(used[i] || taken[j]) {
            (used[i], taken[j]) = (true, true);
            total += overlaps[(i, j)].abs();
        }
    }
    total / n as f64
}

/// Modes (k, l) and (l, k) have nearly the same variance on average over contexts, so their eigenvectors mix by chance
/// and a single stack of squares can fall to .84; hence the median.
#[test]
fn eigenvectors_are_those_of_the_cosine_transform() {
    for (family, least) in [(Fields::two_dimensional(), 0.9), (Fields::one_dimensional(), 0.95)] {
        let matched = |index| {
            let drawn = family.draw(&mut stream(0, index)).unwrap();
            cosine_match(&eigen(&drawn.contexts.mean_covariance()).1, family.patch)
        };
        let mut matches: Vec<f64> = (0..15).map(matched).collect();
        matches.sort_by(f64::total_cmp);
        assert!(matches[7] >= least, "median of {matches:?}");
    }
}

/// The contexts tell such modes apart, so what a circuit learns from them is nearer to the cosine transform than the
/// eigenvectors of their mean: this stack has a match of .88 there.
#[test]
fn synapses_learned_as_in_the_figure_are_those_of_the_cosine_transform() {
    let contexts = Fields::two_dimensional().draw(&mut stream(0, 0)).unwrap().contexts;
    let start = Synapses::tied(starts::orthogonal(25, 25, &mut stream(0, 1))).unwrap();
    let circuit = Circuit::new(start, vec![0.0; 25], 1.0).unwrap();
    let mut rules = models::multi_timescale_offline(0.5, 0.05).rules;
    rules.unit_norm = UnitNorm::Projected;
    let covariances = contexts.covariances().to_vec();
    let mut run = Offline::new(circuit, rules, covariances, OfflineGains::LeastSquares).unwrap();
    let order: Vec<usize> = Schedule::blocks(contexts.len(), 1, stream(0, 2)).unwrap().take(20_000).collect();
    run.advance(&order, 1, &mut ()).unwrap();
    let learned = cosine_match(run.circuit().synapses().feedback(), SQUARE);
    assert!(learned >= 0.9, "{learned}");
}

#[test]
fn controls_lose_the_cosine_transform() {
    let drawn = Fields::two_dimensional().draw(&mut stream(0, 0)).unwrap();
    let controls = drawn.contexts.controls(&mut stream(0, 1)).unwrap();
    let natural = cosine_match(&eigen(&drawn.contexts.covariances()[0]).1, SQUARE);
    let control = cosine_match(&eigen(&controls.covariances()[0]).1, SQUARE);
    assert!(control < 0.6 && natural > 0.85, "{control} against {natural}");
}

#[test]
fn a_bad_family_of_fields_is_refused() {
    let family = Fields::two_dimensional();
    let refused = |family: &Fields, start| assert_refused(family.draw(&mut stream(0, 0)), start);
    let patch = |height, width, spacing| Fields { patch: Patch { height, width, spacing }, ..family };
    refused(&Fields { contexts: 0, ..family }, "contexts: expected 1 or more");
    refused(&patch(0, 5, 1), "height: expected 1 or more");
    refused(&patch(5, 0, 1), "width: expected 1 or more");
    refused(&patch(5, 5, 0), "spacing: expected 1 or more");
    refused(&patch(130, 1, 1), "height: expected a patch that spans half the grid");
    refused(&patch(1, 5, 33), "width: expected a patch that spans half the grid");
    refused(&patch(2, 1, usize::MAX), "height: expected a patch that spans half the grid");
    for range in [[-0.1, 1.0], [2.0, 1.0], [0.0, f64::NAN], [f64::INFINITY, 1.0]] {
        refused(&Fields { exponents: range, ..family }, "exponents: expected two finite numbers");
        refused(&Fields { noise: range, ..family }, "noise: expected two finite numbers");
    }
    for log_stretch in [-0.1, f64::NAN] {
        refused(&Fields { log_stretch, ..family }, "log_stretch: expected");
    }
    refused(&Fields { upright: 1.5, ..family }, "upright: expected a number between 0 and 1");
    refused(&Fields { norm: 0.0, ..family }, "norm: expected a finite number above 0");
    for condition in [1.0, f64::NAN] {
        refused(&Fields { condition, ..family }, "condition: expected a number above 1");
    }
    refused(&Fields { condition: 1.01, contexts: 1, ..family }, "condition: a hundred fields");
    refused(&Fields { exponents: [1e5, 1e5], ..family }, "field: its power cannot be held");
    let field = Field { exponent: 1.0, log_stretch: 0.0, angle: 0.0, noise: f64::NAN };
    assert_refused(field.covariance(SQUARE), "field: its power");
    assert_refused(field.covariance(Patch { height: 0, ..SQUARE }), "height: expected 1 or more");
}
