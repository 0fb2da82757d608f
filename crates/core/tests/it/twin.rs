//! Restates the paper's algorithms slowly and plainly, so that the fast library has something to
//! agree with.
//!
//! Everything is written from the paper (Duong, Simoncelli, Chklovskii and Lipshutz, "Adaptive
//! whitening with fast gain modulation and slow synaptic plasticity", 2023) with nested vectors and
//! textbook linear algebra. Nothing is cached: each response rebuilds M and solves with it again.
//!
//! N primary neurons, K interneurons:
//! stimulus s, response r (N); interneuron input z, output n, gains g, multipliers m (K);
//! feedback synapses `W_nr` (N×K); feedforward synapses `W_rn` (K×N), equal to `W_nr`ᵀ when tied;
//! leak α; M = αI + `W_nr` diag(g) `W_rn`.

/// A matrix as a list of its rows.
pub type Matrix = Vec<Vec<f64>>;

// -------------------------------------------------------------------------------------------------
// The circuit
// -------------------------------------------------------------------------------------------------

/// The state that the algorithms change.
#[derive(Clone, Debug, PartialEq)]
pub struct Circuit {
    /// `W_nr`, N×K: from interneurons to primary neurons; column i belongs to interneuron i.
    pub feedback: Matrix,
    /// `W_rn`, K×N: from primary neurons to interneurons; `None` ties it to `W_nr`ᵀ.
    pub feedforward: Option<Matrix>,
    /// g, one per interneuron.
    pub gains: Vec<f64>,
    /// m, one per interneuron; read only under [`UnitNorm::Multiplier`], and may be empty
    /// otherwise.
    pub multipliers: Vec<f64>,
    /// α.
    pub leak: f64,
}

impl Circuit {
    /// N, the number of primary neurons.
    fn primary_neurons(&self) -> usize {
        self.feedback.len()
    }

    /// K, the number of interneurons.
    fn interneurons(&self) -> usize {
        self.gains.len()
    }

    /// `W_rn`, whether it is stored or tied.
    fn feedforward_weights(&self) -> Matrix {
        match &self.feedforward {
            Some(weights) => weights.clone(),
            // By columns rather than `transpose`, which cannot see the width of a matrix without
            // rows (K = 0).
            None => (0..self.interneurons()).map(|i| column(&self.feedback, i)).collect(),
        }
    }

    /// M = αI + `W_nr` diag(g) `W_rn`, the factorisation of Table 1 (Eq. 3), untied as in Appendix
    /// E.2.
    pub fn inverse_whitening_matrix(&self) -> Matrix {
        let (w_nr, w_rn) = (&self.feedback, self.feedforward_weights());
        let entry = |a: usize, b: usize| {
            let leak = if a == b { self.leak } else { 0.0 };
            let through = |i: usize| w_nr[a][i] * self.gains[i] * w_rn[i][b];
            leak + (0..self.interneurons()).map(through).sum::<f64>()
        };
        square(self.primary_neurons(), entry)
    }

    /// r = M⁻¹ s, where the recurrent dynamics of Eq. (6) come to rest.
    fn respond(&self, stimulus: &[f64]) -> Vec<f64> {
        solve(&self.inverse_whitening_matrix(), stimulus)
    }

    /// z = `W_rn` r (Algorithm 3; Algorithm 1 when tied).
    fn interneuron_inputs(&self, response: &[f64]) -> Vec<f64> {
        matvec(&self.feedforward_weights(), response)
    }

    /// n = g∘z (Algorithms 1 and 3).
    fn interneuron_outputs(&self, inputs: &[f64]) -> Vec<f64> {
        hadamard(&self.gains, inputs)
    }

    /// ⟨`w_rn,i`, `w_nr,i`⟩ for each interneuron: diag(`W_rn` `W_nr`) of Algorithm 3, or ‖`w_i`‖²
    /// when tied.
    fn overlaps(&self) -> Vec<f64> {
        let w_rn = self.feedforward_weights();
        (0..self.interneurons()).map(|i| dot(&w_rn[i], &column(&self.feedback, i))).collect()
    }

    /// What the variance of each interneuron's input should be: ‖`w_i`‖² (Eq. 7), or 1 once the
    /// multipliers hold the norms at one (Appendix E.1).
    fn gain_targets(&self, options: &Options) -> Vec<f64> {
        match options.unit_norm {
            UnitNorm::Multiplier => vec![1.0; self.interneurons()],
            UnitNorm::Free | UnitNorm::Projected => self.overlaps(),
        }
    }

