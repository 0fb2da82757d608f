//! Assembles and factorises M, and wraps the few dense routines the theory needs.
//!
//! This is the only file that calls the linear-algebra crate. It is always told to stay on the calling
//! thread, so that results do not depend on the number of threads.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::{self, factor::LltRegularization};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::lu::partial_pivoting as lu;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::perm::PermRef;
use faer::{Accum, MatMut, MatRef, Par, Spec};

use crate::circuit::{Parts, Synapses};
use crate::error::Test;
use crate::kernels::{self, all_finite};
use crate::matrix::Matrix;
use crate::pair::{PairFactor, factorise_pair, solve_pair};
use crate::real::Real;
use crate::small::{LARGEST_SMALL, SmallFactor, factorise_small, solve_small};
use crate::tiles::{self, Assembly, SMALLEST_TILED};

/// From this size on the linear-algebra crate, which blocks for caches, beats the register tiles of `tiles`.
const LARGE: usize = 96;

/// The sizes of matrices that tiles are for.
const TILED: std::ops::Range<usize> = SMALLEST_TILED..LARGE;

/// A factorisation of M that has passed the test of validity, ready to solve M r = s.
///
/// Tied circuits are valid when M is positive definite: the Cholesky factorisation is the test.
/// Untied ones are valid when every eigenvalue of M has a positive real part. A positive definite
/// symmetric part is sufficient and cheap, so eigenvalues are computed only where that fails.
pub(crate) struct Factor<T: Real> {
    neurons: usize,
    /// The factor of M.
    entries: Vec<T>,
    form: Form<T>,
}

enum Form<T: Real> {
    /// N = 2, in closed form.
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

struct Lu<T: Real> {
    forward: Vec<usize>,
    backward: Vec<usize>,
    scaled: Vec<T>,
    /// The symmetric part of M, then the real and imaginary parts of its eigenvalues.
    symmetric: Vec<T>,
    reciprocals: Vec<T>,
    stack: MemBuffer,
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
            Form::Small { reciprocals } => Some(SmallFactor { lower: &mut self.entries, reciprocals }),
            _ => None,
        }
    }
}

/// [`Factor::new`].
pub(crate) fn room_for_factor<T: Real>(synapses: &Synapses<T>) -> Factor<T> {
    let (n, k) = (synapses.neurons(), synapses.interneurons());
    let form = match (n, synapses.is_tied()) {
        (2, tied) if k == 2 || !tied => Form::Pair(None),
        (1..=LARGEST_SMALL, true) => Form::Small { reciprocals: vec![T::ZERO; n] },
        (SMALLEST_TILED..LARGE, true) => Form::Tiled {
            reciprocals: vec![T::ZERO; n],
            scaled: vec![T::ZERO; n * k],
            rows: vec![T::ZERO; n * n],
        },
        (_, true) => Form::Cholesky {
            reciprocals: vec![T::ZERO; n],
            scaled: vec![T::ZERO; n * k],
            stack: MemBuffer::new(
                llt::factor::cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default())
                    .or(llt::inverse::inverse_scratch::<T>(n, Par::Seq)),
            ),
        },
        (_, false) => Form::Lu(Lu::new(n, k)),
    };
    Factor { neurons: n, entries: vec![T::ZERO; n * n], form }
}

/// [`Factor::update`].
pub(crate) fn factorise<T: Real>(factor: &mut Factor<T>, parts: Parts<'_, T>) -> Result<(), Test> {
    let Factor { entries, form, .. } = factor;
    match form {
        Form::Pair(pair) => factorise_pair(parts).map(|closed| *pair = Some(closed)),
        Form::Small { reciprocals } => {
            let small = SmallFactor { lower: entries, reciprocals };
            factorise_small(small, parts).map_err(|pivot| why_invalid(parts, Test::Cholesky { pivot }))
        }
        Form::Tiled { reciprocals, scaled, .. } => {
            let Parts { feedback: weights, gains, leak, .. } = parts;
            let assembly = Assembly { weights, gains, leak, scaled };
            tiles::assemble_cholesky(assembly, entries, reciprocals)
                .map_err(|pivot| why_invalid(parts, Test::Cholesky { pivot }))
        }
        Form::Cholesky { reciprocals, scaled, stack } => {
            assemble(parts, scaled, entries);
            cholesky(entries, reciprocals, stack).map_err(|test| why_invalid(parts, test))
        }
        Form::Lu(lu) => {
            assemble(parts, &mut lu.scaled, entries);
            lu.factorise(entries).map_err(|test| why_invalid(parts, test))
        }
    }
}

