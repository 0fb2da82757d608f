//! Feeds a whitener every kind of bad input that recordings are known to have, and measures whether it recovers.

use std::ops::ControlFlow;

use leukos::contexts::{Contexts, Law, Stimuli};
use leukos::{
    Matrix, Moments, Real, Result, Span, TrainingRule, Whitener, WhitenerSettings, WhitenerTraining, starts,
    whitening_error,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

/// One kind of mistreatment, which lasts for a stretch of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abuse {
    /// All channels at zero.
    Zeros,
    /// All channels at their last value.
    Held,
    /// One sample in a hundred a million times as large.
    Outliers,
    /// One sample in a hundred with a NaN.
    Nans,
    /// Student-t with 2.2 degrees of freedom.
    HeavyTails,
    /// All channels follow one signal.
    RankOne,
    /// Everything up to 8 decades larger or smaller, for 1000 samples at most.
    Decades,
    /// A new context every few samples.
    Switches,
    /// One channel at a constant.
    DeadChannel,
    /// One channel delivers nothing.
    NanChannel,
    /// Two channels with the same signal.
    Duplicates,
    /// Everything at another offset.
    Offset,
}

const ABUSES: [Abuse; 12] = [
    Abuse::Zeros,
    Abuse::Held,
    Abuse::Outliers,
    Abuse::Nans,
    Abuse::HeavyTails,
    Abuse::RankOne,
    Abuse::Decades,
    Abuse::Switches,
    Abuse::DeadChannel,
    Abuse::NanChannel,
    Abuse::Duplicates,
    Abuse::Offset,
];

/// What kind of whitener is mistreated.
#[derive(Clone, Copy, Debug)]
pub struct Victim {
    pub channels: usize,
    pub interneurons: usize,
    pub rule: TrainingRule,
    /// Whether synapses go on learning from the stream.
    pub plastic: bool,
}

/// How it stood it.
#[derive(Debug, Default)]
pub struct Verdict {
    pub samples: u64,
    pub episodes: usize,
    /// Steps after which M was not positive definite, and rows with an output that is not finite.
    pub indefinite: u64,
    pub not_finite: u64,
    /// After how many time constants of ordinary input the error was that of a twin that was spared, or near it.
    pub recoveries: Vec<(Abuse, Option<usize>)>,
    /// The errors of the twin ten time constants after each mistreatment, and the victim's relative to it.
    pub errors: Vec<f64>,
    pub ratios: Vec<f64>,
    pub largest_output: f64,
}

impl Verdict {
    /// The mistreatments from which it did not recover in time.
    pub fn failures(&self) -> Vec<Abuse> {
        self.recoveries.iter().filter(|(_, time)| time.is_none()).map(|(abuse, _)| *abuse).collect()
    }
}

/// How far above its twin's an error may be that counts as recovered.
const BAR: f64 = 1.5;
pub const TIME_CONSTANT: usize = 200;
const CONTEXTS: usize = 6;

