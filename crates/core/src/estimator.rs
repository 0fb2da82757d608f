//! Estimates the mean and the covariance in force from a stream whose statistics change.
//!
//! ```text
//! memories: a ladder of lengths L, 2L, 4L, …          the memory since the last change        a challenger
//!     |  as they were a while ago                              |                                  |
//!     v                                                        v                                  |  young and pure
//! predictions, each as it is, along its trend, and scaled by its gain                             |
//!     |  log losses of the rows that come                                                         |
//!     v                                                                                           v
//! mixture (fixed share) -> weights -> mean and covariance in force        beats the mixture by 24 nats: a change
//! ```
//!
//! Nobody knows how long the statistics of a stream stay as they are, so every memory is tried: each predicts the rows to
//! come, and the better it has predicted, the more it counts. Three things keep this from chasing what is not a context:
//!
//! - Rows are predicted from at least `lag` rows before. What a memory says about the very next row is mostly what
//!   neighbouring rows have in common, and that is signal; a context lasts.
//! - Densities have heavy tails, so that a burst is not worth more than what it is: a few improbable rows.
//! - Losses count a tenth, because rows of a recording are not independent of one another.
//!
//! A *challenger* is a memory that began a little while ago. After a sharp change all other memories still hold the old
//! context; a challenger born after it does not, and once enough speaks for it ([`EVIDENCE`]) it becomes the memory since
//! the last change. It need not beat the mixture as it is now by so much, because that follows the same change with its
//! short memories, but the mixture as it was weighted before. Several of them are under way, one younger than the other,
//! so that what an older one has seen of the old context does not stay.

mod block;
mod challenger;
mod expert;
mod memory;
mod mixture;
mod prediction;

use self::block::BlockMoments;
use self::challenger::{Challenger, Evidence};
use self::expert::Expert;
use self::memory::Memory;
pub use self::mixture::Mixture;
use self::prediction::{GAIN, PLAIN, TREND, VARIANTS, student_loss};
#[cfg(feature = "model-file")]
use crate::archive::{Archive, require, require_all};
#[cfg(feature = "model-file")]
use crate::error::Result;
use crate::kernels::{add_scaled, inner};
use crate::linalg::Room;
use crate::matrix::Matrix;

/// The shortest memory has so many rows for each channel: with fewer a covariance says next to nothing.
const ROWS_PER_CHANNEL: f64 = 2.0;
/// And so many at least.
const LEAST_ROWS: f64 = 32.0;
/// The number of lengths, each twice the one before.
const RUNGS: usize = 10;
/// What a log loss counts, because rows are not independent.
const TEMPER: f64 = 0.1;
/// What one row can say against an expert at most, in nats before tempering.
const MOST_SAID: f64 = 10.0;
/// So many challengers are under way.
const CHALLENGERS: usize = 3;
/// Each is younger than the one before by so many times the shortest memory.
const YOUNGER: f64 = 4.0;
/// What must speak for a challenger, in nats.
const EVIDENCE: f64 = 24.0;
/// From how many rows at least, in times of the shortest memory; so no row says more than its part.
const LEAST_SHOWN: f64 = 2.5;
/// What of it must have come lately, compared with the mixture, which follows the same change meanwhile.
const LATELY: f64 = 3.0;
/// Evidence begins so many times the shortest memory after what it is evidence of.
const LAG: f64 = 1.5;
/// A challenger believed so soon after another, in times of the shortest memory, is one of the same change.
const SAME: f64 = 2.0;
/// The weight that it then has.
const TRUST: f64 = 0.999;
/// What is shared in the time of the shortest memory, for each rate.
const SHARES: [f64; 3] = [1.0 / 256.0, 1.0 / 4096.0, 1.0 / 65536.0];
/// The prior weight of a memory, relative to one half as long.
const LONGER: f64 = 1.1;
/// The prior weight of a trend or a gain, relative to none.
const SHYNESS: f64 = 0.01;
/// Gains remember so many times the shortest memory.
const GAIN_MEMORY: f64 = 8.0;
/// An expert with less than this part of all weight is not asked: what is improbable may be a million times too large,
/// and would drown what is known.
const LEAST_HEARD: f64 = 0.01;
/// How far the covariance in force has moved where it is another one altogether.
const ELSEWHERE: f64 = 1e9;
/// One row in so many channels is scored: more channels say more about a row, and cost more.
const CHANNELS_PER_SCORED_ROW: usize = 16;

