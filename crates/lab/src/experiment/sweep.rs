//! Names the numbers of interneurons that a figure goes through, and rescales them for contexts of another size.

use serde::{Deserialize, Serialize};

use super::spec::Scale;

/// Numbers of interneurons at either scale. For a stack with another N they grow or shrink like N.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepAt {
    quick: Vec<usize>,
    paper: Vec<usize>,
}

impl SweepAt {
    /// The numbers for N neurons where the spec was written for `usual` ones.
    pub fn at(&self, scale: Scale, usual: usize, neurons: usize) -> Vec<usize> {
        let listed = match scale {
            Scale::Quick => &self.quick,
            Scale::Paper => &self.paper,
        };
        // K = N and its neighbours stay what they are, because that is where something happens.
        let rescaled = |&k: &usize| match k.abs_diff(usual) {
            0 | 1 => (k + neurons).saturating_sub(usual),
            _ => (k * neurons).div_ceil(usual),
        };
        let mut numbers: Vec<usize> = listed.iter().map(rescaled).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
