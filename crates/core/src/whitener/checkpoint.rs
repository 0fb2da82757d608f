//! Visits what a whitener has learned, and its running state, so that one that was saved and loaded continues exactly
//! where it was.

use super::imagination::Imagination;
use super::{GainPrior, Learned, Whitener, WhitenerSettings};
use crate::archive::{Archive, require, require_all};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::real::Real;

impl<T: Real> Whitener<T> {
    /// Room for a whitener of N channels and K interneurons, to be read.
    pub(crate) fn blank((n, k): (usize, usize), settings: WhitenerSettings) -> Result<Self> {
        settings.validate()?;
        let mut synapses = Matrix::zeros(n, k);
        (0..k).for_each(|j| synapses[(0, j)] = 1.0);
        Self::around(synapses, settings)
    }

    /// Visits what was learned: synapses, prior, and the mean and covariance that it was fitted to.
    pub(crate) fn archive_learned<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let (n, k) = (self.channels(), self.interneurons());
        visit_matrix(archive, "synapses", &mut self.synapses)?;
        archive.optional("prior", &mut self.prior, GainPrior::blank, |archive, prior| {
            prior.archive(archive, k)
        })?;
        let mut learned = self.learned.take().unwrap_or_else(|| Learned::blank(n));
        learned.archive(archive)?;
        self.learned = Some(learned).filter(|learned| learned.count > 0.0);
        if !A::READS {
            return Ok(());
        }
        for j in 0..k {
            let length = self.synapses.column(j).iter().map(|w| w * w).sum::<f64>().sqrt();
            require("synapses", (length - 1.0).abs() < 1e-6, "columns of unit length", length)?;
        }
        Ok(())
    }

    /// Takes what is in force for what it was fitted to, if it began with its stream.
    pub(crate) fn settle_what_was_learned(&mut self) {
        if self.learned.is_some() || !self.started {
            return;
        }
        let (mean, covariance) = self.estimator.in_force();
        let (n, unit) = (mean.len(), self.unit);
        self.learned = Some(Learned {
            count: self.estimator.rows_in_force(),
            mean: mean.iter().map(|mean| mean * unit).collect(),
            covariance: Matrix::from_fn(n, n, |i, j| covariance[(i, j)] * unit * unit),
            dead: self.live.iter().map(|live| !live).collect(),
        });
    }

    /// Begins anew from what was learned, with the settings at hand.
    pub(crate) fn refreshed(self) -> Result<Self> {
        let (prior, learned) = (self.prior, self.learned);
        let mut fresh = Self::around(self.synapses, self.settings)?;
        if let Some(learned) = learned {
            return Ok(fresh.fitted(learned, prior));
        }
        fresh.prior = prior;
        Ok(fresh)
    }

    /// Visits all that later output depends on beside what was learned, and what the status shows.
    pub(crate) fn archive_state<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let (n, floor, strength) = (self.channels(), self.settings.floor, self.settings.strength);
        // Nothing is left out by `..`, so that a new part cannot be forgotten here.
        let Self {
            settings: _,
            pace: _,
            rows_together,
            synapses: _,
            prior: _,
            learned: _,
            unit,
            started,
            estimator,
            map,
            screen,
            live,
            imagination,
            block,
            last,
            unlearned,
            adapting,
            samples,
            responses,
            thinning: _,
        } = self;
        archive.value("unit", unit)?;
        archive.value("started", started)?;
        estimator.archive(archive)?;
        screen.archive(archive)?;
        screen.live_into(live);
        let blank = || Imagination::blank(n);
        archive
            .optional("imagination", imagination, blank, |archive, own| own.archive(archive, live, floor))?;
        map.archive(archive, live, floor, strength)?;
        archive.value("block.rows", &mut block.rows)?;
        archive.value("block.wild", &mut block.wild)?;
        archive.value("block.powers", &mut block.powers)?;
        archive.rows("block.values", (*rows_together + super::FIRST_ROWS, n), &mut block.values)?;
        archive.vector("last", n, last)?;
        archive.value("unlearned", unlearned)?;
        archive.value("adapting", adapting)?;
        archive.value("samples", samples)?;
        responses.archive(archive, "responses")?;
        if A::READS { self.require_sound() } else { Ok(()) }
    }

    fn require_sound(&self) -> Result<()> {
        let (n, block) = (self.channels(), &self.block);
        let whole = self.rows_together;
        let sound = self.unit > 0.0 && self.unit.is_finite() && self.unit.log2().fract() == 0.0;
        require("unit", sound, "a power of two", self.unit)?;
        require("block.rows", block.rows < whole, &format!("less than a block, {whole}"), block.rows)?;
        let rows = block.values.len() / n;
        require(
            "block.wild",
            block.wild.len() == rows,
            &format!("one for each of {rows} rows"),
            block.wild.len(),
        )?;
        let powers = block.powers.len();
        require("block.powers", powers == rows, &format!("one for each of {rows} rows"), powers)?;
        require_all("block.powers", &block.powers, "numbers that are not negative", |power| power >= 0.0)?;
        require("unlearned", (0.0..=1e16).contains(&self.unlearned), "a number of rows", self.unlearned)?;
        require_all("block.values", &block.values, "numbers that can be squared", |s| s.abs() <= 1e101)?;
        require("live", self.estimator.live() == self.live, "the channels that are not left out", "others")?;
        let imagined = self.imagination.is_some() == (self.started && self.live.contains(&false));
        require("imagination", imagined, "one if a channel is left out", "another")?;
        let mapped = (self.map.scale > 0.0) == self.started;
        require("map", mapped, "a scale once the whitener has begun", self.map.scale)
    }
}