/// [`Factor::solve`].
pub(crate) fn solve<T: Real>(factor: &mut Factor<T>, x: &mut [T]) {
    let Factor { entries, form, .. } = factor;
    match form {
        Form::Pair(pair) => {
            if let Some(closed) = pair {
                solve_pair(closed, x);
            }
        }
        Form::Small { reciprocals } => solve_small(entries, reciprocals, x),
        Form::Tiled { reciprocals, .. } | Form::Cholesky { reciprocals, .. } => {
            kernels::solve_cholesky(entries, reciprocals, x);
        }
        Form::Lu(lu) => lu.solve(entries, x),
    }
}

/// [`Factor::invert_into`].
pub(crate) fn invert<T: Real>(factor: &mut Factor<T>, inverse: &mut [T]) {
    let n = factor.neurons;
    match &mut factor.form {
        Form::Tiled { reciprocals, rows, .. } => {
            tiles::invert_cholesky(&factor.entries, reciprocals, rows, inverse);
            mirror_lower(inverse, n);
        }
        Form::Cholesky { stack, .. } => {
            let lower = MatRef::from_column_major_slice(&factor.entries, n, n);
            llt::inverse::inverse(square(inverse, n), lower, Par::Seq, MemStack::new(stack));
            mirror_lower(inverse, n);
        }
        Form::Pair(_) | Form::Small { .. } | Form::Lu(_) => {
            inverse.fill(T::ZERO);
            for (i, column) in inverse.chunks_exact_mut(n).enumerate() {
                column[i] = T::ONE;
                solve(factor, column);
            }
        }
    }
}

impl<T: Real> Lu<T> {
    fn new(n: usize, k: usize) -> Self {
        let no = ComputeEigenvectors::No;
        let stack = StackReq::any_of(&[
            lu::factor::lu_in_place_scratch::<usize, T>(n, n, Par::Seq, Spec::default()),
            lu::solve::solve_in_place_scratch::<usize, T>(n, n, Par::Seq),
            evd::evd_scratch::<T>(n, no, no, Par::Seq, Spec::default()),
            llt::factor::cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default()),
        ]);
        Self {
            forward: vec![0; n],
            backward: vec![0; n],
            scaled: vec![T::ZERO; n * k],
            symmetric: vec![T::ZERO; n * n.max(2)],
            reciprocals: vec![T::ZERO; n],
            stack: MemBuffer::new(stack),
        }
    }

    fn factorise(&mut self, matrix: &mut [T]) -> Result<(), Test> {
        self.require_stable(matrix)?;
        let n = self.forward.len();
        let stack = MemStack::new(&mut self.stack);
        let (forward, backward) = (&mut self.forward, &mut self.backward);
        lu::factor::lu_in_place(square(matrix, n), forward, backward, Par::Seq, stack, Spec::default());
        Ok(())
    }

    /// Every eigenvalue has a positive real part.
    fn require_stable(&mut self, matrix: &[T]) -> Result<(), Test> {
        let n = self.forward.len();
        let half = T::from_f64(0.5);
        for j in 0..n {
            for i in 0..n {
                self.symmetric[j * n + i] = half * (matrix[j * n + i] + matrix[i * n + j]);
            }
        }
        if cholesky(&mut self.symmetric[..n * n], &mut self.reciprocals, &mut self.stack).is_ok() {
            return Ok(());
        }
        if !all_finite(matrix) {
            return Err(Test::Overflow);
        }
        let (real, imaginary) = self.symmetric.split_at_mut(n);
        let done = eigenvalues_of(matrix, real, &mut imaginary[..n], &mut self.stack);
        if done.is_some() && real.iter().all(|&x| x > T::ZERO) { Ok(()) } else { Err(Test::Eigenvalue) }
    }

    fn solve(&mut self, factors: &[T], x: &mut [T]) {
        let n = self.forward.len();
        let factors = MatRef::from_column_major_slice(factors, n, n);
        let columns = x.len() / n;
        lu::solve::solve_in_place(
            factors,
            factors,
            PermRef::new_checked(&self.forward, &self.backward, n),
            MatMut::from_column_major_slice_mut(x, n, columns),
            Par::Seq,
            MemStack::new(&mut self.stack),
        );
    }
}

