//! Looks into models and recordings: `leukos inspect`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use leukos::{BadSamples, Model, Precision};
use serde_json::{Value, json};

use super::interruption::stop_or_say;
use super::progress::{Shown, Watch};
use super::settings::Reading;
use super::{End, NOTHING_WRITTEN, print};
use crate::data::{is_model, is_stack, require_fit};
use crate::figures::{draw_adaptation, draw_model, picture_path, write_picture};
use crate::files::Paths;
use crate::inspection::{Adaptation, Lines, ModelReport, RecordingReport, Survey};
use crate::outlook::Outlook;
use crate::recording::{Rows, Source, open};
use crate::usage::Usage;

/// Describe a model or a recording, in words and with a picture
///
/// For a model: its channels, how it adapts, how many samples it has seen and how well it whitens. For a recording:
/// format, rows, mean, standard deviation, range and bad numbers of each channel, the condition number, channels that
/// do not vary or repeat another, and advice for fitting a whitener to it.
///
/// --picture draws a model: its synapses, its gains and the spread of their prior, and covariances before and after.
/// With a model and a recording, a copy of the model adapts to the recording and the picture shows how; neither file
/// is changed.
///
/// Examples:
///   leukos inspect day.csv --label state
///   leukos inspect probe.raw --channels 64 --dtype int16 --sample-rate 30000
///   leukos inspect model.safetensors --picture model.png
///   leukos inspect model.safetensors day.csv --label state --picture adaptation.svg
///   leukos inspect model.safetensors --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Inspect {
    /// A model, or a recording
    #[arg(value_name = "MODEL|FILE")]
    file: Source,
    /// A recording for the model to adapt to
    #[arg(value_name = "RECORDING")]
    recording: Option<Source>,
    /// Draw the model, or how it adapts to RECORDING, into this file
    #[arg(long, value_name = "FILE.png|FILE.svg", value_parser = picture_path)]
    picture: Option<PathBuf>,
    /// Print JSON, for other programs
    #[arg(long)]
    json: bool,
    /// Show every channel, even if the table is long
    #[arg(long)]
    all: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    reading: Reading,
}

/// How many numbers are read at a time.
const BLOCK: usize = 1 << 16;

impl Inspect {
    pub fn run(self) -> Result<End> {
        let _secured = self.paths().secure()?;
        let (stop, outlook) = (stop_or_say(NOTHING_WRITTEN), Shown::new(self.quiet));
        let watch = Watch { outlook: &outlook, stop };
        let ended = match &self.file {
            Source::File(path) if is_model(path) => self.inspect_model(path, &watch),
            source => self.inspect_recording(source, &watch),
        };
        outlook.end();
        if watch.stopped() {
            outlook.say(NOTHING_WRITTEN);
            return Ok(End::Interrupted);
        }
        ended
    }

    /// Everything that is read and written.
    fn paths(&self) -> Paths {
        let mut paths = Paths::default();
        for source in std::iter::once(&self.file).chain(&self.recording) {
            paths.read_source(source.to_string(), source);
        }
        self.picture.iter().for_each(|path| _ = paths.write("--picture", path));
        paths
    }

    fn inspect_model(&self, path: &Path, watch: &Watch<'_>) -> Result<End> {
        let model_file = || format!("model {}", path.display());
        let bytes = std::fs::read(path).context("the file cannot be read").with_context(model_file)?;
        let model: Model = Model::from_bytes(&bytes).with_context(model_file)?;
        let precision = Precision::in_file(&bytes).with_context(model_file)?;
        let Some(source) = &self.recording else {
            if self.reading != Reading::default() {
                return Err(Usage(
                    "--format, --channels, --dtype, --sample-rate and --label are for recordings, \
                     but only a model was given"
                        .into(),
                )
                .into());
            }
            if let Some(picture) = &self.picture {
                write_picture(picture, &draw_model(&model).with_context(model_file)?)?;
            }
            let report = ModelReport::of(&model, precision).with_context(model_file)?;
            return self.show(&report.to_string(), &report.json());
        };
        let Some(adaptation) = self.adapt(model, source, watch)? else { return Ok(End::Interrupted) };
        let report = ModelReport::of(&adaptation.model, precision).with_context(model_file)?;
        self.show(&report.to_string(), &report.json())
    }

    /// Lets a model adapt to a recording and draws it. `None` when it was stopped.
    fn adapt(&self, mut model: Model, source: &Source, watch: &Watch<'_>) -> Result<Option<Adaptation>> {
        let mut reader = open(source, &self.reading.options())?;
        require_fit(&model, reader.layout()).with_context(|| source.to_string())?;
        let sample_rate = reader.layout().sample_rate;
        // A picture should show the whole recording, bad samples or not.
        model.whitener.set_bad_samples(BadSamples::Mark);
        watch.begin(source);
        let mut before = 0;
        let adaptation = Adaptation::of(model, reader.as_mut(), |byte| {
            watch.outlook.done("adapting", byte - before);
            before = byte;
            !watch.stopped()
        })
        .with_context(|| source.to_string())?;
        if let (Some(picture), Some(adaptation)) = (&self.picture, &adaptation) {
            write_picture(picture, &draw_adaptation(adaptation, sample_rate)?)?;
        }
        Ok(adaptation)
    }

    fn inspect_recording(&self, source: &Source, watch: &Watch<'_>) -> Result<End> {
        if let Source::File(path) = source
            && is_stack(path)
        {
            let complaint = "is a stack of covariances, which inspect does not read; `leukos fit` takes it, \
                             and `leukos contexts` draws a picture when it makes one";
            return Err(Usage(format!("{} {complaint}", path.display())).into());
        }
        if self.recording.is_some() || self.picture.is_some() {
            let complaint = format!(
                "{source}: expected a model, got a recording; --picture and a second file need a model first"
            );
            return Err(Usage(complaint).into());
        }
        let options = self.reading.options();
        let (mut reader, format) = (open(source, &options)?, options.format_of(source)?.to_string());
        let layout = reader.layout().clone();
        let (mut survey, mut rows, mut before) = (Survey::new(&layout)?, Rows::default(), 0);
        watch.begin(source);
        loop {
            reader.read((BLOCK / layout.channels).max(1), &mut rows)?;
            if rows.values.is_empty() || watch.stopped() {
                break;
            }
            survey.update(&rows)?;
            let byte = reader.place().byte;
            watch.outlook.done("reading", byte - before);
            before = byte;
        }
        if watch.stopped() {
            return Ok(End::Interrupted);
        }
        watch.outlook.end();
        let report: RecordingReport = survey.finish(&layout, format).with_context(|| source.to_string())?;
        let lines = if self.all { Lines::All } else { Lines::Ends };
        let mut machines = serde_json::to_value(&report)?;
        machines["kind"] = json!("recording");
        self.show(&report.words(lines).to_string(), &machines)
    }

    fn show(&self, words: &str, machines: &Value) -> Result<End> {
        let text = if self.json { serde_json::to_string_pretty(machines)? } else { words.to_owned() };
        print(format!("{text}\n").as_bytes())
    }
}
