//! Lets a model adapt to a recording and keeps the data for a picture, in memory of fixed size.

use anyhow::Result;
use leukos::size::require_moments;
use leukos::{FrozenWhitener, GroupedWhitener, Matrix, Model, RunningError, RunningMoments, Whitener};

use crate::contexts::Spectrum;
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

/// Points are thinned out when there are more.
const MOST_POINTS: usize = 600;
/// How many there are where the number of rows is known beforehand.
const USUAL_POINTS: u64 = 400;
/// Rows between two points at least.
const LEAST_STRIDE: u64 = 8;
/// An error is estimated over so many samples for each channel.
const SAMPLES_PER_CHANNEL: f64 = 20.0;

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
        let mut frozen = Fixed { whitener: model.whitener.frozen()?, meter: Meter::new(&model.whitener)? };
        let (mut rows, mut output) = (Rows::default(), Vec::new());
        let mut points = Points::new(reader.layout().rows);
        loop {
            points.add(reader.place().row, &model.whitener, &adapting, &frozen.meter)?;
            reader.read(points.stride as usize, &mut rows)?;
            if !watch(reader.place().byte) {
                return Ok(None);
            }
            if rows.values.is_empty() {
                break;
            }
            output.resize(rows.values.len(), 0.0);
            model.whitener.whiten(&rows.values, &mut output)?;
            responses.update(&output)?;
            adapting.update(&output);
            leave_out_bad(&mut rows.values, &output, n);
            stimuli.update(&rows.values)?;
            frozen.update(&rows.values, &mut output)?;
        }
        let [before, after] = [stimuli, responses].map(|moments| moments.finish()?.covariance());
        let noise_floor = adapting.noise_floor();
        Ok(Some(Self { before: before?, after: after?, points: points.kept, noise_floor, model }))
    }
}

/// What the whitener could not use is no part of the covariance that it met.
fn leave_out_bad(stimuli: &mut [f64], responses: &[f64], n: usize) {
    for (stimulus, response) in stimuli.chunks_exact_mut(n).zip(responses.chunks_exact(n)) {
        if response.iter().any(|r| r.is_nan()) {
            stimulus.fill(f64::NAN);
        }
    }
}

/// A whitener that does not adapt, to compare with.
struct Fixed {
    whitener: FrozenWhitener,
    meter: Meter,
}

impl Fixed {
    fn update(&mut self, stimuli: &[f64], output: &mut [f64]) -> Result<()> {
        self.whitener.map(stimuli, output)?;
        self.meter.update(output);
        Ok(())
    }
}

struct Points {
    kept: Vec<Point>,
    stride: u64,
}

impl Points {
    fn new(rows: Option<u64>) -> Self {
        let stride = rows.map_or(LEAST_STRIDE, |rows| (rows / USUAL_POINTS).max(LEAST_STRIDE));
        Self { kept: Vec::new(), stride }
    }

    fn add(&mut self, row: u64, whitener: &GroupedWhitener, adapting: &Meter, frozen: &Meter) -> Result<()> {
        let gains = whitener.whiteners().flat_map(Whitener::gains).copied().collect();
        self.kept.push(Point { row, gains, error: adapting.error()?, frozen_error: frozen.error()? });
        if self.kept.len() > MOST_POINTS {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
        Ok(())
    }
}

/// Follows the whitening error of responses, group by group.
struct Meter {
    groups: Vec<(Vec<usize>, RunningError)>,
    seen: u64,
    /// The last row, in which channels that are left out are zero.
    last: Vec<f64>,
}

impl Meter {
    fn new(whitener: &GroupedWhitener) -> leukos::Result<Self> {
        let group = |(channels, _): (&[usize], _)| {
            let time_constant = SAMPLES_PER_CHANNEL * channels.len() as f64;
            Ok((channels.to_vec(), RunningError::new(channels.len(), time_constant)?))
        };
        let groups = whitener.groups().map(group).collect::<leukos::Result<_>>()?;
        Ok(Self { groups, seen: 0, last: vec![0.0; whitener.channels()] })
    }

    fn update(&mut self, responses: &[f64]) {
        let mut own = Vec::new();
        for row in responses.chunks_exact(self.last.len()) {
            self.seen += 1;
            self.last.copy_from_slice(row);
            for (channels, error) in &mut self.groups {
                own.clear();
                own.extend(channels.iter().map(|&channel| row[channel]));
                // A bad row says nothing about the error.
                let _ = error.update(&own);
            }
        }
    }

    /// The largest error of any group, over the channels that take part.
    fn error(&self) -> Result<Option<f64>> {
        if (self.seen as f64) < SAMPLES_PER_CHANNEL * self.last.len() as f64 {
            return Ok(None);
        }
        let mut largest = None;
        for (channels, running) in &self.groups {
            let covariance = running.covariance();
            let live: Vec<usize> = (0..channels.len()).filter(|&i| self.last[channels[i]] != 0.0).collect();
            let own = Matrix::from_fn(live.len(), live.len(), |i, j| covariance[(live[i], live[j])]);
            if !live.is_empty() {
                let Spectrum { least, most, .. } = Spectrum::of(&own)?;
                let error = (most - 1.0).max(1.0 - least);
                largest = Some(largest.map_or(error, |largest: f64| largest.max(error)));
            }
        }
        Ok(largest)
    }

    fn noise_floor(&self) -> f64 {
        self.groups.iter().map(|(_, running)| running.noise_floor()).fold(0.0, f64::max)
    }
}
