//! Switches a circuit to a context it has not seen, without telling it, and measures how its gains follow.

use std::iter::successors;

use leukos::contexts::{Contexts, Pcg64, Stimuli};
use leukos::{Circuit, Matrix, Online, Solver, Synapses, WhiteningMeter, models, optimal_gains};
use serde::{Deserialize, Serialize};

use super::super::offline::LEAK;
use super::super::online::log_grid;

/// The whitening error that counts as adapted. Silence has an error of 1, so it is well below that.
pub const ADAPTED: f64 = 0.5;
/// For so many samples the error has to stay there.
const HELD: usize = 50;
/// The samples after which errors are reported.
pub const REPORTED: [usize; 6] = [10, 30, 100, 300, 1000, 3000];
/// The points of a curve.
const POINTS: usize = 40;

/// After which samples the error is measured: all of the first ones, then every twentieth part of the time, and at
/// least every 25; and where it is reported or drawn.
pub fn measured(horizon: usize) -> Vec<usize> {
    let next = |&sample: &usize| Some(sample + (sample / 20).clamp(1, 25)).filter(|&next| next <= horizon);
    let mut grid: Vec<usize> = successors(Some(1), next).collect();
    grid.extend(REPORTED.into_iter().filter(|&sample| sample <= horizon));
    grid.extend(drawn(horizon));
    grid.sort_unstable();
    grid.dedup();
    grid
}

/// The samples at which curves have their points.
pub fn drawn(horizon: usize) -> Vec<usize> {
    log_grid(horizon, POINTS)
}

/// A switch: the context that the gains are adapted to, and the one whose stimuli follow.
pub struct Switch<'a> {
    /// The covariance before.
    pub from: &'a Matrix,
    /// The contexts kept back.
    pub test: &'a Contexts,
    /// Which of them comes.
    pub to: usize,
    /// The random numbers of its stimuli.
    pub stimuli: Pcg64,
    /// The number of samples after the switch.
    pub horizon: usize,
}

/// How the error fell after a switch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Adapted {
    /// From which sample on the error stayed at or below [`ADAPTED`] for the next [`HELD`]; `None` for never.
    pub samples: Option<f64>,
    /// The error after each sample of [`REPORTED`]; `None` where there is none.
    pub reported: Vec<Option<f64>>,
    /// The same after each of [`drawn`].
    pub curve: Vec<Option<f64>>,
    /// The sample at which M ceased to be positive definite.
    pub diverged: Option<u64>,
}

impl Adapted {
    /// From the errors at the points of [`measured`] that the run reached.
    pub fn new(errors: &[Option<f64>], horizon: usize, diverged: Option<u64>) -> Self {
        let grid = measured(horizon);
        let at = |sample: usize| errors.get(grid.binary_search(&sample).ok()?).copied().flatten();
        Self {
            samples: if diverged.is_some() { None } else { first_adapted(&grid, errors) },
            reported: REPORTED.into_iter().map(at).collect(),
            curve: drawn(horizon).into_iter().map(at).collect(),
            diverged,
        }
    }
}

/// The first measured sample from which every error is small for long enough.
fn first_adapted(grid: &[usize], errors: &[Option<f64>]) -> Option<f64> {
    let last = *grid.last()?;
    let holds = |&first: &usize| {
        let until = grid[first] + HELD;
        let mut stretch = grid.iter().zip(errors).skip(first).take_while(|(sample, _)| **sample <= until);
        until <= last && stretch.all(|(_, error)| error.is_some_and(|error| error <= ADAPTED))
    };
    (0..errors.len()).find(holds).map(|first| grid[first] as f64)
}

impl Switch<'_> {
    /// The covariance after.
    pub fn covariance(&self) -> &Matrix {
        &self.test.covariances()[self.to]
    }

    /// The stimuli after it.
    pub fn stimuli(&self) -> Stimuli {
        Stimuli::gaussian(self.test.clone(), self.stimuli.clone())
    }

    /// The error that the optimal gains leave.
    pub fn floor(&self, synapses: &Matrix) -> leukos::Result<f64> {
        let circuit = circuit_at(synapses, self.covariance())?;
        WhiteningMeter::new(&circuit).error(&circuit, self.covariance())
    }

    /// Algorithm 1 with frozen synapses: the gains, optimal before, follow the gradient of Eq. (7) sample by sample.
    pub fn follow_gradient(&self, synapses: &Matrix, rate: f64) -> leukos::Result<Adapted> {
        let circuit = circuit_at(synapses, self.from)?;
        let (mut meter, mut stimuli) = (WhiteningMeter::new(&circuit), self.stimuli());
        let mut run = Online::new(circuit, models::gain_modulation(rate).rules, &Solver::Direct)?;
        let (mut errors, mut from) = (Vec::new(), 0);
        for until in measured(self.horizon) {
            let mut block = vec![0.0; (until - from) * synapses.rows()];
            stimuli.fill(self.to, &mut block)?;
            let mut responses = block.clone();
            match run.advance(&block, &mut responses, &mut ()) {
                Ok(_) => errors.push(Some(meter.error(run.circuit(), self.covariance())?)),
                Err(leukos::Error::Diverged(end)) => {
                    return Ok(Adapted::new(&errors, self.horizon, Some(end.step)));
                }
                Err(error) => return Err(error),
            }
            from = until;
        }
        Ok(Adapted::new(&errors, self.horizon, None))
    }
}

/// A circuit whose gains are optimal for a covariance.
fn circuit_at(synapses: &Matrix, covariance: &Matrix) -> leukos::Result<Circuit> {
    let gains = optimal_gains(synapses, covariance, LEAK)?;
    Circuit::new(Synapses::tied(synapses.clone())?, gains, LEAK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapted_means_for_the_next_fifty_samples() {
        let grid = measured(200);
        assert!(grid.starts_with(&[1, 2, 3]) && grid.contains(&100) && grid.last() == Some(&200));
        assert!(grid.windows(2).all(|pair| pair[1] - pair[0] <= pair[0] / 20 + 1));
        let first = |small: &dyn Fn(usize) -> bool| {
            let error = |&sample: &usize| Some(if small(sample) { 0.5 } else { 0.6 });
            first_adapted(&grid, &grid.iter().map(error).collect::<Vec<_>>())
        };
        assert_eq!(first(&|sample| sample >= 7), Some(7.0));
        assert_eq!(
            first(&|sample| sample != 30),
            Some(31.0),
            "an error that is too large restarts the count"
        );
        assert_eq!(first(&|sample| (20..60).contains(&sample)), None, "not for long enough");
        assert_eq!(first(&|sample| sample >= 160), None, "what comes after the horizon is not known");
        assert_eq!(first_adapted(&grid, &[]), None);
    }
}