fn square<T: Real>(matrix: &mut [T], n: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(matrix, n, n)
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

/// M in full, for people to look at.
pub(crate) fn inverse_whitening_matrix<T: Real>(parts: Parts<'_, T>) -> Matrix<T> {
    let n = parts.neurons;
    let mut matrix = Matrix::zeros(n, n);
    assemble(parts, &mut vec![T::ZERO; parts.feedback.len()], matrix.as_mut_slice());
    if parts.feedforward.is_none() {
        mirror_lower(matrix.as_mut_slice(), n);
    }
    matrix
}

/// Factorises the lower triangle in place; the reciprocals of the factor's diagonal make solving quick.
fn cholesky<T: Real>(matrix: &mut [T], reciprocals: &mut [T], stack: &mut MemBuffer) -> Result<(), Test> {
    let n = reciprocals.len();
    if n < LARGE {
        let factorise = if n < SMALLEST_TILED { kernels::cholesky } else { tiles::cholesky_tiled };
        return factorise(matrix, reciprocals).map_err(|pivot| Test::Cholesky { pivot });
    }
    let stack = MemStack::new(stack);
    llt::factor::cholesky_in_place(
        square(matrix, n),
        LltRegularization::default(),
        Par::Seq,
        stack,
        Spec::default(),
    )
    .map_err(|llt::factor::LltError::NonPositivePivot { index }| Test::Cholesky { pivot: index })?;
    for (pivot, reciprocal) in reciprocals.iter_mut().enumerate() {
        *reciprocal = T::ONE / matrix[pivot * (n + 1)];
        if !(reciprocal.is_finite() && *reciprocal > T::ZERO) {
            return Err(Test::Cholesky { pivot });
        }
    }
    Ok(())
}

/// Copies the lower triangle to the upper one.
pub(crate) fn mirror_lower<T: Real>(matrix: &mut [T], n: usize) {
    for j in 0..n {
        for i in j + 1..n {
            matrix[i * n + j] = matrix[j * n + i];
        }
    }
}

/// The test that failed, or the overflow behind it.
#[cold]
pub(crate) fn why_invalid<T: Real>(parts: Parts<'_, T>, test: Test) -> Test {
    let matrix = inverse_whitening_matrix(parts);
    let numbers = [parts.feedback, parts.listening(), parts.gains, matrix.as_slice()];
    if numbers.iter().all(|numbers| all_finite(numbers)) { test } else { Test::Overflow }
}

/// The product of two matrices, or of their transposes, into `out`.
pub(crate) fn multiply<T: Real>(out: &mut [T], left: View<'_, T>, right: View<'_, T>) {
    T::multiply(out, left, right);
}

/// [`multiply`].
pub(crate) fn write_product<T: Real>(out: &mut [T], left: View<'_, T>, right: View<'_, T>) {
    let plain = !left.transposed && !right.transposed && !left.data.is_empty();
    if plain && TILED.contains(&left.rows) {
        return tiles::multiply_tiled(out, left.data, right.data, left.rows);
    }
    let (left, right) = (left.as_faer(), right.as_faer());
    let out = MatMut::from_column_major_slice_mut(out, left.nrows(), right.ncols());
    faer::linalg::matmul::matmul(out, Accum::Replace, left, right, T::ONE, Par::Seq);
}

/// A matrix stored by columns, as it is or transposed.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    data: &'a [T],
    rows: usize,
    transposed: bool,
}

