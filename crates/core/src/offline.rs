//! Runs a circuit on the covariances of contexts: Algorithm 2 and its relatives.

use crate::circuit::Circuit;
use crate::error::{Error, Result};
use crate::gain_problem::{Problem, Target};
use crate::gains::least_squares_gains_for_root;
use crate::learn::{Drive, Learner};
use crate::linalg::{View, multiply};
use crate::matrix::Matrix;
use crate::metrics::{require_covariance_in, square_root};
use crate::observe::{Observer, Shown, Step, observes};
use crate::pair::Pair;
use crate::real::Real;
use crate::responses::Solver;
use crate::rules::{GainRule, Rules};
use crate::size::{Work, require_circuit};

/// Where the gains of an offline step come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfflineGains {
    /// From the gain rule, one step at a time: Algorithm 2.
    Rule,
    /// Set before each step so that M is nearest to C^½: this made the paper's natural-image figure.
    LeastSquares,
    /// Set before each step to the minimum of the objective.
    Optimal,
}

/// A circuit that learns from the covariances of contexts: a run that can be advanced incrementally.
///
/// ```
/// use leukos::{Circuit, Matrix, Offline, OfflineGains, Synapses, UnitNorm, models, whitening_error};
///
/// let contexts = vec![Matrix::diagonal(&[4.0, 1.0]), Matrix::diagonal(&[1.0, 9.0])];
/// let synapses = Synapses::tied(Matrix::from_rows(&[[0.8, -0.6], [0.6, 0.8]]))?;
/// let circuit = Circuit::new(synapses, vec![0.0, 0.0], 1.0)?;
/// let mut rules = models::multi_timescale_offline(0.3, 0.03).rules;
/// rules.unit_norm = UnitNorm::Projected; // or the synapses would shrink and the gains slow down
/// let mut run = Offline::new(circuit, rules, contexts.clone(), OfflineGains::Rule)?;
/// for _ in 0..200 {
///     run.advance(&[0, 1], 50, &mut ())?;
/// }
/// let error = whitening_error(&run.circuit().inverse_whitening_matrix(), &contexts[1])?;
/// assert!(error < 0.01, "{error}");
/// # Ok::<(), leukos::Error>(())
/// ```
pub struct Offline<T: Real = f64> {
    learner: Learner<T>,
    /// Whether the circuit has the size that is run in registers.
    pair: bool,
    contexts: Vec<Context<T>>,
    /// M⁻¹, and the factors of C_rr W_rnᵀ = M⁻¹ C M⁻ᵀ W_rnᵀ from the right.
    whitening: Vec<T>,
    filtered: Vec<T>,
    spread: Vec<T>,
    correlations: Vec<T>,
}

struct Context<T> {
    covariance: Matrix<T>,
    fit: GainTarget,
}

/// What the gains are fitted to, where they are set, in double precision.
enum GainTarget {
    None,
    /// C^½.
    LeastSquares(Matrix<f64>),
    Optimal(Target),
}

impl<T: Real> Offline<T> {
    /// Starts a run on the contexts with these covariances.
    ///
    /// # Errors
    /// When a rule has a parameter out of range, a covariance is not a finite, symmetric, positive
    /// semidefinite N × N matrix, or gains are to be set on an untied circuit.
    pub fn new(
        circuit: Circuit<T>,
        mut rules: Rules<T>,
        covariances: Vec<Matrix<T>>,
        gains: OfflineGains,
    ) -> Result<Self> {
        if gains != OfflineGains::Rule {
            if !circuit.synapses().is_tied() {
                let reason = "gains can be set by least squares or to their optimum only with tied synapses; \
                              use the gain rule";
                return Err(Error::Incompatible { argument: "gains".into(), reason });
            }
            rules.gains = GainRule::Frozen;
        }
        let (n, k) = (circuit.neurons(), circuit.interneurons());
        require_circuit(n, k)?;
        Self::room(n, k, covariances.len(), gains).require()?;
        let context = |(i, covariance)| Context::new(i, covariance, n, gains);
        let contexts = covariances.into_iter().enumerate().map(context).collect::<Result<_>>()?;
        let solver = Solver::Direct;
        Ok(Self {
            pair: Pair::fits(&circuit, &rules, &solver),
            learner: Learner::new(circuit, rules, &solver)?,
            contexts,
            whitening: vec![T::ZERO; n * n],
            filtered: vec![T::ZERO; n * k],
            spread: vec![T::ZERO; n * k],
            correlations: vec![T::ZERO; n * k],
        })
    }

    /// What contexts and fits take beside the circuit.
    fn room(n: usize, k: usize, contexts: usize, gains: OfflineGains) -> Work {
        let room = Work::of("neurons", n, k);
        match gains {
            OfflineGains::Rule => Work { squares: 12, weights: 4, ..room },
            OfflineGains::LeastSquares | OfflineGains::Optimal => Work {
                squares: contexts.saturating_mul(3).saturating_add(20),
                weights: 16,
                gains: 20,
                ..room
            },
        }
    }