    /// The rate at which each interneuron's synapses decay: g (Eq. 8), or g + m (Appendix E.1).
    fn decay(&self, options: &Options) -> Vec<f64> {
        match options.unit_norm {
            UnitNorm::Multiplier => add(&self.gains, &self.multipliers),
            UnitNorm::Free | UnitNorm::Projected => self.gains.clone(),
        }
    }
}

/// How the synapses of one interneuron keep unit length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitNorm {
    /// They do not: Algorithms 1 and 2.
    Free,
    /// They are rescaled after each step.
    Projected,
    /// A Lagrange multiplier pulls them there: Appendix E.1 and Algorithm 3.
    Multiplier,
}

/// Which parts learn, how fast and under which constraints; a rate of `None` freezes its part.
#[derive(Clone, Debug)]
pub struct Options {
    /// `η_g`.
    pub gain_rate: Option<f64>,
    /// `η_w`; when `None` the synapses keep every bit, so they are not rescaled and m rests too.
    pub synapse_rate: Option<f64>,
    /// `η_m`; when `None` the multipliers rest but still count in the decay.
    pub multiplier_rate: Option<f64>,
    /// True: every update reads the old values ("concurrent" in the text).
    /// False: the pseudo-code's order, where the synapses decay with the new g and m.
    pub concurrent: bool,
    /// The constraint on the length of the synaptic vectors.
    pub unit_norm: UnitNorm,
    /// Rectify gains, weights and multipliers (Appendix E.3).
    pub nonnegative: bool,
    /// How many samples share one mean update; the offline algorithm ignores it.
    pub batch: usize,
}

impl Default for Options {
    /// Nothing learns and nothing is constrained: a base to override field by field.
    fn default() -> Self {
        Options {
            gain_rate: None,
            synapse_rate: None,
            multiplier_rate: None,
            concurrent: false,
            unit_norm: UnitNorm::Free,
            nonnegative: false,
            batch: 1,
        }
    }
}

// -------------------------------------------------------------------------------------------------
// The algorithms
// -------------------------------------------------------------------------------------------------

/// Algorithm 1 (tied) and Algorithm 3 (untied, multipliers, non-negative), with the responses at
/// equilibrium.
///
/// Each batch is answered by one circuit and then learned from; a rest too small for a batch is
/// only answered. Returns one response a row.
pub fn online(circuit: &mut Circuit, stimuli: &Matrix, options: &Options) -> Matrix {
    let mut answers = Matrix::new();
    for block in stimuli.chunks(options.batch) {
        let responses: Matrix = block.iter().map(|s| circuit.respond(s)).collect();
        if block.len() == options.batch {
            learn_from_samples(circuit, &responses, options);
        }
        answers.extend(responses);
    }
    answers
}

/// The updates that close the loop of Algorithms 1 and 3, averaged over a batch of responses.
fn learn_from_samples(circuit: &mut Circuit, responses: &Matrix, options: &Options) {
    let (neurons, interneurons) = (circuit.primary_neurons(), circuit.interneurons());
    let inputs: Matrix = responses.iter().map(|r| circuit.interneuron_inputs(r)).collect();
    // The outputs were emitted before anything learned, so they carry the old gains whatever the
    // order.
    let outputs: Matrix = inputs.iter().map(|z| circuit.interneuron_outputs(z)).collect();

    let second_moments: Vec<f64> =
        (0..interneurons).map(|i| mean(inputs.iter().map(|z| z[i] * z[i]))).collect();
    let products: Matrix = (0..neurons)
        .map(|a| {
            (0..interneurons)
                .map(|i| mean(responses.iter().zip(&outputs).map(|(r, n)| r[a] * n[i])))
                .collect()
        })
        .collect();

    let read = update_multipliers_and_gains(circuit, &second_moments, options);
    update_synapses(circuit, &products, &read.decay(options), options);
}

