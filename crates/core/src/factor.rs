//! Assembles M and factorises it: the test that it is valid, and the way to solve M r = s.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par, Spec};

use crate::circuit::{Parts, Synapses};
use crate::error::Test;
use crate::kernels::{self, all_finite};
use crate::linalg::{cholesky, mirror_lower, square};
use crate::lu::Lu;
use crate::matrix::Matrix;
use crate::pair::{PairFactor, factorise_pair, solve_pair};
use crate::real::Real;
use crate::small::{LARGEST_SMALL, SmallFactor, factorise_small, solve_small};
use crate::tiles::{self, Assembly, LARGE, SMALLEST_TILED};

/// A factorisation of M that has passed the test of validity, ready to solve M r = s.
///
/// Tied circuits are valid when M is positive definite: the Cholesky factorisation is the test.
/// Untied ones are valid when every eigenvalue of M has a positive real part. A positive definite
/// symmetric part is sufficient and cheap, so eigenvalues are computed only where that fails.
pub(crate) struct Factor<T: Real> {
    neurons: usize,
    /// The factor of M.
    entries: Vec<T>,
    form: FactorForm<T>,
}

enum FactorForm<T: Real> {
    /// N = 2 with K = 2 or untied, in closed form.
    Pair(Option<PairFactor<T>>),
    /// Tied, with few neurons: U below the diagonal and one over the pivots.
    Small {
        reciprocals: Vec<T>,
    },
    /// Up to [`LARGE`]: our own tiles, with the gᵢ wᵢ and L⁻¹ by rows.
    Tiled {
        reciprocals: Vec<T>,
        scaled: Vec<T>,
        rows: Vec<T>,
    },
    /// Large.
    Cholesky {
        reciprocals: Vec<T>,
        scaled: Vec<T>,
        stack: MemBuffer,
    },
    Lu(Lu<T>),
}

impl<T: Real> Factor<T> {
    /// Room for the factor of a circuit with such synapses. It solves nothing before [`Self::update`].
    pub fn new(synapses: &Synapses<T>) -> Self {
        T::room_for_factor(synapses)
    }

    /// Factorises the M of these parts; fails when it is not valid, and then solves nothing.
    pub fn update(&mut self, parts: Parts<'_, T>) -> Result<(), Test> {
        T::factorise(self, parts)
    }

    /// Solves M x = b in place.
    pub fn solve(&mut self, x: &mut [T]) {
        T::solve(self, x);
    }

    /// Writes M⁻¹, column after column.
    pub fn invert_into(&mut self, inverse: &mut [T]) {
        T::invert(self, inverse);
    }

    /// The factor itself, where it is of a small circuit.
    pub fn small(&mut self) -> Option<SmallFactor<'_, T>> {
        match &mut self.form {
            FactorForm::Small { reciprocals } => Some(SmallFactor { lower: &mut self.entries, reciprocals }),
            _ => None,
        }
    }
}

/// [`Factor::new`].
pub(crate) fn room_for_factor<T: Real>(synapses: &Synapses<T>) -> Factor<T> {
    let (n, k) = (synapses.neurons(), synapses.interneurons());
    let form = match (n, synapses.is_tied()) {
        (2, tied) if k == 2 || !tied => FactorForm::Pair(None),
        (1..=LARGEST_SMALL, true) => FactorForm::Small { reciprocals: vec![T::ZERO; n] },
        (SMALLEST_TILED..LARGE, true) => FactorForm::Tiled {
            reciprocals: vec![T::ZERO; n],
            scaled: vec![T::ZERO; n * k],
            rows: vec![T::ZERO; n * n],
        },
        (_, true) => FactorForm::Cholesky {
            reciprocals: vec![T::ZERO; n],
            scaled: vec![T::ZERO; n * k],
            stack: MemBuffer::new(
                llt::factor::cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default())
                    .or(llt::inverse::inverse_scratch::<T>(n, Par::Seq)),
            ),
        },
        (_, false) => FactorForm::Lu(Lu::new(n, k)),
    };
    Factor { neurons: n, entries: vec![T::ZERO; n * n], form }
}

/// [`Factor::update`].
pub(crate) fn factorise<T: Real>(factor: &mut Factor<T>, parts: Parts<'_, T>) -> Result<(), Test> {
    let Factor { entries, form, .. } = factor;
    match form {
        FactorForm::Pair(pair) => factorise_pair(parts).map(|closed| *pair = Some(closed)),
        FactorForm::Small { reciprocals } => {
            let small = SmallFactor { lower: entries, reciprocals };
            factorise_small(small, parts).map_err(|pivot| why_invalid(parts, Test::Cholesky { pivot }))
        }
        FactorForm::Tiled { reciprocals, scaled, .. } => {
            let Parts { feedback: weights, gains, leak, .. } = parts;
            let assembly = Assembly { weights, gains, leak, scaled };
            tiles::assemble_cholesky(assembly, entries, reciprocals)
                .map_err(|pivot| why_invalid(parts, Test::Cholesky { pivot }))
        }
        FactorForm::Cholesky { reciprocals, scaled, stack } => {
            assemble(parts, scaled, entries);
            cholesky(entries, reciprocals, stack).map_err(|test| why_invalid(parts, test))
        }
        FactorForm::Lu(lu) => {
            assemble(parts, &mut lu.scaled, entries);
            lu.factorise(entries).map_err(|test| why_invalid(parts, test))
        }
    }
}

