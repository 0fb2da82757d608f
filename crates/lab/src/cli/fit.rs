//! Fits a model to recordings or covariances: `leukos fit`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use leukos::{Model, Moments, TrainingSynapses};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::interruption::stop_or_say;
use super::progress::{Shown, Watch};
use super::settings::{Config, Reading, Settings, Start, Time, whole_samples};
use super::{End, NOTHING_WRITTEN};
use crate::contexts::{Division, Recordings, Sums};
use crate::data::{is_stack, read_stack, read_synapses, write_model};
use crate::files::Paths;
use crate::fitting::{Fitting, Samples, Summary};
use crate::outlook::Outlook;
use crate::recording::{Layout, Source};
use crate::usage::Usage;

/// Fit a model to recordings: mean and covariance, synapses, and a prior over gains
///
/// Rows are samples and columns are channels. A context is a stretch of data with one covariance. Each recording is
/// one context, unless --segment or --label divides it into several. The whitener begins with the mean and covariance
/// of all samples. With several contexts the synapses are learned too, so that gains can whiten every context.
///
/// INPUT is a CSV, TSV, .npy, EDF, BDF or raw file, or `-` for standard input; or a stack of covariances, a .npy array
/// of shape (contexts, N, N) as `leukos contexts` writes it. Samples with a NaN, an infinity or an empty cell are
/// counted and left out, and so are wild ones, 30 times as far from the others as is typical.
///
/// If the command fails or is interrupted, nothing is written.
///
/// Examples:
///   leukos fit rest.csv walk.csv --out model.safetensors              each file is a context
///   leukos fit day.csv --label state --out model.safetensors          each label in column `state` is a context
///   leukos fit probe.raw --channels 64 --dtype int16 --sample-rate 30000 --segment 60s --out model.safetensors
///   leukos fit eeg.edf --time-constant 4s --groups 0-15,16-31 --out model.safetensors
///   leukos fit covs.npy --out model.safetensors                       contexts given as covariances
///
/// `leukos inspect MODEL --picture model.png` shows the result.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Fit {
    /// Recordings of the same channels, or one stack of covariances
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<Source>,
    /// The model file to write
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// A TOML file with any of the options below, with underscores instead of dashes (time_constant = "2s"); options on
    /// the command line take precedence, and the model keeps a note of the settings used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    segments: Segments,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    reading: Reading,
}

/// How recordings are divided.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segments {
    /// Divide recordings into contexts of this many samples, or of this time (60s); a remainder at the end becomes a
    /// context of its own if it is at least half as long, and otherwise joins the one before
    #[arg(long, value_name = "TIME", conflicts_with = "label")]
    pub segment: Option<Time>,
}

impl Segments {
    /// What makes a context of recordings with this sample rate.
    ///
    /// # Errors
    /// When both labels and segments are asked for, or a time needs a sample rate: wrong usage.
    pub fn division(&self, reading: &Reading, sample_rate: Option<f64>) -> Result<Division> {
        match (self.segment, &reading.label) {
            (Some(_), Some(_)) => Err(Usage(
                "--segment: expected --segment or --label, got both; each divides a recording into contexts"
                    .into(),
            )
            .into()),
            (Some(time), None) => whole_samples("--segment", time, sample_rate).map(Division::Segments),
            (None, Some(_)) => Ok(Division::Labels),
            (None, None) => Ok(Division::Files),
        }
    }
}

/// The settings of the command line and the config file together.
struct Asked {
    segments: Segments,
    settings: Settings,
    reading: Reading,
    /// The note that the model keeps of these settings, if there is a config file.
    echo: Option<String>,
}

/// The data to fit to.
struct Evidence {
    contexts: Vec<(String, Moments)>,
    names: Option<Vec<String>>,
    sample_rate: Option<f64>,
    samples: Option<Samples>,
}

impl Fit {
    pub fn run(self) -> Result<End> {
        let asked = self.asked()?;
        let _secured = self.paths(&asked).secure()?;
        let (stop, outlook) = (stop_or_say(NOTHING_WRITTEN), Shown::new(self.quiet));
        let watch = Watch { outlook: &outlook, stop };
        if self.fit(&asked, &watch)?.is_none() {
            outlook.say(NOTHING_WRITTEN);
            return Ok(End::Interrupted);
        }
        Ok(End::Done)
    }

    /// `None` when it was stopped.
    fn fit(&self, asked: &Asked, watch: &Watch<'_>) -> Result<Option<()>> {
        let evidence = match &self.inputs[..] {
            [Source::File(path)] if is_stack(path) => Some(asked.stack(path)?),
            recordings => asked.recordings(recordings, watch)?,
        };
        let Some(Evidence { contexts, names, sample_rate, samples }) = evidence else { return Ok(None) };
        let fitting = asked.fitting(sample_rate)?;
        let Some(fitted) = fitting.fit(contexts, watch.outlook, watch.stop)? else { return Ok(None) };
        let summary = Summary { groups: &fitted.groups, names: names.as_deref(), samples };
        watch.outlook.say(&summary.to_string());
        let mut model = Model::from(fitted.whitener);
        model.channel_names = names;
        model.notes.extend(asked.echo.clone().map(|echo| ("config".into(), echo)));
        write_model(&self.out, &model)?;
        watch.outlook.say(&format!("{} written", self.out.display()));
        Ok(Some(()))
    }

