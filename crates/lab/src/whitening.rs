//! Streams a recording through a whitener into another recording, and goes on after a crash as if there had been none.

mod checkpoint;
mod destination;
mod engine;
mod order;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use leukos::{Matrix, Model, Real};

pub use self::checkpoint::Checkpoint;
pub use self::destination::Destination;
pub use self::engine::Mode;
pub use self::order::Order;

use self::checkpoint::Original;
use self::destination::Begun;
use self::engine::Engine;
use crate::experiment::Outlook;
use crate::recording::{Misfits, Place, Reader, Rows, SampleType, Writer, open};

/// How it ended.
#[derive(Debug)]
pub struct Outcome {
    /// Rows written, those of earlier calls included.
    pub rows: u64,
    /// Rows that could not be used.
    pub bad: u64,
    /// Numbers that did not fit into the type of the output.
    pub misfits: Misfits,
    /// Whether it was interrupted before the end.
    pub interrupted: bool,
    /// How the whitener is doing, in words.
    pub status: String,
    /// The whitening matrix at the end and its inverse, where the model has a scale.
    pub matrices: Option<(Matrix, Matrix)>,
}

/// About so many numbers are read, whitened and written at a time.
const BLOCK: usize = 1 << 15;
/// How often the progress is looked at, and at most what share of the time that may take: the error of many channels
/// takes a while to estimate.
const GLANCE: Duration = Duration::from_millis(300);
const GLANCE_SHARE: u32 = 50;

/// Does what the order says, until the end or until `stop` is set.
///
/// # Errors
/// When the model or the recording will not do, the output cannot be written, or the order makes no
/// sense ([`crate::usage::Usage`]).
pub fn whiten(order: &Order, stop: &AtomicBool, outlook: &dyn Outlook) -> Result<Outcome> {
    order.require_sense()?;
    let reader = open(&order.input, &order.options)?;
    // Numbers of 16 bits and singles are exact in single precision, which is twice as fast.
    match reader.layout().sample_type {
        SampleType::Int16 | SampleType::Float32 => {
            Stream::<f32>::begin(order, reader, outlook)?.run(stop, outlook)
        }
        SampleType::Int32 | SampleType::Float64 => {
            Stream::<f64>::begin(order, reader, outlook)?.run(stop, outlook)
        }
    }
}

/// A recording on its way.
struct Stream<'a, T: Real> {
    order: &'a Order,
    reader: Box<dyn Reader>,
    engine: Engine<T>,
    writer: Box<dyn Writer>,
    begun: Begun,
    original: Original,
    /// What a number of the input is multiplied by: whole responses come back from their scale.
    unit: f64,
    label: Option<String>,
    misfits: Misfits,
    rows: Rows,
    stimuli: Vec<T>,
    responses: Vec<T>,
}

impl<'a, T: Real> Stream<'a, T> {
    fn begin(order: &'a Order, mut reader: Box<dyn Reader>, outlook: &dyn Outlook) -> Result<Self> {
        let bytes =
            std::fs::read(&order.model).with_context(|| format!("model {}", order.model.display()))?;
        let original = Original::of(order, &bytes)?;
        let saved = match &order.checkpoint {
            Some((path, _)) if order.resume => Checkpoint::read(path)?,
            _ => None,
        };
        let bytes = saved.as_ref().map_or(bytes, |saved| saved.model.clone());
        let model: Model<T> =
            Model::from_bytes(&bytes).with_context(|| format!("model {}", order.model.display()))?;
        require_fit(&model, reader.as_ref())
            .with_context(|| format!("{} and {}", order.model.display(), order.input))?;
        let shape = order.shape(reader.as_ref(), model.channel_names.clone())?;
        let mut engine = Engine::new(model, order)?;
        let (mut misfits, mut label) = (Misfits::default(), None);
        let (begun, writer) = match saved {
            None => order.output.begin(&shape)?,
            Some(saved) => {
                let path = &order.checkpoint.as_ref().context("a checkpoint")?.0;
                saved.require_same(&original).with_context(|| format!("checkpoint {}", path.display()))?;
                reader.go_to(saved.input)?;
                engine.hold(&saved.held)?;
                (misfits, label) = (saved.misfits, saved.label.clone());
                let row = saved.input.row;
                outlook.say(&format!("going on after {row} rows"));
                order.output.go_on(&shape, Place { row, byte: saved.output }, saved.complete)?
            }
        };
        let unit = if order.mode.is_inverse() { 1.0 / order.scale(reader.layout().sample_type) } else { 1.0 };
        Ok(Self {
            order,
            reader,
            engine,
            writer,
            begun,
            original,
            unit,
            label,
            misfits,
            rows: Rows::default(),
            stimuli: Vec::new(),
            responses: Vec::new(),
        })
    }

    fn run(mut self, stop: &AtomicBool, outlook: &dyn Outlook) -> Result<Outcome> {
        let first = self.reader.place().row;
        outlook.begin(self.reader.layout().rows.map_or(0, |rows| rows - first));
        let outcome = self.blocks(stop, outlook);
        outlook.end();
        let interrupted = match outcome {
            Ok(interrupted) => interrupted,
            Err(error) => {
                self.begun.give_up(self.order.checkpoint.is_some());
                return Err(error);
            }
        };
        if interrupted {
            if self.order.checkpoint.is_some() {
                self.save(false)?;
            }
            self.begun.give_up(self.order.checkpoint.is_some());
        } else {
            self.finish()?;
        }
        let Self { reader, engine, .. } = &mut self;
        Ok(Outcome {
            rows: reader.place().row,
            bad: engine.bad(),
            status: engine.status(),
            matrices: engine.matrices(),
            misfits: self.all_misfits(),
            interrupted,
        })
    }