/// [`Factor::solve`].
pub(crate) fn solve<T: Real>(factor: &mut Factor<T>, x: &mut [T]) {
    let Factor { entries, form, .. } = factor;
    match form {
        FactorForm::Pair(pair) => {
            if let Some(closed) = pair {
                solve_pair(closed, x);
            }
        }
        FactorForm::Small { reciprocals } => solve_small(entries, reciprocals, x),
        FactorForm::Tiled { reciprocals, .. } | FactorForm::Cholesky { reciprocals, .. } => {
            kernels::solve_cholesky(entries, reciprocals, x);
        }
        FactorForm::Lu(lu) => lu.solve(entries, x),
    }
}

/// [`Factor::invert_into`].
pub(crate) fn invert<T: Real>(factor: &mut Factor<T>, inverse: &mut [T]) {
    let n = factor.neurons;
    match &mut factor.form {
        FactorForm::Tiled { reciprocals, rows, .. } => {
            tiles::invert_cholesky(&factor.entries, reciprocals, rows, inverse);
            mirror_lower(inverse, n);
        }
        FactorForm::Cholesky { stack, .. } => {
            let lower = MatRef::from_column_major_slice(&factor.entries, n, n);
            llt::inverse::inverse(square(inverse, n), lower, Par::Seq, MemStack::new(stack));
            mirror_lower(inverse, n);
        }
        FactorForm::Pair(_) | FactorForm::Small { .. } | FactorForm::Lu(_) => {
            inverse.fill(T::ZERO);
            for (i, column) in inverse.chunks_exact_mut(n).enumerate() {
                column[i] = T::ONE;
                solve(factor, column);
            }
        }
    }
}

/// Writes M = αI + W_nr diag(g) W_rn; only its lower triangle when tied and large.
fn assemble<T: Real>(parts: Parts<'_, T>, scaled: &mut [T], matrix: &mut [T]) {
    let (n, k) = (parts.neurons, parts.gains.len());
    for ((scaled, weights), &gain) in
        scaled.chunks_exact_mut(n).zip(parts.feedback.chunks_exact(n)).zip(parts.gains)
    {
        for (scaled, &weight) in scaled.iter_mut().zip(weights) {
            *scaled = gain * weight;
        }
    }
    if n < SMALLEST_TILED {
        kernels::sum_outer_products(scaled, parts.listening(), n, matrix);
    } else {
        let scaled = MatRef::from_column_major_slice(scaled, n, k);
        let listening = MatRef::from_column_major_slice(parts.listening(), n, k).transpose();
        if parts.feedforward.is_none() && n >= LARGE {
            lower_product(square(matrix, n), scaled, listening);
        } else {
            let out = square(matrix, n);
            faer::linalg::matmul::matmul(out, Accum::Replace, scaled, listening, T::ONE, Par::Seq);
        }
    }
    for entry in matrix.iter_mut().step_by(n + 1) {
        *entry += parts.leak;
    }
}

fn lower_product<T: Real>(out: MatMut<'_, T>, left: MatRef<'_, T>, right: MatRef<'_, T>) {
    let whole = BlockStructure::Rectangular;
    let lower = BlockStructure::TriangularLower;
    triangular::matmul(out, lower, Accum::Replace, left, whole, right, whole, T::ONE, Par::Seq);
}

/// M in full, for display.
pub(crate) fn inverse_whitening_matrix<T: Real>(parts: Parts<'_, T>) -> Matrix<T> {
    let n = parts.neurons;
    let mut matrix = Matrix::zeros(n, n);
    assemble(parts, &mut vec![T::ZERO; parts.feedback.len()], matrix.as_mut_slice());
    if parts.feedforward.is_none() {
        mirror_lower(matrix.as_mut_slice(), n);
    }
    matrix
}

/// The test that failed, or the overflow behind it.
#[cold]
pub(crate) fn why_invalid<T: Real>(parts: Parts<'_, T>, test: Test) -> Test {
    let matrix = inverse_whitening_matrix(parts);
    let numbers = [parts.feedback, parts.listening(), parts.gains, matrix.as_slice()];
    if numbers.iter().all(|numbers| all_finite(numbers)) { test } else { Test::Overflow }
}