/// The estimator of one stream.
#[derive(Clone)]
pub(crate) struct Estimator {
    /// The ladder, then the memory since the last change.
    memories: Vec<Expert>,
    /// What speaks for the next shorter memory, against each but the shortest.
    spoilt: Vec<Evidence>,
    /// The youngest one last.
    challengers: Vec<Challenger>,
    /// The weights when the last challenger began, and when that was.
    former: Vec<f64>,
    former_at: f64,
    /// When a challenger was believed last, or a context began that needed none.
    accepted: f64,
    mixture: Mixture,
    live: Vec<bool>,
    floor: f64,
    /// The length of the shortest memory, which is also the lag, and what a challenger learns from before it is heard.
    shortest: f64,
    /// Rows taken in.
    time: f64,
    /// Rows since predictions were made.
    window: f64,
    versions: u64,
    excess: Excess,
    changes: u64,
    /// When the last change began.
    last_change: Option<f64>,
    moved: f64,
    scratch: Scratch,
}

#[derive(Clone)]
struct Scratch {
    block: BlockMoments,
    y: Vec<f64>,
    losses: Vec<f64>,
    /// What everybody said of each row.
    said: Vec<f64>,
    old_weights: Vec<f64>,
    expected: Vec<f64>,
    heard: Vec<f64>,
    mean: Vec<f64>,
    in_force: Matrix,
    room: Room,
}

/// The rows of a block, as the estimator is given them.
pub(crate) struct Rows<'a> {
    /// The numbers, row after row; those of channels that are left out are imagined.
    pub values: &'a [f64],
    /// The rows that are too large to be learned from, unless they go on.
    pub wild: &'a [bool],
    /// The covariance of what had to be imagined.
    pub imagined: Option<&'a Matrix>,
    /// |r|²/N of the response to each of them, over the channels that take part.
    pub powers: &'a [f64],
    /// ln det of the covariance by which they were answered, where responses are white.
    pub log_determinant: Option<f64>,
}

impl Rows<'_> {
    /// The mean power of the rows that are not wild, of which there are so many.
    fn power(&self, learned: usize) -> f64 {
        let own = self.powers.iter().zip(self.wild).filter(|(_, wild)| !**wild);
        own.map(|(power, _)| power).sum::<f64>() / learned.max(1) as f64
    }
}

/// By how many nats rows were answered worse than the mixture had foreseen them.
#[derive(Clone, Copy, Debug, Default)]
struct Excess {
    nats: f64,
    rows: f64,
}

impl Estimator {
    /// One for so many channels that knows nothing yet. The shortest memory is `shortest` rows, or as many as a
    /// covariance needs.
    pub fn new(channels: usize, shortest: Option<f64>, floor: f64, most_rows: usize) -> Self {
        let shortest = shortest.unwrap_or_else(|| usual_shortest(channels));
        let lengths = (0..RUNGS).map(|rung| shortest * f64::from(1 << rung)).chain([f64::INFINITY]);
        let memories: Vec<Expert> = lengths.map(|length| Expert::new(channels, length)).collect();
        let trust = |rung: usize| LONGER.powi(i32::try_from(rung).unwrap_or(i32::MAX));
        let prior: Vec<f64> = (0..memories.len())
            .flat_map(|rung| [1.0, SHYNESS, SHYNESS].map(|own| own * trust(rung)))
            .collect();
        let rates: Vec<f64> = SHARES.iter().map(|share| share / shortest).collect();
        let experts = prior.len();
        let mixture = Mixture::new(&prior, &rates);
        Self {
            memories,
            spoilt: vec![Evidence::default(); RUNGS],
            challengers: vec![Challenger::new(channels, mixture.weights()); CHALLENGERS],
            former: mixture.weights().to_vec(),
            former_at: 0.0,
            accepted: 0.0,
            mixture,
            live: vec![true; channels],
            floor,
            shortest,
            time: 0.0,
            window: 0.0,
            versions: 0,
            excess: Excess::default(),
            changes: 0,
            last_change: None,
            moved: ELSEWHERE,
            scratch: Scratch {
                block: BlockMoments::new(channels, most_rows),
                y: vec![0.0; channels],
                losses: vec![0.0; experts],
                said: Vec::with_capacity(most_rows * said_of_a_row(RUNGS + 1)),
                old_weights: vec![0.0; experts],
                expected: vec![0.0; channels],
                heard: vec![0.0; experts],
                mean: vec![0.0; channels],
                in_force: Matrix::zeros(channels, channels),
                room: Room::new(channels),
            },
        }
    }