/// Algorithm 2: `steps` updates (J) for each context presented, driven by its covariance instead of
/// samples.
///
/// Returns the whitening error before each step, one presentation a row.
pub fn offline(
    circuit: &mut Circuit,
    covariances: &[Matrix],
    presented: &[usize],
    steps: usize,
    options: &Options,
) -> Matrix {
    let mut errors = Matrix::new();
    for &context in presented {
        let covariance = &covariances[context];
        let mut row = Vec::new();
        for _ in 0..steps {
            row.push(whitening_error(&circuit.inverse_whitening_matrix(), covariance));
            learn_from_covariance(circuit, covariance, options);
        }
        errors.push(row);
    }
    errors
}

/// The two updates of Algorithm 2, as the expectation of Eq. (7) and Eq. (8) over one context.
///
/// With `C_rr` = M⁻¹CM⁻ᵀ the gradient of Eq. (10) is I − `C_rr`, so the step of gain i is the
/// second moment wᵢᵀ`C_rr`wᵢ minus the target ‖wᵢ‖², and the step of its synapses gᵢ`C_rr`wᵢ minus
/// the decay gᵢwᵢ.
fn learn_from_covariance(circuit: &mut Circuit, covariance: &Matrix, options: &Options) {
    let response_covariance = response_covariance(&circuit.inverse_whitening_matrix(), covariance);
    let w_rn = circuit.feedforward_weights();
    // Row i is E[r zᵢ].
    let correlations: Matrix = w_rn.iter().map(|w| matvec(&response_covariance, w)).collect();
    let second_moments: Vec<f64> =
        w_rn.iter().zip(&correlations).map(|(w, correlation)| dot(w, correlation)).collect();

    let read = update_multipliers_and_gains(circuit, &second_moments, options);
    // Unlike a sample, an expectation was not emitted with any gains: the order alone says which
    // multiply it.
    let products: Matrix = (0..circuit.primary_neurons())
        .map(|a| (0..circuit.interneurons()).map(|i| correlations[i][a] * read.gains[i]).collect())
        .collect();
    update_synapses(circuit, &products, &read.decay(options), options);
}

/// Updates m and then g, and returns the circuit whose g and m the synapses are to read: the one
/// before when concurrent, the one after when sequential.
fn update_multipliers_and_gains(circuit: &mut Circuit, second_moments: &[f64], options: &Options) -> Circuit {
    let before = circuit.clone();
    update_multipliers(circuit, options);
    update_gains(circuit, second_moments, options);
    if options.concurrent { before } else { circuit.clone() }
}

/// m ← m + `η_m`(diag(`W_rn` `W_nr`) − 1), rectified when non-negative: Algorithm 3's weight
/// normalisation.
fn update_multipliers(circuit: &mut Circuit, options: &Options) {
    let (UnitNorm::Multiplier, Some(rate), Some(_)) =
        (options.unit_norm, options.multiplier_rate, options.synapse_rate)
    else {
        return;
    };
    let overlaps = circuit.overlaps();
    for (m, overlap) in circuit.multipliers.iter_mut().zip(&overlaps) {
        *m = rectify(*m + rate * (overlap - 1.0), options);
    }
}

/// g ← g + `η_g`(z∘z − target), Eq. (7), rectified when non-negative (Appendix E.3).
fn update_gains(circuit: &mut Circuit, second_moments: &[f64], options: &Options) {
    let Some(rate) = options.gain_rate else {
        return;
    };
    let targets = circuit.gain_targets(options);
    for i in 0..circuit.interneurons() {
        circuit.gains[i] = rectify(circuit.gains[i] + rate * (second_moments[i] - targets[i]), options);
    }
}

/// `W_nr` ← `W_nr` + `η_w`(r nᵀ − `W_nr` diag(decay)), Eq. (8), and its transpose for `W_rn` when
/// untied.
///
/// `products` is r nᵀ (N×K), or its mean.
fn update_synapses(circuit: &mut Circuit, products: &Matrix, decay: &[f64], options: &Options) {
    let Some(rate) = options.synapse_rate else {
        return;
    };
    for a in 0..circuit.primary_neurons() {
        for i in 0..circuit.interneurons() {
            let hebbian = |w: f64| rectify(w + rate * (products[a][i] - w * decay[i]), options);
            circuit.feedback[a][i] = hebbian(circuit.feedback[a][i]);
            if let Some(w_rn) = &mut circuit.feedforward {
                w_rn[i][a] = hebbian(w_rn[i][a]);
            }
        }
    }
    if options.unit_norm == UnitNorm::Projected {
        project_synapses(circuit);
    }
}

