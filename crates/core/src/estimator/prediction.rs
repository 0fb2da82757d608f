//! Turns a memory into a prediction of rows to come, and scores it.
//!
//! A prediction is a density with the memory's mean and covariance, in three variants: as it is, with the mean carried
//! on along its trend, and with the covariance scaled by how large rows have been lately. All three cost one solve,
//! y = L⁻¹(x − m): the trend is a correction of rank one, the gain a factor.
//!
//! The density is Gaussian where memories are weighed, because a Gaussian answers; and a multivariate Student density
//! where a change is asked for, because recordings have heavier tails.

use super::memory::Memory;
use crate::kernels::{inner, solve_triangle};
use crate::linalg::Room;
use crate::matrix::Matrix;
#[cfg(feature = "model-file")]
use crate::{
    archive::{Archive, require, require_all},
    error::Result,
};

/// How a memory is used as an expert.
pub(crate) const VARIANTS: usize = 3;
pub(crate) const PLAIN: usize = 0;
pub(crate) const TREND: usize = 1;
pub(crate) const GAIN: usize = 2;

/// Degrees of freedom of the Student density. Under a Gaussian one artefact would outweigh a thousand ordinary rows.
const FREEDOM: f64 = 4.0;

/// How much larger than it should be a covariance may be before that costs anything: with this part of the calibrated
/// width a covariance that bursts have made a tenth larger is as good as the one between them.
const ALLOWANCE: f64 = 0.9;

/// a in the density (1 + |y|²/a)^−(ν + N)/2 for which Gaussian rows prefer a covariance that is their own: the one with
/// E[(ν + N) q/(a + q)] = N for q = χ²_N, to within a hundredth.
fn width(channels: f64) -> f64 {
    ALLOWANCE * (FREEDOM - 1.0 / (0.7 + 0.115 * channels))
}

/// −ln of the Gaussian density of a row with |y|² = `square` under a covariance with this determinant, up to a constant.
pub(crate) fn gaussian_loss(square: f64, log_determinant: f64) -> f64 {
    0.5 * (square + log_determinant)
}

/// The same of the Student density.
fn student_loss(square: f64, log_determinant: f64, channels: f64) -> f64 {
    0.5 * ((FREEDOM + channels) * (square / width(channels)).ln_1p() + log_determinant)
}

/// The part of its covariance's power that a trend explains at most: a covariance must be left.
const MOST_EXPLAINED: f64 = 0.999;

/// A pivot below so many times the floor, for each channel, is that of an empty direction.
const EMPTY: f64 = 4.0;

/// What an expert without a prediction loses, compared with others.
pub(crate) const NO_PREDICTION: f64 = 1e6;

/// A memory as it was some time ago.
#[derive(Clone, Debug)]
pub(crate) struct Prediction {
    /// Whether there is one yet.
    pub is_made: bool,
    mean: Vec<f64>,
    /// L of the covariance L Lᵀ of the channels that take part, lifted by the floor; 1 on the diagonal of the others.
    lower: Matrix,
    reciprocals: Vec<f64>,
    log_determinant: f64,
    time: f64,
    /// The root of the variance of times.
    time_spread: f64,
    /// L⁻¹ of the mean's change in `time_spread`, and its squared length.
    trend: Vec<f64>,
    pub trend_power: f64,
    /// The number of directions with a variance of their own, which is E|y|².
    pub directions: f64,
    /// The mean variance of its channels.
    pub power: f64,
    /// How large rows have been, relative to the covariance.
    pub gain: f64,
}

/// What a prediction says of a row: how improbable it is under each of the variants, in nats up to a common constant,
/// as a Gaussian and with heavy tails; and |y|².
pub(crate) struct Losses {
    pub gaussian: [f64; VARIANTS],
    pub heavy: [f64; VARIANTS],
    pub square: f64,
}

impl Prediction {
    pub fn new(channels: usize) -> Self {
        Self {
            is_made: false,
            mean: vec![0.0; channels],
            lower: Matrix::zeros(channels, channels),
            reciprocals: vec![0.0; channels],
            log_determinant: 0.0,
            time: 0.0,
            time_spread: 1.0,
            trend: vec![0.0; channels],
            trend_power: 0.0,
            directions: channels as f64,
            power: 1.0,
            gain: 1.0,
        }
    }

