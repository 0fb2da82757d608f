//! Recognises a context that has been there before: what whitened it then whitens it again.

use std::collections::VecDeque;

use anyhow::Result;
use leukos::Model;

use super::whole;
use crate::inspection::{FixedWhitener, Meter};

/// As many earlier contexts are remembered.
const MOST: usize = 8;
/// An earlier state is as good if it leaves no more than so many times the error of the present one, or of noise.
const AS_GOOD: f64 = 1.3;

/// A state that has whitened a context, and that context's number.
struct Remembered {
    context: u64,
    model: Model,
    /// Tried on the present context after a change.
    trial: Option<FixedWhitener>,
}

/// The contexts so far.
pub(super) struct EarlierContexts {
    remembered: VecDeque<Remembered>,
    /// The present context's number, from 1, and its state when it was last known to be settled.
    context: u64,
    settled: Option<Model>,
    /// How many rows of the present context are left until it is judged; none after that.
    undecided: Option<u64>,
    rows_to_judge: u64,
    /// The highest number so far.
    highest: u64,
}

impl EarlierContexts {
    /// For so many channels, times the rows of which one is measured, and so many rows that are measured together.
    pub fn new(channels: u64, window: f64) -> Self {
        Self {
            remembered: VecDeque::new(),
            context: 1,
            settled: None,
            undecided: None,
            // The present state must have had time to settle, and the errors to be estimated.
            rows_to_judge: whole(window) + 40 * channels,
            highest: 1,
        }
    }

    /// The present state belongs to the present context.
    pub fn settle(&mut self, model: Model) {
        if self.undecided.is_none() {
            self.settled = Some(model);
        }
    }

    /// Another context begins: is it one of the earlier ones?
    pub fn change(&mut self) -> Result<()> {
        if let Some(model) = self.settled.take() {
            self.remembered.retain(|earlier| earlier.context != self.context);
            self.remembered.push_back(Remembered { context: self.context, model, trial: None });
            if self.remembered.len() > MOST {
                self.remembered.pop_front();
            }
        }
        for earlier in &mut self.remembered {
            earlier.trial = Some(FixedWhitener::of(&earlier.model)?);
        }
        self.undecided = Some(self.rows_to_judge);
        Ok(())
    }

    /// Tries earlier states on rows of the present context. When it is time to judge: the number of the earlier context
    /// that it is, or else its own new one; `present` measures the present state.
    pub fn see(&mut self, stimuli: &[f64], rows: u64, present: &Meter) -> Result<Option<Verdict>> {
        let Some(left) = self.undecided else { return Ok(None) };
        for trial in self.remembered.iter_mut().filter_map(|earlier| earlier.trial.as_mut()) {
            trial.see(stimuli)?;
        }
        let left = left.saturating_sub(rows);
        self.undecided = Some(left);
        if left > 0 {
            return Ok(None);
        }
        let Some(error) = present.error()? else { return Ok(None) };
        let mut best: Option<(f64, u64)> = None;
        for earlier in &mut self.remembered {
            let trial = earlier.trial.take();
            let Some(left) = trial.map_or(Ok(None), |trial| trial.error())? else { continue };
            if best.is_none_or(|(least, _)| left < least) {
                best = Some((left, earlier.context));
            }
        }
        self.undecided = None;
        let recalled = best.filter(|(left, _)| *left <= AS_GOOD * error.max(present.noise_floor()));
        Ok(Some(if let Some((_, context)) = recalled {
            self.context = context;
            Verdict::Recalled(context)
        } else {
            self.highest += 1;
            self.context = self.highest;
            Verdict::New(self.context)
        }))
    }
}

/// What a context is.
pub(super) enum Verdict {
    New(u64),
    Recalled(u64),
}
