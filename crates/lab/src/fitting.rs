//! Fits a whitener to contexts, and measures how well it whitens them.

mod summary;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use leukos::contexts::stream;
use leukos::size::require_moments;
use leukos::{
    Circuit, GroupedWhitener, LearningProgress, Matrix, Moments, Synapses, TrainingSynapses, Whitener,
    WhitenerSettings, WhitenerTraining, eigenbasis, optimal_gains, whitening_error,
};

use crate::channels::{dead, duplicates};
use crate::contexts::Spectrum;
use crate::outlook::Outlook;

pub use summary::{Samples, Summary};

/// How a whitener is fitted.
pub struct Fitting {
    /// How it adapts.
    pub settings: WhitenerSettings,
    /// The number of interneurons of each group; none means as many as it has channels.
    pub interneurons: Option<usize>,
    /// Where its synapses come from.
    pub synapses: TrainingSynapses,
    /// The groups of channels that are whitened separately; none means one group of all.
    pub groups: Option<Vec<Vec<usize>>>,
    /// The seed of random synapses.
    pub seed: u64,
}

/// A whitener, and how well it whitens the contexts that it was fitted to.
pub struct Fitted {
    /// The whitener.
    pub whitener: GroupedWhitener,
    /// The results of each of its groups.
    pub groups: Vec<FittedGroup>,
}

/// What was found of a group of channels.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedGroup {
    /// How many channels it has.
    pub channels: usize,
    /// How many interneurons it has.
    pub interneurons: usize,
    /// Channels that do not vary.
    pub dead: Vec<usize>,
    /// Pairs of channels that carry the same signal.
    pub duplicates: Vec<(usize, usize)>,
    /// How well it whitens each context.
    pub contexts: Vec<FittedContext>,
}

/// How well a whitener whitens a context that it was fitted to. Directions below the floor count as if they were at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FittedContext {
    /// The number of samples.
    pub samples: u64,
    /// The condition number of its covariance.
    pub condition: f64,
    /// The whitening error of the input, centred and scaled alone.
    pub error_before: f64,
    /// The same with the model as it is.
    pub error_at_rest: f64,
    /// The same with the gains of its circuit that are best for the context.
    pub error_adapted: f64,
}

