//! Makes covariances, one for each context: `leukos contexts`.

mod flags;
mod recordings;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use leukos::contexts::{Contexts as Stack, Fields, Patch, Synthetic, stream};

use flags::{Choice, Condition, Norm, Shape, npy_path};

use super::fit::Segments;
use super::interruption::stop_or_say;
use super::progress::Shown;
use super::settings::Reading;
use super::{End, NOTHING_WRITTEN, Usage, jobs};
use crate::contexts::{
    Filter, Made, Making, Scaling, Spectrum, Workshop, left_out, listing, make_contexts, some_names,
};
use crate::data::{Folder, Sampling, read_folder, stack_bytes};
use crate::figures::{ContextsPicture, ShownContext};
use crate::files::{Paths, write_atomically};
use crate::outlook::Outlook;
use crate::recording::Format;

/// Compute covariances, one for each context, from images, a recording or a generator
///
/// From a folder: each image is a context. Patches are sampled from it, and their covariance about their mean is
/// computed. Photographs (PNG, JPEG, TIFF, WebP) are turned upright, read as sRGB whatever their colour profile, and
/// converted to linear light and to luminance (Rec. 709). Images with transparent pixels are left out. Van Hateren's
/// images (.imc, .iml) are linear already. Other files, hidden files and subfolders are ignored.
///
/// From a recording (CSV, TSV, .npy, EDF, BDF, raw, or `-` for standard input): each label in the column --label is a
/// context, or each segment of the length --segment. Each covariance is about the context's own mean.
///
/// It writes COVS.npy, the covariances, for `leukos reproduce natural --contexts COVS.npy`; COVS.csv, a
/// table of all images or contexts that says which were kept; and a picture of the contexts (COVS.svg and COVS.png).
/// If the command is interrupted, nothing is written.
///
/// Neighbouring pixels of photographs are so alike that hardly any covariance is well-conditioned. The paper took
/// neighbouring pixels (--spacing 1) and kept the 56 of 4167 van Hateren images with a condition number below 20.
/// Pixels 16 to 32 apart and a limit of the condition number give similar contexts. If too few are kept,
/// try `--condition 200`: the authors' code for Fig. 4 copes with it, but Algorithm 2 at the paper's rates needs a
/// condition number below 40.
///
/// Examples:
///   leukos contexts photos --out covs.npy --condition 200
///   leukos contexts day.csv --label state --out covs.npy
///   leukos contexts eeg.edf --segment 30s --condition 1000 --out covs.npy
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Contexts {
    /// A folder of images, or a recording; or `fields`, which generates 1/f fields with the statistics of natural
    /// images; or `synthetic`, the paper's contexts of two neurons (write ./fields for a folder of that name)
    source: PathBuf,
    /// The file to write: covariances, float64 of shape (contexts, N, N)
    #[arg(long, value_name = "COVS.npy", value_parser = npy_path)]
    out: PathBuf,
    /// The size of a patch in pixels: 5x5 is a square, 16x1 a row [default: 5x5]
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    patch: Option<Shape>,
    /// The distance between neighbouring pixels of a patch [default: 16 in images, 1 in fields]
    #[arg(long, value_name = "PIXELS")]
    spacing: Option<NonZeroU32>,
    /// How patches are chosen: at random places (`independent`), each near the one before (`walk`), at all places (`every`)
    /// [default: independent]
    #[arg(long, value_enum, hide_possible_values = true)]
    sampling: Option<Choice>,
    /// How many patches to take from each image [default: 20000]
    #[arg(long, value_name = "T")]
    samples: Option<NonZeroUsize>,
    /// The largest step of a walk between two patches, in either direction [default: 16]
    #[arg(long, value_name = "PIXELS")]
    step: Option<NonZeroU32>,
    /// How many contexts to generate [default: 56 fields, 64 synthetic ones]
    #[arg(long, value_name = "C")]
    count: Option<NonZeroUsize>,
    /// Keep only contexts with a condition number below this; `none` keeps all that are not singular [default: 20; none for
    /// recordings]
    #[arg(long, value_name = "X|none", allow_negative_numbers = true)]
    condition: Option<Condition>,
    /// Scale each covariance so that its largest eigenvalue is this; `none` keeps the units of the image or recording
    /// [default: 10; none for recordings]
    #[arg(long, value_name = "X|none", allow_negative_numbers = true)]
    norm: Option<Norm>,
    /// The seed of all random numbers
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// The number of threads [default: one for each core]
    #[arg(long, value_name = "J")]
    jobs: Option<NonZeroUsize>,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    segments: Segments,
    #[command(flatten)]
    reading: Reading,
}

