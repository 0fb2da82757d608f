//! Orders learned filters by the cosine that each is most like, from low to high frequency.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Filters of this shape (rows, columns) from low to high frequency, each with the sign of its main cosine.
pub fn by_frequency(filters: &[Vec<f64>], shape: [usize; 2]) -> Vec<Vec<f64>> {
    let mut ordered: Vec<_> = filters.iter().map(|filter| main_cosine(filter, shape)).collect();
    ordered.sort_by_key(|&([down, across], _)| (down + across, down));
    ordered.into_iter().map(|(_, filter)| filter).collect()
}

/// The frequencies, down and across, of the cosine that a filter is most like, and the filter with that cosine's sign.
fn main_cosine(filter: &[f64], [rows, columns]: [usize; 2]) -> ([usize; 2], Vec<f64>) {
    let all = (0..rows).flat_map(|down| (0..columns).map(move |across| [down, across]));
    let shares = all.map(|frequencies| (frequencies, share(filter, columns, rows, frequencies)));
    let main = shares.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let (frequencies, share) = main.unwrap_or(([0, 0], 1.0));
    (frequencies, filter.iter().map(|x| x * share.signum()).collect())
}

/// The inner product of a filter with a cosine, up to a factor that all cosines share.
fn share(filter: &[f64], columns: usize, rows: usize, [down, across]: [usize; 2]) -> f64 {
    let pixels = filter.iter().enumerate();
    pixels.map(|(i, x)| x * cosine(down, i / columns, rows) * cosine(across, i % columns, columns)).sum()
}

fn cosine(frequency: usize, at: usize, length: usize) -> f64 {
    let norm = if frequency == 0 { FRAC_1_SQRT_2 } else { 1.0 };
    norm * (PI * frequency as f64 * (at as f64 + 0.5) / length as f64).cos()
}
