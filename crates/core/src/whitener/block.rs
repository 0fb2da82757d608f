//! Gathers what the rows of one block have to teach.

use crate::kernels::add_scaled;
use crate::real::Real;

/// The rows of a block as they are answered, and sums over those that count.
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

impl<T: Real> Block<T> {
    pub fn new(channels: usize, interneurons: usize, rows: usize, learns_synapses: bool) -> Self {
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

    /// Begins with the rows of a call.
    pub fn begin(&mut self) {
        self.taken = 0;
        self.good.clear();
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

    /// Forgets what the rows of this block had to teach.
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
