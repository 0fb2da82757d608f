//! Names the models: the paper's three algorithms, the two it unifies, and its appendix's changes one by one.

use crate::circuit::Circuit;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::offline::{Offline, OfflineGains};
use crate::online::Online;
use crate::real::Real;
use crate::responses::Solver;
use crate::rules::{GainRule, MultiplierRule, Order, Rules, Sign, SynapseRule, UnitNorm};

/// A named composition of rules, and the circuits it is defined for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Algorithm<T = f64> {
    /// What it is called.
    pub name: &'static str,
    /// Its rules, which can be changed.
    pub rules: Rules<T>,
    needs: Needs,
}

/// What a model asks of the circuit it starts from.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Needs {
    leak: Option<f64>,
    unit_gains: bool,
    tied: bool,
    non_negative: bool,
}

const ANY_TIED: Needs = Needs { leak: None, unit_gains: false, tied: true, non_negative: false };

impl<T: Real> Algorithm<T> {
    /// Starts a run on a stream of stimuli.
    ///
    /// # Errors
    /// When the circuit is not one the model is defined for, or as for [`Online::new`].
    pub fn online(self, circuit: Circuit<T>, solver: &Solver<T>) -> Result<Online<T>> {
        self.require(&circuit)?;
        Online::new(circuit, self.rules, solver)
    }

    /// Starts a run on the covariances of contexts.
    ///
    /// # Errors
    /// When the circuit is not one the model is defined for, or as for [`Offline::new`].
    pub fn offline(
        self,
        circuit: Circuit<T>,
        covariances: Vec<Matrix<T>>,
        gains: OfflineGains,
    ) -> Result<Offline<T>> {
        self.require(&circuit)?;
        Offline::new(circuit, self.rules, covariances, gains)
    }

    fn require(&self, circuit: &Circuit<T>) -> Result<()> {
        let parts = circuit.parts();
        let refuse = |reason| Err(Error::Incompatible { argument: "circuit".into(), reason });
        if self.needs.tied != circuit.synapses().is_tied() {
            return refuse(if self.needs.tied {
                "this model has tied synapses; make the circuit without a feedforward matrix"
            } else {
                "this model has separate feedforward and feedback synapses; make the circuit untied"
            });
        }
        if let Some(leak) = self.needs.leak
            && circuit.leak().to_f64() != leak
        {
            return refuse(if leak == 0.0 { "this model has leak 0" } else { "this model has leak 1" });
        }
        if self.needs.unit_gains && parts.gains.iter().any(|&gain| gain != T::ONE) {
            return refuse("this model has no gains: all of them are 1");
        }
        let numbers = [parts.feedback, parts.listening(), parts.gains, parts.multipliers];
        if self.needs.non_negative && numbers.iter().any(|numbers| numbers.iter().any(|&x| x < T::ZERO)) {
            return refuse("this model starts from synapses, gains and multipliers that are not negative");
        }
        Ok(())
    }
}

/// Algorithm 1: fast gains and slow synapses, from samples.
pub fn multi_timescale<T: Real>(gain_rate: T, synapse_rate: T) -> Algorithm<T> {
    let rules = Rules {
        gains: GainRule::Gradient { rate: gain_rate },
        synapses: SynapseRule::Hebbian { rate: synapse_rate },
        ..Rules::frozen()
    };
    Algorithm { name: "multi-timescale", rules, needs: ANY_TIED }
}

/// Algorithm 2: the same from covariances, in the order of the paper's text and of the authors' code.
///
/// In the order of the printed pseudo-code, [`Order::Sequential`], it diverges on natural images.
pub fn multi_timescale_offline<T: Real>(gain_rate: T, synapse_rate: T) -> Algorithm<T> {
    let mut model = multi_timescale(gain_rate, synapse_rate);
    model.name = "multi-timescale offline";
    model.rules.order = Order::Concurrent;
    model
}

/// Algorithm 3: separate feedforward and feedback synapses, everything non-negative, unit norm by multipliers.
pub fn biological<T: Real>(gain_rate: T, synapse_rate: T, multiplier_rate: T) -> Algorithm<T> {
    let mut model = unit_norm_alone(gain_rate, synapse_rate, multiplier_rate);
    model.name = "biologically realistic";
    model.rules.sign = Sign::NonNegative;
    model.needs = Needs { tied: false, non_negative: true, ..ANY_TIED };
    model
}

/// Synaptic plasticity alone (Pehlevan and Chklovskii): no leak, gains of 1.
pub fn synaptic_plasticity<T: Real>(synapse_rate: T) -> Algorithm<T> {
    let rules = Rules { synapses: SynapseRule::Hebbian { rate: synapse_rate }, ..Rules::frozen() };
    let needs = Needs { leak: Some(0.0), unit_gains: true, ..ANY_TIED };
    Algorithm { name: "synaptic plasticity", rules, needs }
}

/// Gain modulation alone (Duong et al.): leak 1, frozen synapses.
pub fn gain_modulation<T: Real>(gain_rate: T) -> Algorithm<T> {
    let rules = Rules { gains: GainRule::Gradient { rate: gain_rate }, ..Rules::frozen() };
    Algorithm { name: "gain modulation", rules, needs: Needs { leak: Some(1.0), ..ANY_TIED } }
}

/// Algorithm 1 with the unit-norm appendix alone: multipliers of any sign, gains that aim at 1.
pub fn unit_norm_alone<T: Real>(gain_rate: T, synapse_rate: T, multiplier_rate: T) -> Algorithm<T> {
    let mut model = multi_timescale(gain_rate, synapse_rate);
    model.name = "unit norm alone";
    model.rules.unit_norm = UnitNorm::Multiplier { rule: MultiplierRule::Gradient { rate: multiplier_rate } };
    model
}

/// Algorithm 1 with the sign-constraint appendix alone: gains and synapses rectified.
pub fn sign_alone<T: Real>(gain_rate: T, synapse_rate: T) -> Algorithm<T> {
    let mut model = multi_timescale(gain_rate, synapse_rate);
    model.name = "sign alone";
    model.rules.sign = Sign::NonNegative;
    model
}

/// Algorithm 1 with the decoupling appendix alone: separate feedforward and feedback synapses.
pub fn decoupled_alone<T: Real>(gain_rate: T, synapse_rate: T) -> Algorithm<T> {
    let mut model = multi_timescale(gain_rate, synapse_rate);
    model.name = "decoupled alone";
    model.needs.tied = false;
    model
}