/// Rescales each column of `W_nr`, and each row of a stored `W_rn`, to unit length.
fn project_synapses(circuit: &mut Circuit) {
    for i in 0..circuit.interneurons() {
        let unit = to_unit_length(&column(&circuit.feedback, i));
        for (row, value) in circuit.feedback.iter_mut().zip(unit) {
            row[i] = value;
        }
    }
    if let Some(w_rn) = &mut circuit.feedforward {
        for row in w_rn {
            *row = to_unit_length(row);
        }
    }
}

/// [·]₊ of Appendix E.3, or nothing when signs are free.
fn rectify(value: f64, options: &Options) -> f64 {
    // A comparison rather than `max`, which would turn a NaN into a zero.
    if options.nonnegative && value < 0.0 { 0.0 } else { value }
}

/// The while loop of Algorithms 1 and 3: Eq. (6) iterated from r = 0 until max|Δr| ≤ tolerance ·
/// max|s|.
///
/// Returns r and the number of iterations, the one that met the tolerance included.
pub fn dynamics(circuit: &Circuit, stimulus: &[f64], rate: f64, tolerance: f64) -> (Vec<f64>, usize) {
    let mut response = vec![0.0; stimulus.len()];
    let mut iterations = 0;
    loop {
        let inputs = circuit.interneuron_inputs(&response);
        let outputs = circuit.interneuron_outputs(&inputs);
        let feedback = matvec(&circuit.feedback, &outputs);
        let change: Vec<f64> = (0..stimulus.len())
            .map(|a| rate * (stimulus[a] - feedback[a] - circuit.leak * response[a]))
            .collect();
        response = add(&response, &change);
        iterations += 1;
        let step = largest_magnitude(&change);
        assert!(step.is_finite(), "the recurrent dynamics diverge");
        if step <= tolerance * largest_magnitude(stimulus) {
            return (response, iterations);
        }
    }
}

// -------------------------------------------------------------------------------------------------
// The objective and the measures
// -------------------------------------------------------------------------------------------------

/// f(M) = Tr(M⁻¹C + M), Eq. (2); infinite where M is not positive definite, as its footnote says.
pub fn objective(m: &Matrix, c: &Matrix) -> f64 {
    if is_positive_definite(m) { trace(&matmul(&inverse(m), c)) + trace(m) } else { f64::INFINITY }
}

/// ∇f(M) = −M⁻¹CM⁻¹ + I, Eq. (10).
pub fn gradient(m: &Matrix, c: &Matrix) -> Matrix {
    let inverse = inverse(m);
    subtract(&identity(m.len()), &matmul(&matmul(&inverse, c), &inverse))
}

/// ℓ(W, g, r, s) = 2rᵀs − α‖r‖² − Σ gᵢ[(wᵢᵀr)² − ‖wᵢ‖²], Eq. (5), for tied synapses.
pub fn sample_objective(circuit: &Circuit, response: &[f64], stimulus: &[f64]) -> f64 {
    assert!(circuit.feedforward.is_none(), "the objective is defined for tied synapses");
    let inputs = circuit.interneuron_inputs(response);
    let norms = circuit.overlaps();
    let penalty: f64 =
        (0..circuit.interneurons()).map(|i| circuit.gains[i] * (inputs[i] * inputs[i] - norms[i])).sum();
    2.0 * dot(response, stimulus) - circuit.leak * dot(response, response) - penalty
}

/// The gains whose M = αI + W diag(g) Wᵀ is nearest to `C^½` in the Frobenius norm.
///
/// `g = [(WᵀW)∘²]⁻¹ diag(WᵀC^½W − αWᵀW)`, the normal equations of that least-squares problem.
pub fn least_squares_gains(w: &Matrix, c: &Matrix, leak: f64) -> Vec<f64> {
    let w_t = transpose(w);
    let gram = matmul(&w_t, w);
    let squared: Matrix = gram.iter().map(|row| hadamard(row, row)).collect();
    let along_root = matmul(&matmul(&w_t, &square_root(c)), w);
    let wanted: Vec<f64> = (0..gram.len()).map(|i| along_root[i][i] - leak * gram[i][i]).collect();
    solve(&squared, &wanted)
}

