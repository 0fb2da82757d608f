//! Weighs experts by what they predicted of the rows that came.

use super::prediction::{GAIN, NO_PREDICTION, PLAIN, Prediction, TREND, VARIANTS, gaussian_loss};
use super::{CHALLENGERS, EVIDENCE, Estimator, RUNGS, Rows};

/// What a log loss counts, because rows are not independent.
const TEMPER: f64 = 0.05;
/// The same of what it says for a challenger, or for a shorter memory against a longer one.
const CHALLENGING: f64 = 0.1;
/// What one row can say for a challenger at most, in nats.
const MOST_SAID: f64 = 1.0;
/// A challenger is believed after so many times the shortest memory at the soonest; so no row says more than its part.
const LEAST_SHOWN: f64 = 2.5;
/// One row in so many channels is scored, and counts as one: more channels say more about a row, and cost more.
const CHANNELS_PER_SCORED_ROW: usize = 16;

/// What everybody said of the rows of a block.
#[derive(Clone)]
pub(super) struct Scores {
    /// The losses of each row under the variants of every memory, as Gaussians.
    gaussian: Vec<f64>,
    /// The same with heavy tails, then those of the challengers.
    heavy: Vec<f64>,
    /// exp(least − loss) of the variants of every memory, for one row.
    likelihoods: Vec<f64>,
    /// The losses of the variants of every memory over the block.
    losses: Vec<f64>,
    /// The weight that each has gained by them.
    gained: Vec<f64>,
    /// Rows in the coordinates of an expert.
    y: Vec<f64>,
}

impl Scores {
    pub fn new(channels: usize, experts: usize, most_rows: usize) -> Self {
        let most_scored = most_rows.div_ceil(stride(channels));
        Self {
            gaussian: Vec::with_capacity(most_scored * experts),
            heavy: Vec::with_capacity(most_scored * (experts + CHALLENGERS)),
            likelihoods: vec![0.0; experts],
            losses: vec![0.0; experts],
            gained: vec![0.0; experts],
            y: Vec::with_capacity(most_scored * channels),
        }
    }
}

/// What a mixture loses where its experts lose so much: −ln Σ wᵢ exp(−ℓᵢ), for several weights.
struct MixLoss<'a> {
    least: f64,
    likelihoods: &'a [f64],
}

impl<'a> MixLoss<'a> {
    fn new(losses: &[f64], likelihoods: &'a mut [f64]) -> Self {
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        likelihoods.iter_mut().zip(losses).for_each(|(likelihood, loss)| *likelihood = (least - loss).exp());
        Self { least, likelihoods }
    }

    fn of(&self, weights: &[f64]) -> f64 {
        let mixed = weights.iter().zip(self.likelihoods).map(|(weight, likelihood)| weight * likelihood);
        self.least - mixed.sum::<f64>().ln()
    }
}

/// One row in so many is scored; what it says for challengers and rivals counts for the others, too.
fn stride(channels: usize) -> usize {
    channels.div_ceil(CHANNELS_PER_SCORED_ROW)
}

/// By how many nats rows were answered worse than the mixture had foreseen them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Excess {
    pub nats: f64,
    pub rows: f64,
}

impl Estimator {
    /// Scores the rows and updates the weights.
    pub(super) fn weigh(&mut self, rows: &Rows<'_>, learned: usize) {
        let stride = stride(self.live.len());
        // Rows at multiples of the stride, however the stream is cut into blocks.
        let due = |index: &usize| (self.time + *index as f64) % stride as f64 == 0.0;
        let first = (0..stride).find(due).unwrap_or(0);
        let scored = || (first..rows.wild.len()).step_by(stride);
        self.ask_experts(rows, &scored(), stride as f64);
        self.rivals[RUNGS - 1] = self.favourite();
        for longer in 1..=RUNGS {
            self.scratch.most_said[longer - 1] = EVIDENCE / self.patience(longer);
        }
        self.scratch.scores.losses.fill(0.0);
        for (place, index) in scored().enumerate() {
            self.score(place, index, rows, stride as f64);
        }
        let Scores { losses, gained, .. } = &mut self.scratch.scores;
        gained.copy_from_slice(self.mixture.weights());
        if learned > 0 {
            self.mixture.update(losses, learned as f64);
        }
        gained.iter_mut().zip(self.mixture.weights()).for_each(|(own, new)| *own = new - *own);
        self.moved += self.weight_moved();
    }

    /// The memory with most weight, among those that forget.
    fn favourite(&self) -> usize {
        let weight =
            |memory: &usize| self.mixture.weights()[memory * VARIANTS..][..VARIANTS].iter().sum::<f64>();
        (0..RUNGS).max_by(|one, other| weight(one).total_cmp(&weight(other))).unwrap_or(0)
    }