    /// Begins with what is known of so many rows.
    pub fn begin(&mut self, count: f64, mean: &[f64], covariance: &Matrix) {
        for expert in &mut self.memories {
            expert.memory.recall(count, mean, covariance);
            expert.level = expert.memory.power(&self.live);
        }
        self.renew_predictions();
        // All memories say the same now; of those it is the longest that tells later what was believed.
        self.former.fill(0.0);
        self.former[(self.memories.len() - 1) * VARIANTS + PLAIN] = 1.0;
        self.begin_challengers();
        self.moved = ELSEWHERE;
    }

    /// Begins a context that somebody has announced, with the covariance in force counting as so many rows.
    pub fn begin_context(&mut self, count: f64) {
        let (mean, covariance) = self.in_force();
        let Self { memories, live, floor, versions, scratch, time, .. } = self;
        let Some(last) = memories.last_mut() else { return };
        last.clear();
        last.memory.recall(count, &mean, &covariance);
        last.memory.time += *time;
        (0..2).for_each(|_| last.turn(live, *floor, versions, &mut scratch.room));
        self.mixture.favour((self.memories.len() - 1) * VARIANTS + PLAIN, TRUST);
        self.accepted = self.time;
        self.dismiss_challengers();
        self.moved = ELSEWHERE;
    }

    /// Says which channels take part.
    pub fn set_live(&mut self, live: &[bool]) {
        if self.live != live {
            self.live.copy_from_slice(live);
            self.renew_predictions();
            self.dismiss_challengers();
            self.moved = ELSEWHERE;
        }
    }

    fn renew_predictions(&mut self) {
        let Self { memories, live, floor, versions, scratch, .. } = self;
        for expert in memories {
            (expert.now.version, expert.next.version) = (0, 0);
            (0..2).for_each(|_| expert.turn(live, *floor, versions, &mut scratch.room));
        }
    }

    /// All that challengers know is of no use any more.
    fn dismiss_challengers(&mut self) {
        self.former.copy_from_slice(self.mixture.weights());
        self.begin_challengers();
    }

    fn begin_challengers(&mut self) {
        self.former_at = self.time;
        let Self { challengers, former, time, .. } = self;
        challengers.iter_mut().for_each(|challenger| challenger.begin(*time, former));
    }

    /// The oldest challenger makes room for a new one.
    fn begin_challenger(&mut self) {
        self.challengers.rotate_left(1);
        let Self { challengers, former, time, .. } = self;
        if let Some(youngest) = challengers.last_mut() {
            youngest.begin(*time, former);
        }
        self.former.copy_from_slice(self.mixture.weights());
        self.former_at = self.time;
    }