pub struct Soak<T: Real> {
    whitener: Whitener<T>,
    /// A twin that is spared: it gets the ordinary samples alone.
    spared: Whitener<T>,
    covariances: Vec<Matrix>,
    gaussian: Stimuli,
    heavy: Stimuli,
    scale: f64,
    offset: f64,
    rng: Pcg64,
    verdict: Verdict,
    row: Vec<f64>,
    held: Vec<f64>,
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
        let interneurons = Some(victim.interneurons);
        let training = WhitenerTraining { moments, interneurons, rule: victim.rule, ..Default::default() };
        let settings = WhitenerSettings {
            time_constant: Span::Samples(TIME_CONSTANT as f64),
            synapse_time_constant: victim.plastic.then_some(Span::Samples(200.0 * TIME_CONSTANT as f64)),
            ..WhitenerSettings::default()
        };
        let start = rng.next_u64();
        let fit = || {
            let mut rng = Pcg64::seed_from_u64(start);
            training.fit(settings.clone(), &mut rng, |_| ControlFlow::Continue(()))
        };
        let (whitener, spared) = (fit()?, fit()?);
        let heavy = Law::StudentT { degrees: 2.2 };
        Ok(Self {
            whitener,
            spared,
            covariances,
            gaussian,
            heavy: Stimuli::new(contexts, heavy, Pcg64::seed_from_u64(rng.next_u64()))?,
            scale,
            offset,
            rng,
            verdict: Verdict::default(),
            row: vec![0.0; victim.channels],
            held: vec![0.0; victim.channels],
            stimulus: vec![T::ZERO; victim.channels],
            output: vec![T::ZERO; victim.channels],
        })
    }

    /// Mistreats the whitener until so many samples have gone by.
    pub fn run(mut self, samples: u64) -> Result<Verdict> {
        while self.verdict.samples < samples {
            let context = self.rng.random_range(0..CONTEXTS);
            let abuse = ABUSES[self.rng.random_range(0..ABUSES.len())];
            self.mistreat(abuse, context)?;
            let recovery = self.recovery(context)?;
            self.verdict.recoveries.push((abuse, recovery));
            self.verdict.episodes += 1;
        }
        Ok(self.verdict)
    }

    /// After how many time constants of ordinary input the error was, and then stayed for another one, at most 1.5
    /// times that of the twin; `None` if it took more than ten.
    fn recovery(&mut self, context: usize) -> Result<Option<usize>> {
        let (mut previous, mut recovered) = (false, None);
        for time_constants in 1..=10 {
            let (error, spared) = self.errors_over_a_while(context)?;
            let now = error <= BAR * spared;
            if now && (previous || time_constants == 10) && recovered.is_none() {
                recovered = Some(if previous { time_constants - 1 } else { time_constants });
            }
            previous = now;
            if time_constants == 10 {
                self.verdict.errors.push(spared);
                self.verdict.ratios.push(error / spared);
            }
        }
        Ok(recovered)
    }

    fn ordinary(&mut self, context: usize, samples: usize) -> Result<()> {
        let mut output = self.output.clone();
        for _ in 0..samples {
            self.gaussian.fill(context, &mut self.row)?;
            self.feed()?;
            self.spared.whiten(&self.stimulus, &mut output)?;
        }
        Ok(())
    }

    /// The mean errors of both twins during one time constant.
    fn errors_over_a_while(&mut self, context: usize) -> Result<(f64, f64)> {
        let (every, mut sums) = (TIME_CONSTANT / 20, (0.0, 0.0));
        for _ in 0..20 {
            self.ordinary(context, every)?;
            sums.0 += error(&self.whitener, &self.covariances[context])? / 20.0;
            sums.1 += error(&self.spared, &self.covariances[context])? / 20.0;
        }
        Ok(sums)
    }

    fn mistreat(&mut self, abuse: Abuse, context: usize) -> Result<()> {
        let samples = self.rng.random_range(1..if abuse == Abuse::Decades { 1000 } else { 5000 });
        let channel = self.rng.random_range(0..self.row.len());
        let factor = 10.0_f64.powf(self.rng.random_range(-8.0..8.0));
        self.held.copy_from_slice(&self.row);
        for sample in 0..samples {
            let context = match abuse {
                Abuse::Switches if sample % 50 == 0 => self.rng.random_range(0..CONTEXTS),
                _ => context,
            };
            match abuse {
                Abuse::HeavyTails => self.heavy.fill(context, &mut self.row)?,
                _ => self.gaussian.fill(context, &mut self.row)?,
            }
            self.spoil(abuse, channel, factor);
            self.feed()?;
        }
        Ok(())
    }

    fn spoil(&mut self, abuse: Abuse, channel: usize, factor: f64) {
        let one_in_a_hundred = self.rng.random_range(0..100) == 0;
        let first = self.row[0];
        match abuse {
            Abuse::Zeros => self.row.fill(-self.offset),
            Abuse::Held => self.row.copy_from_slice(&self.held),
            Abuse::Outliers if one_in_a_hundred => self.row.iter_mut().for_each(|s| *s *= 1e6),
            Abuse::Nans if one_in_a_hundred => self.row[channel] = f64::NAN,
            Abuse::RankOne => {
                self.row.iter_mut().enumerate().for_each(|(j, s)| *s = first * (1.0 + j as f64));
            }
            Abuse::Decades => self.row.iter_mut().for_each(|s| *s *= factor),
            Abuse::DeadChannel => self.row[channel] = self.held[channel],
            Abuse::NanChannel => self.row[channel] = f64::NAN,
            Abuse::Duplicates => self.row[channel] = first,
            Abuse::Offset => self.row.iter_mut().for_each(|s| *s += self.scale * 1e3),
            _ => {}
        }
    }

    /// One sample, with everything checked that must hold at every step.
    fn feed(&mut self) -> Result<()> {
        let offset = self.offset;
        self.stimulus.iter_mut().zip(&self.row).for_each(|(own, s)| *own = T::from_f64(s + offset));
        self.whitener.whiten(&self.stimulus, &mut self.output)?;
        let verdict = &mut self.verdict;
        verdict.samples += 1;
        verdict.indefinite +=
            u64::from(!is_positive_definite(&self.whitener.circuit().inverse_whitening_matrix()));
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

fn error<T: Real>(whitener: &Whitener<T>, covariance: &Matrix) -> Result<f64> {
    let scale = whitener.scale();
    let m = whitener.circuit().inverse_whitening_matrix();
    let m = Matrix::from_fn(m.rows(), m.rows(), |i, j| m[(i, j)].to_f64() * scale);
    whitening_error(&m, covariance)
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
fn is_positive_definite<T: Real>(matrix: &Matrix<T>) -> bool {
    let n = matrix.rows();
    let mut lower = vec![0.0_f64; n * n];
    for j in 0..n {
        for i in j..n {
            let mut sum = matrix[(i, j)].to_f64();
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
