//! Shows that circuits with their best gains whiten by the symmetric matrix of Eq. (1), and what sets that one apart.

use leukos::contexts::{Axes, Synthetic, stream};
use leukos::{Circuit, Matrix, Solver, Synapses, eigenbasis, optimal_gains, starts};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::bridge::{farthest, flat, nested, random_covariance, sigma_points, square};
use crate::twin::{self, dot, matmul, matvec, operator_norm, subtract, trace, transpose};

/// The circuit with the gains that are best for this covariance.
fn best(synapses: Matrix, covariance: &twin::Matrix, leak: f64) -> Circuit {
    let gains = optimal_gains(&synapses, &square(covariance), leak).unwrap();
    Circuit::new(Synapses::tied(synapses).unwrap(), gains, leak).unwrap()
}

/// The eigenvalues λ of C and C^(−½) = V diag(1/√λ) Vᵀ, by the twin's rotations.
fn inverse_square_root(covariance: &twin::Matrix) -> (Vec<f64>, twin::Matrix) {
    let (values, v) = twin::symmetric_eigen(covariance);
    let scaled: twin::Matrix =
        v.iter().map(|row| row.iter().zip(&values).map(|(v, value)| v / value.sqrt()).collect()).collect();
    (values, matmul(&scaled, &transpose(&v)))
}

/// How far apart F and C^(−½) may be: M sums terms of a known size, each as good as optimal gains are (ε^¾, see
/// `equations`), and an error δM of M is one of F δM F in F = M⁻¹.
fn allowed(circuit: &Circuit, expected: &twin::Matrix) -> f64 {
    let w = circuit.synapses().feedback();
    let term = |(i, gain): (usize, &f64)| gain.abs() * dot(w.column(i), w.column(i));
    let size = circuit.leak() + circuit.gains().iter().enumerate().map(term).sum::<f64>();
    f64::EPSILON.powf(0.75) * size * operator_norm(expected).powi(2)
}

/// Checks that the circuit's F is C^(−½), and that its responses to stimuli of covariance C have covariance I.
fn assert_whitens_symmetrically(circuit: &Circuit, covariance: &twin::Matrix, what: &str) {
    let n = circuit.neurons();
    let (values, expected) = inverse_square_root(covariance);
    let tolerance = allowed(circuit, &expected);
    assert!(tolerance < 1e-7, "{what}: {tolerance:e} would show nothing");
    let found = nested(&circuit.whitening_matrix().unwrap());
    let away = farthest(&found.concat(), &expected.concat());
    assert!(away <= tolerance, "{what}: {away:e} away, {tolerance:e} allowed");

    let stimuli = sigma_points(covariance);
    let responses = circuit.respond(&flat::<f64>(&stimuli), &Solver::Direct).unwrap();
    let responses: twin::Matrix = responses.chunks_exact(n).map(<[f64]>::to_vec).collect();
    let away = farthest(&second_moment(&responses).concat(), &twin::identity(n).concat());
    // δF shows twice in F C Fᵀ, each time beside CF = C^½.
    let largest = values.iter().fold(0.0_f64, |most, value| most.max(*value)).sqrt();
    let tolerance = 2.0 * n as f64 * largest * tolerance;
    assert!(away <= tolerance, "{what}: the responses' covariance is {away:e} away, {tolerance:e} allowed");
}

/// The mean of r rᵀ.
fn second_moment(rows: &twin::Matrix) -> twin::Matrix {
    let sums = matmul(&transpose(rows), rows);
    sums.iter().map(|row| row.iter().map(|x| x / rows.len() as f64).collect()).collect()
}

// ---- Eq. (1): F_c = C_ss^(−½) ----

/// With N(N+1)/2 interneurons or more, whatever their synapses.
#[test]
fn enough_interneurons_whiten_by_the_inverse_square_root() {
    let rng = &mut Pcg64::seed_from_u64(1);
    for n in 1..=5 {
        for (k, leak) in [(n * (n + 1) / 2, 1.0), (n * (n + 1) / 2 + 3, 0.5), (n * (n + 1), 0.0)] {
            let covariance = random_covariance(n, rng);
            let circuit = best(starts::on_sphere(n, k, rng), &covariance, leak);
            assert_whitens_symmetrically(&circuit, &covariance, &format!("N {n}, K {k}, leak {leak}"));
        }
    }
}

