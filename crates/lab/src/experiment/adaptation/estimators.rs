//! Whitens without a circuit: by the root of a covariance that is estimated from the samples since the switch.

use leukos::{Matrix, whitening_error};
use serde::{Deserialize, Serialize};

use super::cholesky::Cholesky;
use super::switch::{Adapted, Switch, measured};

/// An estimate of a covariance from samples with mean 0, told of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The mean of ssᵀ.
    SampleCovariance,
    /// The same, shrunk towards a multiple of I by as much as Ledoit and Wolf (2004) find best.
    LedoitWolf,
}

/// Sums over samples.
struct Sums {
    samples: f64,
    /// Σ ssᵀ.
    squares: Matrix,
    /// Σ |s|⁴.
    fourth: f64,
}

impl Estimator {
    /// The error with M = Ĉ^½ of all samples since the switch.
    pub fn follow(self, switch: &Switch<'_>) -> leukos::Result<Adapted> {
        let n = switch.covariance().rows();
        let (mut sums, mut errors) = (Sums::new(n), Vec::new());
        let (mut stimuli, mut stimulus) = (switch.stimuli(), vec![0.0; n]);
        for until in measured(switch.horizon) {
            while sums.samples < until as f64 {
                stimuli.fill(switch.to, &mut stimulus)?;
                sums.add(&stimulus);
            }
            let estimate = match self {
                Self::SampleCovariance => sums.mean(),
                Self::LedoitWolf => sums.shrunk(),
            };
            // M⁻¹CM⁻ᵀ has the same eigenvalues for every M with MMᵀ = Ĉ, of which this one is the cheapest.
            let factor = Cholesky::new(&estimate).map(|estimate| estimate.factor());
            errors.push(factor.map(|factor| whitening_error(&factor, switch.covariance())).transpose()?);
        }
        Ok(Adapted::new(&errors, switch.horizon, None))
    }
}

impl Sums {
    fn new(n: usize) -> Self {
        Self { samples: 0.0, squares: Matrix::zeros(n, n), fourth: 0.0 }
    }

    fn add(&mut self, stimulus: &[f64]) {
        self.samples += 1.0;
        for (j, &b) in stimulus.iter().enumerate() {
            self.squares.column_mut(j).iter_mut().zip(stimulus).for_each(|(sum, &a)| *sum += a * b);
        }
        self.fourth += stimulus.iter().map(|x| x * x).sum::<f64>().powi(2);
    }

    /// S.
    fn mean(&self) -> Matrix {
        let n = self.squares.rows();
        Matrix::from_fn(n, n, |i, j| self.squares[(i, j)] / self.samples)
    }

    /// (1 − δ)S + δμI with μ = Tr S / N and δ = min(b²/d², 1): how far S may be from the truth by chance, against how
    /// far it is from μI.
    fn shrunk(&self) -> Matrix {
        let mut estimate = self.mean();
        let n = estimate.rows();
        let size = estimate.as_slice().iter().map(|x| x * x).sum::<f64>();
        let mean = estimate.trace() / n as f64;
        let distance = size - mean * mean * n as f64;
        let chance = (self.fourth / self.samples - size) / self.samples;
        let share = if distance > 0.0 { (chance / distance).clamp(0.0, 1.0) } else { 1.0 };
        estimate.as_mut_slice().iter_mut().for_each(|x| *x *= 1.0 - share);
        (0..n).for_each(|i| estimate[(i, i)] += share * mean);
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_shrunk_by_hand() {
        let mut sums = Sums::new(2);
        for sample in [[3.0, 0.0], [0.0, 1.0], [3.0, 1.0], [-3.0, 1.0]] {
            sums.add(&sample);
        }
        // S = [[27, 0], [0, 3]]/4; |S|² = 738/16, μ = 30/8, d² = 738/16 − 2 · 900/64 = 18;
        // Σ|s|⁴ = 81 + 1 + 100 + 100, b² = (282/4 − 738/16)/4 = 6.09375.
        let (mean, shrunk) = (sums.mean(), sums.shrunk());
        let share = 6.09375 / 18.0;
        assert!((shrunk[(0, 0)] - (6.75 * (1.0 - share) + 3.75 * share)).abs() < 1e-12, "{shrunk:?}");
        assert!((shrunk.trace() - mean.trace()).abs() < 1e-12, "the mean variance is kept");
    }
}
