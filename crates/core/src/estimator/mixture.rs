//! Weighs experts by what they predicted, and lets weight return to those that had lost it.

#[cfg(feature = "model-file")]
use crate::archive::{Archive, require, require_all};
#[cfg(feature = "model-file")]
use crate::error::Result;

/// Weights of experts under Bayes' rule with fixed share (Herbster and Warmuth 1998): after each update a part of all
/// weight is distributed again according to the prior, so that an expert who was bad for long can become the best one
/// within a few updates.
///
/// How large that part should be depends on how often the best expert changes, which nobody knows. So there are several
/// rates, each with weights of its own, and the rates are weighed in the same way.
///
/// With losses ℓ the update costs the mixture −ln Σ wᵢ exp(−ℓᵢ), its *mix loss*. In sum that exceeds the loss of any
/// sequence of experts by no more than the logarithm of how improbable the rates hold that sequence to be.
///
/// ```
/// use leukos::Mixture;
///
/// let mut mixture = Mixture::new(&[1.0, 1.0], &[1e-3]);
/// (0..50).for_each(|_| { mixture.update(&[0.0, 1.0], 1.0); });
/// assert!(mixture.weights()[0] > 0.99);
/// (0..10).for_each(|_| { mixture.update(&[1.0, 0.0], 1.0); });
/// assert!(mixture.weights()[1] > 0.9, "the share has kept the second one in the game");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    /// What is shared goes to the experts in these proportions.
    prior: Vec<f64>,
    /// The part that is shared per row, for each rate.
    rates: Vec<f64>,
    /// Weights of (rate, expert), one rate after another; they sum to one.
    joint: Vec<f64>,
    /// Weights of the experts.
    weights: Vec<f64>,
    scratch: Vec<f64>,
}

/// The part of all weight that is shared among rates at each update.
const SHARE_OF_RATES: f64 = 1e-6;

impl Mixture {
    /// Experts with weights in proportion to `prior`, and rates of sharing per row.
    ///
    /// # Panics
    /// When there is no expert or no rate, a prior weight is not positive, or a rate not between 0 and 1.
    pub fn new(prior: &[f64], rates: &[f64]) -> Self {
        assert!(!prior.is_empty() && prior.iter().all(|&weight| weight > 0.0), "prior weights are positive");
        let sound = |&rate: &f64| rate > 0.0 && rate < 1.0;
        assert!(!rates.is_empty() && rates.iter().all(sound), "rates lie between 0 and 1");
        let total: f64 = prior.iter().sum();
        let prior: Vec<f64> = prior.iter().map(|weight| weight / total).collect();
        let each = 1.0 / rates.len() as f64;
        let mut mixture = Self {
            joint: rates.iter().flat_map(|_| prior.iter().map(|weight| each * weight)).collect(),
            weights: vec![0.0; prior.len()],
            scratch: vec![0.0; prior.len()],
            rates: rates.to_vec(),
            prior,
        };
        mixture.sum_over_rates();
        mixture
    }

    /// The weights of the experts, which sum to one.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Takes in the losses of the experts over some rows, in nats. Returns the mix loss.
    pub fn update(&mut self, losses: &[f64], rows: f64) -> f64 {
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        self.scratch.iter_mut().zip(losses).for_each(|(factor, loss)| *factor = (least - loss).exp());
        let mixed: f64 = self.weights.iter().zip(&self.scratch).map(|(weight, factor)| weight * factor).sum();
        let experts = self.prior.len();
        let each = SHARE_OF_RATES / self.rates.len() as f64;
        for (joint, rate) in self.joint.chunks_exact_mut(experts).zip(&self.rates) {
            joint.iter_mut().zip(&self.scratch).for_each(|(weight, factor)| *weight *= factor / mixed);
            let own: f64 = joint.iter().sum();
            let shared = -(rows * (-rate).ln_1p()).exp_m1();
            // What the rate keeps of its own weight, and what it gets of all; both go where they belong.
            let kept = (1.0 - SHARE_OF_RATES) * (1.0 - shared);
            let given = (1.0 - SHARE_OF_RATES) * shared * own + each;
            joint
                .iter_mut()
                .zip(&self.prior)
                .for_each(|(weight, prior)| *weight = kept * *weight + given * prior);
        }
        self.sum_up();
        least - mixed.ln()
    }

    /// Gives almost all weight to one expert, because it is known from elsewhere that it is right.
    pub fn favour(&mut self, expert: usize, share: f64) {
        for joint in self.joint.chunks_exact_mut(self.prior.len()) {
            let own: f64 = joint.iter().sum();
            joint.iter_mut().for_each(|weight| *weight *= 1.0 - share);
            joint[expert] += share * own;
        }
        self.sum_up();
    }

    /// The weights of the experts, and everything once more to a sum of one, so that rounding does not add up.
    fn sum_up(&mut self) {
        let total: f64 = self.joint.iter().sum();
        self.joint.iter_mut().for_each(|weight| *weight /= total);
        self.sum_over_rates();
    }

