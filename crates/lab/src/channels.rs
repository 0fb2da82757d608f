//! Names channels, and finds those that carry nothing or the same as another.

use leukos::Matrix;

/// What a channel is called: its name, or else its number.
pub fn named(channel: usize, names: Option<&[String]>) -> String {
    match names.and_then(|names| names.get(channel)) {
        Some(name) => format!("channel {channel} ({name})"),
        None => format!("channel {channel}"),
    }
}

/// Channels whose standard deviation is below the floor, relative to the root of the mean variance: the rule by which
/// training leaves channels out.
pub fn dead(covariance: &Matrix, floor: f64) -> Vec<usize> {
    let n = covariance.rows();
    let mean = covariance.trace() / n as f64;
    (0..n).filter(|&channel| !(covariance[(channel, channel)] > floor * floor * mean)).collect()
}

/// Pairs of channels whose difference, each scaled to variance one, has a standard deviation below the floor. A channel
/// that was found to repeat another one is not compared with the rest.
pub fn duplicates(covariance: &Matrix, floor: f64) -> Vec<(usize, usize)> {
    let dead = dead(covariance, floor);
    let alike = |i: usize, j: usize| {
        let scale = (covariance[(i, i)] * covariance[(j, j)]).sqrt();
        1.0 - covariance[(i, j)].abs() / scale <= floor * floor / 2.0
    };
    let live: Vec<usize> = (0..covariance.rows()).filter(|channel| !dead.contains(channel)).collect();
    let first_alike = |&j: &usize| live.iter().find(|&&i| i < j && alike(i, j)).map(|&i| (i, j));
    live.iter().filter_map(first_alike).collect()
}
