//! Estimates the mean and the covariance in force from a stream whose statistics change.
//!
//! ```text
//! memories: a ladder of lengths L, 2L, 4L, …          the memory since the last change        a challenger
//!     |                                                        |                                  |
//!     v                                                        v                                  |  young and pure
//! predictions, each as it is, along its trend, and scaled by its gain                             |
//!     |  log losses of the rows that come, up to a horizon                                        |
//!     v                                                                                           v
//! mixture (fixed share) -> weights -> mean and covariance in force        beats the mixture by 24 nats: a change
//! ```
//!
//! Nobody knows how long the statistics of a stream stay as they are, so every memory is tried: each predicts the rows to
//! come, and the better it has predicted, the more it counts. Two things keep this from chasing what is not a context:
//!
//! - All rows up to a horizon are predicted at once. What a memory says about the very next row is mostly what
//!   neighbouring rows have in common, and that is signal; a context lasts.
//! - Losses count a twentieth, because rows of a recording are not independent of one another.
//!
//! A *challenger* is a memory that began a little while ago. After a sharp change all other memories still hold the old
//! context; a challenger born after it does not, and once enough speaks for it ([`EVIDENCE`]) it becomes the memory since
//! the last change. For this densities have heavy tails, so that a burst is not worth more than what it is: a few
//! improbable rows. A challenger need not beat the mixture as it is now by so much, because that follows the same change
//! with its short memories, but the mixture as it was weighted before. Several of them are under way, one younger than
//! the other, so that what an older one has seen of the old context does not stay.

mod backlog;
mod challenger;
mod expert;
mod in_force;
mod memory;
mod mixture;
mod prediction;
mod weighing;

use self::backlog::{Backlog, Portion};
use self::challenger::{Challenger, Evidence};
use self::expert::Expert;
pub use self::mixture::Mixture;
use self::prediction::{GAIN, PLAIN, VARIANTS};
use self::weighing::{Excess, Scores};
#[cfg(feature = "model-file")]
use crate::archive::{Archive, require, require_all};
#[cfg(feature = "model-file")]
use crate::error::Result;
use crate::linalg::Room;
use crate::matrix::Matrix;

/// The shortest memory has so many rows for each channel: with fewer a covariance says next to nothing.
const ROWS_PER_CHANNEL: f64 = 2.0;
/// And so many at least.
const LEAST_ROWS: f64 = 32.0;
/// Half of the shortest memory is predicted at once where nobody has said how long that is,
const HORIZON: f64 = 0.5;
/// and so many rows at least.
const LEAST_HORIZON: f64 = 32.0;
/// The number of lengths, each twice the one before.
const RUNGS: usize = 10;
/// So many challengers are under way.
const CHALLENGERS: usize = 3;
/// Each is younger than the one before by so many times the shortest memory.
const YOUNGER: f64 = 4.0;
/// What must speak for a challenger, in nats.
const EVIDENCE: f64 = 24.0;
/// What of it must have come lately, compared with the mixture, which follows the same change meanwhile.
const LATELY: f64 = 1.0;
/// Evidence begins so many times the shortest memory after what it is evidence of.
const LAG: f64 = 0.5;
/// A challenger believed so soon after another, in times of the shortest memory, is one of the same change.
const SAME: f64 = 2.0;
/// The weight that it then has,
const TRUST: f64 = 0.9;
/// and that the memory of a context has which somebody has announced.
const TRUST_IN_TOLD: f64 = 0.999;
/// A memory must have been beaten by its rival for so many times the length of that one to begin again with what it
/// holds: a rare burst, which the longer one has foreseen, is then among what was predicted.
const PATIENCE: f64 = 4.0;
/// But for no longer than so many times the shortest memory.
const MOST_PATIENCE: f64 = 128.0;
/// The same for the memory since the last change: long enough for a change to be told first.
const LAST_PATIENCE: f64 = 16.0;
/// What is shared in the time of the shortest memory, for each rate.
const SHARES: [f64; 3] = [1.0 / 16.0, 1.0 / 256.0, 1.0 / 4096.0];
/// The prior weight of a memory, relative to one half as long.
const LONGER: f64 = 1.3;
/// The prior weight of a trend or a gain, relative to none.
const SHYNESS: f64 = 0.01;
/// Gains remember so many times the shortest memory.
const GAIN_MEMORY: f64 = 8.0;
/// How far the covariance in force has moved where it is another one altogether.
const ELSEWHERE: f64 = 1e9;

