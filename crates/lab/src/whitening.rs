//! Streams a recording through a whitener into another recording, and can continue after a crash without a difference.

mod checkpoint;
mod destination;
mod engine;
mod onlooker;
mod request;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use leukos::{Model, Real};

pub use self::destination::Destination;
pub use self::engine::Mode;
pub use self::onlooker::{Instruction, Onlooker, Seen, Watched};
pub use self::request::{ModelSource, Request};

use self::checkpoint::{Checkpoint, Original, Tracks};
use self::destination::Begun;
use self::engine::Engine;
use crate::data::{matrix_bytes, require_fit, write_checkpoint};
use crate::files::{Secured, write_atomically};
use crate::outlook::Outlook;
use crate::recording::{Misfits, Reader, Rows, SampleType, Writer, open};
use crate::usage::Usage;

/// How it ended.
#[derive(Debug)]
pub struct Tally {
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
}

/// What other programs call the whitening matrix and its inverse.
const MATRICES: [&str; 2] = ["whitening_mat.npy", "whitening_mat_inv.npy"];
/// About how many numbers are read, whitened and written at a time.
const BLOCK: usize = 1 << 15;
/// How often progress is shown; and at most one in this many parts of the time may be spent on it, because the error of
/// many channels takes a while to estimate.
const GLANCE: Duration = Duration::from_millis(300);
const GLANCE_SHARE: u32 = 50;

/// Carries out the request, until the end or until `stop` is set.
///
/// # Errors
/// When the model or the recording cannot be used, the output cannot be written, or the request makes no
/// sense ([`crate::usage::Usage`]).
pub fn whiten(request: &Request, stop: &AtomicBool, outlook: &dyn Outlook) -> Result<Tally> {
    carry_out(request, stop, outlook, None)
}

/// The same while somebody looks on.
///
/// # Errors
/// As for [`whiten`].
pub fn whiten_watched(
    request: &Request,
    stop: &AtomicBool,
    outlook: &dyn Outlook,
    onlooker: &mut dyn Onlooker,
) -> Result<Tally> {
    carry_out(request, stop, outlook, Some(onlooker))
}

fn carry_out(
    request: &Request,
    stop: &AtomicBool,
    outlook: &dyn Outlook,
    onlooker: Option<&mut dyn Onlooker>,
) -> Result<Tally> {
    request.require_sense()?;
    let secured = request.paths().lock()?;
    let reader = open(&request.input, &request.options)?;
    // int16 and float32 are exact in single precision, which is twice as fast. A reversible run needs the same precision
    // in both directions, whatever the types of the two files.
    match reader.layout().sample_type {
        SampleType::Int16 | SampleType::Float32 if !request.reversible => {
            Stream::<f32>::begin(request, reader, &secured, outlook)?.run(stop, outlook, onlooker)
        }
        _ => Stream::<f64>::begin(request, reader, &secured, outlook)?.run(stop, outlook, onlooker),
    }
}

/// A recording that is being whitened.
struct Stream<'a, T: Real> {
    request: &'a Request,
    reader: Box<dyn Reader>,
    engine: Engine<T>,
    writer: Box<dyn Writer>,
    begun: Begun,
    /// The length of the output's header in bytes; it is written last.
    header: usize,
    /// What checkpoints check the input and the output against, if there are checkpoints.
    saving: Option<(Original, Tracks)>,
    /// The factor for numbers of the input: it undoes the scale of int16 and int32 responses.
    unit: f64,
    label: Option<String>,
    /// The rows of this block at which a label began a new context, and the labels.
    told: Vec<(u64, String)>,
    /// Whether somebody may wait for each row at the other end of a pipe.
    answers_at_once: bool,
    /// Whether the input must still be checked for whole numbers, because its format does not tell.
    suspects_whole: bool,
    /// What earlier calls met, and how many bad samples the model had met before.
    misfits: Misfits,
    bad: u64,
    bad_before: u64,
    rows: Rows,
    stimuli: Vec<T>,
    responses: Vec<T>,
}

