//! Times the whitener on a stream, beside a plain matrix product of the same blocks.
//!
//! `cargo bench --bench whitener`. Data is made off the clock; times are the minimum over many repetitions.

use std::time::{Duration, Instant};

use faer::{Accum, MatMut, MatRef, Par, linalg::matmul::matmul, traits::RealField};
use leukos::{Real, Span, Whitener, WhitenerSettings, starts};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

/// Samples a second of extracellular recordings.
const REAL_TIME: f64 = 30_000.0;
/// Rows of one call.
const ROWS: usize = 960;

fn main() {
    println!(
        "| channels | number | synapses | updates every | µs a sample | times real time at 30 kHz | times a plain product |"
    );
    println!("|---|---|---|---|---|---|---|");
    report::<f64>(64, Some(1), &Kind::Fixed);
    report::<f64>(64, None, &Kind::Fixed);
    report::<f64>(64, None, &Kind::Plastic);
    report::<f32>(384, Some(32), &Kind::Fixed);
    report::<f32>(384, None, &Kind::Fixed);
}

/// Whether the synapses learn.
#[derive(Debug)]
enum Kind {
    Fixed,
    Plastic,
}

fn report<T: Real + RealField>(channels: usize, update_every: Option<usize>, kind: &Kind) {
    let rng = &mut Pcg64::seed_from_u64(0);
    let stimuli: Vec<T> = (0..channels * ROWS).map(|_| T::from_f64(StandardNormal.sample(rng))).collect();
    let settings = WhitenerSettings {
        synapse_time_constant: matches!(kind, Kind::Plastic).then_some(Span::Samples(1e6)),
        update_every,
        ..WhitenerSettings::default()
    };
    let rows_together = settings.rows_together(channels);
    let synapses = starts::orthogonal(channels, channels, rng);
    let mut whitener = Whitener::<T>::new(synapses, settings).expect("good settings");
    let mut responses = vec![T::ZERO; stimuli.len()];
    let own = minimum(|| whitener.whiten(&stimuli, &mut responses).expect("finite stimuli")) / ROWS as f64;
    let plain = plain_product(channels, rows_together.max(8), &stimuli, &mut responses);
    println!(
        "| {channels} | {} | {kind:?} | {rows_together} | {:.2} | {:.2} | {:.1} |",
        if T::EPSILON.to_f64() > 1e-10 { "f32" } else { "f64" },
        1e6 * own,
        1.0 / (own * REAL_TIME),
        own / plain
    );
}

/// Time a sample of one product with a fixed matrix, block by block, as someone without adaptation would do it.
fn plain_product<T: Real + RealField>(
    channels: usize,
    block: usize,
    stimuli: &[T],
    responses: &mut [T],
) -> f64 {
    let matrix: Vec<T> = (0..channels * channels).map(|i| T::from_f64((i % 7) as f64 - 3.0)).collect();
    let matrix = MatRef::from_column_major_slice(&matrix, channels, channels);
    minimum(|| {
        let blocks = stimuli.chunks(channels * block).zip(responses.chunks_mut(channels * block));
        for (from, to) in blocks {
            let rows = from.len() / channels;
            let from = MatRef::from_column_major_slice(from, channels, rows);
            let to = MatMut::from_column_major_slice_mut(to, channels, rows);
            matmul(to, Accum::Replace, matrix, from, Real::from_f64(1.0), Par::Seq);
        }
    }) / ROWS as f64
}

/// The shortest of many runs, in seconds.
fn minimum(mut run: impl FnMut()) -> f64 {
    let (begin, mut least) = (Instant::now(), Duration::MAX);
    while begin.elapsed() < Duration::from_secs(3) {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed());
    }
    least.as_secs_f64()
}