/// The estimator of one stream.
#[derive(Clone)]
pub(crate) struct Estimator {
    /// The ladder, then the memory since the last change.
    memories: Vec<Expert>,
    /// The rival of each memory but the shortest: the next shorter one, and for the last one that which counts most.
    rivals: Vec<usize>,
    /// What speaks for it.
    spoilt: Vec<Evidence>,
    /// The youngest one last.
    challengers: Vec<Challenger>,
    /// The weights when the last challenger began, and when that was.
    former: Vec<f64>,
    former_at: f64,
    /// When a challenger was believed last, or a context began that needed none.
    accepted: f64,
    mixture: Mixture,
    /// What long memories have not taken in yet.
    backlog: Backlog,
    live: Vec<bool>,
    floor: f64,
    /// The length of the shortest memory, which is also what a challenger learns from before it is heard.
    shortest: f64,
    /// How many rows are predicted at once.
    horizon: f64,
    /// Rows taken in.
    time: f64,
    /// Rows since predictions were made.
    predicted: f64,
    excess: Excess,
    changes: u64,
    /// When the last change began.
    last_change: Option<f64>,
    moved: f64,
    scratch: Scratch,
}

#[derive(Clone)]
struct Scratch {
    /// The rows of a block that are summed up, and their sum.
    rows: Vec<f64>,
    block: Portion,
    offset: Vec<f64>,
    scores: Scores,
    /// What a row can say for the rival of each memory at most.
    most_said: Vec<f64>,
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
    /// Sums up the rows that are chosen by whether they are wild, of which there is at least one.
    fn sum_up(&self, chosen: &mut Vec<f64>, sum: &mut Portion, middle: f64, choose: impl Fn(bool) -> bool) {
        let n = self.values.len() / self.wild.len();
        let (mut power, mut count) = (0.0, 0.0);
        chosen.clear();
        for ((row, own), wild) in self.values.chunks_exact(n).zip(self.powers).zip(self.wild) {
            if choose(*wild) {
                chosen.extend_from_slice(row);
                (power, count) = (power + own, count + 1.0);
            }
        }
        sum.power = power / count;
        sum.rows.hold(chosen, middle, self.imagined);
    }
}