impl<'a, T: Real> Stream<'a, T> {
    fn begin(
        request: &'a Request,
        mut reader: Box<dyn Reader>,
        secured: &Secured,
        outlook: &dyn Outlook,
    ) -> Result<Self> {
        let input_type = reader.layout().sample_type;
        request.require_undoable(input_type)?;
        let model_file = || request.model.to_string();
        let bytes = request.model.bytes(reader.layout()).with_context(model_file)?;
        let mut saving = match Original::of(request, &bytes)? {
            Some(original) => Some((original, Tracks::new(request)?)),
            None => None,
        };
        let saved = saving.as_ref().map_or(Ok(None), |(original, _)| request.saved::<T>(original))?;
        let (saved, model) = match saved {
            Some((saved, model)) => (Some(saved), model),
            None => (None, Model::from_bytes(&bytes).with_context(model_file)?),
        };
        request.remove_orphans(secured, saved.as_ref().map(|saved| saved.partial.as_str()));
        require_fit(&model, reader.layout())
            .with_context(|| format!("{} and {}", request.model, request.input))?;
        let shape = request.shape(reader.as_ref(), model.channel_names.clone())?;
        let mut engine = Engine::new(model, request, &shape)?;
        let (begun, writer) = match &saved {
            None => request.output.begin(&shape)?,
            Some(saved) => {
                saving.as_mut().map_or(Ok(()), |(_, tracks)| tracks.require_input(saved, request))?;
                reader.go_to(saved.input)?;
                engine.hold(&saved.held)?;
                outlook.say(&format!("continuing after {} rows", saved.input.row));
                request.output.go_on(&shape, &saved.earlier())?
            }
        };
        let unit = if request.mode.is_inverse() { 1.0 / request.scale(input_type) } else { 1.0 };
        let (misfits, bad, label) =
            saved.map_or_else(Default::default, |saved| (saved.misfits, saved.bad, saved.label));
        Ok(Self {
            request,
            reader,
            bad_before: engine.bad(),
            engine,
            writer,
            begun,
            header: shape.header(0).len(),
            saving,
            unit,
            suspects_whole: request.suspects_whole()?,
            answers_at_once: request.output.is_stream(),
            label,
            told: Vec::new(),
            misfits,
            bad,
            rows: Rows::default(),
            stimuli: Vec::new(),
            responses: Vec::new(),
        })
    }

    fn run(
        mut self,
        stop: &AtomicBool,
        outlook: &dyn Outlook,
        onlooker: Option<&mut dyn Onlooker>,
    ) -> Result<Tally> {
        let first = self.reader.place().row;
        outlook.begin(self.reader.layout().rows.map_or(0, |rows| rows - first));
        let tally = self.write_or_save(stop, outlook, onlooker);
        outlook.end();
        Ok(Tally {
            interrupted: tally?,
            rows: self.reader.place().row,
            bad: self.bad(),
            status: self.engine.status(),
            misfits: self.all_misfits(),
        })
    }

    /// Writes all that is left, or saves the state when it is interrupted; says whether it was.
    fn write_or_save(
        &mut self,
        stop: &AtomicBool,
        outlook: &dyn Outlook,
        onlooker: Option<&mut dyn Onlooker>,
    ) -> Result<bool> {
        let interrupted = self.blocks(stop, outlook, onlooker)?;
        if interrupted {
            self.save(false)?;
        } else {
            self.export_matrices()?;
            self.finish()?;
        }
        Ok(interrupted)
    }

