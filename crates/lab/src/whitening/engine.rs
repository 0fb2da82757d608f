//! Maps rows to rows: whitens or undoes whitening, adapting or with a frozen model.

use anyhow::{Result, bail};
use leukos::{BadSamples, FrozenWhitener, Matrix, Model, Real, Whitener};

use super::Request;
use crate::recording::{Misfits, OutputShape, Rounding};
use crate::usage::Usage;

/// Which way, and whether anything adapts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Whitens and adapts.
    Adapt,
    /// Whitens with a frozen model.
    Frozen,
    /// Undoes an adapting run, by adapting in the same way.
    Inverse,
    /// Undoes whitening with a frozen model.
    FrozenInverse,
}

impl Mode {
    /// Whether responses become stimuli.
    pub fn is_inverse(self) -> bool {
        matches!(self, Self::Inverse | Self::FrozenInverse)
    }
}

pub(super) struct Engine<T: Real> {
    model: Model<T>,
    mode: Mode,
    /// Maps the rows if nothing adapts.
    frozen: Option<FrozenWhitener<T>>,
    /// How responses are rounded in the output, if the model learns from rounded ones.
    rounding: Option<Rounding>,
}

impl<T: Real> Engine<T> {
    pub fn new(mut model: Model<T>, request: &Request, shape: &OutputShape) -> Result<Self> {
        if let Some(strength) = request.strength {
            model.whitener.set_strength(strength).map_err(|error| Usage(format!("--{error}")))?;
        }
        if let Some(bad_samples) = request.bad_samples {
            model.whitener.set_bad_samples(bad_samples);
        }
        let flattens = |whitener: &Whitener<T>| {
            matches!(whitener.settings().bad_samples, BadSamples::Hold | BadSamples::Zero)
        };
        let undone = request.mode == Mode::Inverse || request.reversible;
        if undone && model.whitener.whiteners().any(flattens) {
            bail!(Usage(
                "--bad-samples: expected mark or error with --inverse or --reversible, got hold or zero; rows that were \
                 held or set to zero look like any others, so the run cannot be undone"
                    .into()
            ));
        }
        let frozen = match request.mode {
            Mode::Frozen => Some(model.whitener.frozen()?),
            Mode::FrozenInverse => Some(model.whitener.frozen_inverse()?),
            Mode::Adapt | Mode::Inverse => None,
        };
        let rounding = (request.mode == Mode::Adapt && request.reversible).then(|| shape.rounding());
        Ok(Self { model, mode: request.mode, frozen, rounding })
    }

    pub fn map(&mut self, from: &[T], to: &mut [T]) -> leukos::Result<()> {
        match (&mut self.frozen, self.mode, &mut self.rounding) {
            (Some(frozen), ..) => frozen.map(from, to),
            (None, Mode::Inverse | Mode::FrozenInverse, _) => self.model.whitener.unwhiten(from, to),
            (None, Mode::Adapt | Mode::Frozen, None) => self.model.whitener.whiten(from, to),
            (None, Mode::Adapt | Mode::Frozen, Some(rounding)) => {
                let mut write = |row: &mut [T]| {
                    row.iter_mut().for_each(|r| *r = T::from_f64(rounding.read_again(r.to_f64())));
                };
                self.model.whitener.whiten_written(from, to, &mut write)
            }
        }
    }

    /// Tells an adapting whitener that a new context begins.
    pub fn begin_context(&mut self) {
        if self.frozen.is_none() {
            self.model.whitener.begin_context();
        }
    }

    /// Adapts from now on, or keeps everything as it is.
    pub fn adapt(&mut self, adapt: bool) {
        let act = if adapt { Whitener::resume } else { Whitener::pause };
        self.whiteners_mut().for_each(act);
    }

    pub fn whiteners_mut(&mut self) -> impl Iterator<Item = &mut Whitener<T>> {
        self.model.whitener.whiteners_mut()
    }

    pub fn model(&self) -> &Model<T> {
        &self.model
    }

    /// The row that `hold` would repeat, if the model does not keep it itself.
    pub fn held(&self) -> Vec<f64> {
        self.frozen
            .as_ref()
            .map_or_else(Vec::new, |frozen| frozen.held().iter().map(|r| r.to_f64()).collect())
    }

    pub fn hold(&mut self, row: &[f64]) -> Result<()> {
        let row: Vec<T> = row.iter().map(|&r| T::from_f64(r)).collect();
        Ok(self.frozen.as_mut().map_or(Ok(()), |frozen| frozen.hold(&row))?)
    }

    /// How many rows could not be used so far, those that the model met before included; of groups, in the one that had
    /// most of them.
    pub fn bad(&self) -> u64 {
        let counted = || self.model.whitener.whiteners().map(|whitener| whitener.samples().bad).max();
        self.frozen.as_ref().map_or_else(|| counted().unwrap_or(0), FrozenWhitener::bad)
    }

    /// Numbers that did not fit into the output and were learned from as they were written.
    pub fn misfits(&self) -> Misfits {
        self.rounding.as_ref().map_or_else(Misfits::default, Rounding::misfits)
    }

    /// The progress in a few words.
    pub fn glance(&mut self, rate: f64, bad: u64) -> String {
        let errors = self.model.whitener.whiteners_mut().filter_map(|whitener| whitener.status().error);
        let error = match errors.reduce(f64::max).filter(|_| self.frozen.is_none()) {
            Some(error) => format!(", error {error:.2}"),
            None => String::new(),
        };
        format!("{rate:.0} samples a second{error}, {bad} skipped")
    }

    /// The status in full.
    pub fn status(&mut self) -> String {
        if self.frozen.is_some() {
            return "frozen: the model did not adapt".into();
        }
        self.model.whitener.status()
    }

    /// The whitening matrix and its inverse.
    pub fn matrices(&self) -> leukos::Result<(Matrix, Matrix)> {
        Ok((self.model.whitener.whitening_matrix()?, self.model.whitener.dewhitening_matrix()?))
    }
}
