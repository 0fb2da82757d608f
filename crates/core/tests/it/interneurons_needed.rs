//! Counts the interneurons that contexts need (Sec. 3.2): N(N+1)/2 if they have nothing in common, N if they share
//! their eigenvectors, and O(N) for what correlates locally.

use leukos::contexts::{Contexts, Fields, stream};
use leukos::{
    Circuit, Matrix, Membership, Synapses, cosine_basis, gap, local_frame, membership, optimal_gains, starts,
    whitening_error,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{nested, normal, square};
use crate::twin::{self, matmul, operator_norm, transpose};

const LEAK: f64 = 1.0;

/// N(N+1)/2, the degrees of freedom of a covariance.
fn freedoms_of_any(n: usize) -> usize {
    n * (n + 1) / 2
}

/// Contexts with these eigenvectors and random spectra, more than a covariance has degrees of freedom.
fn sharing(eigenvectors: &Matrix, rng: &mut Pcg64) -> Contexts {
    let v = nested(eigenvectors);
    let one = |rng: &mut Pcg64| {
        let spectrum: Vec<f64> = (0..v.len()).map(|_| rng.random_range(0.3..6.0)).collect();
        let scaled: twin::Matrix =
            v.iter().map(|row| row.iter().zip(&spectrum).map(|(v, value)| v * value).collect()).collect();
        let product = matmul(&scaled, &transpose(&v));
        // Rounding would leave it a little asymmetric.
        square(&(0..v.len()).map(|i| (0..v.len()).map(|j| product[i.max(j)][i.min(j)]).collect()).collect())
    };
    Contexts::new((0..2 * freedoms_of_any(v.len())).map(|_| one(rng)).collect()).unwrap()
}

/// The dimension of the span of all C^½ − αI: no synapses with fewer columns can have gains for all contexts.
fn freedoms(contexts: &Contexts) -> usize {
    let features: twin::Matrix = contexts
        .covariances()
        .iter()
        .map(|covariance| {
            let root = twin::square_root(&nested(covariance));
            let below = |i: usize| (0..=i).map(move |j| (i, j));
            let entry = |(i, j): (usize, usize)| root[i][j] - if i == j { LEAK } else { 0.0 };
            (0..root.len()).flat_map(below).map(entry).collect()
        })
        .collect();
    let (values, _) = twin::symmetric_eigen(&matmul(&transpose(&features), &features));
    // The twin finds eigenvalues to 1e-14 of the largest; these are squares, so that 1e-10 is one part in 1e5.
    let largest = twin::largest_magnitude(&values);
    values.iter().filter(|value| **value > 1e-10 * largest).count()
}

/// The least-squares fit of each context's C^½ on the outer products.
fn fits(synapses: &Matrix, contexts: &Contexts) -> Vec<Membership> {
    contexts.covariances().iter().map(|covariance| membership(synapses, covariance, LEAK).unwrap()).collect()
}

fn worst_residual(synapses: &Matrix, contexts: &Contexts) -> f64 {
    fits(synapses, contexts).iter().map(|fit| fit.residual).fold(0.0, f64::max)
}

/// Whether gains whiten every context, but for rounding.
///
/// The fit solves the normal equations of the outer products, so that rounding leaves of C^½ that of a sum of K terms
/// with these gains, times the condition κ of the outer products (and κ² in the gains).
fn whiten_all(synapses: &Matrix, contexts: &Contexts) -> bool {
    let w = nested(synapses);
    let gram = matmul(&transpose(&w), &w);
    let squares: twin::Matrix = gram.iter().map(|row| row.iter().map(|x| x * x).collect()).collect();
    let values = twin::symmetric_eigen(&squares).0;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let condition = (twin::largest_magnitude(&values) / least).sqrt();
    let rounding = |fit: &Membership| {
        let terms = LEAK + fit.gains.iter().map(|gain| gain.abs()).sum::<f64>();
        synapses.columns() as f64 * f64::EPSILON * condition * terms
    };
    fits(synapses, contexts).iter().all(|fit| fit.holds(rounding(fit).min(1e-6)))
}

/// "From O(N²) to O(N)": where contexts share their eigenvectors, as translation-invariant ones do, one gain a neuron
/// whitens them all, and no fewer do.
#[test]
fn contexts_that_share_eigenvectors_need_a_gain_for_each_neuron() {
    let rng = &mut Pcg64::seed_from_u64(1);
    for n in 2..=5 {
        for shared in [cosine_basis(n), starts::orthogonal(n, n, rng)] {
            let contexts = sharing(&shared, rng);
            assert_eq!(freedoms(&contexts), n, "N {n}");
            assert!(whiten_all(&shared, &contexts), "N {n}");
            let fewer = Matrix::from_fn(n, n - 1, |i, j| shared[(i, j)]);
            assert!(worst_residual(&fewer, &contexts) > 0.01, "N {n}: one column too few");
            for covariance in contexts.covariances() {
                let error = error_and_gap(&shared, covariance)[0];
                assert!(error < 1e-11, "N {n}: {error:e}");
            }
        }
    }
}

/// The same spectra with eigenvectors of their own need N(N+1)/2: whatever the synapses, as that is what
/// their roots span.
#[test]
fn contexts_that_share_nothing_need_a_gain_for_each_degree_of_freedom() {
    let rng = &mut Pcg64::seed_from_u64(2);
    for n in 2..=5 {
        let enough = freedoms_of_any(n);
        let shared = starts::orthogonal(n, n, rng);
        let contexts = sharing(&shared, rng).controls(rng).unwrap();
        assert_eq!(freedoms(&contexts), enough, "N {n}");
        assert!(worst_residual(&shared, &contexts) > 0.1, "N {n}: as many as neurons");
        let synapses = starts::on_sphere(n, enough, rng);
        assert!(whiten_all(&synapses, &contexts), "N {n}: enough");
        for k in 1..enough {
            let fewer = Matrix::from_fn(n, k, |i, j| synapses[(i, j)]);
            assert!(!whiten_all(&fewer, &contexts), "N {n}: {k} columns");
            assert!(worst_residual(&fewer, &contexts) > 1e-3, "N {n}: {k} columns");
        }
    }
}

/// The whitening error, and the gap above the least objective, with the gains that are best for this covariance.
fn error_and_gap(synapses: &Matrix, covariance: &Matrix) -> [f64; 2] {
    let m = best(synapses, covariance).inverse_whitening_matrix();
    [whitening_error(&m, covariance).unwrap(), gap(&m, covariance).unwrap()]
}

fn best(synapses: &Matrix, covariance: &Matrix) -> Circuit {
    let gains = optimal_gains(synapses, covariance, LEAK).unwrap();
    Circuit::new(Synapses::tied(synapses.clone()).unwrap(), gains, LEAK).unwrap()
}

// ---- The local frame ----

/// Whether two pixels of a patch share a side or a corner.
fn are_neighbours(one: usize, other: usize, width: usize) -> bool {
    let (down, across) = ((one / width).abs_diff(other / width), (one % width).abs_diff(other % width));
    one != other && down <= 1 && across <= 1
}

/// The pixels that a column reads.
fn read_by(column: &[f64]) -> Vec<usize> {
    (0..column.len()).filter(|&pixel| column[pixel] != 0.0).collect()
}

#[test]
fn the_local_frame_has_every_pixel_and_every_pair_of_neighbours_once() {
    for (height, width) in [(1, 1), (1, 2), (2, 1), (1, 16), (16, 1), (2, 2), (3, 5), (5, 5), (7, 4)] {
        let (frame, pixels) = (local_frame(height, width), height * width);
        assert_eq!(frame.rows(), pixels);
        assert_eq!(frame.columns(), 5 * pixels + 2 - 3 * height - 3 * width, "{height} × {width}");
        let mut seen = Vec::new();
        let mut corners = 0;
        for j in 0..frame.columns() {
            let column = frame.column(j);
            assert!((column.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() <= f64::EPSILON);
            let read = read_by(column);
            if j < pixels {
                assert_eq!((&read[..], column[j]), (&[j][..], 1.0), "one pixel after the other");
                continue;
            }
            let &[one, other] = &read[..] else { panic!("{read:?} are not two pixels") };
            assert!(are_neighbours(one, other, width) && column[one] == column[other], "{read:?}");
            // Neighbours at a corner differ in row and column; none comes before one at a side.
            let at_corner = one / width != other / width && one % width != other % width;
            assert!(at_corner || corners == 0, "{height} × {width}: column {j} comes late");
            corners += usize::from(at_corner);
            seen.push((one, other));
        }
        let pairs = (0..pixels).flat_map(|one| (one..pixels).map(move |other| (one, other)));
        let expected: Vec<_> = pairs.filter(|&(one, other)| are_neighbours(one, other, width)).collect();
        seen.sort_unstable();
        assert_eq!(seen, expected, "{height} × {width}");
    }
    for (height, width) in [(0, 0), (0, 3), (3, 0)] {
        assert_eq!((local_frame(height, width).rows(), local_frame(height, width).columns()), (0, 0));
    }
}

/// Its gains reach every M that joins neighbours alone, whatever the signs: differences of neighbours are not missed.
#[test]
fn the_local_frame_reaches_every_matrix_of_neighbours() {
    let rng = &mut Pcg64::seed_from_u64(3);
    for (height, width) in [(1, 7), (3, 3), (3, 4)] {
        let (frame, pixels) = (local_frame(height, width), height * width);
        let mut m = twin::identity(pixels);
        for one in 0..pixels {
            // Eight neighbours of ½ at most leave it diagonally dominant.
            m[one][one] = 5.0 + normal(rng).abs();
            for other in (0..one).filter(|&other| are_neighbours(one, other, width)) {
                let joined = rng.random_range(-0.5..0.5);
                (m[one][other], m[other][one]) = (joined, joined);
            }
        }
        let found = membership(&frame, &square(&matmul(&m, &m)), LEAK).unwrap();
        assert!(found.holds(1e-13), "{height} × {width}: {found:?}");
        // The first and the last pixel are no neighbours.
        (m[0][pixels - 1], m[pixels - 1][0]) = (0.5, 0.5);
        let found = membership(&frame, &square(&matmul(&m, &m)), LEAK).unwrap();
        assert!(!found.holds(1e-3), "{height} × {width}: {found:?}");
    }
}

/// Its best gains leave every pixel with unit variance and no two neighbours correlated: it whitens locally.
#[test]
fn the_local_frame_whitens_neighbours() {
    for fields in [Fields::two_dimensional(), Fields::one_dimensional()] {
        let (height, width) = (fields.patch.height, fields.patch.width);
        let (frame, pixels) = (local_frame(height, width), height * width);
        let drawn = Fields { contexts: 4, ..fields }.draw(&mut stream(4, 0)).unwrap();
        for covariance in drawn.contexts.covariances() {
            let circuit = best(&frame, covariance);
            let f = nested(&circuit.whitening_matrix().unwrap());
            let responses = matmul(&f, &matmul(&nested(covariance), &f));
            // Optimal gains are known to about ε^¾ (`optimal_gains`), and δC_rr is F δM C_rr twice.
            let size = LEAK + circuit.gains().iter().map(|gain| gain.abs()).sum::<f64>();
            let sizes = size * operator_norm(&f) * operator_norm(&responses);
            let tolerance = 2.0 * f64::EPSILON.powf(0.75) * sizes;
            assert!(tolerance < 1e-7, "{tolerance:e} would show nothing");
            let mut farther = 0.0_f64;
            for one in 0..pixels {
                assert!((responses[one][one] - 1.0).abs() <= tolerance, "pixel {one}");
                for other in 0..one {
                    let correlation = responses[one][other].abs();
                    if are_neighbours(one, other, width) {
                        assert!(correlation <= tolerance, "{one} and {other}: {correlation:e}");
                    }
                    farther = farther.max(correlation);
                }
            }
            assert!(farther > 0.01, "it is only local: {farther:e}");
        }
    }
}

/// With O(N) interneurons it whitens images approximately, far better than as many random ones; and as it is nested,
/// more of its columns never do worse.
#[test]
fn the_local_frame_whitens_images_better_than_random_synapses() {
    let drawn = Fields { contexts: 6, ..Fields::two_dimensional() }.draw(&mut stream(5, 0)).unwrap();
    let rng = &mut Pcg64::seed_from_u64(5);
    let frame = local_frame(5, 5);
    let mean = |synapses: &Matrix| {
        let covariances = drawn.contexts.covariances();
        let all = covariances.iter().map(|covariance| error_and_gap(synapses, covariance));
        let [error, gap] = all.fold([0.0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        [error / covariances.len() as f64, gap / covariances.len() as f64]
    };
    let mut last = f64::INFINITY;
    // The pixels, those with neighbours at their sides, and all.
    for k in [25, 45, 65, 97] {
        let [error, gap] = mean(&Matrix::from_fn(25, k, |i, j| frame[(i, j)]));
        let [random_error, random_gap] = mean(&starts::on_sphere(25, k, rng));
        println!("K {k}: error {error:.3}, gap {gap:.3}; random {random_error:.3}, {random_gap:.3}");
        assert!(error < random_error && gap < random_gap && gap <= last, "K {k}");
        if k == frame.columns() {
            assert!(error < 0.5 * random_error && gap < 0.5 * random_gap, "K {k}");
        }
        last = gap;
    }
}
