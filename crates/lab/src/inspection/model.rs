//! Describes a model: what it is, how it adapts and how it is doing.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use leukos::{
    BadSamples, Follow, MemoryWeight, Model, Precision, Span, Whitener, WhitenerSettings, WhitenerStatus,
};
use serde_json::{Value, json};

use crate::words::{count, short};

/// What is in a model file.
pub struct ModelReport {
    precision: Precision,
    channel_names: Option<Vec<String>>,
    notes: BTreeMap<String, String>,
    groups: Vec<GroupReport>,
}

struct GroupReport {
    channels: Vec<usize>,
    settings: WhitenerSettings,
    status: WhitenerStatus,
    gains: Vec<f64>,
    /// Mean and standard deviation of each gain over the contexts of training.
    prior: Option<Vec<[f64; 2]>>,
}

impl ModelReport {
    /// Of a model that was read from a file of this precision.
    ///
    /// # Errors
    /// When its gains cannot be computed.
    pub fn of(model: &Model, precision: Precision) -> Result<Self> {
        let group = |(channels, whitener): (&[usize], &Whitener)| {
            let prior = whitener.prior().map(|prior| {
                let spread = |i: usize| prior.covariance[(i, i)].max(0.0).sqrt();
                prior.mean.iter().enumerate().map(|(i, &mean)| [mean, spread(i)]).collect()
            });
            Ok(GroupReport {
                channels: channels.to_vec(),
                settings: whitener.settings().clone(),
                status: whitener.clone().status(),
                gains: whitener.gains()?,
                prior,
            })
        };
        Ok(Self {
            precision,
            channel_names: model.channel_names.clone(),
            notes: model.notes.clone(),
            groups: model.whitener.groups().map(group).collect::<Result<_>>()?,
        })
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        json!({
            "kind": "model",
            "precision": self.precision,
            "channels": self.groups.iter().map(|group| group.channels.len()).sum::<usize>(),
            "channel_names": self.channel_names,
            "notes": self.notes,
            "groups": self.groups.iter().map(GroupReport::json).collect::<Vec<_>>(),
        })
    }
}

impl GroupReport {
    fn json(&self) -> Value {
        let status = &self.status;
        // The memory since the last change has no length, which is null.
        let memory = |memory: &MemoryWeight| {
            let MemoryWeight { length, plain, trend, gain } = memory;
            json!({ "length": length, "plain": plain, "trend": trend, "gain": gain })
        };
        json!({
            "channels": self.channels,
            "settings": self.settings,
            "gains": self.gains,
            "prior": self.prior.as_ref().map(|prior| json!({
                "mean": prior.iter().map(|[mean, _]| mean).collect::<Vec<_>>(),
                "sd": prior.iter().map(|[_, sd]| sd).collect::<Vec<_>>(),
            })),
            "status": {
                "samples": status.samples,
                "started": status.started,
                "adapting": status.adapting,
                "scale": status.scale,
                "excluded": status.excluded.iter().map(|(channel, _)| self.channels[*channel]).collect::<Vec<_>>(),
                "error": status.error,
                "noise_floor": status.noise_floor,
                "rows_in_force": status.rows_in_force,
                "excess": status.excess,
                "memories": status.memories.iter().map(memory).collect::<Vec<_>>(),
                "last_change": status.last_change,
            },
        })
    }
}

impl fmt::Display for ModelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channels: usize = self.groups.iter().map(|group| group.channels.len()).sum();
        let precision = match self.precision {
            Precision::Single => "single",
            Precision::Double => "double",
        };
        write!(f, "whitener      of {}, in {precision} precision", count(channels, "channel"))?;
        if let Some(names) = &self.channel_names {
            write!(f, "\nnames         {}", names.join(", "))?;
        }
        // All groups have the same settings; they differ in what they have learned.
        for (i, line) in
            self.groups.iter().take(1).flat_map(|group| describe_settings(&group.settings)).enumerate()
        {
            write!(f, "\n{:<13} {line}", if i == 0 { "settings" } else { "" })?;
        }
        for (index, group) in self.groups.iter().enumerate() {
            if self.groups.len() > 1 {
                let own: Vec<String> = group.channels.iter().map(ToString::to_string).collect();
                write!(f, "\n\ngroup {index:<7} channels {}", own.join(", "))?;
            }
            write!(f, "\n{group}")?;
        }
        for (name, note) in &self.notes {
            write!(f, "\n\n{name}:\n{}", note.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Display for GroupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "interneurons  {}", self.gains.len())?;
        let mut gains = self.gains.clone();
        gains.sort_unstable_by(f64::total_cmp);
        if let (Some(least), Some(most)) = (gains.first(), gains.last()) {
            writeln!(f, "gains         {} to {}", short(*least), short(*most))?;
        }
        match &self.prior {
            Some(prior) => {
                let spread = prior.iter().map(|[_, sd]| *sd).fold(0.0, f64::max);
                writeln!(
                    f,
                    "prior         from the training contexts, where gains vary by up to {}",
                    short(spread)
                )?;
            }
            None => writeln!(f, "prior         none: fitted to one context, or not fitted")?,
        }
        write!(f, "{}", self.status)
    }
}

/// Settings in words, one line each.
pub fn describe_settings(settings: &WhitenerSettings) -> Vec<String> {
    let mut lines = vec![match settings.follow {
        Follow::Contexts => "follows the covariance in force".to_owned(),
        Follow::Nothing => "follows nothing: it stays as it was fitted".to_owned(),
    }];
    lines.push(match settings.time_constant {
        Some(time) => format!("the shortest memory is {}", in_words(time)),
        None => "the samples show how long to remember".into(),
    });
    lines.push(match settings.synapse_time_constant {
        Some(time) => format!("synapses remember {}", in_words(time)),
        None => "synapses do not change".into(),
    });
    lines.push(match settings.strength {
        1.0 => "whitens fully".into(),
        strength => format!("whitens with strength {strength}"),
    });
    let bad = match settings.bad_samples {
        BadSamples::Mark => "bad samples become rows of NaN",
        BadSamples::Hold => "bad samples repeat the row before",
        BadSamples::Zero => "bad samples become rows of zeros",
        BadSamples::Error => "a bad sample is an error",
    };
    lines.push(match settings.saturation {
        Some(limit) => format!("{bad}; values of {limit} or larger, of either sign, count as bad"),
        None => bad.into(),
    });
    lines.push(match settings.update_every {
        Some(1) => "updates after every sample".into(),
        Some(samples) => format!("updates after every {samples} samples"),
        None => "updates after a third as many samples as there are channels, 128 at most".into(),
    });
    let floor = settings.floor;
    lines.push(format!("amplifies directions below {floor} of the scale no further than one at it"));
    if let Some(limit) = settings.exclude_above {
        lines.push(format!("learns from samples beyond {limit} standard deviations only if they go on"));
    }
    lines
}

fn in_words(span: Span) -> String {
    match span {
        Span::Samples(samples) => format!("{samples} samples"),
        Span::Seconds(seconds) => format!("{seconds} s"),
    }
}