    /// Becomes the same as another one.
    pub fn copy_from(&mut self, other: &Self) {
        self.is_made = other.is_made;
        self.mean.copy_from_slice(&other.mean);
        self.lower.as_mut_slice().copy_from_slice(other.lower.as_slice());
        self.reciprocals.copy_from_slice(&other.reciprocals);
        self.trend.copy_from_slice(&other.trend);
        (self.log_determinant, self.time) = (other.log_determinant, other.time);
        (self.time_spread, self.trend_power) = (other.time_spread, other.trend_power);
        (self.directions, self.power, self.gain) = (other.directions, other.power, other.gain);
    }

    /// Becomes what a memory predicts now, if it has seen anything vary.
    pub fn make(&mut self, memory: &Memory, live: &[bool], floor: f64, room: &mut Room) {
        let power = memory.power(live);
        self.is_made = false;
        if !(power > 0.0 && power.is_finite())
            || self.factorise(memory, live, floor * floor * power, room).is_none()
        {
            return;
        }
        (self.is_made, self.power) = (true, power);
        self.mean.copy_from_slice(&memory.mean);
        let own = || live.iter().zip(&self.reciprocals).filter(|(live, _)| **live);
        self.log_determinant = -2.0 * own().map(|(_, reciprocal)| reciprocal.ln()).sum::<f64>();
        // A direction that is empty leaves a pivot of about the floor.
        let empty = EMPTY * live.len() as f64 * floor * floor * power;
        self.directions =
            own().filter(|(_, reciprocal)| 1.0 > empty * *reciprocal * *reciprocal).count() as f64;
        self.time = memory.time;
        self.time_spread = memory.spread_of_times().sqrt();
        for ((trend, drift), live) in self.trend.iter_mut().zip(&memory.drift).zip(live) {
            *trend = if *live { drift / self.time_spread } else { 0.0 };
        }
        solve_triangle(self.lower.as_slice(), &self.reciprocals, &mut self.trend);
        self.trend_power = inner(&self.trend, &self.trend);
        if self.trend_power > MOST_EXPLAINED {
            let shorter = (MOST_EXPLAINED / self.trend_power).sqrt();
            self.trend.iter_mut().for_each(|trend| *trend *= shorter);
            self.trend_power = MOST_EXPLAINED;
        }
    }

    fn factorise(&mut self, memory: &Memory, live: &[bool], least: f64, room: &mut Room) -> Option<()> {
        let n = live.len();
        self.lower.as_mut_slice().copy_from_slice(memory.covariance.as_slice());
        for j in 0..n {
            let column = &mut self.lower.column_mut(j)[j..];
            if live[j] {
                column
                    .iter_mut()
                    .zip(&live[j..])
                    .filter(|(_, live)| !**live)
                    .for_each(|(entry, _)| *entry = 0.0);
                column[0] += least;
            } else {
                column.fill(0.0);
                column[0] = 1.0;
            }
        }
        room.cholesky(self.lower.as_mut_slice(), &mut self.reciprocals).ok()
    }

    /// Scores rows, each with its time, all in one pass over the factor. `y` is scratch.
    pub fn score<'a>(
        &self,
        rows: impl Iterator<Item = (&'a [f64], f64)> + Clone,
        live: &[bool],
        y: &mut Vec<f64>,
        mut take: impl FnMut(usize, Losses),
    ) {
        if !self.is_made {
            let (none, square) = ([NO_PREDICTION; VARIANTS], live.len() as f64);
            let nothing = || Losses { gaussian: none, heavy: none, square };
            rows.enumerate().for_each(|(place, _)| take(place, nothing()));
            return;
        }
        y.clear();
        for (row, _) in rows.clone() {
            let centred = row.iter().zip(&self.mean).zip(live);
            y.extend(centred.map(|((s, mean), live)| if *live { s - mean } else { 0.0 }));
        }
        solve_triangle(self.lower.as_slice(), &self.reciprocals, y);
        let channels = live.iter().filter(|live| **live).count() as f64;
        let normalisers = [
            self.log_determinant,
            self.log_determinant + (-self.trend_power).ln_1p(),
            self.log_determinant + channels * self.gain.ln(),
        ];
        for (place, (y, (_, time))) in y.chunks_exact(live.len()).zip(rows).enumerate() {
            let (square, along) = (inner(y, y), inner(y, &self.trend));
            let squares = [square, self.about_line(square, along, time), square / self.gain];
            let gaussian = |variant: usize| gaussian_loss(squares[variant], normalisers[variant]);
            let heavy = |variant: usize| student_loss(squares[variant], normalisers[variant], channels);
            let (gaussian, heavy) = (std::array::from_fn(gaussian), std::array::from_fn(heavy));
            take(place, Losses { gaussian, heavy, square });
        }
    }

