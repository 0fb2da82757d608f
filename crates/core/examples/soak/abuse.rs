//! Feeds a whitener every kind of bad input that recordings are known to have, and measures whether it recovers.

use std::ops::ControlFlow;

use leukos::contexts::{Contexts, Law, Stimuli};
use leukos::{
    Matrix, Moments, Real, Result, Span, TrainingRule, Whitener, WhitenerSettings, WhitenerTraining, starts,
    whitening_error,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Cauchy, Distribution, LogNormal, StandardNormal};
use rand_pcg::Pcg64;

/// One kind of mistreatment, which lasts for a stretch of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abuse {
    /// All channels at zero.
    Zeros,
    /// All channels at their last value.
    Held,
    /// Silence with a little noise, a millionth of the signal.
    DitheredSilence,
    /// One sample in a hundred a million times as large.
    Outliers,
    /// One sample in a hundred with a NaN.
    Nans,
    /// Rows of zeros or of NaN for a few samples, again and again.
    PacketLoss,
    /// Student-t with 2.2 degrees of freedom.
    HeavyTails,
    /// Samples multiplied by log-normal numbers (σ = 3).
    LogNormalBursts,
    /// Samples multiplied by Cauchy numbers.
    CauchyBursts,
    /// All channels follow one signal.
    RankOne,
    /// Everything up to 8 decades larger or smaller.
    Decades,
    /// The amplitude grows steadily by 12 decades.
    GrowingAmplitude,
    /// A random walk of all channels is added.
    RandomWalk,
    /// All channels climb steeply, and fall back.
    SteepRamps,
    /// An offset of a million standard deviations that decays.
    DecayingOffset,
    /// Everything at another offset.
    Offset,
    /// All channels at one rail, now and then.
    Rails,
    /// A sine a thousand times as large as the signal.
    LineNoise,
    /// Three values and no others.
    ThreeValued,
    /// A new context every few samples.
    Switches,
    /// The channels in another order.
    Permuted,
    /// One channel at a constant.
    DeadChannel,
    /// One channel delivers nothing.
    NanChannel,
    /// Two channels with the same signal.
    Duplicates,
}

/// All of them.
pub const ABUSES: [Abuse; 24] = [
    Abuse::Zeros,
    Abuse::Held,
    Abuse::DitheredSilence,
    Abuse::Outliers,
    Abuse::Nans,
    Abuse::PacketLoss,
    Abuse::HeavyTails,
    Abuse::LogNormalBursts,
    Abuse::CauchyBursts,
    Abuse::RankOne,
    Abuse::Decades,
    Abuse::GrowingAmplitude,
    Abuse::RandomWalk,
    Abuse::SteepRamps,
    Abuse::DecayingOffset,
    Abuse::Offset,
    Abuse::Rails,
    Abuse::LineNoise,
    Abuse::ThreeValued,
    Abuse::Switches,
    Abuse::Permuted,
    Abuse::DeadChannel,
    Abuse::NanChannel,
    Abuse::Duplicates,
];

/// What kind of whitener is mistreated.
#[derive(Clone, Copy, Debug)]
pub struct Victim {
    pub channels: usize,
    pub interneurons: usize,
    /// Whether synapses go on learning from the stream.
    pub plastic: bool,
}

/// How it stood one kind of mistreatment.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub abuse: Abuse,
    /// After how many ordinary samples its error was at most 1.5 times that of a fresh twin; none if it never was.
    pub recovered: Option<usize>,
}

/// How it stood everything.
#[derive(Debug, Default)]
pub struct Verdict {
    pub samples: u64,
    /// Blocks after which the map was not positive definite, and rows with an output that is not finite.
    pub indefinite: u64,
    pub not_finite: u64,
    pub outcomes: Vec<Outcome>,
    pub largest_output: f64,
}

impl Verdict {
    /// The mistreatments from which it never recovered.
    pub fn lost(&self) -> Vec<Abuse> {
        self.outcomes
            .iter()
            .filter(|outcome| outcome.recovered.is_none())
            .map(|outcome| outcome.abuse)
            .collect()
    }
}