impl Learned {
    pub(crate) fn blank(n: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; n], covariance: Matrix::zeros(n, n), dead: vec![false; n] }
    }

    fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let n = self.mean.len();
        archive.value("learned.count", &mut self.count)?;
        archive.value("learned.dead", &mut self.dead)?;
        archive.vector("learned.mean", n, &mut self.mean)?;
        visit_matrix(archive, "learned.covariance", &mut self.covariance)?;
        if A::READS { self.require_sound() } else { Ok(()) }
    }

    pub(crate) fn require_sound(&self) -> Result<()> {
        let n = self.mean.len();
        if self.count == 0.0 {
            return require("learned.dead", self.dead.len() == n, "one for each channel", self.dead.len());
        }
        require("learned.count", (1.0..=1e16).contains(&self.count), "a number of samples", self.count)?;
        require(
            "learned.dead",
            self.dead.len() == n,
            &format!("one for each of {n} channels"),
            self.dead.len(),
        )?;
        let symmetric = (0..n).all(|j| (0..j).all(|i| self.covariance[(i, j)] == self.covariance[(j, i)]));
        require("learned.covariance", symmetric, "a symmetric matrix", "another")?;
        let variances: Vec<f64> =
            (0..n).filter(|&j| !self.dead[j]).map(|j| self.covariance[(j, j)]).collect();
        require("learned.dead", !variances.is_empty(), "a channel that varies", "none")?;
        let fits = |variance: f64| variance > 0.0 && variance < 1e300;
        require_all("learned.covariance", &variances, "positive variances", fits)?;
        require_all("learned.mean", &self.mean, "numbers that can be squared", |mean| mean.abs() < 1e150)
    }
}

impl GainPrior {
    fn blank() -> Self {
        Self { mean: Vec::new(), covariance: Matrix::zeros(0, 0) }
    }

    fn archive<A: Archive>(&mut self, archive: &mut A, k: usize) -> Result<()> {
        let Self { mean, covariance } = self;
        let mut entries = covariance.as_slice().to_vec();
        archive.vector("prior.mean", k, mean)?;
        archive.matrix("prior.covariance", (k, k), &mut entries)?;
        *covariance = Matrix::from_columns(k, k, entries)?;
        Ok(())
    }
}

impl Imagination {
    fn blank(n: usize) -> Self {
        let (mean, square) = (vec![0.0; n], Matrix::zeros(n, n));
        Self {
            absent: Vec::new(),
            present: Vec::new(),
            weights: Matrix::zeros(0, 0),
            mean,
            covariance: square.clone(),
            rest: square,
        }
    }

    fn archive<A: Archive>(&mut self, archive: &mut A, live: &[bool], floor: f64) -> Result<()> {
        let n = self.mean.len();
        archive.vector("imagination.mean", n, &mut self.mean)?;
        visit_matrix(archive, "imagination.covariance", &mut self.covariance)?;
        if A::READS
            && let Some(made) = Self::new(live, &self.mean, &self.covariance, floor)
        {
            *self = made;
        }
        Ok(())
    }
}

/// A matrix of the size that it has.
pub(super) fn visit_matrix<A: Archive>(archive: &mut A, name: &str, matrix: &mut Matrix) -> Result<()> {
    let size = (matrix.rows(), matrix.columns());
    let mut entries = matrix.as_slice().to_vec();
    archive.matrix(name, size, &mut entries)?;
    matrix.as_mut_slice().copy_from_slice(&entries);
    Ok(())
}