/// With the synapses V that synthetic contexts share, M_c = αI + VΛ(c)Vᵀ (Sec. 5.1), whatever their number.
#[test]
fn shared_synapses_whiten_every_synthetic_context_by_its_inverse_square_root() {
    for (neurons, interneurons, leak) in [(2, 2, 1.0), (5, 3, 0.5), (4, 6, 1.0)] {
        let axes = Axes::Sphere;
        let family = Synthetic { neurons, interneurons, contexts: 10, axes, leak, ..Synthetic::published() };
        let drawn = family.draw(&mut stream(2, 0)).unwrap();
        for (c, covariance) in drawn.contexts.covariances().iter().enumerate() {
            let covariance = nested(covariance);
            let circuit = best(drawn.axes.clone(), &covariance, leak);
            let what = format!("N {neurons}, K {interneurons}, context {c}");
            assert_whitens_symmetrically(&circuit, &covariance, &what);
        }
    }
}

/// With the eigenvectors as synapses, where the gains are √λ − α.
#[test]
fn eigenvectors_whiten_by_the_inverse_square_root() {
    let rng = &mut Pcg64::seed_from_u64(3);
    for n in 1..=6 {
        for leak in [0.0, 0.5, 3.0] {
            let covariance = random_covariance(n, rng);
            let circuit = best(eigenbasis(&square(&covariance)).unwrap(), &covariance, leak);
            assert_whitens_symmetrically(&circuit, &covariance, &format!("N {n}, leak {leak}"));
            let mut roots: Vec<f64> = twin::symmetric_eigen(&covariance).0;
            roots.iter_mut().for_each(|value| *value = value.sqrt() - leak);
            roots.sort_by(|a, b| b.total_cmp(a));
            assert!(farthest(circuit.gains(), &roots) < 1e-12, "N {n}, leak {leak}: the gains");
        }
    }
}

/// Other gains give another F: the three tests above would notice.
#[test]
fn gains_that_are_not_best_do_not_whiten() {
    let rng = &mut Pcg64::seed_from_u64(4);
    for n in 1..=4 {
        let covariance = random_covariance(n, rng);
        let circuit = best(starts::on_sphere(n, n * (n + 1) / 2, rng), &covariance, 1.0);
        let mut gains = circuit.gains().to_vec();
        gains[0] += 1e-3;
        let (_, expected) = inverse_square_root(&covariance);
        let found = nested(&circuit.clone().with_gains(gains).unwrap().whitening_matrix().unwrap());
        let away = farthest(&found.concat(), &expected.concat());
        assert!(away > 100.0 * allowed(&circuit, &expected), "N {n}: {away:e}");
    }
}

// ---- Sec. 2: other whitenings ----

/// Orthogonal matrices of every kind: I and −I, exchanged neurons, small and large turns of a plane, the eigenvectors
/// (PCA whitening), and random rotations and reflections.
fn orthogonal_matrices(covariance: &twin::Matrix, rng: &mut Pcg64) -> Vec<twin::Matrix> {
    let n = covariance.len();
    let turn = |angle: f64| {
        let (sine, cosine) = angle.sin_cos();
        Matrix::from_fn(n, n, |i, j| match (i, j) {
            (0, 0) | (1, 1) => cosine,
            (0, 1) => -sine,
            (1, 0) => sine,
            _ => f64::from(u8::from(i == j)),
        })
    };
    let mut all = vec![
        Matrix::identity(n),
        Matrix::from_fn(n, n, |i, j| -f64::from(u8::from(i == j))),
        Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i + j + 1 == n))),
        eigenbasis(&square(covariance)).unwrap().transpose(),
    ];
    if n > 1 {
        all.extend([1e-3, 0.3, 1.6, 3.1].map(turn));
    }
    all.extend((0..20).map(|_| starts::orthogonal(n, n, rng)));
    all.iter().map(nested).collect()
}

