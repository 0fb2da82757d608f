//! Shows that columns are aligned exactly, by trying every signed permutation, and what the bases are.

use leukos::{
    Error, Matrix, align, basis_distance, basis_match, cosine_basis, cosine_basis_2d, eigenbasis, starts,
};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{self, coin, farthest, normals, random_covariance};
use crate::cases::config;
use crate::twin;

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Calls `each` with every way of giving `agents` agents one of `options` options each.
fn for_each_assignment(agents: usize, options: usize, each: &mut impl FnMut(&[usize])) {
    fn extend(taken: &mut Vec<usize>, agents: usize, options: usize, each: &mut impl FnMut(&[usize])) {
        if taken.len() == agents {
            return each(taken);
        }
        for option in 0..options {
            if !taken.contains(&option) {
                taken.push(option);
                extend(taken, agents, options, each);
                taken.pop();
            }
        }
    }
    extend(&mut Vec::new(), agents, options, each);
}

/// The least ‖A − B‖_F over all orders and signs of A's columns.
fn least_distance(a: &Matrix, b: &Matrix) -> f64 {
    let squared = |i: usize, j: usize, sign: f64| {
        a.column(i).iter().zip(b.column(j)).map(|(x, y)| (sign * x - y).powi(2)).sum::<f64>()
    };
    let mut least = f64::INFINITY;
    for_each_assignment(b.columns(), a.columns(), &mut |order| {
        let each = order.iter().enumerate().map(|(j, &i)| squared(i, j, 1.0).min(squared(i, j, -1.0)));
        least = least.min(each.sum::<f64>());
    });
    least.sqrt()
}

/// The largest mean |⟨aᵢ, b_π(i)⟩| over all assignments, for unit columns of which A has the fewer.
fn largest_match(a: &Matrix, b: &Matrix) -> f64 {
    let mut most: f64 = 0.0;
    for_each_assignment(a.columns(), b.columns(), &mut |order| {
        let each = order.iter().enumerate().map(|(i, &j)| dot(a.column(i), b.column(j)).abs());
        most = most.max(each.sum::<f64>() / a.columns() as f64);
    });
    most
}

/// Normal columns of uneven lengths; small integers half the time, for ties.
fn columns(n: usize, k: usize, rng: &mut Pcg64) -> Matrix {
    let ties = coin(rng);
    let mut drawn: Matrix = bridge::matrix(&normals(n, k, rng), k);
    for j in 0..k {
        let length = rng.random_range(0.1..3.0);
        drawn.column_mut(j).iter_mut().for_each(|x| *x = if ties { x.round() } else { length * *x });
    }
    drawn
}

/// The columns in another order and with other signs.
fn shuffled(matrix: &Matrix, rng: &mut Pcg64) -> Matrix {
    let mut order: Vec<usize> = (0..matrix.columns()).collect();
    order.shuffle(rng);
    let signs: Vec<f64> = order.iter().map(|_| if coin(rng) { 1.0 } else { -1.0 }).collect();
    Matrix::from_fn(matrix.rows(), order.len(), |i, j| signs[j] * matrix[(i, order[j])])
}

/// The absolute columns in order, which a signed permutation does not change.
fn sorted_columns(matrix: &Matrix) -> Vec<Vec<u64>> {
    let bits = |j: usize| matrix.column(j).iter().map(|x| x.abs().to_bits()).collect();
    let mut columns: Vec<Vec<u64>> = (0..matrix.columns()).map(bits).collect();
    columns.sort_unstable();
    columns
}

proptest! {
    #![proptest_config(config(64, 2))]

    #[test]
    fn alignment_is_the_best_of_all_signed_permutations(seed: u64, n in 1..5usize, k in 0..=6usize) {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (a, b) = (columns(n, k, rng), columns(n, k, rng));
        let (aligned, distance) = align(&a, &b).unwrap();
        let left = bridge::minus(aligned.as_slice(), b.as_slice());
        prop_assert!((distance - least_distance(&a, &b)).abs() <= 1e-12 * (1.0 + distance));
        prop_assert!((distance - dot(&left, &left).sqrt()).abs() <= 1e-12 * (1.0 + distance));
        prop_assert_eq!(sorted_columns(&aligned), sorted_columns(&a), "the same columns");
    }

    #[test]
    fn shuffled_columns_come_back(seed: u64, n in 2..30usize, k in 0..40usize) {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let b: Matrix = bridge::matrix(&normals(n, k, rng), k);
        let (aligned, distance) = align(&shuffled(&b, rng), &b).unwrap();
        prop_assert_eq!(&aligned, &b);
        prop_assert_eq!(distance, 0.0);
    }

    #[test]
    fn lengths_do_not_matter_to_directions(seed: u64, n in 1..5usize, k in 1..=5usize) {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (a, b) = (starts::on_sphere(n, k, rng), starts::on_sphere(n, k, rng));
        let mut uneven = a.clone();
        for j in 0..k {
            let length = 10_f64.powi(rng.random_range(-200..200));
            uneven.column_mut(j).iter_mut().for_each(|x| *x *= length);
        }
        prop_assert!((basis_distance(&uneven, &b).unwrap() - least_distance(&a, &b)).abs() < 1e-12);
        prop_assert!((basis_match(&uneven, &b).unwrap() - largest_match(&a, &b)).abs() < 1e-12);
    }

    #[test]
    fn the_narrower_side_chooses_its_match(seed: u64, n in 1..5usize, fewer in 1..=4usize, more in 4..=6usize) {
        let rng = &mut Pcg64::seed_from_u64(seed);
        let (a, b) = (starts::on_sphere(n, fewer, rng), starts::on_sphere(n, more, rng));
        let expected = largest_match(&a, &b);
        prop_assert!((basis_match(&a, &b).unwrap() - expected).abs() < 1e-12);
        prop_assert!((basis_match(&b, &a).unwrap() - expected).abs() < 1e-12);
    }
}