    /// How far the weights have moved in the last update. What goes from one memory to its neighbour moves by as much as
    /// those two differ: not at all where they hold the same rows, and by a half where one is twice as long. What goes to a
    /// trend or a gain moves by what that changes.
    fn weight_moved(&self) -> f64 {
        let by_memory = || self.scratch.scores.gained.chunks_exact(VARIANTS);
        let mut carried = 0.0;
        let along_ladder = by_memory().zip(self.memories.windows(2)).map(|(own, pair)| {
            carried += own.iter().sum::<f64>();
            let (one, other) = (pair[0].memory.count, pair[1].memory.count);
            carried.abs() * (1.0 - one.min(other) / one.max(other))
        });
        let to_variants = by_memory().zip(&self.memories).map(|(own, expert)| {
            let Prediction { trend_power, gain, .. } = expert.prediction;
            own[TREND].abs() * trend_power + own[GAIN].abs() * gain.ln().abs().min(1.0)
        });
        along_ladder.sum::<f64>() + to_variants.sum::<f64>()
    }

    /// Asks everybody how improbable each of some rows is, one expert after another, so that its factor is at hand.
    fn ask_experts(&mut self, rows: &Rows<'_>, scored: &(impl Iterator<Item = usize> + Clone), stride: f64) {
        let Self { memories, challengers, live, scratch, time, .. } = self;
        let Scores { y, gaussian, heavy, .. } = &mut scratch.scores;
        let (n, experts, count) = (live.len(), memories.len() * VARIANTS, scored.clone().count());
        let everybody = experts + CHALLENGERS;
        gaussian.resize(experts * count, 0.0);
        heavy.resize(everybody * count, 0.0);
        let asked =
            scored.clone().map(|index| (&rows.values[index * n..(index + 1) * n], *time + index as f64));
        for (which, expert) in memories.iter_mut().enumerate() {
            let (mut squares, mut count, mut indices) = (0.0, 0.0, scored.clone());
            expert.prediction.score(asked.clone(), live, y, |place, said| {
                let own = which * VARIANTS;
                gaussian[place * experts + own..][..VARIANTS].copy_from_slice(&said.gaussian);
                heavy[place * everybody + own..][..VARIANTS].copy_from_slice(&said.heavy);
                if indices.next().is_some_and(|index| !rows.wild[index]) {
                    squares += said.square * stride;
                    count += stride;
                }
            });
            if expert.prediction.is_made {
                expert.squares += squares;
                expert.scored += count;
            }
        }
        for (which, challenger) in challengers.iter().enumerate() {
            challenger.expert.prediction.score(asked.clone(), live, y, |place, said| {
                heavy[place * everybody + experts + which] = said.heavy[PLAIN];
            });
        }
    }

    /// Takes note of what everybody said of a row, the one of `stride` that is scored.
    fn score(&mut self, place: usize, index: usize, rows: &Rows<'_>, stride: f64) {
        let time = self.time + index as f64;
        self.score_challengers(place, time, stride);
        if rows.wild[index] {
            return;
        }
        let Self { mixture, spoilt, rivals, live, scratch, excess, .. } = self;
        let Scores { gaussian, likelihoods, losses, .. } = &mut scratch.scores;
        let said = &gaussian[place * losses.len()..][..losses.len()];
        let mix = MixLoss::new(said, likelihoods);
        if let Some(log_determinant) = rows.log_determinant {
            let channels = live.iter().filter(|live| **live).count() as f64;
            excess.nats +=
                gaussian_loss(channels * rows.powers[index], log_determinant) - mix.of(mixture.weights());
            excess.rows += 1.0;
        }
        for (sum, loss) in losses.iter_mut().zip(said) {
            *sum += TEMPER * (*loss - mix.least).min(NO_PREDICTION);
        }
        let best = |memory: usize| {
            said[memory * VARIANTS..][..VARIANTS].iter().copied().fold(f64::INFINITY, f64::min)
        };
        for ((longer, spoilt), most) in (1..).zip(spoilt).zip(&scratch.most_said) {
            // A burst that the longer one has foreseen speaks for it with all its nats.
            let nats = CHALLENGING * (best(longer) - best(rivals[longer - 1]));
            spoilt.add(stride * nats.min(*most), time);
        }
    }

    /// Collects what a row says for challengers.
    fn score_challengers(&mut self, place: usize, time: f64, stride: f64) {
        let Self { memories, challengers, mixture, scratch, shortest, .. } = self;
        let Scores { heavy, likelihoods, .. } = &mut scratch.scores;
        let experts = memories.len() * VARIANTS;
        let (said, of_challengers) =
            heavy[place * (experts + CHALLENGERS)..][..experts + CHALLENGERS].split_at(experts);
        let most = (EVIDENCE / (LEAST_SHOWN * *shortest)).min(MOST_SAID);
        let tempered = |nats: f64| stride * (CHALLENGING * nats).clamp(-most, most);
        let mix = MixLoss::new(said, likelihoods);
        let now = mix.of(mixture.weights());
        let heard = challengers.iter_mut().zip(of_challengers);
        for (challenger, own) in heard.filter(|(challenger, _)| challenger.expert.prediction.is_made) {
            challenger.than_mixture.add(tempered(now - own), time);
            challenger.than_before.add(tempered(mix.of(&challenger.before) - own), time);
        }
    }

    /// By how many nats a row was answered worse, on average, than the mixture had foreseen it: what it costs that one
    /// Gaussian answers for all memories, less what the answer knows of the rows in between. None where nothing was
    /// scored.
    pub fn excess(&self) -> Option<f64> {
        (self.excess.rows > 0.0).then(|| self.excess.nats / self.excess.rows)
    }
}