    /// |y − c v|² for a row at this time, in coordinates in which the covariance around the line is I − v vᵀ.
    fn about_line(&self, square: f64, along: f64, time: f64) -> f64 {
        let (c, power) = ((time - self.time) / self.time_spread, self.trend_power);
        let along_line = along - c * power;
        let about = square - 2.0 * c * along + c * c * power + along_line * along_line / (1.0 - power);
        about.max(0.0)
    }
}

#[cfg(feature = "model-file")]
impl Prediction {
    pub fn archive<A: Archive>(&mut self, archive: &mut A, name: &str) -> Result<()> {
        let n = self.mean.len();
        archive.value(&format!("{name}.is_made"), &mut self.is_made)?;
        archive.value(&format!("{name}.log_determinant"), &mut self.log_determinant)?;
        archive.value(&format!("{name}.time"), &mut self.time)?;
        archive.value(&format!("{name}.time_spread"), &mut self.time_spread)?;
        archive.value(&format!("{name}.trend_power"), &mut self.trend_power)?;
        archive.value(&format!("{name}.gain"), &mut self.gain)?;
        archive.value(&format!("{name}.directions"), &mut self.directions)?;
        archive.value(&format!("{name}.power"), &mut self.power)?;
        archive.vector(&format!("{name}.mean"), n, &mut self.mean)?;
        archive.vector(&format!("{name}.reciprocals"), n, &mut self.reciprocals)?;
        archive.vector(&format!("{name}.trend"), n, &mut self.trend)?;
        let mut entries = self.lower.as_slice().to_vec();
        archive.matrix(&format!("{name}.lower"), (n, n), &mut entries)?;
        self.lower.as_mut_slice().copy_from_slice(&entries);
        if !A::READS {
            return Ok(());
        }
        let positive = |value: f64| value > 0.0 && value.is_finite();
        require(&format!("{name}.gain"), positive(self.gain), "a positive number", self.gain)?;
        require(&format!("{name}.power"), positive(self.power), "a positive number", self.power)?;
        let counted = (0.0..=n as f64).contains(&self.directions);
        require(&format!("{name}.directions"), counted, "a number of directions", self.directions)?;
        require(&format!("{name}.time"), self.time.abs() <= 1e16, "a time in rows", self.time)?;
        require(
            &format!("{name}.time_spread"),
            positive(self.time_spread),
            "a positive number",
            self.time_spread,
        )?;
        let explained = (0.0..=MOST_EXPLAINED).contains(&self.trend_power);
        require(&format!("{name}.trend_power"), explained, "a part of the power", self.trend_power)?;
        require(
            &format!("{name}.log_determinant"),
            self.log_determinant.is_finite(),
            "a number",
            self.log_determinant,
        )?;
        require_all(&format!("{name}.reciprocals"), &self.reciprocals, "positive numbers", |r| {
            !self.is_made || positive(r)
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_distr::{ChiSquared, Distribution};
    use rand_pcg::Pcg64;

    use super::*;

    #[test]
    fn gaussian_rows_prefer_their_own_covariance_but_for_the_allowance() {
        let mut rng = Pcg64::seed_from_u64(3);
        for channels in [1.0, 2.0, 5.0, 16.0, 64.0, 384.0] {
            let a = width(channels) / ALLOWANCE;
            let law = ChiSquared::new(channels).expect("a positive number");
            let count = 400_000;
            let pull = |q: f64| (FREEDOM + channels) * q / (a + q) / channels;
            let mean = (0..count).map(|_| pull(law.sample(&mut rng))).sum::<f64>() / f64::from(count);
            assert!((mean - 1.0).abs() < 0.01, "{channels} channels: {mean}");
        }
    }
}
