//! Visits the whole state of a whitener, so that one that was saved and loaded continues exactly where it was.

use super::conditioning::{GatheredRows, scale_is_sound};
use super::guarded_circuit::GuardedCircuit;
use super::recalibration::Former;
use super::{GainPrior, Whitener, WhitenerSettings};
use crate::archive::{Archive, require};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::real::Real;

impl<T: Real> Whitener<T> {
    /// Room for a whitener of N channels and K interneurons, to be read.
    pub(crate) fn blank(size: (usize, usize), settings: WhitenerSettings) -> Result<Self> {
        settings.validate()?;
        Self::around(GuardedCircuit::blank(size, settings.leak, settings.floor)?, settings)
    }

    /// Visits everything that later output depends on, and what the status shows.
    pub(crate) fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        // Nothing is left out by `..`, so that a new part cannot be forgotten here.
        let Self {
            settings,
            pace: _,
            circuit,
            calibration,
            gathering,
            latest,
            former,
            window_start,
            settled,
            channels,
            surprise,
            change,
            look_back,
            stillness,
            plasticity,
            anchor,
            off_scale,
            sensitivities,
            block,
            prior,
            age,
            mean_age,
            adapting,
            samples,
            guard,
            responses,
            inputs,
        } = self;
        let (n, k) = (calibration.mean.len(), circuit.gains().len());
        circuit.archive(archive)?;
        calibration.archive(archive, "")?;
        let rows = || GatheredRows::new(n, settings.calibration);
        archive.optional("gathering", gathering, rows, |archive, rows| rows.archive(archive, "gathering"))?;
        latest.archive(archive, "latest")?;
        archive.optional(
            "former",
            former,
            || Former::blank(n, k),
            |archive, former| former.archive(archive, "former"),
        )?;
        window_start.archive(archive, "window_start")?;
        settled.archive(archive, "settled")?;
        channels.archive(archive)?;
        surprise.archive(archive)?;
        change.archive(archive)?;
        archive.value("look_back", look_back)?;
        stillness.archive(archive)?;
        plasticity.as_mut().map_or(Ok(()), |plasticity| plasticity.archive(archive))?;
        archive.value("anchor", anchor)?;
        archive.value("off_scale", off_scale)?;
        archive.vector("start.sensitivities", k, sensitivities)?;
        block.archive(archive, settings.update_every)?;
        archive.optional("prior", prior, GainPrior::blank, |archive, prior| prior.archive(archive, k))?;
        archive.value("age", age)?;
        archive.value("mean_age", mean_age)?;
        archive.value("adapting", adapting)?;
        archive.value("samples", samples)?;
        archive.value("guard", guard)?;
        responses.archive(archive, "responses")?;
        inputs.archive(archive, "inputs")?;
        if A::READS { self.require_calibrated() } else { Ok(()) }
    }

    fn require_calibrated(&self) -> Result<()> {
        let (scale, expected) =
            (self.calibration.scale, "a positive number once nothing is gathered any more");
        require("scale", self.gathering.is_some() || scale > 0.0, expected, scale)?;
        let anchored = scale_is_sound(self.anchor) && (self.gathering.is_some() || self.anchor > 0.0);
        require("anchor", anchored, "a scale", self.anchor)?;
        let full = self.gathering.as_ref().is_some_and(GatheredRows::is_full);
        require("gathering.rows", !full, "fewer rows than a calibration takes", "as many")
    }
}

impl Former {
    fn archive<A: Archive>(&mut self, archive: &mut A, name: &str) -> Result<()> {
        let Self { calibration, gains } = self;
        calibration.archive(archive, &format!("{name}."))?;
        archive.vector(&format!("{name}.gains"), gains.len(), gains)
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