impl Fitting {
    /// Fits a whitener to contexts. `None` when it was stopped before the end.
    ///
    /// # Errors
    /// When a context has no usable sample, nothing varies, sizes do not fit, or no gains whiten.
    pub fn fit(
        &self,
        contexts: Vec<(String, Moments)>,
        outlook: &dyn Outlook,
        stop: &AtomicBool,
    ) -> Result<Option<Fitted>> {
        require_moments(contexts.first().map_or(0, |(_, first)| first.channels()), contexts.len())?;
        for (name, moments) in &contexts {
            moments.covariance().with_context(|| format!("context {name}"))?;
        }
        let moments: Vec<Moments> = contexts.into_iter().map(|(_, moments)| moments).collect();
        outlook.begin(0);
        let trained = self.train(&moments, |LearningProgress { iterations, gap, .. }| {
            outlook.done(&format!("synapses after {iterations} iterations, gap {gap:.3e}"), 1);
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        outlook.end();
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let whitener = trained?;
        let group = |(channels, whitener)| FittedGroup::of(channels, whitener, &moments);
        let groups = whitener.groups().map(group).collect::<Result<_>>()?;
        Ok(Some(Fitted { whitener, groups }))
    }

    fn train(
        &self,
        moments: &[Moments],
        watch: impl FnMut(LearningProgress) -> ControlFlow<()>,
    ) -> leukos::Result<GroupedWhitener> {
        let training = WhitenerTraining {
            moments: moments.to_vec(),
            interneurons: self.interneurons,
            synapses: self.synapses.clone(),
            ..WhitenerTraining::default()
        };
        let mut rng = stream(self.seed, 0);
        match &self.groups {
            None => Ok(training.fit::<f64>(self.settings.clone(), &mut rng, watch)?.into()),
            Some(groups) => training.fit_groups(groups, &self.settings, &mut rng, watch),
        }
    }
}

impl FittedGroup {
    fn of(channels: &[usize], whitener: &Whitener, moments: &[Moments]) -> Result<Self> {
        let own = moments.iter().map(|moments| moments.select(channels));
        let covariances = own.clone().map(|own| own?.covariance()).collect::<leukos::Result<Vec<_>>>()?;
        let (n, floor, contexts) = (channels.len(), whitener.settings().floor, covariances.len() as f64);
        let mean =
            Matrix::from_fn(n, n, |i, j| covariances.iter().map(|c| c[(i, j)]).sum::<f64>() / contexts);
        let meter = Meter { whitener, dead: dead(&mean, floor) };
        let measured = own.map(|own| meter.measure(&own?)).collect::<Result<_>>()?;
        Ok(Self {
            channels: n,
            interneurons: whitener.interneurons(),
            dead: meter.dead.iter().map(|&channel| channels[channel]).collect(),
            duplicates: duplicates(&mean, floor)
                .into_iter()
                .map(|(i, j)| (channels[i], channels[j]))
                .collect(),
            contexts: measured,
        })
    }
}

/// The leak of a whitener's circuit, in units of the scale.
const LEAK: f64 = 1.0;

/// Measures how well a whitener whitens covariances.
struct Meter<'a> {
    whitener: &'a Whitener,
    dead: Vec<usize>,
}

impl Meter<'_> {
    fn measure(&self, moments: &Moments) -> Result<FittedContext> {
        let covariance = self.in_units(&moments.covariance()?);
        let condition = Spectrum::of(&covariance)?.condition();
        let covariance = lifted(&covariance, self.whitener.settings().floor)?;
        let (n, w) = (covariance.rows(), self.whitener.synapses());
        let adapted = Circuit::new(Synapses::tied(w.clone())?, optimal_gains(w, &covariance, LEAK)?, LEAK)?;
        Ok(FittedContext {
            samples: moments.count(),
            condition,
            error_before: whitening_error(&Matrix::identity(n), &covariance)?,
            error_at_rest: whitening_error(&self.at_rest()?, &covariance)?,
            error_adapted: whitening_error(&adapted.inverse_whitening_matrix(), &covariance)?,
        })
    }

    /// The inverse of the whitening matrix, in units of the scale.
    fn at_rest(&self) -> Result<Matrix> {
        let mut inverse = self.whitener.dewhitening_matrix()?;
        inverse.as_mut_slice().iter_mut().for_each(|entry| *entry /= self.whitener.scale());
        self.dead.iter().for_each(|&channel| inverse[(channel, channel)] = 1.0);
        Ok(inverse)
    }

    /// In units of the scale; a channel that is left out counts as white.
    fn in_units(&self, covariance: &Matrix) -> Matrix {
        let (n, scale) = (covariance.rows(), self.whitener.scale());
        let live: Vec<bool> = (0..n).map(|channel| !self.dead.contains(&channel)).collect();
        Matrix::from_fn(n, n, |i, j| match (live[i] && live[j], i == j) {
            (true, _) => covariance[(i, j)] / scale / scale,
            (false, true) => 1.0,
            (false, false) => 0.0,
        })
    }
}

/// The same covariance with no direction below the floor, which is what the whitener amplifies such directions from.
fn lifted(covariance: &Matrix, floor: f64) -> Result<Matrix> {
    let (n, vectors) = (covariance.rows(), eigenbasis(covariance)?);
    let along = |v: &[f64], i: usize| -> f64 { covariance.column(i).iter().zip(v).map(|(c, v)| c * v).sum() };
    let mut lifted = covariance.clone();
    for k in 0..n {
        let v = vectors.column(k);
        let missing = floor * floor - (0..n).map(|i| v[i] * along(v, i)).sum::<f64>();
        if missing > 0.0 {
            (0..n).for_each(|j| (0..n).for_each(|i| lifted[(i, j)] += missing * (v[i] * v[j])));
        }
    }
    Ok(lifted)
}
