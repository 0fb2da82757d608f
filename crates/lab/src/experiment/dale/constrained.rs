//! Sets up circuits under the appendix's constraints, one by one and all together, that learn from covariances.

use leukos::contexts::Pcg64;
use leukos::models::{self, Algorithm};
use leukos::{Circuit, Matrix, Offline, OfflineGains, Order, SynapseRule, Synapses, UnitNorm, starts};
use serde::{Deserialize, Serialize};

use super::super::offline::LEAK;
use super::super::spec::Positive;

/// The rates of all circuits of the figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names)] // The words of every spec.
pub struct RatesSpec {
    /// η_g.
    gains: Positive,
    /// η_w.
    synapses: Positive,
    /// η_m, where unit norms are held by multipliers.
    multipliers: Positive,
}

/// What holds a circuit back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// Nothing but unit columns: Algorithm 2.
    Free,
    /// Weights and gains are not negative, either.
    Sign,
    /// Feedforward and feedback weights are separate.
    Decoupled,
    /// Algorithm 3: both, and unit norms by multipliers.
    All,
}

impl Constraint {
    fn is_tied(self) -> bool {
        matches!(self, Self::Free | Self::Sign)
    }

    /// All update from the old values, as in the paper's text, because Algorithm 2 does not work in the printed order.
    fn model(self, rates: &RatesSpec) -> Algorithm {
        let (gains, synapses) = (rates.gains.0, rates.synapses.0);
        let mut model = match self {
            Self::Free => models::multi_timescale_offline(gains, synapses),
            Self::Sign => models::sign_alone(gains, synapses),
            Self::Decoupled => models::decoupled_alone(gains, synapses),
            Self::All => models::biological(gains, synapses, rates.multipliers.0),
        };
        model.rules.order = Order::Concurrent;
        if self != Self::All {
            model.rules.unit_norm = UnitNorm::Projected;
        }
        model
    }

    /// A circuit with gains of 0 that begins from these weights (N × K both).
    pub fn circuit(self, feedback: Matrix, feedforward: &Matrix) -> leukos::Result<Circuit> {
        let gains = vec![0.0; feedback.columns()];
        let synapses = if self.is_tied() {
            Synapses::tied(feedback)?
        } else {
            Synapses::untied(feedback, &feedforward.transpose())?
        };
        Circuit::new(synapses, gains, LEAK)
    }

    /// A run in which everything learns.
    pub fn learn(
        self,
        rates: &RatesSpec,
        circuit: Circuit,
        contexts: Vec<Matrix>,
    ) -> leukos::Result<Offline> {
        self.model(rates).offline(circuit, contexts, OfflineGains::Rule)
    }

    /// A run in which the gains alone adapt.
    pub fn adapt(
        self,
        rates: &RatesSpec,
        circuit: Circuit,
        contexts: Vec<Matrix>,
    ) -> leukos::Result<Offline> {
        let mut model = self.model(rates);
        model.rules.synapses = SynapseRule::Frozen;
        model.offline(circuit, contexts, OfflineGains::Rule)
    }

    /// About how many nanoseconds a step takes.
    pub fn step_work(self, n: usize, k: usize) -> u64 {
        let products = (n * n * (n + 4 * k)) as u64 / 5 + 1;
        if self.is_tied() { products } else { 2 * products }
    }
}

/// How far starting weights are from the identity.
const NOISE: f64 = 0.2;

/// Unit columns max(I + 0.2 normal, 0), the identity again and again where K > N.
pub fn start(n: usize, k: usize, mut rng: Pcg64) -> Matrix {
    let mut weights = Matrix::zeros(n, k);
    for first in (0..k).step_by(n) {
        let block = starts::noisy_identity(n, n.min(k - first), NOISE, &mut rng);
        for j in 0..block.columns() {
            let length = block.column(j).iter().map(|w| w * w).sum::<f64>().sqrt();
            let to = weights.column_mut(first + j).iter_mut();
            // A column of which nothing is left has no direction.
            to.zip(block.column(j))
                .for_each(|(to, from)| *to = if length > 0.0 { from / length } else { 0.0 });
        }
    }
    weights
}