impl<'a, T: Real> View<'a, T> {
    pub fn of(data: &'a [T], rows: usize) -> Self {
        Self { data, rows, transposed: false }
    }

    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    fn as_faer(self) -> MatRef<'a, T> {
        let columns = self.data.len().checked_div(self.rows).unwrap_or(0);
        let plain = MatRef::from_column_major_slice(self.data, self.rows, columns);
        if self.transposed { plain.transpose() } else { plain }
    }
}

impl<T: Real> Matrix<T> {
    pub(crate) fn view(&self) -> View<'_, T> {
        View::of(self.as_slice(), self.rows())
    }
}

/// The product of two matrices, or of their transposes.
pub(crate) fn product<T: Real>(left: View<'_, T>, right: View<'_, T>) -> Matrix<T> {
    let mut out = Matrix::zeros(left.as_faer().nrows(), right.as_faer().ncols());
    if left.transposed && TILED.contains(&out.rows()) {
        // The copy costs less than a product that walks along rows.
        let copy = Matrix::from_fn(out.rows(), left.rows, |i, j| left.data[i * left.rows + j]);
        multiply(out.as_mut_slice(), copy.view(), right);
    } else {
        multiply(out.as_mut_slice(), left, right);
    }
    out
}

/// αI + W diag(g) Wᵀ.
pub(crate) fn weighted_gram(weights: &Matrix<f64>, gains: &[f64], leak: f64) -> Matrix<f64> {
    let mut scaled = weights.clone();
    for (j, gain) in gains.iter().enumerate() {
        scaled.column_mut(j).iter_mut().for_each(|w| *w *= gain);
    }
    let mut gram = product(scaled.view(), weights.view().transposed());
    (0..gram.rows()).for_each(|i| gram[(i, i)] += leak);
    gram
}

/// Eigenvalues in ascending order and eigenvectors as columns, of a symmetric matrix (its lower triangle is read).
/// `None` when the iteration fails, which it does only on numbers that are not finite.
pub(crate) fn symmetric_eigen(matrix: &Matrix<f64>) -> Option<(Vec<f64>, Matrix<f64>)> {
    let n = matrix.rows();
    let mut vectors = Matrix::zeros(n, n);
    let values = symmetric_evd(matrix, Some(vectors.as_mut_slice()))?;
    Some((values, vectors))
}

/// Eigenvalues in ascending order of a symmetric matrix (its lower triangle is read).
pub(crate) fn symmetric_eigenvalues(matrix: &Matrix<f64>) -> Option<Vec<f64>> {
    symmetric_evd(matrix, None)
}

fn symmetric_evd(matrix: &Matrix<f64>, vectors: Option<&mut [f64]>) -> Option<Vec<f64>> {
    if !all_finite(matrix.as_slice()) {
        return None;
    }
    let n = matrix.rows();
    let wanted = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut stack =
        MemBuffer::new(evd::self_adjoint_evd_scratch::<f64>(n, wanted, Par::Seq, Spec::default()));
    let mut values = vec![0.0; n];
    evd::self_adjoint_evd(
        matrix.view().as_faer(),
        DiagMut::from_slice_mut(&mut values),
        vectors.map(|vectors| square(vectors, n)),
        Par::Seq,
        MemStack::new(&mut stack),
        Spec::default(),
    )
    .ok()?;
    Some(values)
}

/// The real parts of the eigenvalues of a general square matrix, in no order; `None` when a number is not finite.
pub(crate) fn real_parts(matrix: &Matrix<f64>) -> Option<Vec<f64>> {
    if !all_finite(matrix.as_slice()) {
        return None;
    }
    let (n, no) = (matrix.rows(), ComputeEigenvectors::No);
    let mut stack = MemBuffer::new(evd::evd_scratch::<f64>(n, no, no, Par::Seq, Spec::default()));
    let (mut real, mut imaginary) = (vec![0.0; n], vec![0.0; n]);
    eigenvalues_of(matrix.as_slice(), &mut real, &mut imaginary, &mut stack)?;
    Some(real)
}

fn eigenvalues_of<T: Real>(
    matrix: &[T],
    real: &mut [T],
    imaginary: &mut [T],
    stack: &mut MemBuffer,
) -> Option<()> {
    let n = real.len();
    evd::evd_real(
        MatRef::from_column_major_slice(matrix, n, n),
        DiagMut::from_slice_mut(real),
        DiagMut::from_slice_mut(imaginary),
        None,
        None,
        Par::Seq,
        MemStack::new(stack),
        Spec::default(),
    )
    .ok()
}

