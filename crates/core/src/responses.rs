//! Finds the responses: the equilibrium r = M⁻¹s of the recurrent dynamics, Eq. (6).

use crate::circuit::Circuit;
use crate::error::{Error, Result, Test, require_positive};
use crate::factor::Factor;
use crate::kernels;
use crate::real::Real;
use crate::small::SmallFactor;

/// How the equilibrium of the recurrent dynamics is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solver<T = f64> {
    /// Factorise M (Cholesky; LU when untied) after each update. Exact, and every M is certified.
    Direct,
    /// Conjugate gradients, preconditioned by the Cholesky factor of an earlier M. Tied circuits only.
    ///
    /// The faster choice from about N = 64. Negative curvature is reported at once; M is factorised
    /// afresh, and so certified, when that pays and at the latest after 64 updates.
    Iterative {
        /// The largest residual ‖s − Mr‖ / ‖s‖ to accept.
        tolerance: T,
    },
    /// The while-loop of Algorithms 1 and 3: r from 0, Eq. (6) until max|Δr| ≤ tolerance · max|s|.
    ///
    /// The rule looks at the last change, not at what is still missing: r can be off by about
    /// tolerance / (rate · λ_min(M)) of the largest stimulus, so an ill-conditioned M needs a smaller tolerance.
    Dynamics {
        /// η_r; `None` chooses one from a bound on the eigenvalues of M.
        rate: Option<T>,
        /// When a change counts as settled, relative to the largest stimulus.
        tolerance: T,
        /// After how many iterations to give up.
        max_iterations: usize,
    },
    /// So many iterations of Eq. (6) from r = 0; the response is what they reach, settled or not: a circuit that has
    /// no time to wait.
    ///
    /// After T of them r = (I − (I − η_r M)ᵀ) M⁻¹ s, with T as a power. A loop that runs away is an error, as in the
    /// dynamics.
    Loop {
        /// η_r; `None` chooses one from a bound on the eigenvalues of M.
        rate: Option<T>,
        /// T.
        iterations: usize,
    },
}

/// After how many updates at the latest M is factorised, so that a loss of definiteness cannot hide for long.
const CERTIFY_EVERY: u32 = 64;

/// Computes a circuit's responses, and checks that M is valid. After each change of the circuit call [`Self::follow`].
pub(crate) struct Equilibrium<T: Real> {
    factor: Factor<T>,
    method: Method<T>,
}

enum Method<T: Real> {
    Direct,
    Iterative(ConjugateGradients<T>),
    Dynamics { dynamics: Dynamics<T>, age: u32 },
}

/// Whether the circuit's M has just been factorised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Certificate {
    Fresh,
    Earlier,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum Unanswered {
    Invalid(Test),
    Unsettled { iterations: usize, change: f64, tolerance: f64 },
}

impl<T: Real> Equilibrium<T> {
    pub fn new(circuit: &Circuit<T>, solver: &Solver<T>) -> Result<Self> {
        let method = match *solver {
            Solver::Direct => Method::Direct,
            Solver::Iterative { tolerance } => {
                require_positive("tolerance", tolerance)?;
                if !circuit.synapses().is_tied() {
                    let reason = "the iterative solver is conjugate gradients, which needs tied synapses; \
                                  use the direct solver or the dynamics";
                    return Err(Error::Incompatible { argument: "solver".into(), reason });
                }
                Method::Iterative(ConjugateGradients::new(circuit, tolerance))
            }
            Solver::Dynamics { rate, tolerance, max_iterations } => Method::Dynamics {
                dynamics: Dynamics::new(circuit, rate, End::Settled { tolerance }, max_iterations)?,
                age: 0,
            },
            Solver::Loop { rate, iterations } => {
                Method::Dynamics { dynamics: Dynamics::new(circuit, rate, End::Spent, iterations)?, age: 0 }
            }
        };
        let mut equilibrium = Self { factor: Factor::new(circuit.synapses()), method };
        equilibrium.certify(circuit).map_err(|test| circuit.invalid(test))?;
        Ok(equilibrium)
    }