    /// All blocks that are left; says whether it was interrupted before the end.
    fn blocks(&mut self, stop: &AtomicBool, outlook: &dyn Outlook) -> Result<bool> {
        let most = (BLOCK / self.reader.layout().channels).max(1) as u64;
        let (begun, first) = (Instant::now(), self.reader.place().row);
        let (mut next_glance, mut unseen) = (begun + GLANCE, 0);
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(true);
            }
            let row = self.reader.place().row;
            let until = self.order.checkpoint.as_ref().map_or(u64::MAX, |(_, every)| every - row % every);
            self.reader.read(most.min(until) as usize, &mut self.rows)?;
            if self.rows.values.is_empty() {
                return Ok(false);
            }
            self.block(row)?;
            let done = self.reader.place().row;
            unseen += done - row;
            if self.order.checkpoint.as_ref().is_some_and(|(_, every)| done.is_multiple_of(*every)) {
                self.save(false)?;
            }
            let now = Instant::now();
            if now >= next_glance {
                let rate = (done - first) as f64 / begun.elapsed().as_secs_f64();
                outlook.done(&self.engine.glance(rate), unseen);
                unseen = 0;
                next_glance = Instant::now() + GLANCE.max(now.elapsed() * GLANCE_SHARE);
            }
        }
    }

    /// Whitens the rows that were read and writes them.
    fn block(&mut self, first: u64) -> Result<()> {
        self.stimuli.clear();
        self.stimuli.extend(self.rows.values.iter().map(|&s| T::from_f64(s * self.unit)));
        self.responses.resize(self.stimuli.len(), T::ZERO);
        let n = self.reader.layout().channels;
        let (mut from, rows) = (0, self.rows.values.len() / n);
        while from < rows {
            let to = self.same_label(from, rows);
            let span = from * n..to * n;
            self.engine
                .map(&self.stimuli[span.clone()], &mut self.responses[span])
                .map_err(|error| self.in_place(error, first + from as u64))?;
            from = to;
        }
        self.rows.values.clear();
        self.rows.values.extend(self.responses.iter().map(|r| r.to_f64()));
        self.writer.write(&self.rows).with_context(|| self.order.output.to_string())
    }

    /// Where the rows end that have the same label as this one; a new label is a new context.
    fn same_label(&mut self, from: usize, rows: usize) -> usize {
        let Some(label) = self.rows.labels.get(from) else { return rows };
        if self.label.as_ref() != Some(label) {
            if self.label.is_some() {
                self.engine.begin_context();
            }
            self.label = Some(label.clone());
        }
        let same = self.rows.labels[from..rows].iter().take_while(|other| *other == label).count();
        from + same
    }

    /// The error with the row and channel of the recording.
    fn in_place(&self, error: leukos::Error, first: u64) -> anyhow::Error {
        let leukos::Error::BadSample { index, value } = error else { return error.into() };
        let layout = self.reader.layout();
        let (row, channel) = (first + (index / layout.channels) as u64, index % layout.channels);
        let name = layout.names.as_ref().map_or(String::new(), |names| format!(" ({})", names[channel]));
        anyhow::anyhow!(
            "{}: row {row}, channel {channel}{name}: expected a usable number, came {value} \
             (--bad-samples mark, hold or zero goes on)",
            self.order.input
        )
    }

    fn all_misfits(&self) -> Misfits {
        let own = self.writer.misfits();
        Misfits {
            clipped: self.misfits.clipped + own.clipped,
            not_numbers: self.misfits.not_numbers + own.not_numbers,
        }
    }

    /// Saves the state: first everything that was written is on the disk, then the checkpoint takes its place.
    fn save(&mut self, complete: bool) -> Result<()> {
        let Some((path, _)) = &self.order.checkpoint else { return Ok(()) };
        let output = self.writer.flush().with_context(|| self.order.output.to_string())?;
        self.begun.sync().with_context(|| self.order.output.to_string())?;
        let checkpoint = Checkpoint {
            original: self.original.clone(),
            input: self.reader.place(),
            output,
            held: self.engine.held(),
            label: self.label.clone(),
            misfits: self.all_misfits(),
            complete,
            model: Vec::new(),
        };
        checkpoint.write(path, self.engine.model())
    }

    fn finish(&mut self) -> Result<()> {
        self.writer
            .finish()
            .and_then(|()| self.begun.sync())
            .with_context(|| self.order.output.to_string())?;
        self.save(true)?;
        self.begun.finish().with_context(|| self.order.output.to_string())
    }
}

/// A model is for some channels and, where times are in seconds, for one sample rate.
fn require_fit<T: Real>(model: &Model<T>, reader: &dyn Reader) -> Result<()> {
    let (layout, channels) = (reader.layout(), model.whitener.channels());
    ensure!(
        layout.channels == channels,
        "expected the model's {channels} channels, came {}",
        layout.channels
    );
    if let (Some(expected), Some(came)) = (&model.channel_names, &layout.names)
        && let Some(j) = (0..channels).find(|&j| expected[j] != came[j])
    {
        bail!("expected channel {j} to be {:?} as in the model, came {:?}", expected[j], came[j]);
    }
    let rate = model.whitener.whiteners().find_map(|whitener| whitener.settings().sample_rate);
    if let (Some(expected), Some(came)) = (rate, layout.sample_rate)
        && (expected - came).abs() > 1e-9 * expected
    {
        bail!("expected a sample rate of {expected} Hz as the model was made for, came {came} Hz");
    }
    Ok(())
}
