//! Follows the whitening error of a stream of responses.

use anyhow::Result;
use leukos::{FrozenWhitener, GroupedWhitener, Matrix, Model, RunningError};

use crate::contexts::Spectrum;

/// An error is estimated over so many samples for each channel.
const SAMPLES_PER_CHANNEL: f64 = 20.0;

/// Follows the whitening error of responses, group by group.
pub(crate) struct Meter {
    groups: Vec<(Vec<usize>, RunningError)>,
    seen: u64,
    /// The last row, in which channels that are left out are zero.
    last: Vec<f64>,
}

impl Meter {
    /// A meter for the responses of this whitener.
    pub fn new(whitener: &GroupedWhitener) -> leukos::Result<Self> {
        let group = |(channels, _): (&[usize], _)| {
            let time_constant = SAMPLES_PER_CHANNEL * channels.len() as f64;
            Ok((channels.to_vec(), RunningError::new(channels.len(), time_constant)?))
        };
        let groups = whitener.groups().map(group).collect::<leukos::Result<_>>()?;
        Ok(Self { groups, seen: 0, last: vec![0.0; whitener.channels()] })
    }

    /// Takes in rows of responses.
    pub fn update(&mut self, responses: &[f64]) {
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
    pub fn error(&self) -> Result<Option<f64>> {
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

    /// What white responses would show as an error.
    pub fn noise_floor(&self) -> f64 {
        self.groups.iter().map(|(_, running)| running.noise_floor()).fold(0.0, f64::max)
    }
}

/// A whitener that does not adapt, to compare with, and how white it makes a stream.
pub(crate) struct FixedWhitener {
    whitener: FrozenWhitener,
    meter: Meter,
    output: Vec<f64>,
}

impl FixedWhitener {
    /// The model as it is.
    ///
    /// # Errors
    /// When it has no scale yet.
    pub fn of(model: &Model) -> leukos::Result<Self> {
        let (whitener, meter) = (model.whitener.frozen()?, Meter::new(&model.whitener)?);
        Ok(Self { whitener, meter, output: Vec::new() })
    }

    /// Takes in rows of stimuli.
    pub fn see(&mut self, stimuli: &[f64]) -> leukos::Result<()> {
        self.output.resize(stimuli.len(), 0.0);
        self.whitener.map(stimuli, &mut self.output)?;
        self.meter.update(&self.output);
        Ok(())
    }

    /// The error of its responses; none as long as there are too few.
    pub fn error(&self) -> Result<Option<f64>> {
        self.meter.error()
    }
}