/// How far above its twin's an error may be that counts as recovered.
const BAR: f64 = 1.5;
/// After so many ordinary samples one that has not recovered is lost.
const PATIENCE: usize = 200_000;
const CONTEXTS: usize = 6;

pub struct Soak<T: Real> {
    whitener: Whitener<T>,
    fresh: Whitener<T>,
    covariances: Vec<Matrix>,
    gaussian: Stimuli,
    heavy: Stimuli,
    scale: f64,
    offset: f64,
    rng: Pcg64,
    verdict: Verdict,
    row: Vec<f64>,
    held: Vec<f64>,
    walk: Vec<f64>,
    stimulus: Vec<T>,
    output: Vec<T>,
}

impl<T: Real> Soak<T> {
    pub fn new(victim: Victim, seed: u64) -> Result<Self> {
        let mut rng = Pcg64::seed_from_u64(seed);
        let scale = 10.0_f64.powf(rng.random_range(-6.0..6.0));
        let offset = scale * rng.random_range(-100.0..100.0);
        let covariances = related_covariances(victim.channels, &mut rng);
        let units = |c: &Matrix| Matrix::from_fn(c.rows(), c.rows(), |i, j| c[(i, j)] * scale * scale);
        let covariances: Vec<Matrix> = covariances.iter().map(units).collect();
        let contexts = Contexts::new(covariances.clone())?;
        let mut gaussian = Stimuli::gaussian(contexts.clone(), Pcg64::seed_from_u64(rng.next_u64()));
        let moments = (0..CONTEXTS).map(|c| recorded(&mut gaussian, c, offset)).collect::<Result<_>>()?;
        let (interneurons, rule) = (Some(victim.interneurons), TrainingRule::Optimal);
        let training = WhitenerTraining { moments, interneurons, rule, ..Default::default() };
        let settings = WhitenerSettings {
            synapse_time_constant: victim.plastic.then_some(Span::Samples(40_000.0)),
            ..WhitenerSettings::default()
        };
        let mut own = Pcg64::seed_from_u64(rng.next_u64());
        let fresh: Whitener<T> = training.fit(settings, &mut own, |_| ControlFlow::Continue(()))?;
        let heavy = Law::StudentT { degrees: 2.2 };
        Ok(Self {
            whitener: fresh.clone(),
            fresh,
            covariances,
            gaussian,
            heavy: Stimuli::new(contexts, heavy, Pcg64::seed_from_u64(rng.next_u64()))?,
            scale,
            offset,
            rng,
            verdict: Verdict::default(),
            row: vec![0.0; victim.channels],
            held: vec![0.0; victim.channels],
            walk: vec![0.0; victim.channels],
            stimulus: vec![T::ZERO; victim.channels],
            output: vec![T::ZERO; victim.channels],
        })
    }

    /// Mistreats the whitener in every way, each for up to so many samples and followed by ordinary ones, over and over
    /// until so many samples have gone by. It is never replaced: what one mistreatment leaves behind meets the next.
    pub fn run(mut self, samples: u64, longest: usize) -> Result<Verdict> {
        loop {
            for abuse in ABUSES {
                let context = self.rng.random_range(0..CONTEXTS);
                let length = self.rng.random_range(1..=longest);
                self.mistreat(abuse, context, length)?;
                let recovered = self.recovery(context)?;
                self.verdict.outcomes.push(Outcome { abuse, recovered });
            }
            if self.verdict.samples >= samples {
                return Ok(self.verdict);
            }
        }
    }