    /// Takes note that the circuit has changed. Fails when the new M is found not to be valid.
    pub fn follow(&mut self, circuit: &Circuit<T>) -> Result<Certificate, Test> {
        let due = match &mut self.method {
            Method::Direct => true,
            Method::Iterative(gradients) => gradients.replacement_is_due(),
            Method::Dynamics { age, .. } => {
                *age = (*age + 1) % CERTIFY_EVERY;
                *age == 0
            }
        };
        if !due {
            return Ok(Certificate::Earlier);
        }
        self.certify(circuit).map(|()| Certificate::Fresh)
    }

    /// Factorises M now, whatever the method.
    pub fn certify(&mut self, circuit: &Circuit<T>) -> Result<(), Test> {
        self.factor.update(circuit.parts())?;
        if let Method::Iterative(gradients) = &mut self.method {
            gradients.replace(&mut self.factor);
        }
        Ok(())
    }

    /// Answers one finite stimulus with a frozen circuit.
    pub fn respond(&mut self, circuit: &Circuit<T>, stimulus: &[T], response: &mut [T]) -> Result<()> {
        self.answer(circuit, stimulus, response).map_err(|unanswered| match unanswered {
            Unanswered::Invalid(test) => circuit.invalid(test),
            Unanswered::Unsettled { iterations, change, tolerance } => {
                Error::NotConverged { what: "the recurrent dynamics", iterations, change, tolerance }
            }
        })
    }

    /// Writes r = M⁻¹s for a finite stimulus; the response is finite or there is none.
    pub fn answer(&mut self, circuit: &Circuit<T>, s: &[T], r: &mut [T]) -> Result<(), Unanswered> {
        match &mut self.method {
            Method::Direct => {
                r.copy_from_slice(s);
                self.factor.solve(r);
            }
            Method::Iterative(gradients) => gradients.respond(circuit, &mut self.factor, s, r)?,
            Method::Dynamics { dynamics, .. } => dynamics.respond(circuit, s, r)?,
        }
        if r.iter().all(|x| x.is_finite()) { Ok(()) } else { Err(Unanswered::Invalid(Test::Overflow)) }
    }

    /// Writes the interneuron inputs z = W_rn r of the response that was given last.
    pub fn inputs_into(&self, circuit: &Circuit<T>, r: &[T], z: &mut [T]) {
        match &self.method {
            Method::Iterative(gradients) => z.copy_from_slice(&gradients.inputs),
            Method::Direct | Method::Dynamics { .. } => kernels::project(circuit.parts().listening(), r, z),
        }
    }

    /// The factor of the present M, where it is small and kept at every step.
    pub fn small_factor(&mut self) -> Option<SmallFactor<'_, T>> {
        matches!(self.method, Method::Direct).then(|| self.factor.small())?
    }

    /// The explicit M⁻¹; the direct method keeps the factor of the present M.
    pub fn whitening_matrix_into(&mut self, inverse: &mut [T]) {
        self.factor.invert_into(inverse);
    }
}

/// Conjugate gradients for M r = s.
///
/// The preconditioner is the inverse of an earlier M. It is positive definite by construction and near to the
/// present M⁻¹ because circuits change slowly. It is replaced as soon as a step costs more than the average step since the
/// last replacement, the cost of that replacement included.
struct ConjugateGradients<T> {
    tolerance: T,
    /// The lower triangle of the preconditioner.
    earlier_inverse: Vec<T>,
    direction: Vec<T>,
    /// The interneuron inputs and the current that the direction alone would cause.
    own_inputs: Vec<T>,
    current: Vec<T>,
    /// The interneuron inputs z of the response so far.
    inputs: Vec<T>,
    residual: Vec<T>,
    preconditioned: Vec<T>,
    /// Multiply-adds of one iteration and of one factorisation with inverse.
    iteration_cost: f64,
    replacement_cost: f64,
    /// Updates since the replacement, the cost since then, and the cost of the present update's responses.
    age: u32,
    spent: f64,
    latest: f64,
}

impl<T: Real> ConjugateGradients<T> {
    fn new(circuit: &Circuit<T>, tolerance: T) -> Self {
        let (n, k) = (circuit.neurons(), circuit.interneurons());
        let zeros = |length| vec![T::ZERO; length];
        let (neurons, interneurons) = (n as f64, k as f64);
        Self {
            tolerance,
            earlier_inverse: zeros(n * n),
            direction: zeros(n),
            own_inputs: zeros(k),
            current: zeros(n),
            inputs: zeros(k),
            residual: zeros(n),
            preconditioned: zeros(n),
            iteration_cost: neurons * (2.0 * interneurons + neurons),
            // Factorising runs about three times as many operations a second as iterating, which waits for memory.
            replacement_cost: neurons * neurons * (interneurons / 2.0 + neurons / 2.0) / 3.0,
            age: 0,
            spent: 0.0,
            latest: 0.0,
        }
    }

