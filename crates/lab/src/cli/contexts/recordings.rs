//! Makes contexts of a recording, by labels or by segments.

use anyhow::{Result, bail};
use leukos::Moments;

use super::Contexts;
use crate::cli::interruption::stop_or_say;
use crate::cli::progress::Shown;
use crate::cli::{End, NOTHING_WRITTEN};
use crate::contexts::{Division, Filter, Made, Reason, Recordings, Scaling, Sums, left_out};
use crate::outlook::Outlook;
use crate::recording::Source;
use crate::usage::Usage;

impl Contexts {
    pub(super) fn of_recording(&self) -> Result<End> {
        let source: Source =
            if self.source.as_os_str() == "-" { Source::Stdin } else { Source::File(self.source.clone()) };
        let mut paths = self.written();
        paths.read_source("the recording", &source);
        paths.write_along("the table of --out", self.out.with_extension("csv"));
        let _secured = paths.secure()?;
        let recordings = Recordings::open(&[source], &self.reading.options())?;
        let (channels, sample_rate) = (recordings.layout.channels, recordings.layout.sample_rate);
        let division = self.segments.division(&self.reading, sample_rate)?;
        if division == Division::Files {
            let complaint = "--label or --segment: expected one of them to divide the recording, got neither";
            return Err(Usage(complaint.into()).into());
        }
        let (stop, outlook) = (stop_or_say(NOTHING_WRITTEN), Shown::new(self.quiet));
        let mut sums = Sums::new(channels, division, None)?;
        if !recordings.read_into(&mut sums, &outlook, stop)? {
            outlook.say(NOTHING_WRITTEN);
            return Ok(End::Interrupted);
        }
        let (unlabelled, contexts) = (sums.unlabelled, sums.finish()?);
        let bad: u64 = contexts.iter().map(|(_, moments)| moments.bad()).sum();
        let all = self.made(contexts);
        let kept = all.iter().filter(|made| made.outcome.is_ok()).count();
        let lines = left_out(&all, self.filter_of_recording().condition);
        if kept == 0 {
            let (source, contexts, why) = (self.source.display(), all.len(), lines.join("; "));
            bail!(
                "recording {source}: expected at least one usable context, but none of {contexts} is: {why}"
            );
        }
        outlook.say(&format!("{kept} of {} contexts kept", all.len()));
        lines.iter().for_each(|line| outlook.say(&format!("  left out: {line}")));
        if bad + unlabelled > 0 {
            outlook.say(&format!("  rows left out: {bad} bad or wild, {unlabelled} without a label"));
        }
        self.write_made(&all, &format!("a recording of {channels} channels"), &outlook)
    }

    fn made(&self, contexts: Vec<(String, Moments)>) -> Vec<Made> {
        let filter = self.filter_of_recording();
        let made = |(name, moments): (String, Moments)| {
            let covariance = moments.covariance().map_err(|error| Reason::Unusable(error.to_string()));
            Made { name, outcome: covariance.and_then(|covariance| filter.apply(covariance)) }
        };
        contexts.into_iter().map(made).collect()
    }

    fn filter_of_recording(&self) -> Filter {
        Filter {
            condition: self.condition.map_or(f64::INFINITY, |condition| condition.0),
            scaling: self.norm.map_or(Scaling::AsMeasured, |norm| norm.0),
        }
    }
}