    /// Learns from a block of rows: weighs the experts by it, then lets every memory take it in.
    pub fn learn(&mut self, rows: &Rows<'_>) {
        let count = rows.wild.len() as f64;
        self.window += count;
        if self.window >= self.shortest {
            self.window = 0.0;
            self.turn();
        }
        let learned = rows.wild.iter().filter(|wild| !**wild).count();
        self.weigh(rows, learned);
        if 2 * learned < rows.wild.len() && !self.challengers.iter().any(Challenger::is_wild) {
            // Rows that nobody expected: a challenger of their own sees them from the first one on.
            self.begin_challenger();
        }
        self.absorb(rows, learned);
        self.time += count;
        self.renew_spoilt();
        self.judge();
    }

    /// Predictions that were to come are scored from now on.
    fn turn(&mut self) {
        if self.time - self.former_at >= YOUNGER * self.shortest {
            self.begin_challenger();
        }
        let Self { memories, challengers, live, floor, versions, scratch, shortest, .. } = self;
        let heard = challengers.iter_mut().filter(|own| own.expert.memory.count >= *shortest);
        let experts = memories.iter_mut().chain(heard.map(|own| &mut own.expert));
        experts.for_each(|expert| expert.turn(live, *floor, versions, &mut scratch.room));
    }

    /// What a memory has taken in long ago may be a million times too large, and forgotten only after a long time. So one
    /// that the next shorter one has beaten for long begins again with what that one holds.
    fn renew_spoilt(&mut self) {
        for longer in 1..self.memories.len() {
            if self.spoilt[longer - 1].nats > EVIDENCE {
                let (shorter, rest) = self.memories.split_at_mut(longer);
                rest[0].copy_from(&shorter[longer - 1]);
                self.spoilt[longer - 1] = Evidence { nats: 0.0, since: self.time };
                self.moved = ELSEWHERE;
            }
        }
    }

    /// Believes a challenger for which enough speaks, the youngest one first: it is the purest one.
    fn judge(&mut self) {
        let believed = self.challengers.iter().rposition(|own| {
            let (now, before) = (own.than_mixture.nats, own.than_before.nats);
            now > EVIDENCE || before > EVIDENCE && now > LATELY
        });
        let Some(believed) = believed else { return };
        let (last, challenger) = (self.memories.len() - 1, &self.challengers[believed]);
        self.memories[last].copy_from(&challenger.expert);
        self.mixture.favour(last * VARIANTS + PLAIN, TRUST);
        let began = challenger.born.max(challenger.than_before.since - LAG * self.shortest);
        // What is believed soon after is a purer memory of the same change.
        if began >= self.accepted + SAME * self.shortest {
            self.changes += 1;
            self.last_change = Some(began);
        }
        self.accepted = self.time;
        // It and those before it have done their work.
        (0..=believed).for_each(|_| self.begin_challenger());
        self.moved = ELSEWHERE;
    }

    /// Scores the rows and updates the weights.
    fn weigh(&mut self, rows: &Rows<'_>, learned: usize) {
        let stride = self.live.len().div_ceil(CHANNELS_PER_SCORED_ROW);
        // Rows at multiples of the stride, however the stream is cut into blocks.
        let due = |index: &usize| (self.time + *index as f64) % stride as f64 == 0.0;
        let first = (0..stride).find(due).unwrap_or(0);
        let scored = || (first..rows.wild.len()).step_by(stride);
        self.ask_experts(rows, &scored(), stride as f64);
        self.scratch.losses.fill(0.0);
        for (place, index) in scored().enumerate() {
            self.score(place, index, rows, stride as f64);
        }
        self.scratch.old_weights.copy_from_slice(self.mixture.weights());
        if learned > 0 {
            self.mixture.update(&self.scratch.losses, learned as f64);
        }
        let change = self.scratch.old_weights.iter().zip(self.mixture.weights());
        self.moved += change.map(|(old, new)| (old - new).abs()).sum::<f64>() / 2.0;
    }