    fn replacement_is_due(&mut self) -> bool {
        self.age += 1;
        self.spent += self.latest;
        let average = (self.replacement_cost + self.spent) / f64::from(self.age);
        let due = self.age >= CERTIFY_EVERY || self.latest > average;
        self.latest = 0.0;
        due
    }

    fn replace(&mut self, factor: &mut Factor<T>) {
        factor.invert_into(&mut self.earlier_inverse);
        self.age = 0;
        self.spent = 0.0;
        self.latest = 0.0;
    }

    fn respond(
        &mut self,
        circuit: &Circuit<T>,
        factor: &mut Factor<T>,
        s: &[T],
        r: &mut [T],
    ) -> Result<(), Unanswered> {
        if self.iterate(circuit, s, r).map_err(Unanswered::Invalid)? {
            return Ok(());
        }
        // Stalled: the preconditioner is too old, or the tolerance below what the precision allows, or the range.
        factor.update(circuit.parts()).map_err(Unanswered::Invalid)?;
        self.replace(factor);
        r.copy_from_slice(s);
        factor.solve(r);
        kernels::project(circuit.parts().listening(), r, &mut self.inputs);
        Ok(())
    }

    /// Whether the residual fell below the tolerance within 2N + 20 iterations and all numbers stayed in range.
    fn iterate(&mut self, circuit: &Circuit<T>, s: &[T], r: &mut [T]) -> Result<bool, Test> {
        r.fill(T::ZERO);
        self.inputs.fill(T::ZERO);
        self.residual.copy_from_slice(s);
        let goal = self.tolerance * norm(s);
        if goal == T::ZERO {
            // Silence, or a stimulus whose square underflows: r = 0 for the one, a direct solve for the other.
            return Ok(s.iter().all(|&x| x == T::ZERO));
        }
        self.direction.fill(T::ZERO);
        let mut previous = T::ONE;
        for _ in 0..2 * s.len() + 20 {
            self.latest += self.iteration_cost;
            kernels::apply_symmetric(&self.earlier_inverse, &self.residual, &mut self.preconditioned);
            let descent = kernels::inner(&self.residual, &self.preconditioned);
            if kernels::out_of_range(descent) {
                return Ok(false);
            }
            kernels::extend(&mut self.direction, descent / previous, &self.preconditioned);
            kernels::recurrent(circuit.parts(), &self.direction, &mut self.own_inputs, &mut self.current);
            let curvature = kernels::inner(&self.direction, &self.current);
            if !(curvature > T::ZERO) {
                return Err(if curvature <= T::ZERO { Test::Curvature } else { Test::Overflow });
            }
            let step = descent / curvature;
            kernels::add_scaled(r, step, &self.direction);
            kernels::add_scaled(&mut self.inputs, step, &self.own_inputs);
            kernels::add_scaled(&mut self.residual, -step, &self.current);
            if norm(&self.residual) <= goal {
                return Ok(true);
            }
            previous = descent;
        }
        Ok(false)
    }
}

fn norm<T: Real>(x: &[T]) -> T {
    kernels::inner(x, x).sqrt()
}

/// The recurrent dynamics themselves.
struct Dynamics<T> {
    rate: Option<T>,
    end: End<T>,
    max_iterations: usize,
    inputs: Vec<T>,
    current: Vec<T>,
}

/// When the loop ends with a response.
#[derive(Clone, Copy)]
enum End<T> {
    /// Once the largest change is small.
    Settled { tolerance: T },
    /// Once all iterations are spent.
    Spent,
}

/// How often a chosen rate may be halved: an untied M can have eigenvalues that a bound on their size alone
/// does not keep in the loop's region of stability.
const MOST_HALVINGS: i32 = 30;

/// A loop that settles never moves much faster than its first step, which is at most rate · max|s|.
/// One that moves this many times as fast is running away.
const RUNAWAY: f64 = 1e8;