/// ‖M⁻¹CM⁻ᵀ − I‖ in the operator norm, Eq. (9); the transpose only matters for untied synapses.
pub fn whitening_error(m: &Matrix, c: &Matrix) -> f64 {
    let excess = subtract(&response_covariance(m, c), &identity(m.len()));
    operator_norm(&excess)
}

/// `C_rr` = M⁻¹CM⁻ᵀ, the covariance of r = M⁻¹s.
pub fn response_covariance(m: &Matrix, c: &Matrix) -> Matrix {
    let inverse = inverse(m);
    matmul(&matmul(&inverse, c), &transpose(&inverse))
}

// -------------------------------------------------------------------------------------------------
// Textbook linear algebra
// -------------------------------------------------------------------------------------------------

/// The pairs (aᵢ, bᵢ) of two vectors of one length; `zip` alone would silently drop the rest of the
/// longer one.
fn pairs(a: &[f64], b: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    assert_eq!(a.len(), b.len(), "two vectors of one length");
    a.iter().copied().zip(b.iter().copied())
}

/// ⟨a, b⟩.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    pairs(a, b).map(|(x, y)| x * y).sum()
}

/// a + b.
fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    pairs(a, b).map(|(x, y)| x + y).collect()
}

/// a∘b.
fn hadamard(a: &[f64], b: &[f64]) -> Vec<f64> {
    pairs(a, b).map(|(x, y)| x * y).collect()
}

/// max|aᵢ|, or NaN when some entry is NaN, so that nothing broken passes for small.
pub fn largest_magnitude(a: &[f64]) -> f64 {
    let larger = |x: f64, y: f64| if y > x || y.is_nan() { y } else { x };
    a.iter().map(|x| x.abs()).fold(0.0, larger)
}

/// The mean of some numbers.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    sum / count
}

/// a/‖a‖; the zero vector has no direction and stays zero.
fn to_unit_length(a: &[f64]) -> Vec<f64> {
    let length = dot(a, a).sqrt();
    if length > 0.0 { a.iter().map(|x| x / length).collect() } else { a.to_vec() }
}

/// Column i.
pub fn column(a: &Matrix, i: usize) -> Vec<f64> {
    a.iter().map(|row| row[i]).collect()
}

/// The square matrix with these entries.
fn square(size: usize, entry: impl Fn(usize, usize) -> f64) -> Matrix {
    (0..size).map(|a| (0..size).map(|b| entry(a, b)).collect()).collect()
}

/// I.
pub fn identity(size: usize) -> Matrix {
    square(size, |a, b| if a == b { 1.0 } else { 0.0 })
}

/// Aᵀ.
pub fn transpose(a: &Matrix) -> Matrix {
    let width = a.first().map_or(0, Vec::len);
    (0..width).map(|i| column(a, i)).collect()
}

/// A v.
pub fn matvec(a: &Matrix, v: &[f64]) -> Vec<f64> {
    a.iter().map(|row| dot(row, v)).collect()
}

/// A B.
pub fn matmul(a: &Matrix, b: &Matrix) -> Matrix {
    let columns = transpose(b);
    a.iter().map(|row| matvec(&columns, row)).collect()
}

/// A − B.
pub fn subtract(a: &Matrix, b: &Matrix) -> Matrix {
    a.iter().zip(b).map(|(row, other)| pairs(row, other).map(|(x, y)| x - y).collect()).collect()
}

/// The sum of the diagonal.
pub fn trace(a: &Matrix) -> f64 {
    (0..a.len()).map(|i| a[i][i]).sum()
}

/// Makes the first columns of `rows` upper triangular by Gaussian elimination with partial
/// pivoting.
///
/// Returns −1 when an odd number of rows changed places, else 1.
fn eliminate(rows: &mut Matrix) -> f64 {
    let mut sign = 1.0;
    for k in 0..rows.len() {
        let pivot = (k..rows.len())
            .max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs()))
            .expect("k is one of the rows");
        if rows[pivot][k] == 0.0 {
            continue;
        }
        if pivot != k {
            rows.swap(pivot, k);
            sign = -sign;
        }
        for i in k + 1..rows.len() {
            let factor = rows[i][k] / rows[k][k];
            for j in k..rows[i].len() {
                rows[i][j] -= factor * rows[k][j];
            }
        }
    }
    sign
}