    /// Asks everybody how improbable each of some rows is, one expert after another, so that its factor is at hand.
    fn ask_experts(&mut self, rows: &Rows<'_>, scored: &(impl Iterator<Item = usize> + Clone), stride: f64) {
        let Self { memories, challengers, live, scratch, time, .. } = self;
        let Scratch { y, said, .. } = scratch;
        let (n, width) = (live.len(), said_of_a_row(memories.len()));
        said.clear();
        said.resize(width * scored.clone().count(), 0.0);
        let row = |index: usize| &rows.values[index * n..(index + 1) * n];
        for (which, expert) in memories.iter_mut().enumerate() {
            for (own, index) in said.chunks_exact_mut(width).zip(scored.clone()) {
                let answer = expert.now.score(row(index), *time + index as f64, live, y);
                own[which * VARIANTS..(which + 1) * VARIANTS].copy_from_slice(&answer.of);
                if !rows.wild[index] && expert.now.version > 0 {
                    expert.squares += answer.square * stride;
                    expert.scored += stride;
                }
            }
        }
        for (which, challenger) in challengers.iter().enumerate() {
            for (own, index) in said.chunks_exact_mut(width).zip(scored.clone()) {
                let answer = challenger.expert.now.score(row(index), *time + index as f64, live, y);
                own[width - CHALLENGERS + which] = answer.of[PLAIN];
            }
        }
    }

    /// Takes note of what everybody said of a row, which stands for `stride` of them.
    fn score(&mut self, place: usize, index: usize, rows: &Rows<'_>, stride: f64) {
        let Self { memories, spoilt, challengers, mixture, live, scratch, shortest, excess, time, .. } = self;
        let time = *time + index as f64;
        let width = said_of_a_row(memories.len());
        let said = &scratch.said[place * width..(place + 1) * width];
        let (said, of_challengers) = said.split_at(width - CHALLENGERS);
        let least = said.iter().copied().fold(f64::INFINITY, f64::min);
        let mix_loss = |weights: &[f64]| {
            let mixed = weights.iter().zip(said).map(|(weight, loss)| weight * (least - loss).exp());
            least - mixed.sum::<f64>().ln()
        };
        let most = (EVIDENCE / (LEAST_SHOWN * *shortest)).min(TEMPER * MOST_SAID);
        let mixed = mix_loss(mixture.weights());
        let best = |variants: &[f64]| variants.iter().copied().fold(f64::INFINITY, f64::min);
        let neighbours = said.chunks_exact(VARIANTS).zip(said[VARIANTS..].chunks_exact(VARIANTS));
        for (spoilt, (shorter, longer)) in spoilt.iter_mut().zip(neighbours) {
            let better = TEMPER * (best(longer) - best(shorter));
            spoilt.add(stride * better.clamp(-most, most), time);
        }
        let heard = challengers.iter_mut().zip(of_challengers).filter(|(own, _)| own.expert.now.version > 0);
        for (challenger, own) in heard {
            let better = |loss: f64| stride * (TEMPER * (loss - own)).clamp(-most, most);
            challenger.than_mixture.add(better(mixed), time);
            challenger.than_before.add(better(mix_loss(&challenger.before)), time);
        }
        if !rows.wild[index] {
            if let Some(log_determinant) = rows.log_determinant {
                let channels = live.iter().filter(|live| **live).count() as f64;
                excess.nats += student_loss(channels * rows.powers[index], log_determinant, channels) - mixed;
                excess.rows += 1.0;
            }
            for (sum, loss) in scratch.losses.iter_mut().zip(said) {
                *sum += stride * TEMPER * (*loss - least).min(MOST_SAID);
            }
        }
    }

    fn absorb(&mut self, rows: &Rows<'_>, learned: usize) {
        let (count, middle) = (rows.wild.len(), self.time + (rows.wild.len() as f64 - 1.0) / 2.0);
        let (gain_memory, power) = (GAIN_MEMORY * self.shortest, rows.power(learned));
        let block = &mut self.scratch.block;
        if learned > 0 {
            block.sum_up(rows.values, middle, rows.imagined, |index| !rows.wild[index]);
            for (expert, own) in self.memories.iter_mut().zip(self.mixture.weights().chunks_exact(VARIANTS)) {
                let new = learned as f64 / (expert.memory.count + learned as f64);
                let regained = expert.absorb(block, gain_memory);
                self.moved += own.iter().sum::<f64>() * new * power.max(1.0) + own[GAIN] * regained;
            }
        }
        if learned < count {
            block.sum_up(rows.values, middle, rows.imagined, |_| true);
        }
        if count > 0 {
            for challenger in &mut self.challengers {
                challenger.wild += (count - learned) as f64;
                challenger.expert.absorb(block, gain_memory);
            }
        }
    }

