//! Smooths values into a distribution and counts them into bins.

use super::axes::Axis;

/// The points of a smoothed distribution.
const POINTS: usize = 200;

/// A Gaussian kernel estimate on the axis (on its logarithm where it is logarithmic), scaled to a peak of 1; it begins
/// and ends at 0. The bandwidth is Silverman's, but at least a hundredth of the axis, so that starts that all end at one
/// value are a peak and not a line without width.
pub fn smoothed(values: &[f64], axis: &Axis) -> Vec<(f64, f64)> {
    let to = |x: f64| if axis.is_log() { x.ln() } else { x };
    let back = |x: f64| if axis.is_log() { x.exp() } else { x };
    let values: Vec<f64> = values.iter().map(|&x| to(x)).filter(|x| x.is_finite()).collect();
    let [from, until] = axis.bounds().map(to);
    if values.is_empty() {
        return Vec::new();
    }
    let bandwidth = silverman(&values).max(0.012 * (until - from));
    let at = |i: usize| from + (until - from) * i as f64 / (POINTS - 1) as f64;
    let height = |x: f64| values.iter().map(|v| (-0.5 * ((x - v) / bandwidth).powi(2)).exp()).sum::<f64>();
    let heights: Vec<f64> = (0..POINTS).map(|i| height(at(i))).collect();
    let peak = heights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let points = heights.iter().enumerate().map(|(i, height)| (back(at(i)), height / peak));
    let seen: Vec<_> = points.filter(|&(_, share)| share > 1e-3).collect();
    let ends = seen.first().zip(seen.last()).map(|(first, last)| [(first.0, 0.0), (last.0, 0.0)]);
    ends.map_or(Vec::new(), |[first, last]| [vec![first], seen, vec![last]].concat())
}

/// 0.9 min(standard deviation, interquartile range / 1.34) n^(−1/5).
fn silverman(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let deviation = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let quartile = |share: usize| sorted[(share * (sorted.len() - 1)) / 4];
    let middle = (quartile(3) - quartile(1)) / 1.34;
    let spread = if middle > 0.0 { deviation.min(middle) } else { deviation };
    0.9 * spread * n.powf(-0.2)
}

/// A bin of a histogram.
pub struct Bin {
    pub from: f64,
    pub to: f64,
    /// The share of all values in it.
    pub share: f64,
}

/// Counts values into bins of one width.
#[allow(clippy::cast_sign_loss)] // Values below the first bin are not counted into it.
pub fn histogram(values: &[f64], [from, to]: [f64; 2], bins: usize) -> Vec<Bin> {
    let width = (to - from) / bins as f64;
    let mut counts = vec![0_usize; bins];
    let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    for value in finite.iter().filter(|&&value| (from..=to).contains(&value)) {
        counts[(((value - from) / width) as usize).min(bins - 1)] += 1;
    }
    let bin = |(i, count): (usize, usize)| Bin {
        from: from + width * i as f64,
        to: from + width * (i + 1) as f64,
        share: count as f64 / finite.len().max(1) as f64,
    };
    counts.into_iter().enumerate().map(bin).collect()
}
