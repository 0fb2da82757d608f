//! Reads the words and rates of a run's options.

use leukos::{GainRule, MultiplierRule, OfflineGains, Order, Rules, Sign, Solver, SynapseRule, UnitNorm};
use pyo3::prelude::*;

use crate::arrays::{Number, refuse};

/// One of some words.
pub fn word<W: Copy>(argument: &str, given: &str, words: &[(&str, W)]) -> PyResult<W> {
    let meaning = words.iter().find(|(word, _)| *word == given).map(|(_, meaning)| *meaning);
    meaning.ok_or_else(|| unknown_word(argument, words.iter().map(|(word, _)| *word), given))
}

/// Another word than those that there are.
pub fn unknown_word<'a>(argument: &str, words: impl Iterator<Item = &'a str>, given: &str) -> PyErr {
    let expected: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    refuse(argument, expected.join(" or "), format!("{given:?}"))
}

/// A whole number that is not too small.
pub fn whole(argument: &str, given: i64, least: usize) -> PyResult<usize> {
    let number = usize::try_from(given).ok().filter(|number| *number >= least);
    number.ok_or_else(|| refuse(argument, format!("a whole number of {least} or more"), given))
}

/// How responses are found, in words.
pub struct SolverWords<'a> {
    pub solver: &'a str,
    pub response_rate: Option<f64>,
    pub tolerance: Option<f64>,
    pub max_iterations: Option<i64>,
}

/// After how many iterations the dynamics give up unless told otherwise.
const MAX_ITERATIONS: usize = 100_000;

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Direct,
    Iterative,
    Dynamics,
    Loop,
}

impl SolverWords<'_> {
    /// The solver; tolerances default to what the precision allows.
    pub fn solver<T: Number>(&self) -> PyResult<Solver<T>> {
        let words = [
            ("direct", Method::Direct),
            ("iterative", Method::Iterative),
            ("dynamics", Method::Dynamics),
            ("loop", Method::Loop),
        ];
        let method = word("solver", self.solver, &words)?;
        let unused = |argument, given: bool, of: &[Method]| {
            if given && !of.contains(&method) {
                return Err(refuse(argument, format!("None with solver={:?}", self.solver), "a number"));
            }
            Ok(())
        };
        unused("response_rate", self.response_rate.is_some(), &[Method::Dynamics, Method::Loop])?;
        unused("max_iterations", self.max_iterations.is_some(), &[Method::Dynamics, Method::Loop])?;
        unused("tolerance", self.tolerance.is_some(), &[Method::Dynamics, Method::Iterative])?;
        let max_iterations =
            self.max_iterations.map(|given| whole("max_iterations", given, 1)).transpose()?;
        let usual = if T::EPSILON.to_f64() < 1e-10 { 1e-10 } else { 1e-5 };
        let tolerance = T::from_f64(self.tolerance.unwrap_or(usual));
        let rate = self.response_rate.map(T::from_f64);
        Ok(match method {
            Method::Direct => Solver::Direct,
            Method::Iterative => Solver::Iterative { tolerance },
            Method::Dynamics => {
                Solver::Dynamics { rate, tolerance, max_iterations: max_iterations.unwrap_or(MAX_ITERATIONS) }
            }
            Method::Loop => {
                let missing =
                    || refuse("max_iterations", "a whole number of 1 or more with solver=\"loop\"", "None");
                Solver::Loop { rate, iterations: max_iterations.ok_or_else(missing)? }
            }
        })
    }
}

/// Which parts learn and how, in words. Rates that are None freeze their part.
pub struct RuleWords<'a> {
    pub gain_rate: Option<f64>,
    pub synapse_rate: Option<f64>,
    pub multiplier_rate: Option<f64>,
    pub unit_norm: &'a str,
    pub sign: &'a str,
    pub order: &'a str,
    pub batch: i64,
}

impl RuleWords<'_> {
    /// The rules; the core checks their numbers.
    pub fn rules<T: Number>(&self) -> PyResult<Rules<T>> {
        let rule = self
            .multiplier_rate
            .map_or(MultiplierRule::Frozen, |rate| MultiplierRule::Gradient { rate: T::from_f64(rate) });
        let norms = [
            ("free", UnitNorm::Free),
            ("projected", UnitNorm::Projected),
            ("multiplier", UnitNorm::Multiplier { rule }),
        ];
        let unit_norm = word("unit_norm", self.unit_norm, &norms)?;
        if self.multiplier_rate.is_some() && !matches!(unit_norm, UnitNorm::Multiplier { .. }) {
            return Err(refuse("multiplier_rate", "None unless unit_norm=\"multiplier\"", "a number"));
        }
        let gains = |rate| GainRule::Gradient { rate: T::from_f64(rate) };
        let synapses = |rate| SynapseRule::Hebbian { rate: T::from_f64(rate) };
        Ok(Rules {
            gains: self.gain_rate.map_or(GainRule::Frozen, gains),
            synapses: self.synapse_rate.map_or(SynapseRule::Frozen, synapses),
            unit_norm,
            sign: word("sign", self.sign, &[("free", Sign::Free), ("nonnegative", Sign::NonNegative)])?,
            order: order(self.order)?,
            batch: whole("batch", self.batch, 1)?,
        })
    }
}

/// Which values an update sees.
pub fn order(given: &str) -> PyResult<Order> {
    word("order", given, &[("sequential", Order::Sequential), ("concurrent", Order::Concurrent)])
}

/// Where the gains of an offline step come from.
pub fn offline_gains(given: &str) -> PyResult<OfflineGains> {
    let words = [
        ("rule", OfflineGains::Rule),
        ("least_squares", OfflineGains::LeastSquares),
        ("optimal", OfflineGains::Optimal),
    ];
    word("gains", given, &words)
}