    /// All blocks that are left; says whether it was interrupted before the end.
    fn blocks(
        &mut self,
        stop: &AtomicBool,
        outlook: &dyn Outlook,
        mut onlooker: Option<&mut dyn Onlooker>,
    ) -> Result<bool> {
        if let Some(onlooker) = &mut onlooker {
            onlooker.begin(self.reader.layout(), &mut self.engine)?;
        }
        let most = (BLOCK / self.reader.layout().channels).max(1) as u64;
        let (begun, first) = (Instant::now(), self.reader.place().row);
        let (mut next_glance, mut unseen) = (begun + GLANCE, 0);
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(true);
            }
            let row = self.reader.place().row;
            let until = self.request.checkpoint.as_ref().map_or(u64::MAX, |(_, every)| every - row % every);
            let mut most = most.min(until) as usize;
            if let Some(onlooker) = &mut onlooker {
                most = onlooker.wait(row, most, stop);
                if most == 0 {
                    continue;
                }
            }
            self.reader.read(most, &mut self.rows)?;
            if self.rows.values.is_empty() {
                return Ok(false);
            }
            if std::mem::take(&mut self.suspects_whole) {
                require_fractions(&self.rows.values)?;
            }
            match &mut onlooker {
                Some(onlooker) => self.watched_block(row, *onlooker, outlook)?,
                None => self.block(row)?,
            }
            let done = self.reader.place().row;
            unseen += done - row;
            if self.request.checkpoint.as_ref().is_some_and(|(_, every)| done.is_multiple_of(*every)) {
                self.save(false)?;
            }
            let now = Instant::now();
            if now >= next_glance {
                let rate = (done - first) as f64 / begun.elapsed().as_secs_f64();
                let bad = self.bad();
                outlook.done(&self.engine.glance(rate, bad), unseen);
                unseen = 0;
                next_glance = Instant::now() + GLANCE.max(now.elapsed() * GLANCE_SHARE);
            }
        }
    }

    /// Does what it is told, and shows what comes of the rows that were read.
    fn watched_block(&mut self, row: u64, onlooker: &mut dyn Onlooker, outlook: &dyn Outlook) -> Result<()> {
        for instruction in onlooker.instructions() {
            let words = self.obey(&instruction);
            outlook.say(&format!("row {row}: {words}"));
            onlooker.obeyed(row, &words);
        }
        let stimuli = self.rows.values.clone();
        self.block(row)?;
        let seen = Seen { first: row, stimuli: &stimuli, responses: &self.rows.values, told: &self.told };
        onlooker.see(&seen, &mut self.engine)
    }

    /// Carries out an instruction; says what was done.
    fn obey(&mut self, instruction: &Instruction) -> String {
        match instruction {
            Instruction::NewContext => {
                self.engine.begin_context();
                "new context".into()
            }
            Instruction::Adapt(adapt) => {
                self.engine.adapt(*adapt);
                if *adapt { "adapting again" } else { "not adapting" }.into()
            }
            // The stream is worth more than a copy of its model.
            Instruction::Save(path) => match write_checkpoint(path, self.engine.model()) {
                Ok(()) => format!("model saved as {}", path.display()),
                Err(error) => format!("model not saved: {error:#}"),
            },
        }
    }

    /// Whitens the rows that were read and writes them.
    fn block(&mut self, first: u64) -> Result<()> {
        self.stimuli.clear();
        self.stimuli.extend(self.rows.values.iter().map(|&s| T::from_f64(s * self.unit)));
        self.responses.resize(self.stimuli.len(), T::ZERO);
        let n = self.reader.layout().channels;
        let (mut from, rows) = (0, self.rows.values.len() / n);
        self.told.clear();
        while from < rows {
            let to = self.same_label(from, rows, first);
            let span = from * n..to * n;
            self.engine
                .map(&self.stimuli[span.clone()], &mut self.responses[span])
                .map_err(|error| self.in_place(error, first + from as u64))?;
            from = to;
        }
        self.rows.values.clear();
        self.rows.values.extend(self.responses.iter().map(|r| r.to_f64()));
        let output = || self.request.output.to_string();
        self.writer.write(&self.rows).with_context(output)?;
        if self.answers_at_once {
            self.writer.flush().with_context(output)?;
        }
        Ok(())
    }

    /// Where the rows end that have the same label as this one; a new label is a new context.
    fn same_label(&mut self, from: usize, rows: usize, first: u64) -> usize {
        let Some(label) = self.rows.labels.get(from) else { return rows };
        if self.label.as_ref() != Some(label) {
            if self.label.is_some() {
                self.engine.begin_context();
                self.told.push((first + from as u64, label.clone()));
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
            "{}: row {row}, channel {channel}{name}: expected a usable number, got {value} \
             (use --bad-samples mark, hold or zero to continue past it)",
            self.request.input
        )
    }

    /// How many rows of this recording could not be used.
    fn bad(&self) -> u64 {
        self.bad + self.engine.bad() - self.bad_before
    }

    fn all_misfits(&self) -> Misfits {
        let all = [self.misfits, self.engine.misfits(), self.writer.misfits()];
        Misfits {
            clipped: all.iter().map(|misfits| misfits.clipped).sum(),
            not_numbers: all.iter().map(|misfits| misfits.not_numbers).sum(),
        }
    }

    /// Saves the state: first the output is brought to the disk, then the checkpoint is written.
    fn save(&mut self, complete: bool) -> Result<()> {
        let output = || self.request.output.to_string();
        let (Some((path, _)), Some((original, tracks))) = (&self.request.checkpoint, &mut self.saving) else {
            return Ok(());
        };
        let length = self.writer.flush().with_context(output)?;
        self.begun.keep().with_context(output)?;
        // If an earlier call had finished the output, there is nothing to save.
        let Some((partial, name)) = self.begun.partial() else { return Ok(()) };
        let input = self.reader.place();
        let checkpoint = Checkpoint {
            original: original.clone(),
            input,
            read: tracks.read(input).with_context(|| self.request.input.to_string())?,
            written: tracks.written(partial, self.header, length).with_context(output)?,
            partial: name,
            held: self.engine.held(),
            label: self.label.clone(),
            bad: self.bad(),
            misfits: self.all_misfits(),
            complete,
        };
        checkpoint.write(path, self.engine.model())
    }

    fn export_matrices(&self) -> Result<()> {
        let Some(folder) = &self.request.export_matrix else { return Ok(()) };
        let (whitening, inverse) = self.engine.matrices().context("--export-matrix")?;
        let [whitening_file, inverse_file] = MATRICES.map(|name| folder.join(name));
        write_atomically(&whitening_file, &matrix_bytes(&whitening)?)?;
        write_atomically(&inverse_file, &matrix_bytes(&inverse)?)
    }

    fn finish(&mut self) -> Result<()> {
        self.writer.finish().with_context(|| self.request.output.to_string())?;
        self.save(true)?;
        self.begun.finish().with_context(|| self.request.output.to_string())
    }
}

/// Refuses to undo an adapting run from whole numbers in a text file, where only the numbers show that they are whole.
fn require_fractions(values: &[f64]) -> Result<()> {
    let whole = values.iter().all(|value| value.is_nan() || value.fract() == 0.0);
    let silent = values.iter().all(|value| value.is_nan() || *value == 0.0);
    if whole && !silent {
        return Err(Usage(request::CANNOT_BE_UNDONE.into()).into());
    }
    Ok(())
}
