//! Lets a model adapt to a recording and keeps the data for a picture, in memory of fixed size.

use anyhow::Result;
use leukos::size::require_moments;
use leukos::{GroupedWhitener, Matrix, Model, Real, RunningMoments};

use super::{FixedWhitener, Meter};
use crate::recording::{Reader, Rows};

/// What a model did with a recording.
pub struct Adaptation {
    /// The covariance of the stimuli.
    pub before: Matrix,
    /// The covariance of the responses.
    pub after: Matrix,
    /// Moments of the recording, from its beginning to its end.
    pub points: Vec<Point>,
    /// What white responses would show as an error.
    pub noise_floor: f64,
    /// The model after adapting.
    pub model: Model,
}

/// The state at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// How many rows came before.
    pub row: u64,
    /// The gains of all interneurons.
    pub gains: Vec<f64>,
    /// The whitening error of the latest responses; none as long as there are too few.
    pub error: Option<f64>,
    /// The same for a model that does not adapt.
    pub frozen_error: Option<f64>,
}

/// Points are thinned out when there are more; the gains of each are computed anew, which takes its time.
const MOST_POINTS: usize = 300;
/// How many there are where the number of rows is known beforehand.
const USUAL_POINTS: u64 = 200;
/// Rows between two points at least.
const LEAST_STRIDE: u64 = 8;

impl Adaptation {
    /// Lets a model adapt to all of a recording. `watch` is given the number of bytes read; the result is `None` when it
    /// returns `false`.
    ///
    /// # Errors
    /// When the recording cannot be read or has other channels, or the model has no scale yet.
    pub fn of(
        mut model: Model,
        reader: &mut dyn Reader,
        mut watch: impl FnMut(u64) -> bool,
    ) -> Result<Option<Self>> {
        let n = model.whitener.channels();
        require_moments(n, 2)?;
        let (mut stimuli, mut responses) = (RunningMoments::new(n), RunningMoments::new(n));
        let mut adapting = Meter::new(&model.whitener)?;
        let mut fixed = FixedWhitener::of(&model)?;
        let (mut rows, mut output) = (Rows::default(), Vec::new());
        let mut points = Points::new(reader.layout().rows);
        loop {
            let row = reader.place().row;
            if row >= points.next {
                points.add(row, &model.whitener, &adapting, &fixed)?;
            }
            reader.read((points.next - row) as usize, &mut rows)?;
            if !watch(reader.place().byte) {
                return Ok(None);
            }
            if rows.values.is_empty() {
                if points.kept.last().is_some_and(|last| last.row < row) {
                    points.add(row, &model.whitener, &adapting, &fixed)?;
                }
                break;
            }
            output.resize(rows.values.len(), 0.0);
            model.whitener.whiten(&rows.values, &mut output)?;
            responses.update(&output)?;
            adapting.update(&output);
            leave_out_bad(&mut rows.values, &output, n);
            stimuli.update(&rows.values)?;
            fixed.see(&rows.values)?;
        }
        let [before, after] = [stimuli, responses].map(|moments| moments.finish()?.covariance());
        let noise_floor = adapting.noise_floor();
        Ok(Some(Self { before: before?, after: after?, points: points.kept, noise_floor, model }))
    }
}

/// The gains of all interneurons, group after group. They are computed anew each time.
pub(crate) fn all_gains<T: Real>(whitener: &GroupedWhitener<T>) -> leukos::Result<Vec<f64>> {
    let mut all = Vec::new();
    for whitener in whitener.whiteners() {
        all.extend(whitener.gains()?);
    }
    Ok(all)
}

/// What the whitener could not use is no part of the covariance that it met.
fn leave_out_bad(stimuli: &mut [f64], responses: &[f64], n: usize) {
    for (stimulus, response) in stimuli.chunks_exact_mut(n).zip(responses.chunks_exact(n)) {
        if response.iter().any(|r| r.is_nan()) {
            stimulus.fill(f64::NAN);
        }
    }
}

struct Points {
    kept: Vec<Point>,
    stride: u64,
    /// The row before which the next one is due.
    next: u64,
}

impl Points {
    fn new(rows: Option<u64>) -> Self {
        let stride = rows.map_or(LEAST_STRIDE, |rows| (rows / USUAL_POINTS).max(LEAST_STRIDE));
        Self { kept: Vec::new(), stride, next: 0 }
    }

    fn add(
        &mut self,
        row: u64,
        whitener: &GroupedWhitener,
        adapting: &Meter,
        fixed: &FixedWhitener,
    ) -> Result<()> {
        let gains = all_gains(whitener)?;
        self.kept.push(Point { row, gains, error: adapting.error()?, frozen_error: fixed.error()? });
        if self.kept.len() > MOST_POINTS {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
        self.next = row + self.stride;
        Ok(())
    }
}