    /// Presents contexts one after another, with `steps` (the paper's J) updates each. How many
    /// presentations were completed is returned: fewer than given when the observer ended the run.
    ///
    /// # Errors
    /// When there is no such context or the run diverges; it then keeps the last valid circuit.
    pub fn advance(
        &mut self,
        presented: &[usize],
        steps: usize,
        observer: &mut impl Observer<T>,
    ) -> Result<usize> {
        if let Some(&context) = presented.iter().find(|&&context| context >= self.contexts.len()) {
            let expected = format!("contexts below {}", self.contexts.len());
            return Err(Error::shape("presented", expected, context.to_string()));
        }
        let undisturbed =
            !observes(observer) && matches!(self.contexts.first(), Some(context) if context.fit.is_none());
        for (done, &context) in presented.iter().enumerate() {
            if undisturbed {
                self.learn(context, steps)?;
                continue;
            }
            for step in 1..=steps {
                if self.step(context, observer)? {
                    return Ok(done + usize::from(step == steps));
                }
            }
        }
        Ok(presented.len())
    }

    /// One update; whether the observer wants to stop.
    fn step(&mut self, context: usize, observer: &mut impl Observer<T>) -> Result<bool> {
        self.set_gains(context)?;
        let covariance = &self.contexts[context].covariance;
        let circuit = &self.learner.circuit;
        let shown = Shown::Covariance { covariance, context };
        let stop = observer.see(&Step { index: self.learner.steps, circuit, shown }).is_break();
        self.learn(context, 1)?;
        Ok(stop)
    }

    /// So many updates.
    fn learn(&mut self, context: usize, steps: usize) -> Result<()> {
        if !self.learner.rules.learns() {
            self.learner.steps += steps as u64;
            return Ok(());
        }
        if self.pair {
            return self.learn_pair(context, steps);
        }
        let covariance = self.contexts[context].covariance.as_slice();
        let correlations = &mut self.correlations;
        let small = self.learner.run_small(|small| T::expect_small(small, correlations, covariance, steps));
        if let Some((_, outcome)) = small {
            return self.learner.ended(outcome);
        }
        for _ in 0..steps {
            self.correlate(context);
            self.learner.learn(Drive::Expectation { correlations: &self.correlations })?;
            self.learner.steps += 1;
        }
        Ok(())
    }

    /// The same for a tied circuit with N = K = 2.
    fn learn_pair(&mut self, context: usize, steps: usize) -> Result<()> {
        let mut pair = Pair::of(&self.learner.circuit);
        let covariance = self.contexts[context].covariance.as_slice();
        let (made, outcome) = T::expect_pair(&mut pair, &self.learner.rules, covariance, steps);
        self.learner.steps += made as u64;
        self.learner.replace(|next| pair.store(next))?;
        self.learner.ended(outcome)
    }

    fn set_gains(&mut self, context: usize) -> Result<()> {
        let (context, circuit) = (&self.contexts[context], &self.learner.circuit);
        let weights = || circuit.synapses().feedback().cast::<f64>();
        let leak = circuit.leak().to_f64();
        let gains = match &context.fit {
            GainTarget::None => return Ok(()),
            GainTarget::LeastSquares(root) => least_squares_gains_for_root(&weights(), root, leak)?,
            GainTarget::Optimal(target) => Problem::new(&weights(), target, leak)?.minimise()?.gains,
        };
        self.learner.replace(|next| {
            for (to, &from) in next.parts_mut().gains.iter_mut().zip(&gains) {
                *to = T::from_f64(from);
            }
        })
    }

    /// E\[r zᵢ\] = C_rr w_rn,i with C_rr = M⁻¹ C M⁻ᵀ, for every interneuron.
    fn correlate(&mut self, context: usize) {
        let parts = self.learner.circuit.parts();
        let n = parts.neurons;
        self.learner.equilibrium.whitening_matrix_into(&mut self.whitening);
        let whitening = View::of(&self.whitening, n);
        // A tied circuit's M⁻¹ is symmetric, and a plain product is quicker than one with a transpose.
        let transposed = if parts.feedforward.is_none() { whitening } else { whitening.transposed() };
        multiply(&mut self.filtered, transposed, View::of(parts.listening(), n));
        multiply(&mut self.spread, self.contexts[context].covariance.view(), View::of(&self.filtered, n));
        multiply(&mut self.correlations, whitening, View::of(&self.spread, n));
    }

    /// The circuit as it is now: always a valid one.
    pub fn circuit(&self) -> &Circuit<T> {
        &self.learner.circuit
    }

    /// The number of updates made.
    pub fn steps(&self) -> u64 {
        self.learner.steps
    }

    /// Ends the run and hands out its circuit.
    pub fn into_circuit(self) -> Circuit<T> {
        self.learner.circuit
    }
}

impl GainTarget {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl<T: Real> Context<T> {
    fn new(index: usize, covariance: Matrix<T>, neurons: usize, gains: OfflineGains) -> Result<Self> {
        let name = format!("covariances[{index}]");
        covariance.require_shape(name.clone(), neurons, neurons)?;
        let precise = covariance.cast();
        let fit = match gains {
            OfflineGains::LeastSquares => GainTarget::LeastSquares(square_root(name, &precise)?),
            OfflineGains::Rule | OfflineGains::Optimal => {
                require_covariance_in::<T>(name.clone(), &precise)?;
                if gains == OfflineGains::Rule {
                    GainTarget::None
                } else {
                    GainTarget::Optimal(Target::new(name, &precise)?)
                }
            }
        };
        Ok(Self { covariance, fit })
    }
}
