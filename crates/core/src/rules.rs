//! Says which parts of a circuit learn, how fast, under which constraints and in which order.

use crate::error::{Error, Result, require_positive};
use crate::real::Real;

/// How gains move.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum GainRule<T = f64> {
    /// They stay as they are, to the last bit.
    Frozen,
    /// Eq. (7): down the gradient of the objective.
    Gradient {
        /// η_g.
        rate: T,
    },
}

/// How synapses move.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SynapseRule<T = f64> {
    /// They stay as they are, to the last bit.
    Frozen,
    /// Eq. (8): Hebbian growth and decay.
    Hebbian {
        /// η_w.
        rate: T,
    },
}

/// How the length of an interneuron's weights is held at one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum UnitNorm<T = f64> {
    /// Not at all; the gain rule aims at ‖wᵢ‖².
    Free,
    /// Weights are rescaled to unit length after each step.
    Projected,
    /// A Lagrange multiplier adds to the decay, and the gain rule aims at one (the paper's unit-norm appendix).
    Multiplier {
        /// How the multipliers move.
        rule: MultiplierRule<T>,
    },
}

/// How multipliers move.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum MultiplierRule<T = f64> {
    /// They stay as they are and still count in the decay.
    Frozen,
    /// Up the gradient of the constrained objective.
    Gradient {
        /// η_m.
        rate: T,
    },
}

/// The sign of gains, weights and multipliers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Any.
    Free,
    /// Rectified after each step (the paper's sign-constraint appendix).
    NonNegative,
}

/// Which values an update sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The pseudo-code's: multipliers, then gains, then synapses, each from what is already new.
    ///
    /// A sample's interneuron outputs n were emitted with the old gains and keep them; the expectation of the
    /// offline algorithm takes the new ones, which is why that algorithm diverges in this order.
    Sequential,
    /// The text's: all from the old values.
    Concurrent,
}

/// Which parts learn and how: plain data, checked once when a run starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules<T = f64> {
    /// How gains move.
    pub gains: GainRule<T>,
    /// How synapses move.
    pub synapses: SynapseRule<T>,
    /// How the length of weights is held at one.
    pub unit_norm: UnitNorm<T>,
    /// The sign of gains, weights and multipliers.
    pub sign: Sign,
    /// Which values an update sees.
    pub order: Order,
    /// How many samples are answered before their mean update is made (online only).
    pub batch: usize,
}

impl<T: Real> Rules<T> {
    /// Rules under which nothing moves.
    pub fn frozen() -> Self {
        Self {
            gains: GainRule::Frozen,
            synapses: SynapseRule::Frozen,
            unit_norm: UnitNorm::Free,
            sign: Sign::Free,
            order: Order::Sequential,
            batch: 1,
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if let GainRule::Gradient { rate } = self.gains {
            require_positive("gain_rate", rate)?;
        }
        if let SynapseRule::Hebbian { rate } = self.synapses {
            require_positive("synapse_rate", rate)?;
        }
        if let UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate } } = self.unit_norm {
            require_positive("multiplier_rate", rate)?;
        }
        if self.batch == 0 {
            return Err(Error::out_of_range("batch", "1 sample or more", 0.0));
        }
        Ok(())
    }

    /// Whether anything moves at all.
    pub(crate) fn learns(&self) -> bool {
        self.gains != GainRule::Frozen || self.synapses != SynapseRule::Frozen
    }
}

/// Evaluates an expression with `rules`, in a copy of its own for each set of rules that an experiment of the paper
/// runs millions of times: there the compiler knows them, and drops the questions that a small loop would
/// otherwise ask at every step.
macro_rules! with_known_rules {
    (@copy $rules:ident, $known:expr, $unit_norm:ident, $order:ident => $run:expr) => {{
        let $rules = Rules { unit_norm: UnitNorm::$unit_norm, order: Order::$order, ..$known };
        $run
    }};
    ($rules:ident => $run:expr) => {{
        use $crate::rules::{GainRule, Order, Rules, Sign, SynapseRule, UnitNorm};
        let (GainRule::Gradient { rate: gain_rate }, SynapseRule::Hebbian { rate: synapse_rate }, Sign::Free) =
            ($rules.gains, $rules.synapses, $rules.sign)
        else {
            return $run;
        };
        let known = Rules {
            gains: GainRule::Gradient { rate: gain_rate },
            synapses: SynapseRule::Hebbian { rate: synapse_rate },
            sign: Sign::Free,
            ..$rules
        };
        match ($rules.unit_norm, $rules.order) {
            (UnitNorm::Free, Order::Sequential) => {
                with_known_rules!(@copy $rules, known, Free, Sequential => $run)
            }
            (UnitNorm::Free, Order::Concurrent) => {
                with_known_rules!(@copy $rules, known, Free, Concurrent => $run)
            }
            (UnitNorm::Projected, Order::Sequential) => {
                with_known_rules!(@copy $rules, known, Projected, Sequential => $run)
            }
            (UnitNorm::Projected, Order::Concurrent) => {
                with_known_rules!(@copy $rules, known, Projected, Concurrent => $run)
            }
            (UnitNorm::Multiplier { .. }, _) => $run,
        }
    }};
}
pub(crate) use with_known_rules;
