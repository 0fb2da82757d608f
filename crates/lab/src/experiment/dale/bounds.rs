//! Asks how well non-negative circuits can whiten a context at all, whatever they learn from others.
//!
//! With tied synapses and gains that are not negative M ⪰ αI, so a variance λ below α² cannot be raised: for the
//! eigenvector v of the smallest one, λ/‖Mv‖² ≤ λ/α², and the error is at least 1 − λ/α². No sign of the weights is
//! needed for this. Non-negative weights leave less: M − αI is then completely positive.

use leukos::contexts::{Contexts, Pcg64};
use leukos::{Matrix, WhiteningMeter, definiteness, whitening_error};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::offline::{LEAK, mean};
use super::super::statistics::Starts;
use super::constrained::{Constraint, RatesSpec, start};

/// Mean errors over the contexts that a start keeps back.
#[derive(Serialize, Deserialize)]
pub struct Bounds {
    /// 1 − λ/α², where that is above 0: no tied circuit whose gains are not negative does better.
    gains: f64,
    /// What a circuit with non-negative weights and gains and 2N interneurons reaches that learns from this context alone.
    alone: f64,
    /// What M = αI + max(C^½ − αI, 0) reaches, entry by entry, which non-negative weights can have if they are untied.
    untied: f64,
}

impl Bounds {
    pub fn of(contexts: &Contexts, rates: &RatesSpec, (steps, rng): (usize, Pcg64)) -> leukos::Result<Self> {
        let (mut gains, mut alone, mut untied) = (Vec::new(), Vec::new(), Vec::new());
        for (covariance, root) in contexts.covariances().iter().zip(contexts.roots()) {
            gains.push((1.0 - definiteness(covariance)? / (LEAK * LEAK)).max(0.0));
            alone.push(best_alone(covariance, rates, (steps, rng.clone()))?);
            untied.push(whitening_error(&rectified(root), covariance)?);
        }
        Ok(Self { gains: mean(&gains), alone: mean(&alone), untied: mean(&untied) })
    }

    pub fn numbers(starts: &Starts<Self>) -> Value {
        json!({
            "seeds": starts.len(),
            "diverged": starts.divergence(),
            "gains": starts.statistic(|bounds| bounds.gains),
            "alone": starts.statistic(|bounds| bounds.alone),
            "untied": starts.statistic(|bounds| bounds.untied),
        })
    }
}

fn best_alone(covariance: &Matrix, rates: &RatesSpec, (steps, rng): (usize, Pcg64)) -> leukos::Result<f64> {
    let weights = start(covariance.rows(), 2 * covariance.rows(), rng);
    let circuit = Constraint::Sign.circuit(weights, &Matrix::zeros(0, 0))?;
    let mut meter = WhiteningMeter::new(&circuit);
    let mut run = Constraint::Sign.learn(rates, circuit, vec![covariance.clone()])?;
    run.advance(&[0], steps, &mut ())?;
    meter.error(run.circuit(), covariance)
}

/// αI + max(C^½ − αI, 0).
fn rectified(root: &Matrix) -> Matrix {
    let leak = |i: usize, j: usize| if i == j { LEAK } else { 0.0 };
    Matrix::from_fn(root.rows(), root.rows(), |i, j| leak(i, j) + (root[(i, j)] - leak(i, j)).max(0.0))
}