/// The Cholesky factorisation of a symmetric matrix, for the theory's solves.
pub(crate) struct Cholesky {
    lower: Matrix<f64>,
    reciprocals: Vec<f64>,
}

impl Cholesky {
    /// Fails when the matrix (its lower triangle is read) is not positive definite.
    pub fn new(matrix: Matrix<f64>) -> Result<Self, Test> {
        let n = matrix.rows();
        let mut lower = matrix;
        let mut reciprocals = vec![0.0; n];
        let mut stack =
            MemBuffer::new(llt::factor::cholesky_in_place_scratch::<f64>(n, Par::Seq, Spec::default()));
        cholesky(lower.as_mut_slice(), &mut reciprocals, &mut stack)?;
        Ok(Self { lower, reciprocals })
    }

    /// The logarithm of the determinant.
    pub fn log_determinant(&self) -> f64 {
        -2.0 * self.reciprocals.iter().map(|reciprocal| reciprocal.ln()).sum::<f64>()
    }

    /// The smallest pivot over the largest: near zero when the matrix is all but singular.
    pub fn pivot_ratio(&self) -> f64 {
        let (least, most) =
            self.reciprocals.iter().fold((f64::INFINITY, 0.0), |(least, most), &reciprocal| {
                (f64::min(least, reciprocal), f64::max(most, reciprocal))
            });
        (least / most).powi(2)
    }

    /// The inverse of the matrix.
    pub fn inverse(&self) -> Matrix<f64> {
        let n = self.lower.rows();
        let mut inverse = Matrix::identity(n);
        if n < LARGE {
            self.solve_columns(&mut inverse);
            return inverse;
        }
        let mut stack = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(n, Par::Seq));
        let lower = self.lower.view().as_faer();
        llt::inverse::inverse(square(inverse.as_mut_slice(), n), lower, Par::Seq, MemStack::new(&mut stack));
        mirror_lower(inverse.as_mut_slice(), n);
        inverse
    }

    /// Solves with each column of `x` in place.
    pub fn solve_columns(&self, x: &mut Matrix<f64>) {
        for j in 0..x.columns() {
            self.solve(x.column_mut(j));
        }
    }

    /// L⁻¹ X L⁻ᵀ for a symmetric X: X in coordinates in which the factorised matrix is the identity.
    pub fn relative(&self, x: &Matrix<f64>) -> Matrix<f64> {
        let mut half = x.clone();
        self.solve_triangle(&mut half);
        let mut whole = half.transpose();
        self.solve_triangle(&mut whole);
        whole
    }

    /// L⁻¹ X in place.
    pub fn solve_triangle(&self, x: &mut Matrix<f64>) {
        for j in 0..x.columns() {
            kernels::solve_triangle(self.lower.as_slice(), &self.reciprocals, x.column_mut(j));
        }
    }

    /// Solves in place.
    pub fn solve(&self, x: &mut [f64]) {
        kernels::solve_cholesky(self.lower.as_slice(), &self.reciprocals, x);
    }
}

/// The inverse of a general square matrix; `None` when it is singular to working precision.
pub(crate) fn inverse(matrix: &Matrix<f64>) -> Option<Matrix<f64>> {
    if !all_finite(matrix.as_slice()) {
        return None;
    }
    let n = matrix.rows();
    let mut factors = matrix.clone();
    let mut lu = Lu::<f64>::new(n, 0);
    let stack = MemStack::new(&mut lu.stack);
    let (forward, backward) = (&mut lu.forward, &mut lu.backward);
    lu::factor::lu_in_place(
        square(factors.as_mut_slice(), n),
        forward,
        backward,
        Par::Seq,
        stack,
        Spec::default(),
    );
    let mut inverse = Matrix::identity(n);
    lu.solve(factors.as_slice(), inverse.as_mut_slice());
    all_finite(inverse.as_slice()).then_some(inverse)
}
