//! Makes random generators: one stream for each seed and index, independent of all others.

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// The random generator of stream `index` under `seed`.
///
/// Different pairs give different generators, and unrelated ones: PCG's own streams are correlated when they
/// start from the same state, so here both its state and its stream are scrambled from the pair (by the finaliser of
/// `SplitMix64`). Give each piece of work (a run, its stimuli, its schedule) an index of its own, and the numbers are
/// the same on any number of threads.
///
/// ```
/// use leukos::contexts::stream;
/// use rand::RngExt;
///
/// assert_eq!(stream(1, 2).random::<u64>(), stream(1, 2).random::<u64>());
/// assert_ne!(stream(1, 2).random::<u64>(), stream(2, 1).random::<u64>());
/// ```
pub fn stream(seed: u64, index: u64) -> Pcg64 {
    // The first two words, PCG's state, hold the pair itself, because the scrambling can be undone; so no two pairs
    // share a generator.
    let first = scramble(seed ^ 0x9e37_79b9_7f4a_7c15);
    let second = scramble(first ^ index);
    let third = scramble(second.wrapping_add(first.rotate_left(32)));
    let fourth = scramble(third.wrapping_add(second));
    let mut bytes = [0; 32];
    for (to, word) in bytes.chunks_exact_mut(8).zip([first, second, third, fourth]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    Pcg64::from_seed(bytes)
}

/// The finaliser of `SplitMix64`: a one-to-one map in which each input bit sways each output bit.
fn scramble(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
