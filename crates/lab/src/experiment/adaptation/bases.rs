//! Supplies the synapses whose gains are to adapt: learned from contexts, known beforehand, or random.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use leukos::contexts::{Contexts, Pcg64, stream};
use leukos::{Matrix, SynapseLearner, eigenbasis, local_frame, optimal_gains, starts};
use serde::{Deserialize, Serialize};

use super::super::images::Images;
use super::super::offline::LEAK;

/// Where synapses come from. Of those that are not learned the first K columns are taken, so that fewer interneurons
/// have what more of them have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Learned from the training contexts: Eq. (3) with a small cost of gains.
    Learned,
    /// Cosines, from low to high frequency.
    Cosines,
    /// The eigenvectors of the mean covariance of the training contexts, from the largest eigenvalue to the smallest.
    Eigenbasis,
    /// Single pixels, then sums of two neighbours.
    LocalFrame,
    /// Columns uniform on the unit sphere.
    Sphere,
}

impl Basis {
    /// How many columns there are at most; `None` for as many as one likes.
    pub fn most(self, images: &Images) -> Option<usize> {
        match self {
            Self::Learned | Self::Sphere => None,
            Self::Cosines | Self::Eigenbasis => Some(images.contexts.neurons()),
            Self::LocalFrame => Some(frame(images).columns()),
        }
    }
}

/// What synapses are made from.
pub struct Material<'a> {
    pub images: &'a Images,
    /// The contexts to learn from, and which start they are of.
    pub train: &'a Contexts,
    pub start: usize,
    /// How many iterations learning takes at most.
    pub iterations: usize,
    /// The random numbers of random columns.
    pub rng: Pcg64,
}

/// What is learned from training contexts, learned once for all that use it.
#[derive(Default)]
pub struct Library {
    synapses: Shelf<Matrix>,
    gains: Shelf<Vec<Vec<f64>>>,
}

impl Library {
    /// K columns.
    pub fn columns(&self, basis: Basis, k: usize, from: &mut Material<'_>) -> leukos::Result<Matrix> {
        Ok(match basis {
            Basis::Learned => self.synapses.get([from.start, k], || learn(from.train, k, from.iterations))?,
            Basis::Cosines => lowest_frequencies(from.images, k),
            Basis::Eigenbasis => first(&eigenbasis(&from.train.mean_covariance())?, k),
            Basis::LocalFrame => first(&frame(from.images), k),
            Basis::Sphere => starts::on_sphere(from.train.neurons(), k, &mut from.rng),
        })
    }

    /// The optimal gains of these columns in each training context.
    pub fn gains(
        &self,
        basis: Basis,
        synapses: &Matrix,
        from: &Material<'_>,
    ) -> leukos::Result<Vec<Vec<f64>>> {
        let optimal = |covariance| optimal_gains(synapses, covariance, LEAK);
        let all = || from.train.covariances().iter().map(optimal).collect();
        if basis == Basis::Learned { self.gains.get([from.start, synapses.columns()], all) } else { all() }
    }
}

/// Things that one thread makes and others wait for, by start and K.
struct Shelf<T>(Mutex<BTreeMap<[usize; 2], Place<T>>>);

/// Empty until it is made.
type Place<T> = Arc<Mutex<Option<T>>>;

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Shelf<T> {
    fn get(&self, key: [usize; 2], make: impl FnOnce() -> leukos::Result<T>) -> leukos::Result<T> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::clone(places.entry(key).or_default());
        drop(places);
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*place {
            return Ok(made.clone());
        }
        let made = make()?;
        *place = Some(made.clone());
        Ok(made)
    }
}

fn learn(train: &Contexts, k: usize, iterations: usize) -> leukos::Result<Matrix> {
    let covariances = train.covariances();
    // The generator is asked only where even the sums of two eigenvectors are used up.
    let start = starts::mean_eigenbasis(covariances, k, LEAK, &mut stream(0, k as u64))?;
    let mut learner = SynapseLearner::new(start, covariances.to_vec(), LEAK, SynapseLearner::GAIN_COST)?;
    learner.advance(iterations);
    Ok(learner.synapses().clone())
}

fn frame(images: &Images) -> Matrix {
    local_frame(images.patch[0], images.patch[1])
}

fn first(columns: &Matrix, k: usize) -> Matrix {
    Matrix::from_fn(columns.rows(), k, |i, j| columns[(i, j)])
}

/// The cosines with the fewest half waves, down and across together.
fn lowest_frequencies(images: &Images, k: usize) -> Matrix {
    let width = images.patch[1];
    let mut order: Vec<usize> = (0..images.cosines.columns()).collect();
    order.sort_by_key(|&column| (column / width + column % width, column / width));
    Matrix::from_fn(images.cosines.rows(), k, |i, j| images.cosines[(i, order[j])])
}