impl<T: Real> Dynamics<T> {
    fn new(circuit: &Circuit<T>, rate: Option<T>, end: End<T>, max_iterations: usize) -> Result<Self> {
        if let Some(rate) = rate {
            require_positive("response_rate", rate)?;
        }
        let argument = match end {
            End::Settled { tolerance } => {
                require_positive("tolerance", tolerance)?;
                "max_iterations"
            }
            End::Spent => "iterations",
        };
        if max_iterations == 0 {
            let expected = "1 iteration or more";
            return Err(Error::out_of_range(argument, expected, 0.0));
        }
        let (inputs, current) = (vec![T::ZERO; circuit.interneurons()], vec![T::ZERO; circuit.neurons()]);
        Ok(Self { rate, end, max_iterations, inputs, current })
    }

    fn respond(&mut self, circuit: &Circuit<T>, s: &[T], r: &mut [T]) -> Result<(), Unanswered> {
        if let Some(rate) = self.rate {
            return self.settle(circuit, s, r, rate);
        }
        let (half, untied) = (T::from_f64(0.5), !circuit.synapses().is_tied());
        let mut rate = T::ONE / eigenvalue_bound(circuit, &mut self.current);
        if !(rate.is_finite() && rate > T::ZERO) {
            return Err(Unanswered::Invalid(Test::Overflow));
        }
        for _ in 0..MOST_HALVINGS {
            match self.settle(circuit, s, r, rate) {
                Err(Unanswered::Invalid(Test::Dynamics)) if untied => rate *= half,
                // On the verge of stability a loop neither settles nor runs away; half that rate is well inside.
                Err(Unanswered::Unsettled { .. }) if untied => {
                    return self.settle(circuit, s, r, half * rate);
                }
                outcome => return outcome,
            }
        }
        Err(Unanswered::Invalid(Test::Dynamics))
    }

    /// Eq. (6) from r = 0: r ← r + η_r (s − W_nr n − αr) until the largest change is small, or for as long as allowed.
    fn settle(&mut self, circuit: &Circuit<T>, s: &[T], r: &mut [T], rate: T) -> Result<(), Unanswered> {
        r.fill(T::ZERO);
        let scale = largest(s);
        let mut change = T::ZERO;
        for _ in 0..self.max_iterations {
            kernels::recurrent(circuit.parts(), r, &mut self.inputs, &mut self.current);
            change = T::ZERO;
            for ((r, &current), &s) in r.iter_mut().zip(&self.current).zip(s) {
                let step = rate * (s - current);
                *r += step;
                // Not `max`, which would hide a NaN.
                change = if step.abs() <= change { change } else { step.abs() };
            }
            if let End::Settled { tolerance } = self.end
                && change <= tolerance * scale
            {
                return Ok(());
            }
            if !(change <= T::from_f64(RUNAWAY) * rate * scale) {
                return Err(Unanswered::Invalid(Test::Dynamics));
            }
        }
        match self.end {
            End::Spent => Ok(()),
            End::Settled { tolerance } => Err(Unanswered::Unsettled {
                iterations: self.max_iterations,
                change: (change / scale).to_f64(),
                tolerance: tolerance.to_f64(),
            }),
        }
    }
}

fn largest<T: Real>(x: &[T]) -> T {
    x.iter().fold(T::ZERO, |most, x| most.max(x.abs()))
}

/// A bound on the size of M's eigenvalues in O(NK): the smaller of α + Σᵢ |gᵢ| ‖w_nr,i‖ ‖w_rn,i‖ and the largest
/// row sum α + maxⱼ Σᵢ |gᵢ| |w_nr,ji| Σₗ |w_rn,il|.
fn eigenvalue_bound<T: Real>(circuit: &Circuit<T>, row_sums: &mut [T]) -> T {
    let parts = circuit.parts();
    let mut by_norms = T::ZERO;
    row_sums.fill(T::ZERO);
    let weights =
        parts.feedback.chunks_exact(parts.neurons).zip(parts.listening().chunks_exact(parts.neurons));
    for ((back, forth), gain) in weights.zip(parts.gains) {
        by_norms += gain.abs() * norm(back) * norm(forth);
        let reach: T = gain.abs() * forth.iter().map(|w| w.abs()).sum::<T>();
        for (sum, w) in row_sums.iter_mut().zip(back) {
            *sum += reach * w.abs();
        }
    }
    parts.leak + by_norms.min(largest(row_sums))
}