    /// The weights of the experts that are asked.
    fn hear(&mut self) {
        let heard = |weight: &f64| if *weight >= LEAST_HEARD { *weight } else { 0.0 };
        let total: f64 = self.mixture.weights().iter().map(heard).sum();
        let weights = self.scratch.heard.iter_mut().zip(self.mixture.weights());
        weights.for_each(|(own, weight)| *own = heard(weight) / total);
    }

    /// The mean in force, for a row that comes so much later.
    pub fn mean_into(&mut self, ahead: f64, mean: &mut [f64]) {
        self.hear();
        let time = self.time + ahead;
        mean.fill(0.0);
        for (expert, own) in self.memories.iter().zip(self.scratch.heard.chunks_exact(VARIANTS)) {
            let Memory { mean: own_mean, drift, time: own_time, .. } = &expert.memory;
            add_scaled(mean, own.iter().sum(), own_mean);
            add_scaled(mean, own[TREND] * (time - own_time) / expert.memory.spread_of_times(), drift);
        }
    }

    /// The mean and the covariance in force.
    pub fn in_force(&mut self) -> (Vec<f64>, Matrix) {
        let covariance = self.covariance_in_force().clone();
        (self.scratch.mean.clone(), covariance)
    }

    /// The covariance in force.
    pub fn covariance_in_force(&mut self) -> &Matrix {
        let n = self.live.len();
        let mut mean = std::mem::take(&mut self.scratch.mean);
        self.mean_into(0.0, &mut mean);
        let Scratch { expected: offset, in_force: covariance, heard, .. } = &mut self.scratch;
        covariance.as_mut_slice().fill(0.0);
        for (expert, own) in self.memories.iter().zip(heard.chunks_exact(VARIANTS)) {
            let memory = &expert.memory;
            let spread = memory.spread_of_times();
            let gain = expert.gain(memory.power(&self.live));
            let share = own[PLAIN] + own[TREND] + own[GAIN] * gain;
            add_lower(covariance, share, &memory.covariance);
            add_outer(covariance, -own[TREND] / spread, &memory.drift);
            let ahead = [0.0, (self.time - memory.time) / spread, 0.0];
            for variant in 0..VARIANTS {
                offset.copy_from_slice(&memory.mean);
                add_scaled(offset, ahead[variant], &memory.drift);
                add_scaled(offset, -1.0, &mean);
                add_outer(covariance, own[variant], offset);
            }
        }
        for j in 0..n {
            for i in j + 1..n {
                covariance[(j, i)] = covariance[(i, j)];
            }
            covariance[(j, j)] = covariance[(j, j)].max(0.0);
        }
        self.scratch.mean = mean;
        &self.scratch.in_force
    }

    /// How far the covariance in force has moved since the last call of [`Self::settle`]: about 1 where it is another.
    pub fn moved(&self) -> f64 {
        self.moved
    }

    /// Says that the covariance in force has been taken note of.
    pub fn settle(&mut self) {
        self.moved = 0.0;
    }

    /// How often a challenger became the memory since the last change.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// After how many rows the last change began.
    pub fn last_change(&self) -> Option<f64> {
        self.last_change
    }

    /// By how many nats a row was answered worse, on average, than the mixture had foreseen it: what it costs that one
    /// Gaussian answers for all memories, less what the answer knows of the rows in between. None where nothing was
    /// scored.
    pub fn excess(&self) -> Option<f64> {
        (self.excess.rows > 0.0).then(|| self.excess.nats / self.excess.rows)
    }