/// Where contexts come from.
enum Source {
    Folder,
    Recording,
    Fields,
    Synthetic,
}

impl Contexts {
    pub fn run(self) -> Result<End> {
        let source = self.source();
        self.refuse_foreign_flags(&source)?;
        match source {
            Source::Folder => self.of_images(),
            Source::Recording => self.of_recording(),
            Source::Fields => self.generate_fields(),
            Source::Synthetic => self.generate_synthetic(),
        }
    }

    fn source(&self) -> Source {
        match self.source.to_str() {
            Some("fields") => Source::Fields,
            Some("synthetic") => Source::Synthetic,
            Some("-") => Source::Recording,
            _ if self.is_recording() => Source::Recording,
            _ => Source::Folder,
        }
    }

    /// Whether the source is a file that has, or is said to have, a format of recordings.
    fn is_recording(&self) -> bool {
        let format = self.reading.format.or_else(|| Format::of_name(&self.source).ok());
        // A pipe with a name is a recording, too.
        self.source.exists() && !self.source.is_dir() && format.is_some()
    }

    /// Refuses a flag that has no effect on this source, because the user must expect one.
    fn refuse_foreign_flags(&self, source: &Source) -> Result<()> {
        let patch = [("--patch", self.patch.is_some()), ("--spacing", self.spacing.is_some())];
        let filter = [("--condition", self.condition.is_some()), ("--norm", self.norm.is_some())];
        let images = [
            ("--sampling", self.sampling.is_some()),
            ("--samples", self.samples.is_some()),
            ("--step", self.step.is_some()),
            ("--jobs", self.jobs.is_some()),
        ];
        let count = [("--count", self.count.is_some())];
        let recording = [
            ("--segment", self.segments != Segments::default()),
            ("--label, --format, --channels, --dtype, --sample-rate", self.reading != Reading::default()),
        ];
        let foreign: Vec<(&str, bool)> = match source {
            Source::Folder => [&count[..], &recording].concat(),
            Source::Recording => [&count[..], &patch, &images].concat(),
            Source::Fields => [&images[..], &recording].concat(),
            Source::Synthetic => [&patch[..], &filter, &images, &recording].concat(),
        };
        match foreign.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                let source = self.source.display();
                Err(Usage(format!("{flag}: does not apply to contexts from {source}")).into())
            }
            None => Ok(()),
        }
    }

    fn of_images(&self) -> Result<End> {
        let making = Making {
            patch: self.patch(16),
            sampling: self.sampling()?,
            seed: self.seed,
            filter: Filter {
                condition: self.condition(),
                scaling: self.norm.map_or(Scaling::Norm(10.0), |norm| norm.0),
            },
        };
        let folder = read_folder(&self.source)?;
        self.refuse_own_folder()?;
        let mut paths = self.written();
        paths.write_along("the table of --out", self.out.with_extension("csv"));
        folder.images.iter().for_each(|path| _ = paths.read(format!("the image {}", path.display()), path));
        let _secured = paths.secure()?;
        let (stop, outlook) = (stop_or_say(NOTHING_WRITTEN), Shown::new(self.quiet));
        let workshop = Workshop { jobs: jobs(self.jobs), outlook: &outlook, stop };
        let Some(all) = make_contexts(&folder.images, &making, &workshop) else {
            outlook.say(NOTHING_WRITTEN);
            return Ok(End::Interrupted);
        };
        self.report_images(&folder, &all, &outlook)?;
        self.write_made(&all, &in_words(making.patch), &outlook)
    }

    /// The stack and the pictures beside it.
    fn written(&self) -> Paths {
        let mut paths = Paths::default();
        paths.write("--out", &self.out);
        for ending in ["svg", "png"] {
            paths.write_along(format!("the .{ending} picture of --out"), self.out.with_extension(ending));
        }
        paths
    }

    /// Writes those that gave a context, and a table of all.
    fn write_made(&self, all: &[Made], caption: &str, outlook: &dyn Outlook) -> Result<End> {
        let shown = shown_contexts(all);
        let stack = Stack::new(shown.iter().map(|context| context.covariance.clone()).collect())?;
        write_atomically(&self.out.with_extension("csv"), listing(all).as_bytes())?;
        self.write(&stack, &ContextsPicture::draw(&shown, caption)?, outlook)
    }

    /// The picture of the contexts would be an image of the folder for the next call.
    fn refuse_own_folder(&self) -> Result<()> {
        let parent = self.out.parent().filter(|parent| !parent.as_os_str().is_empty());
        let target = parent.unwrap_or(Path::new(".")).canonicalize();
        if target.is_ok_and(|target| self.source.canonicalize().is_ok_and(|source| source == target)) {
            let (out, source) = (self.out.display(), self.source.display());
            return Err(
                Usage(format!("--out: expected a place outside the folder {source}, got {out}")).into()
            );
        }
        Ok(())
    }

    /// Says which of the folder's files were used; fails if no context is left.
    fn report_images(&self, folder: &Folder, all: &[Made], outlook: &dyn Outlook) -> Result<()> {
        let mut lines = left_out(all, self.condition());
        if !folder.others.is_empty() {
            let (count, names) = (folder.others.len(), some_names(&folder.others));
            lines.push(format!("{count} ignored, because their names are not those of images ({names})"));
        }
        let (images, kept) = (all.len(), all.iter().filter(|made| made.outcome.is_ok()).count());
        if kept == 0 {
            let (source, why) = (self.source.display(), lines.join("; "));
            let why = if why.is_empty() { "it is empty".into() } else { why };
            bail!("folder {source}: expected images that give a context, but none of {images} does: {why}");
        }
        outlook.say(&format!("{kept} of {images} images kept"));
        lines.iter().for_each(|line| outlook.say(&format!("  left out: {line}")));
        Ok(())
    }

    fn generate_fields(&self) -> Result<End> {
        let norm = match self.norm.map(|norm| norm.0) {
            None => 10.0,
            Some(Scaling::Norm(norm)) => norm,
            Some(Scaling::AsMeasured) => {
                return Err(Usage("--norm: expected a number, because fields have no units".into()).into());
            }
        };
        let _secured = self.written().secure()?;
        stop_or_say(NOTHING_WRITTEN);
        let usual = Fields::two_dimensional();
        let contexts = self.count.map_or(usual.contexts, NonZeroUsize::get);
        let fields = Fields { contexts, patch: self.patch(1), condition: self.condition(), norm, ..usual };
        let drawn = fields.draw(&mut stream(self.seed, 0)).context("fields")?;
        let outlook = Shown::new(self.quiet);
        outlook.say(&format!(
            "{contexts} of {} fields kept; the others have a condition number of {} or more",
            drawn.drawn, fields.condition
        ));
        let caption = format!("1/f fields, {}", in_words(fields.patch));
        let picture = ContextsPicture::draw(&shown_numbers(&drawn.contexts)?, &caption)?;
        self.write(&drawn.contexts, &picture, &outlook)
    }

    fn generate_synthetic(&self) -> Result<End> {
        let _secured = self.written().secure()?;
        stop_or_say(NOTHING_WRITTEN);
        let usual = Synthetic::published();
        let family = Synthetic { contexts: self.count.map_or(usual.contexts, NonZeroUsize::get), ..usual };
        let drawn = family.draw(&mut stream(self.seed, 0)).context("synthetic")?;
        let picture =
            ContextsPicture::draw(&shown_numbers(&drawn.contexts)?, "the paper's synthetic family")?;
        self.write(&drawn.contexts, &picture, &Shown::new(self.quiet))
    }

    fn patch(&self, usual_spacing: usize) -> Patch {
        let Shape { width, height } = self.patch.unwrap_or(Shape { width: 5, height: 5 });
        let spacing = self.spacing.map_or(usual_spacing, |spacing| spacing.get() as usize);
        Patch { height, width, spacing }
    }

    fn condition(&self) -> f64 {
        self.condition.map_or(20.0, |condition| condition.0)
    }

    fn sampling(&self) -> Result<Sampling> {
        let choice = self.sampling.unwrap_or(Choice::Independent);
        if self.step.is_some() && choice != Choice::Walk {
            return Err(Usage(
                "--step: expected --sampling walk as well, because only a walk has steps".into(),
            )
            .into());
        }
        if self.samples.is_some() && choice == Choice::Every {
            let complaint =
                "--samples: expected --sampling independent or walk, got every, which takes all patches";
            return Err(Usage(complaint.into()).into());
        }
        let samples = self.samples.map_or(20_000, NonZeroUsize::get);
        let pixels = self.patch(1).height * self.patch(1).width;
        if samples <= pixels {
            let complaint =
                format!("--samples: expected more than the {pixels} pixels of a patch, got {samples}");
            return Err(Usage(complaint).into());
        }
        Ok(match choice {
            Choice::Independent => Sampling::Independent(samples),
            Choice::Walk => {
                let step = self.step.map_or(16, |step| step.get() as usize);
                Sampling::Walk { samples, step }
            }
            Choice::Every => Sampling::Every,
        })
    }

    /// Writes the stack last: if it is there, everything else is.
    fn write(&self, stack: &Stack, picture: &ContextsPicture, outlook: &dyn Outlook) -> Result<End> {
        picture.write(&self.out)?;
        write_atomically(&self.out, &stack_bytes(stack)?)?;
        let (out, count, n) = (self.out.display(), stack.len(), stack.neurons());
        outlook
            .say(&format!("{out} written: {count} contexts of {n} neurons; a picture of them is beside it"));
        Ok(End::Done)
    }
}

fn in_words(patch: Patch) -> String {
    let Patch { width, height, spacing } = patch;
    let apart = if spacing == 1 { "next to each other".into() } else { format!("{spacing} apart") };
    format!("patches of {width} × {height} pixels, {apart}")
}

/// The images, or parts of a recording, that gave a context.
fn shown_contexts(all: &[Made]) -> Vec<ShownContext<'_>> {
    let kept = all.iter().filter_map(|made| Some((&made.name, made.outcome.as_ref().ok()?)));
    kept.map(|(name, context)| ShownContext {
        name: name.clone(),
        note: condition_note(context.spectrum),
        thumbnail: context.thumbnail.as_ref(),
        covariance: &context.covariance,
    })
    .collect()
}

/// Contexts without a name: they are numbered.
fn shown_numbers(stack: &Stack) -> Result<Vec<ShownContext<'_>>> {
    let shown = |(i, covariance)| {
        let note = condition_note(Spectrum::of(covariance)?);
        Ok(ShownContext { name: format!("context {i}"), note, thumbnail: None, covariance })
    };
    stack.covariances().iter().enumerate().map(shown).collect()
}

fn condition_note(spectrum: Spectrum) -> String {
    format!("condition {:.1}", spectrum.condition())
}