    /// After how many ordinary samples the error was at most 1.5 times that of a twin that is new and gets the same.
    fn recovery(&mut self, context: usize) -> Result<Option<usize>> {
        let (mut twin, mut output) = (self.fresh.clone(), self.output.clone());
        let (mut seen, mut next) = (0, 100);
        while seen < PATIENCE {
            for _ in seen..next {
                self.gaussian.fill(context, &mut self.row)?;
                self.feed()?;
                twin.whiten(&self.stimulus, &mut output)?;
            }
            seen = next;
            next = (next * 3 / 2).min(PATIENCE);
            let covariance = &self.covariances[context];
            if error(&self.whitener, covariance)? <= BAR * error(&twin, covariance)? {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }

    fn mistreat(&mut self, abuse: Abuse, context: usize, length: usize) -> Result<()> {
        let channel = self.rng.random_range(0..self.row.len());
        let factor = 10.0_f64.powf(self.rng.random_range(-8.0..8.0));
        self.held.copy_from_slice(&self.row);
        self.walk.fill(0.0);
        for sample in 0..length {
            let context = match abuse {
                Abuse::Switches if sample % 50 == 0 => self.rng.random_range(0..CONTEXTS),
                _ => context,
            };
            match abuse {
                Abuse::HeavyTails => self.heavy.fill(context, &mut self.row)?,
                _ => self.gaussian.fill(context, &mut self.row)?,
            }
            self.spoil(abuse, channel, factor, sample as f64 / length as f64, sample);
            self.feed()?;
        }
        Ok(())
    }

    /// Spoils a row that lies at this part of the stretch.
    fn spoil(&mut self, abuse: Abuse, channel: usize, factor: f64, part: f64, sample: usize) {
        let one_in_a_hundred = self.rng.random_range(0..100) == 0;
        let (first, scale, offset) = (self.row[0], self.scale, self.offset);
        let multiply = |row: &mut [f64], by: f64| row.iter_mut().for_each(|s| *s *= by);
        let add = |row: &mut [f64], what: f64| row.iter_mut().for_each(|s| *s += what);
        match abuse {
            Abuse::Zeros => self.row.fill(-offset),
            Abuse::Held => self.row.copy_from_slice(&self.held),
            Abuse::DitheredSilence => multiply(&mut self.row, 1e-6),
            Abuse::Outliers if one_in_a_hundred => multiply(&mut self.row, 1e6),
            Abuse::Nans if one_in_a_hundred => self.row[channel] = f64::NAN,
            Abuse::PacketLoss if sample % 40 < 12 => {
                self.row.fill(if sample % 80 < 40 { -offset } else { f64::NAN });
            }
            Abuse::LogNormalBursts => multiply(&mut self.row, drawn(LogNormal::new(0.0, 3.0), &mut self.rng)),
            Abuse::CauchyBursts => multiply(&mut self.row, drawn(Cauchy::new(0.0, 1.0), &mut self.rng)),
            Abuse::RankOne => {
                self.row.iter_mut().enumerate().for_each(|(j, s)| *s = first * (1.0 + j as f64));
            }
            Abuse::Decades => multiply(&mut self.row, factor),
            Abuse::GrowingAmplitude => multiply(&mut self.row, 10.0_f64.powf(12.0 * part)),
            Abuse::RandomWalk => {
                for (walk, s) in self.walk.iter_mut().zip(&mut self.row) {
                    let step: f64 = StandardNormal.sample(&mut self.rng);
                    *walk += step * scale;
                    *s += *walk;
                }
            }
            Abuse::SteepRamps => add(&mut self.row, scale * (sample % 200) as f64),
            Abuse::DecayingOffset => add(&mut self.row, 1e6 * scale * (-20.0 * part).exp()),
            Abuse::Offset => add(&mut self.row, 1e3 * scale),
            Abuse::Rails if sample % 100 < 60 => self.row.fill(50.0 * scale),
            Abuse::LineNoise => add(&mut self.row, 1e3 * scale * (sample as f64 * 0.3).sin()),
            Abuse::ThreeValued => {
                self.row.iter_mut().for_each(|s| *s = (*s / scale).round().clamp(-1.0, 1.0) * scale);
            }
            Abuse::Permuted => self.row.reverse(),
            Abuse::DeadChannel => self.row[channel] = self.held[channel],
            Abuse::NanChannel => self.row[channel] = f64::NAN,
            Abuse::Duplicates => self.row[channel] = first,
            _ => {}
        }
    }

    /// One sample, with everything checked that must always hold.
    fn feed(&mut self) -> Result<()> {
        let offset = self.offset;
        self.stimulus.iter_mut().zip(&self.row).for_each(|(own, s)| *own = T::from_f64(s + offset));
        self.whitener.whiten(&self.stimulus, &mut self.output)?;
        let verdict = &mut self.verdict;
        verdict.samples += 1;
        // The map moves at the end of a block.
        let block = self.whitener.settings().rows_together(self.row.len()) as u64;
        if verdict.samples.is_multiple_of(block) {
            verdict.indefinite +=
                u64::from(!is_positive_definite(&live_part(&self.whitener.whitening_matrix()?)));
        }
        let usable = self.stimulus.iter().all(|s| s.is_finite());
        let finite = self.output.iter().all(|r| r.is_finite());
        verdict.not_finite += u64::from(usable && !finite);
        if usable {
            let largest = self.output.iter().fold(0.0, |most: f64, r| most.max(r.to_f64().abs()));
            verdict.largest_output = verdict.largest_output.max(largest);
        }
        Ok(())
    }
}

fn drawn<D: Distribution<f64>, E>(law: std::result::Result<D, E>, rng: &mut Pcg64) -> f64 {
    law.map_or(1.0, |law| law.sample(rng))
}

/// The map on the channels that take part.
fn live_part(map: &Matrix) -> Matrix {
    let live: Vec<usize> = (0..map.rows()).filter(|&j| map[(j, j)] != 0.0).collect();
    Matrix::from_fn(live.len(), live.len(), |i, j| map[(live[i], live[j])])
}

fn error<T: Real>(whitener: &Whitener<T>, covariance: &Matrix) -> Result<f64> {
    let map = whitener.whitening_matrix()?;
    if live_part(&map).rows() < map.rows() {
        return Ok(f64::INFINITY);
    }
    whitening_error(&whitener.dewhitening_matrix()?, covariance)
}

/// What a recording of one context says of it.
fn recorded(stimuli: &mut Stimuli, context: usize, offset: f64) -> Result<Moments> {
    let n = stimuli.contexts().neurons();
    let mut moments = Moments::new(n);
    let mut samples = vec![0.0; 2000 * n];
    stimuli.fill(context, &mut samples)?;
    samples.iter_mut().for_each(|s| *s += offset);
    moments.update(&samples)?;
    Ok(moments)
}

/// Covariances whose eigenvectors lie near one another and whose eigenvalues do not.
fn related_covariances(n: usize, rng: &mut Pcg64) -> Vec<Matrix> {
    let shared = starts::orthogonal(n, n, rng);
    (0..CONTEXTS)
        .map(|_| {
            let mut axes = shared.clone();
            axes.as_mut_slice().iter_mut().for_each(|w| {
                let noise: f64 = StandardNormal.sample(rng);
                *w += 0.05 * noise;
            });
            let variances: Vec<f64> = (0..n).map(|_| 10.0_f64.powf(rng.random_range(-0.7..0.7))).collect();
            Matrix::from_fn(n, n, |i, j| {
                let sum: f64 = (0..n).map(|k| axes[(i, k)] * variances[k] * axes[(j, k)]).sum();
                if i == j { sum + 0.05 } else { sum }
            })
        })
        .collect()
}

/// Cholesky's test, written down once more: the whitener is not asked about itself.
fn is_positive_definite(matrix: &Matrix) -> bool {
    let n = matrix.rows();
    let mut lower = vec![0.0_f64; n * n];
    for j in 0..n {
        for i in j..n {
            let mut sum = matrix[(i, j)];
            for k in 0..j {
                sum -= lower[i * n + k] * lower[j * n + k];
            }
            if i == j && !(sum > 0.0 && sum.is_finite()) {
                return false;
            }
            lower[i * n + j] = if i == j { sum.sqrt() } else { sum / lower[j * n + j] };
        }
    }
    true
}