    /// Everything that is read and written.
    fn paths(&self, asked: &Asked) -> Paths {
        let mut paths = Paths::default();
        self.inputs.iter().for_each(|source| _ = paths.read_source(source.to_string(), source));
        self.config.iter().for_each(|path| _ = paths.read("--config", path));
        if let Some(Start::File(path)) = &asked.settings.synapses {
            paths.read("--synapses", path);
        }
        paths.write("--out", &self.out);
        paths
    }

    fn asked(&self) -> Result<Asked> {
        let (segments, settings, reading) = (&self.segments, &self.settings, &self.reading);
        let Some(path) = &self.config else {
            let (segments, settings, reading) = (segments.clone(), settings.clone(), reading.clone());
            return Ok(Asked { segments, settings, reading, echo: None });
        };
        Asked::with_config(path, (segments, settings, reading))
            .with_context(|| format!("config {}", path.display()))
    }
}

impl Asked {
    fn with_config(path: &Path, flags: (&Segments, &Settings, &Reading)) -> Result<Self> {
        let mut config = Config::read(path)?;
        let settings = config.complete(flags.1)?;
        let reading = config.complete(flags.2)?;
        let segments = config.complete(flags.0)?;
        config.require_known()?;
        let mut table = settings.unusual()?;
        table.extend(Table::try_from(&reading)?);
        table.extend(Table::try_from(&segments)?);
        let echo = (!table.is_empty()).then(|| table.to_string());
        Ok(Self { segments, settings, reading, echo })
    }

    fn fitting(&self, sample_rate: Option<f64>) -> Result<Fitting> {
        let synapses = match self.settings.synapses.clone().unwrap_or_default() {
            Start::Eigenbasis => TrainingSynapses::Eigenbasis,
            Start::Random => TrainingSynapses::Random,
            Start::File(path) => TrainingSynapses::Given(read_synapses(&path)?),
        };
        Ok(Fitting {
            settings: self.settings.whitener(sample_rate)?,
            interneurons: self.settings.n_interneurons,
            synapses,
            groups: self.settings.groups.clone().map(|groups| groups.0),
            seed: self.settings.random_state.unwrap_or(0),
        })
    }

    /// Finds mistakes in the flags before hours are spent on reading.
    fn require_sense(&self, channels: usize, sample_rate: Option<f64>) -> Result<()> {
        let fitting = self.fitting(sample_rate)?;
        let given = match &fitting.synapses {
            TrainingSynapses::Given(synapses) => Some(synapses),
            _ => None,
        };
        if given.is_some() && fitting.groups.is_some() {
            let complaint = "--synapses: expected eigenbasis or random with --groups, got a file; \
                             each group has its own synapses";
            return Err(Usage(complaint.into()).into());
        }
        if let Some(synapses) = given {
            let (rows, columns) = (synapses.rows(), synapses.columns());
            let interneurons = self.settings.n_interneurons.unwrap_or(columns);
            ensure!(
                (rows, columns) == (channels, interneurons),
                "--synapses: expected {channels} channels x {interneurons} interneurons, got {rows} x {columns}"
            );
        }
        let mut all: Vec<usize> = fitting.groups.unwrap_or_else(|| vec![(0..channels).collect()]).concat();
        all.sort_unstable();
        if all != (0..channels).collect::<Vec<_>>() {
            let last = channels - 1;
            return Err(
                Usage(format!("--groups: expected each of the channels 0 to {last} in one group")).into()
            );
        }
        Ok(())
    }

    /// `None` when it was stopped.
    fn recordings(&self, sources: &[Source], watch: &Watch<'_>) -> Result<Option<Evidence>> {
        let recordings = Recordings::open(sources, &self.reading.options())?;
        let Layout { channels, names, sample_rate, .. } = recordings.layout.clone();
        self.require_sense(channels, sample_rate)?;
        let division = self.segments.division(&self.reading, sample_rate)?;
        let mut sums = Sums::new(channels, division, self.settings.saturation)?;
        if !recordings.read_into(&mut sums, watch.outlook, watch.stop)? {
            return Ok(None);
        }
        let (rows, unlabelled, contexts) = (sums.rows, sums.unlabelled, sums.finish()?);
        let left_out = contexts.iter().map(|(_, moments)| moments.bad()).sum();
        let samples = Some(Samples { rows, left_out, unlabelled });
        Ok(Some(Evidence { contexts, names, sample_rate, samples }))
    }

    fn stack(&self, path: &Path) -> Result<Evidence> {
        let sample_rate = self.reading.sample_rate;
        let readable = Reading { sample_rate, ..Reading::default() };
        if self.segments != Segments::default() || self.reading != readable {
            let complaint =
                "--segment, --label, --format, --channels and --dtype do not apply to a stack of covariances";
            return Err(Usage(format!("{}: {complaint}", path.display())).into());
        }
        let stack = read_stack(path)?;
        self.require_sense(stack.contexts.neurons(), sample_rate)?;
        let context = |(i, covariance)| Ok((format!("{i}"), Moments::of_covariance(covariance, 1)?));
        let contexts = stack.contexts.covariances().iter().enumerate().map(context).collect::<Result<_>>()?;
        Ok(Evidence { contexts, names: None, sample_rate, samples: None })
    }
}
