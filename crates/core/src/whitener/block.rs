//! Collects the sums over the rows of one block that learning needs.

#[cfg(feature = "model-file")]
use crate::archive::{Archive, require, require_all};
#[cfg(feature = "model-file")]
use crate::error::Result;
use crate::kernels::add_scaled;
use crate::real::Real;

/// The rows of a block as they are answered, and sums over those that count.
#[derive(Clone)]
pub(super) struct Block<T> {
    channels: usize,
    interneurons: usize,
    /// Rows of the block so far, in all calls.
    pub rows: usize,
    /// Rows taken in by the present call, and which of them are good.
    pub taken: usize,
    pub good: Vec<usize>,
    /// Conditioned stimuli, responses and interneuron inputs of the good rows.
    pub x: Vec<T>,
    pub r: Vec<T>,
    pub z: Vec<T>,
    /// The last row of output.
    pub last: Vec<T>,
    /// Rows that count, Σ x, and Σ zᵢ² (at the end E\[zᵢ²\]).
    pub count: u64,
    pub sums: Vec<f64>,
    pub squares: Vec<f64>,
    /// Σ c r zᵢ and Σ c, where c keeps a large response from counting more than three typical ones.
    pub correlations: Vec<T>,
    pub weight: f64,
    /// Whether a channel has been left out or come back.
    pub mask_changed: bool,
    pub scratch: Vec<f64>,
}

/// A response counts for the synapses as if |r|² were at most this many times N.
const LARGEST_POWER: f64 = 3.0;

/// The number of rows that memory is allocated for; a call with more rows allocates more, once.
pub(super) const ROOM: usize = 64;

impl<T: Real> Block<T> {
    pub fn new(channels: usize, interneurons: usize, rows: usize, learns_synapses: bool) -> Self {
        let rows = rows.min(ROOM);
        let zeros = |length| vec![T::ZERO; length];
        Self {
            channels,
            interneurons,
            rows: 0,
            taken: 0,
            good: Vec::with_capacity(rows),
            x: zeros(rows * channels),
            r: zeros(rows * channels),
            z: zeros(rows * interneurons),
            last: zeros(channels),
            count: 0,
            sums: vec![0.0; channels],
            squares: vec![0.0; interneurons],
            correlations: zeros(if learns_synapses { channels * interneurons } else { 0 }),
            weight: 0.0,
            mask_changed: false,
            scratch: Vec::with_capacity(channels),
        }
    }

    /// Begins with so many rows of a call.
    pub fn begin(&mut self, rows: usize) {
        self.taken = 0;
        self.good.clear();
        if rows * self.channels > self.x.len() {
            self.good.reserve(rows);
            self.x.resize(rows * self.channels, T::ZERO);
            self.r.resize(rows * self.channels, T::ZERO);
            self.z.resize(rows * self.interneurons, T::ZERO);
        }
    }

    /// The conditioned stimulus and the response at this place.
    pub fn row(&self, place: usize) -> (&[T], &[T]) {
        let range = place * self.channels..(place + 1) * self.channels;
        (&self.x[range.clone()], &self.r[range])
    }

    /// Lets the row at this place count; its response has the power |r|²/N.
    pub fn add(&mut self, place: usize, power: f64) {
        let (n, k) = (self.channels, self.interneurons);
        self.count += 1;
        let x = &self.x[place * n..(place + 1) * n];
        self.sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += x.to_f64());
        let z = &self.z[place * k..(place + 1) * k];
        self.squares.iter_mut().zip(z).for_each(|(square, z)| *square += z.to_f64() * z.to_f64());
        if self.correlations.is_empty() {
            return;
        }
        let share = (LARGEST_POWER / power.max(LARGEST_POWER)).min(1.0);
        self.weight += share;
        let r = &self.r[place * n..(place + 1) * n];
        for (correlation, &z) in self.correlations.chunks_exact_mut(n).zip(z) {
            add_scaled(correlation, T::from_f64(share) * z, r);
        }
    }

    /// Turns sums of squares into means.
    pub fn finish_squares(&mut self) {
        let count = self.count.max(1) as f64;
        self.squares.iter_mut().for_each(|square| *square /= count);
    }

    /// Begins the next block.
    pub fn reset(&mut self) {
        self.rows = 0;
        self.forget();
    }

    /// Discards the sums over the rows of this block.
    pub fn forget(&mut self) {
        self.count = 0;
        self.weight = 0.0;
        self.sums.fill(0.0);
        self.squares.fill(0.0);
        self.correlations.fill(T::ZERO);
    }

    /// The interneuron inputs of the row at this place.
    pub fn inputs(&self, place: usize) -> &[T] {
        &self.z[place * self.interneurons..(place + 1) * self.interneurons]
    }
}

#[cfg(feature = "model-file")]
impl<T: Real> Block<T> {
    /// Visits the sums so far of a block of so many rows. What belongs to the present call is not part of the state.
    pub fn archive<A: Archive>(&mut self, archive: &mut A, whole: usize) -> Result<()> {
        let Self {
            channels,
            interneurons,
            rows,
            taken: _,
            good: _,
            x: _,
            r: _,
            z: _,
            last,
            count,
            sums,
            squares,
            correlations,
            weight,
            mask_changed,
            scratch: _,
        } = self;
        let (n, k) = (*channels, *interneurons);
        let learned = if correlations.is_empty() { 0 } else { k };
        archive.value("block.rows", rows)?;
        archive.value("block.count", count)?;
        archive.value("block.weight", weight)?;
        archive.value("block.mask_changed", mask_changed)?;
        archive.vector("block.last", n, last)?;
        archive.vector("block.sums", n, sums)?;
        archive.vector("block.squares", k, squares)?;
        archive.matrix("block.correlations", (n, learned), correlations)?;
        if A::READS { self.require_sound(whole) } else { Ok(()) }
    }

    fn require_sound(&self, whole: usize) -> Result<()> {
        let Self { rows, count, weight, .. } = self;
        require("block.rows", *rows < whole, &format!("less than update_every, {whole}"), rows)?;
        require(
            "block.count",
            *count <= *rows as u64,
            &format!("no more than the {rows} rows of the block"),
            count,
        )?;
        let counted = (0.0..=*count as f64).contains(weight);
        require("block.weight", counted, &format!("a number from 0 to the count, {count}"), weight)?;
        let most = 2.0 * *rows as f64 * super::answering::reach::<T>();
        require_all("block.sums", &self.sums, "sums that so few rows can have", |sum| sum.abs() <= most)?;
        require_all("block.squares", &self.squares, "squares that are not negative", |square| square >= 0.0)
    }
}