/// Solves A x = b.
pub fn solve(a: &Matrix, b: &[f64]) -> Vec<f64> {
    let size = b.len();
    let mut rows: Matrix =
        a.iter().zip(b).map(|(row, &last)| row.iter().copied().chain([last]).collect()).collect();
    eliminate(&mut rows);

    let mut x = vec![0.0; size];
    for i in (0..size).rev() {
        assert!(rows[i][i] != 0.0, "the matrix is singular");
        let known = dot(&rows[i][i + 1..size], &x[i + 1..]);
        x[i] = (rows[i][size] - known) / rows[i][i];
    }
    x
}

/// A⁻¹, one column at a time.
pub fn inverse(a: &Matrix) -> Matrix {
    let columns: Matrix = identity(a.len()).iter().map(|unit| solve(a, unit)).collect();
    transpose(&columns)
}

/// det A.
pub fn determinant(a: &Matrix) -> f64 {
    let mut rows = a.clone();
    let sign = eliminate(&mut rows);
    (0..rows.len()).fold(sign, |product, i| product * rows[i][i])
}

/// Whether a symmetric matrix is positive definite, by Sylvester's criterion: every leading block
/// has a positive determinant.
pub fn is_positive_definite(a: &Matrix) -> bool {
    (1..=a.len()).all(|size| {
        let block: Matrix = a[..size].iter().map(|row| row[..size].to_vec()).collect();
        determinant(&block) > 0.0
    })
}

/// The eigenvalues of a symmetric matrix and, as columns, its eigenvectors, by cyclic Jacobi
/// rotations.
pub fn symmetric_eigen(a: &Matrix) -> (Vec<f64>, Matrix) {
    let size = a.len();
    // Rounding leaves a product such as M⁻¹CM⁻ᵀ a little asymmetric, and the rotations would never
    // end it.
    let mut a = square(size, |i, j| 0.5 * (a[i][j] + a[j][i]));
    let mut vectors = identity(size);
    // Ten sweeps are plenty at the sizes of the tests; a hundred means that something is not a
    // number.
    for _ in 0..100 {
        if off_diagonal(&a) <= 1e-14 * frobenius_norm(&a) {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                jacobi_rotation(&mut a, &mut vectors, p, q);
            }
        }
    }
    ((0..size).map(|i| a[i][i]).collect(), vectors)
}

/// The Frobenius norm of what is not on the diagonal.
fn off_diagonal(a: &Matrix) -> f64 {
    let off = square(a.len(), |i, j| if i == j { 0.0 } else { a[i][j] });
    frobenius_norm(&off)
}

/// The square root of the sum of all squared entries.
fn frobenius_norm(a: &Matrix) -> f64 {
    dot(&a.concat(), &a.concat()).sqrt()
}

/// A ← `JᵀAJ` and V ← VJ, with the rotation J of the plane (p, q) that makes `A_pq` zero.
fn jacobi_rotation(a: &mut Matrix, vectors: &mut Matrix, p: usize, q: usize) {
    if a[p][q] == 0.0 {
        return;
    }
    // tan 2θ = 2A_pq / (A_qq − A_pp); of its solutions the one within ±π/4, for which the sweeps
    // converge.
    let angle = 0.5 * (2.0 * a[p][q] / (a[q][q] - a[p][p])).atan();
    rotate_columns(a, p, q, angle);
    *a = transpose(a);
    rotate_columns(a, p, q, angle);
    rotate_columns(vectors, p, q, angle);
}

/// Turns columns p and q by an angle.
fn rotate_columns(a: &mut Matrix, p: usize, q: usize, angle: f64) {
    let (sine, cosine) = angle.sin_cos();
    for row in a {
        let (first, second) = (row[p], row[q]);
        row[p] = cosine * first - sine * second;
        row[q] = sine * first + cosine * second;
    }
}

/// The operator norm of a symmetric matrix: its largest eigenvalue in magnitude.
pub fn operator_norm(a: &Matrix) -> f64 {
    largest_magnitude(&symmetric_eigen(a).0)
}

/// The symmetric square root of a positive definite matrix, V diag(√λ) Vᵀ.
pub fn square_root(a: &Matrix) -> Matrix {
    let (values, vectors) = symmetric_eigen(a);
    let roots: Vec<f64> = values.iter().map(|value| value.sqrt()).collect();
    let scaled: Matrix = vectors.iter().map(|row| hadamard(row, &roots)).collect();
    matmul(&scaled, &transpose(&vectors))
}