impl Estimator {
    /// One for so many channels that knows nothing yet. The shortest memory is `shortest` rows, or as many as a
    /// covariance needs. What changes within that time is signal, so that as many rows are predicted at once.
    pub fn new(channels: usize, shortest: Option<f64>, floor: f64, most_rows: usize) -> Self {
        let usual = usual_shortest(channels);
        let horizon = shortest.unwrap_or((HORIZON * usual).max(LEAST_HORIZON));
        let shortest = shortest.unwrap_or(usual);
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
            rivals: (0..RUNGS).collect(),
            spoilt: vec![Evidence::default(); RUNGS],
            challengers: vec![Challenger::new(channels, mixture.weights()); CHALLENGERS],
            former: mixture.weights().to_vec(),
            former_at: 0.0,
            accepted: 0.0,
            mixture,
            backlog: Backlog::new(channels),
            live: vec![true; channels],
            floor,
            shortest,
            horizon,
            time: 0.0,
            predicted: 0.0,
            excess: Excess::default(),
            changes: 0,
            last_change: None,
            moved: ELSEWHERE,
            scratch: Scratch {
                rows: Vec::with_capacity(channels * most_rows),
                block: Portion::new(channels),
                offset: vec![0.0; channels],
                scores: Scores::new(channels, experts, most_rows),
                most_said: vec![0.0; RUNGS],
                heard: vec![0.0; experts],
                mean: vec![0.0; channels],
                in_force: Matrix::zeros(channels, channels),
                room: Room::new(channels),
            },
        }
    }

    /// Begins with what is known of so many rows.
    pub fn begin(&mut self, count: f64, mean: &[f64], covariance: &Matrix) {
        self.backlog.clear();
        for expert in &mut self.memories {
            expert.clear();
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
        let Self { memories, live, floor, scratch, time, .. } = self;
        let Some(last) = memories.last_mut() else { return };
        last.clear();
        last.memory.recall(count, &mean, &covariance);
        last.memory.time += *time;
        last.predict(live, *floor, &mut scratch.room);
        self.mixture.favour((self.memories.len() - 1) * VARIANTS + PLAIN, TRUST_IN_TOLD);
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
        let Self { memories, live, floor, scratch, .. } = self;
        for expert in memories {
            expert.prediction.is_made = false;
            expert.predict(live, *floor, &mut scratch.room);
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
        if self.predicted >= self.horizon {
            self.predicted = 0.0;
            self.predict();
        }
        self.predicted += count;
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

    /// Lets everybody who knows enough predict the rows to come.
    fn predict(&mut self) {
        if self.time - self.former_at >= YOUNGER * self.shortest {
            self.begin_challenger();
        }
        let Self { memories, challengers, live, floor, scratch, shortest, .. } = self;
        let heard = challengers.iter_mut().filter(|own| own.expert.memory.count >= *shortest);
        let experts = memories.iter_mut().chain(heard.map(|own| &mut own.expert));
        experts.for_each(|expert| expert.predict(live, *floor, &mut scratch.room));
    }

    /// What a memory has taken in long ago may be a million times too large, and forgotten only after a long time. So one
    /// that its rival has beaten all the time for long begins again with what that one holds. In the same way the memory
    /// since the last change, which forgets nothing by itself, follows what was too mild to be told.
    fn renew_spoilt(&mut self) {
        for longer in 1..=RUNGS {
            let rival = self.rivals[longer - 1];
            let (shorter, rest) = self.memories.split_at_mut(longer);
            let (rival, own) = (&shorter[rival], &mut rest[0]);
            if self.spoilt[longer - 1].nats > EVIDENCE {
                own.copy_from(rival);
                self.spoilt[longer - 1] = Evidence { nats: 0.0, since: self.time };
                self.moved = ELSEWHERE;
            }
        }
    }

    /// For how many rows a memory must have been beaten by its rival at least.
    fn patience(&self, longer: usize) -> f64 {
        match longer {
            RUNGS => LAST_PATIENCE * self.shortest,
            _ => (PATIENCE * self.memories[longer - 1].memory.count).min(MOST_PATIENCE * self.shortest),
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

    /// Lets memories take in the rows that are not wild, and challengers all of them.
    fn absorb(&mut self, rows: &Rows<'_>, learned: usize) {
        let count = rows.wild.len();
        let Self { memories, challengers, mixture, backlog, moved, scratch, .. } = self;
        let gain_memory = GAIN_MEMORY * self.shortest;
        for (expert, own) in memories.iter_mut().zip(mixture.weights().chunks_exact(VARIANTS)) {
            *moved += own[GAIN] * expert.follow_level(gain_memory);
        }
        let middle = self.time + (count as f64 - 1.0) / 2.0;
        let Scratch { rows: chosen, block, offset, .. } = scratch;
        if learned > 0 {
            rows.sum_up(chosen, block, middle, |wild| !wild);
            backlog.hand_out(block, memories, |index, part, power| {
                let weight: f64 = mixture.weights()[index * VARIANTS..][..VARIANTS].iter().sum();
                *moved += weight * part * power.max(1.0);
            });
        }
        if learned < count {
            rows.sum_up(chosen, block, middle, |_| true);
        }
        if count > 0 {
            for challenger in challengers {
                challenger.wild += (count - learned) as f64;
                challenger.expert.absorb(&block.rows, offset);
            }
        }
    }

    /// How often a challenger became the memory since the last change.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// After how many rows the last change began.
    pub fn last_change(&self) -> Option<f64> {
        self.last_change
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
        self.backlog.archive(archive)?;
        for (index, spoilt) in self.spoilt.iter_mut().enumerate() {
            spoilt.archive(archive, &format!("spoilt{index}"))?;
        }
        let experts = self.former.len();
        archive.vector("former", experts, &mut self.former)?;
        archive.value("former.at", &mut self.former_at)?;
        archive.value("accepted", &mut self.accepted)?;
        archive.value("time", &mut self.time)?;
        archive.value("predicted", &mut self.predicted)?;
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
        time("predicted", self.predicted)?;
        time("excess.rows", self.excess.rows)?;
        require("excess.nats", self.excess.nats.is_finite(), "a number of nats", self.excess.nats)?;
        time("former.at", self.former_at)?;
        time("accepted", self.accepted)?;
        require_all("former", &self.former, "weights from 0 to 1", |weight| (0.0..=1.0).contains(&weight))
    }
}