#[test]
fn columns_of_any_size_are_aligned() {
    let b = Matrix::from_rows(&[[1e300, 0.0, 0.0], [0.0, 2e300, 0.0]]);
    let a = Matrix::from_rows(&[[0.0, 0.0, 1e300], [0.0, -2e300, 1e290]]);
    let (aligned, distance) = align(&a, &b).unwrap();
    assert_eq!(aligned.column(0), [1e300, 1e290]);
    assert_eq!(aligned.column(1), [0.0, 2e300]);
    assert!((distance / 1e290 - 1.0).abs() < 1e-12, "{distance}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let square = Matrix::identity(2);
    let shape = |result: Result<(), Error>| matches!(result, Err(Error::Shape { .. }));
    assert!(shape(align(&Matrix::zeros(2, 3), &square).map(drop)), "another number of columns");
    assert!(shape(align(&Matrix::zeros(3, 2), &square).map(drop)), "another length");
    assert!(shape(basis_distance(&Matrix::zeros(2, 1), &square).map(drop)));
    assert!(shape(basis_match(&Matrix::zeros(3, 2), &square).map(drop)));
    assert!(shape(basis_match(&Matrix::zeros(2, 0), &square).map(drop)), "nothing to match");
    let infinite = Matrix::from_rows(&[[1.0, f64::NAN], [0.0, 1.0]]);
    assert!(matches!(align(&infinite, &square), Err(Error::NotFinite { .. })));
    assert!(matches!(basis_match(&square, &infinite), Err(Error::NotFinite { .. })));
}

fn assert_orthonormal(basis: &Matrix, what: &str) {
    let rows = bridge::nested(basis);
    let gram = twin::matmul(&twin::transpose(&rows), &rows);
    let identity = twin::identity(rows.len());
    assert!(
        farthest(&bridge::flat::<f64>(&gram), &bridge::flat::<f64>(&identity)) < 1e-13,
        "{what} is orthonormal"
    );
}

/// The cosine basis diagonalises the second difference with reflecting ends, with eigenvalues 2 − 2 cos(πk/n).
#[test]
fn cosines_are_the_vibrations_of_a_free_string() {
    for n in [1, 2, 3, 5, 16, 100] {
        let basis = cosine_basis(n);
        assert_orthonormal(&basis, "the cosine basis");
        for k in 0..n {
            let value = 2.0 - 2.0 * (std::f64::consts::PI * k as f64 / n as f64).cos();
            let v = basis.column(k);
            for i in 0..n {
                let neighbours = [i.checked_sub(1), (i + 1 < n).then_some(i + 1)];
                let difference: f64 = neighbours.into_iter().flatten().map(|j| v[i] - v[j]).sum();
                assert!((difference - value * v[i]).abs() < 1e-13, "n {n}, k {k}, i {i}");
            }
        }
    }
}

#[test]
fn cosines_of_patches_are_products() {
    let basis = cosine_basis_2d(3, 5);
    assert_orthonormal(&basis, "the cosine basis of patches");
    let (down, across) = (cosine_basis(3), cosine_basis(5));
    // Row 2, column 4 of the patch with one half wave down and three across.
    assert_eq!(basis[(2 * 5 + 4, 5 + 3)], down[(2, 1)] * across[(4, 3)]);
    assert_eq!(cosine_basis_2d(1, 7), cosine_basis(7), "a row of pixels");
}

#[test]
fn eigenbasis_diagonalises_from_large_to_small() {
    let rng = &mut Pcg64::seed_from_u64(3);
    for n in [1, 2, 6] {
        let c = random_covariance(n, rng);
        let basis = eigenbasis(&bridge::square(&c)).unwrap();
        assert_orthonormal(&basis, "the eigenbasis");
        let variance = |j: usize| dot(basis.column(j), &twin::matvec(&c, basis.column(j)));
        let (values, _) = twin::symmetric_eigen(&c);
        let mut descending = values;
        descending.sort_by(|a, b| b.total_cmp(a));
        assert!(farthest(&(0..n).map(variance).collect::<Vec<_>>(), &descending) < 1e-12);
        for j in 0..n {
            let forward =
                basis.column(j).iter().fold(0.0_f64, |most, &x| if x.abs() > most.abs() { x } else { most });
            assert!(forward > 0.0);
        }
    }
    assert!(matches!(
        eigenbasis(&Matrix::from_rows(&[[1.0, 1.0], [0.0, 1.0]])),
        Err(Error::NotSymmetric { .. })
    ));
}