/// "Left multiplication of the whitening matrix F_c by any N × N orthogonal matrix results in another whitening
/// matrix." Conversely every whitening G is such a QF: GCGᵀ = I says that GF⁻¹ is orthogonal.
#[test]
fn any_orthogonal_matrix_after_a_whitening_gives_another() {
    let rng = &mut Pcg64::seed_from_u64(5);
    let (mut rotations, mut reflections) = (0, 0);
    for n in 1..=6 {
        let c = random_covariance(n, rng);
        let f = nested(&best(eigenbasis(&square(&c)).unwrap(), &c, 1.0).whitening_matrix().unwrap());
        for q in orthogonal_matrices(&c, rng) {
            let g = matmul(&q, &f);
            let responses = matmul(&g, &matmul(&c, &transpose(&g)));
            assert!(farthest(&responses.concat(), &twin::identity(n).concat()) < 1e-12, "N {n}: {q:?}");
            if twin::determinant(&q) > 0.0 { rotations += 1 } else { reflections += 1 }
        }
        // What is not orthogonal does not.
        let stretched: twin::Matrix = f.iter().map(|row| row.iter().map(|x| 1.001 * x).collect()).collect();
        let responses = matmul(&stretched, &matmul(&c, &transpose(&stretched)));
        assert!(farthest(&responses.concat(), &twin::identity(n).concat()) > 1e-3, "N {n}");
    }
    assert!(rotations > 20 && reflections > 20, "{rotations} rotations, {reflections} reflections");
}

/// "The unique whitening transformation that minimizes the mean-squared difference between the inputs and the
/// outputs": E‖s − QFs‖² = Tr C + N − 2 Tr(QC^½), which exceeds its value at Q = I by Tr[(I − Q)(I − Q)ᵀC^½]
/// and so by λ_min(C^½) ‖I − Q‖² or more, in the Frobenius norm: strictly wherever Q ≠ I.
#[test]
fn no_other_whitening_is_as_near_to_its_input() {
    let rng = &mut Pcg64::seed_from_u64(6);
    for n in 1..=6 {
        let c = random_covariance(n, rng);
        let circuit = best(eigenbasis(&square(&c)).unwrap(), &c, 1.0);
        let stimuli = sigma_points(&c);
        let responses = circuit.respond(&flat::<f64>(&stimuli), &Solver::Direct).unwrap();
        let displaced = |q: &twin::Matrix| {
            let one = |(s, r): (&Vec<f64>, &[f64])| {
                let turned = matvec(q, r);
                s.iter().zip(&turned).map(|(s, r)| (s - r) * (s - r)).sum::<f64>()
            };
            stimuli.iter().zip(responses.chunks_exact(n)).map(one).sum::<f64>() / stimuli.len() as f64
        };
        let root = twin::square_root(&c);
        let least_eigenvalue = twin::symmetric_eigen(&root).0.into_iter().fold(f64::INFINITY, f64::min);
        // Sums of this size, whose terms come from sums of N.
        let rounding = 1e-14 * n as f64 * (trace(&c) + n as f64);
        let least = displaced(&twin::identity(n));
        assert!((least - (trace(&c) + n as f64 - 2.0 * trace(&root))).abs() <= rounding, "N {n}");
        for q in orthogonal_matrices(&c, rng) {
            let expected = trace(&c) + n as f64 - 2.0 * trace(&matmul(&q, &root));
            assert!((displaced(&q) - expected).abs() <= rounding, "N {n}: {q:?}");
            let other = subtract(&twin::identity(n), &q).concat();
            let margin = least_eigenvalue * dot(&other, &other);
            assert!(displaced(&q) - least >= margin - rounding, "N {n}: {q:?}");
            // Nearer than this no Q but I comes.
            let is_identity = dot(&other, &other) < 1e-20;
            assert!(is_identity || displaced(&q) > least, "N {n}: {q:?}");
            assert!(is_identity || margin > 10.0 * rounding, "N {n}: {margin:e} is lost in rounding");
        }
    }
}