    fn sum_over_rates(&mut self) {
        self.weights.fill(0.0);
        for joint in self.joint.chunks_exact(self.prior.len()) {
            self.weights.iter_mut().zip(joint).for_each(|(weight, own)| *weight += own);
        }
    }
}

#[cfg(feature = "model-file")]
impl Mixture {
    pub(crate) fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let size = self.joint.len();
        archive.vector("mixture", size, &mut self.joint)?;
        if A::READS {
            require_all("mixture", &self.joint, "weights from 0 to 1", |weight| {
                (0.0..=1.0).contains(&weight)
            })?;
            let total: f64 = self.joint.iter().sum();
            require("mixture", (total - 1.0).abs() < 1e-9, "weights that sum to 1", total)?;
            // Not normalised again: what was written continues to the last bit.
            self.sum_over_rates();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    /// How improbable one rate holds a sequence of experts to be, in nats: every update stays or switches.
    fn description(mixture: &Mixture, rate: f64, sequence: &[usize], rows: f64) -> f64 {
        let shared = 1.0 - (1.0 - rate).powf(rows);
        let rates = mixture.rates.len() as f64;
        let mut nats = rates.ln() - mixture.prior[sequence[0]].ln();
        for pair in sequence.windows(2) {
            let stays = if pair[0] == pair[1] { 1.0 - shared } else { 0.0 };
            let step = (1.0 - SHARE_OF_RATES) * (stays + shared * mixture.prior[pair[1]])
                + SHARE_OF_RATES / rates * mixture.prior[pair[1]];
            nats -= step.ln();
        }
        nats
    }

    /// The mix loss of a whole sequence is a negative log probability in which that of every sequence of experts is
    /// one of the summands: no constant, no approximation.
    #[test]
    fn mix_loss_exceeds_no_sequence_by_more_than_its_description() {
        let mut rng = Pcg64::seed_from_u64(7);
        for round in 0..200 {
            let (experts, updates) = (rng.random_range(1..6), rng.random_range(1..60));
            let prior: Vec<f64> = (0..experts).map(|_| rng.random_range(0.01..1.0)).collect();
            let rates: Vec<f64> =
                (0..rng.random_range(1..4)).map(|_| 10.0_f64.powf(rng.random_range(-6.0..-0.5))).collect();
            let rows = f64::from(rng.random_range(1..20_i32));
            let size = 10.0_f64.powf(rng.random_range(-2.0..3.0));
            let mut mixture = Mixture::new(&prior, &rates);
            let fresh = mixture.clone();
            let (mut expert, mut sequence, mut own, mut mixed) = (0, Vec::new(), 0.0, 0.0);
            for _ in 0..updates {
                if rng.random_range(0..8) == 0 {
                    expert = rng.random_range(0..experts);
                }
                let losses: Vec<f64> = (0..experts).map(|_| size * rng.random_range(-1.0..1.0)).collect();
                sequence.push(expert);
                own += losses[expert];
                mixed += mixture.update(&losses, rows);
            }
            for &rate in &rates {
                let bound = own + description(&fresh, rate, &sequence, rows);
                assert!(mixed <= bound + 1e-9 * (1.0 + bound.abs()), "round {round}: {mixed} above {bound}");
            }
        }
    }

    /// Against the definition written down in logarithms.
    #[test]
    fn weights_are_those_of_the_definition() {
        let mut mixture = Mixture::new(&[2.0, 1.0, 1.0], &[0.1, 0.01]);
        let mut twin = vec![vec![0.25, 0.125, 0.125]; 2];
        for losses in [[0.3_f64, 0.1, 2.0], [5.0, 0.0, 1.0], [0.0, 400.0, 0.2]] {
            let mix: f64 = twin
                .iter()
                .flatten()
                .zip(losses.iter().cycle())
                .map(|(w, l): (&f64, &f64)| w * (-l).exp())
                .sum();
            let loss = mixture.update(&losses, 3.0);
            assert!((loss + mix.ln()).abs() < 1e-12);
            for (row, rate) in twin.iter_mut().zip([0.1_f64, 0.01]) {
                row.iter_mut().zip(losses).for_each(|(w, l)| *w *= (-l).exp() / mix);
                let (own, shared) = (row.iter().sum::<f64>(), 1.0 - (1.0 - rate).powi(3));
                for (w, p) in row.iter_mut().zip([0.5, 0.25, 0.25]) {
                    *w = (1.0 - SHARE_OF_RATES) * ((1.0 - shared) * *w + shared * own * p)
                        + SHARE_OF_RATES / 2.0 * p;
                }
            }
            for (e, &weight) in mixture.weights().iter().enumerate() {
                assert!((weight - twin[0][e] - twin[1][e]).abs() < 1e-12);
            }
        }
    }
}
