//! Says in words what was fitted, and to what.

use std::fmt;

use super::{FittedContext, FittedGroup};
use crate::channels::named;
use crate::experiment::median;
use crate::words::{count, short};

/// What was fitted. Its `Display` is meant for people.
pub struct Summary<'a> {
    /// What was found of each group of channels.
    pub groups: &'a [FittedGroup],
    /// The names of all channels, where they have any.
    pub names: Option<&'a [String]>,
    /// What the recordings held; none where covariances were given.
    pub samples: Option<Samples>,
}

/// How many samples of which kind recordings held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// All rows.
    pub rows: u64,
    /// Those that were bad or wild.
    pub left_out: u64,
    /// Those without a label.
    pub unlabelled: u64,
}

/// A covariance from fewer samples for each channel than this is mostly noise.
const ENOUGH: u64 = 10;

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contexts = self.groups.first().map_or(0, |group| group.contexts.len());
        write!(f, "contexts      {contexts}")?;
        self.describe_samples(f)?;
        let channels: usize = self.groups.iter().map(|group| group.channels).sum();
        write!(f, "\nchannels      {channels}")?;
        let several = self.groups.len() > 1;
        if several {
            write!(f, " in {} groups", self.groups.len())?;
        }
        for (index, group) in self.groups.iter().enumerate() {
            if several {
                write!(f, "\ngroup {index:<7} {}", count(group.channels, "channel"))?;
            }
            self.describe_channels(f, group)?;
            self.describe_contexts(f, group)?;
        }
        Ok(())
    }
}

impl Summary<'_> {
    fn describe_samples(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Samples { rows, left_out, unlabelled }) = self.samples else { return Ok(()) };
        write!(f, "\nsamples       {rows}")?;
        if left_out > 0 {
            write!(f, ", {left_out} of them bad or wild and left out")?;
        }
        if unlabelled > 0 {
            write!(f, ", {unlabelled} without a label and left out")?;
        }
        Ok(())
    }

    fn describe_channels(&self, f: &mut fmt::Formatter<'_>, group: &FittedGroup) -> fmt::Result {
        let name = |channel: usize| named(channel, self.names);
        for &channel in &group.dead {
            write!(f, "\nleft out      {}: does not vary", name(channel))?;
        }
        for &(first, second) in &group.duplicates {
            write!(f, "\nduplicate     {} carries the same signal as {}", name(second), name(first))?;
        }
        write!(f, "\ninterneurons  {}", group.interneurons)
    }

    fn describe_contexts(&self, f: &mut fmt::Formatter<'_>, group: &FittedGroup) -> fmt::Result {
        let of = |measure: fn(&FittedContext) -> f64| Spread::of(group.contexts.iter().map(measure));
        write!(f, "\ncondition     {}", of(|context| context.condition))?;
        write!(f, "\nerror         {} when centred and scaled alone", of(|context| context.error_before))?;
        if group.contexts.len() > 1 {
            write!(f, "\n              {} with the model as it is", of(|context| context.error_at_rest))?;
        }
        write!(
            f,
            "\n              {} with the best gains of its circuit",
            of(|context| context.error_adapted)
        )?;
        let least = group.contexts.iter().map(|context| context.samples).min().unwrap_or(0);
        let enough = ENOUGH * group.channels as u64;
        if self.samples.is_some() && least < enough {
            write!(f, "\nfew samples   one context has {least}; this many channels need {enough} or more")?;
        }
        Ok(())
    }
}

/// A measure over contexts.
struct Spread(Vec<f64>);

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        // Errors this small are rounding.
        let mut values: Vec<f64> = values.map(|x| if x < 1e-9 { 0.0 } else { x }).collect();
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [alone] => f.write_str(&short(*alone)),
            [.., largest] => write!(f, "{} median, {} largest", short(median(&self.0)), short(*largest)),
            [] => Ok(()),
        }
    }
}
