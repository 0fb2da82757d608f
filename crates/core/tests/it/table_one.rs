//! Shows that each factorisation of Table 1 attains the minimum 2 Tr C^½ under its conditions and not without them.

use leukos::{Circuit, Matrix, Synapses, gap, optimal_gains, starts};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::bridge::{matrix, nested, random_covariance, square};
use crate::twin::{self, matmul};

fn orthogonal(n: usize, rng: &mut Pcg64) -> twin::Matrix {
    nested(&starts::orthogonal(n, n, rng))
}

/// The gap above 2 Tr C^½ of M = αI + W diag(g) Wᵀ.
fn gap_of(w: &Matrix, gains: Vec<f64>, leak: f64, covariance: &twin::Matrix) -> f64 {
    let circuit = Circuit::new(Synapses::tied(w.clone()).unwrap(), gains, leak).unwrap();
    gap(&circuit.inverse_whitening_matrix(), &square(covariance)).unwrap()
}

/// Synaptic plasticity, α = 0 and g = 1: any W with WWᵀ = C^½ does, and there is one where K ≥ N.
#[test]
fn synaptic_plasticity_attains_the_minimum_with_as_many_interneurons_as_neurons() {
    let rng = &mut Pcg64::seed_from_u64(1);
    for (n, k) in [(1, 1), (2, 2), (3, 5), (4, 4)] {
        let c = random_covariance(n, rng);
        // C^¼ followed by the first N rows of any orthogonal matrix.
        let (quarter, turn) = (twin::square_root(&twin::square_root(&c)), orthogonal(k, rng));
        let w = matmul(&quarter, &turn[..n].to_vec());
        assert!(gap_of(&matrix(&w, k), vec![1.0; k], 0.0, &c) < 1e-20, "N {n}, K {k}");
    }
    let few = Circuit::new(Synapses::tied(Matrix::from_rows(&[[1.0], [2.0]])).unwrap(), vec![1.0], 0.0);
    assert!(few.is_err(), "fewer leave M singular");
}

/// Gain modulation, W fixed: any C is whitened where the wᵢwᵢᵀ span the symmetric matrices, which takes
/// K ≥ N(N+1)/2.
#[test]
fn gain_modulation_attains_the_minimum_where_outer_products_span() {
    let rng = &mut Pcg64::seed_from_u64(2);
    for n in 1..5 {
        let (c, enough) = (random_covariance(n, rng), n * (n + 1) / 2);
        let least = |k: usize, rng: &mut Pcg64| {
            let w = starts::on_sphere(n, k, rng);
            gap_of(&w, optimal_gains(&w, &square(&c), 1.0).unwrap(), 1.0, &c)
        };
        assert!(least(enough, rng) < 1e-20, "N {n}");
        assert!(least(enough - 1, rng) > 1e-6, "N {n}, one too few");
    }
}

/// Both: one W for all contexts, where each covariance is in 𝔽(W), whatever K is.
#[test]
fn both_attain_the_minimum_in_every_context_that_shares_the_synapses() {
    let rng = &mut Pcg64::seed_from_u64(3);
    for (n, k, leak) in [(2, 2, 1.0), (5, 3, 0.5), (4, 4, 0.0), (4, 6, 1.0)] {
        let (v, other) = (starts::on_sphere(n, k, rng), starts::on_sphere(n, k, rng));
        let (mut shared, mut unshared) = (0.0_f64, f64::INFINITY);
        for _ in 0..5 {
            let lambda: Vec<f64> = (0..k).map(|_| rng.random_range(0.2..3.0)).collect();
            let circuit = Circuit::new(Synapses::tied(v.clone()).unwrap(), lambda, leak).unwrap();
            let m = nested(&circuit.inverse_whitening_matrix());
            let c = matmul(&m, &m);
            let least = |w: &Matrix| gap_of(w, optimal_gains(w, &square(&c), leak).unwrap(), leak, &c);
            (shared, unshared) = (shared.max(least(&v)), unshared.min(least(&other)));
        }
        assert!(shared < 1e-18, "N {n}, K {k}: {shared:e}");
        assert!(unshared > 1e-6, "N {n}, K {k}, other synapses: {unshared:e}");
    }
}