    /// How many rows the covariance in force rests on.
    pub fn rows_in_force(&self) -> f64 {
        let own = self.memories.iter().zip(self.mixture.weights().chunks_exact(VARIANTS));
        1.0 / own.map(|(expert, own)| own.iter().sum::<f64>() / expert.memory.count.max(1.0)).sum::<f64>()
    }

    /// The lengths of the memories with their weights, and at the end the memory since the last change.
    pub fn weights(&self) -> Vec<(f64, [f64; 3])> {
        let own = self.memories.iter().zip(self.mixture.weights().chunks_exact(VARIANTS));
        own.map(|(expert, own)| (expert.memory.length, [own[PLAIN], own[TREND], own[GAIN]])).collect()
    }

    /// Which channels take part.
    #[cfg(feature = "model-file")]
    pub fn live(&self) -> &[bool] {
        &self.live
    }
}

/// The length of the shortest memory for so many channels.
pub(crate) fn usual_shortest(channels: usize) -> f64 {
    (ROWS_PER_CHANNEL * channels as f64).max(LEAST_ROWS)
}

/// How many losses there are of each row: of the variants of every memory, and of the challengers.
fn said_of_a_row(memories: usize) -> usize {
    memories * VARIANTS + CHALLENGERS
}

/// Adds to the lower triangle.
fn add_lower(out: &mut Matrix, factor: f64, matrix: &Matrix) {
    for j in 0..out.columns() {
        add_scaled(&mut out.column_mut(j)[j..], factor, &matrix.column(j)[j..]);
    }
}

fn add_outer(out: &mut Matrix, factor: f64, x: &[f64]) {
    if factor == 0.0 || inner(x, x) == 0.0 {
        return;
    }
    for j in 0..out.columns() {
        add_scaled(&mut out.column_mut(j)[j..], factor * x[j], &x[j..]);
    }
}

#[cfg(feature = "model-file")]
impl Estimator {
    /// Visits all that later estimates depend on.
    pub fn archive<A: Archive>(&mut self, archive: &mut A) -> Result<()> {
        let channels = self.live.len();
        for (index, expert) in self.memories.iter_mut().enumerate() {
            expert.archive(archive, &format!("memory{index}"))?;
        }
        for (index, challenger) in self.challengers.iter_mut().enumerate() {
            challenger.archive(archive, &format!("challenger{index}"))?;
        }
        self.mixture.archive(archive)?;
        for (index, spoilt) in self.spoilt.iter_mut().enumerate() {
            spoilt.archive(archive, &format!("spoilt{index}"))?;
        }
        let experts = self.former.len();
        archive.vector("former", experts, &mut self.former)?;
        archive.value("former.at", &mut self.former_at)?;
        archive.value("accepted", &mut self.accepted)?;
        archive.value("time", &mut self.time)?;
        archive.value("window", &mut self.window)?;
        archive.value("versions", &mut self.versions)?;
        archive.value("excess.nats", &mut self.excess.nats)?;
        archive.value("excess.rows", &mut self.excess.rows)?;
        archive.value("changes", &mut self.changes)?;
        archive.value("last_change", &mut self.last_change)?;
        archive.value("moved", &mut self.moved)?;
        archive.value("live", &mut self.live)?;
        if !A::READS {
            return Ok(());
        }
        let time =
            |name: &str, value: f64| require(name, (0.0..=1e16).contains(&value), "a number of rows", value);
        require("live", self.live.len() == channels, "one for each channel", self.live.len())?;
        require("moved", self.moved >= 0.0, "a number that is not negative", self.moved)?;
        time("time", self.time)?;
        time("window", self.window)?;
        time("excess.rows", self.excess.rows)?;
        require("excess.nats", self.excess.nats.is_finite(), "a number of nats", self.excess.nats)?;
        time("former.at", self.former_at)?;
        time("accepted", self.accepted)?;
        require_all("former", &self.former, "weights from 0 to 1", |weight| (0.0..=1.0).contains(&weight))
    }
}
