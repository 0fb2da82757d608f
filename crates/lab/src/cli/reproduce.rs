//! Reruns the paper: `leukos reproduce`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::interruption::stop_or_say;
use super::progress::Shown;
use super::{End, Usage, jobs};
use crate::data::read_stack;
use crate::experiment::{
    Execution, Figure, GivenStack, PANELS, Plan, RESULTS, Scale, Setting, Spec, execute, runs_path,
};
use crate::figures::{self, Style};
use crate::files::Paths;
use crate::findings::Findings;
use crate::outlook::Outlook;
use crate::references::References;
use crate::report::{self, REPORT};

/// Reproduce the paper: every number, every figure, and a report to read in a browser
///
/// Writes DIR/report.html (one file that needs no network), DIR/figures/FIGURE.svg and .png (FIGURE-print.* and FIGURE.pdf
/// for printing), DIR/results.json (every number) and DIR/panels.json (the data behind the figures).
///
/// If the command is interrupted, finished runs are kept in DIR; the same command continues from them.
#[derive(Args)]
pub struct Reproduce {
    /// The figures to reproduce [default: all]
    #[arg(value_name = "FIGURE", value_enum)]
    figures: Vec<Figure>,
    /// How much to compute
    #[arg(long, value_enum, default_value = "quick")]
    scale: Scale,
    /// Natural contexts: a .npy stack of covariances (contexts, N, N), for the figure named, or for every figure with the
    /// same N [default: contexts from a generator of 1/f fields]
    #[arg(long, value_name = "[FIGURE=]COVARIANCES.npy")]
    contexts: Vec<String>,
    /// A spec file to use instead of the built-in spec of its figure
    #[arg(long, value_name = "FILE")]
    spec: Vec<PathBuf>,
    /// The seed of all random numbers
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// The number of threads [default: one for each core]
    #[arg(long, value_name = "J")]
    jobs: Option<NonZeroUsize>,
    /// The folder for results and finished runs
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Only draw the figures and the report again, from the results in DIR
    #[arg(long, conflicts_with_all = ["figures", "scale", "contexts", "spec", "seed", "jobs"])]
    redraw: bool,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
}

impl Reproduce {
    pub fn run(self) -> Result<End> {
        if self.redraw {
            let _secured = self.written().secure()?;
            return draw(&self.out).map(|()| End::Done);
        }
        let _secured = self.paths().secure()?;
        let specs = self.specs()?;
        let stacks = self.contexts.iter().map(|given| stack(given)).collect::<Result<_>>()?;
        let setting = Setting { scale: self.scale, seed: self.seed, stacks };
        let plan = Plan::new(specs, &setting)?;
        if let Some(complaint) = setting.stacks.iter().find_map(GivenStack::complaint) {
            return Err(Usage(complaint).into());
        }
        let kept = format!(
            "interrupted: finished runs are kept in {}, and the same command continues from them",
            self.out.display()
        );
        let stop = stop_or_say(kept.clone());
        let outlook = Shown::new(self.quiet);
        let how = Execution { directory: &self.out, jobs: jobs(self.jobs), outlook: &outlook, stop };
        let Some(results) = execute(&plan, &setting, &how)? else {
            outlook.say(&kept);
            return Ok(End::Interrupted);
        };
        results.write(&self.out)?;
        draw(&self.out)?;
        let seconds = results.seconds;
        let [results, report] = [RESULTS, REPORT].map(|file| self.out.join(file));
        outlook.say(&format!(
            "{} written after {seconds:.0} s; open {} to see it",
            results.display(),
            report.display()
        ));
        Ok(End::Done)
    }

    /// Everything that is read and written.
    fn paths(&self) -> Paths {
        let mut paths = self.written();
        self.spec.iter().for_each(|path| _ = paths.read("--spec", path));
        self.contexts.iter().for_each(|given| _ = paths.read("--contexts", split(given).1));
        for figure in Figure::ALL {
            paths.write_along("the runs in --out", runs_path(&self.out, *figure));
        }
        paths
    }

    /// What is written of the results.
    fn written(&self) -> Paths {
        let mut paths = Paths::default();
        paths.write("the results in --out", self.out.join(RESULTS));
        for file in [PANELS, REPORT] {
            paths.write_along(format!("{file} in --out"), self.out.join(file));
        }
        for (figure, style) in Figure::ALL.iter().flat_map(|f| Style::ALL.map(|style| (*f, style))) {
            let pictures = figures::picture_paths(&self.out, figure, style);
            pictures.into_iter().for_each(|path| _ = paths.write_along("a picture in --out", path));
        }
        for figure in Figure::ALL {
            paths.write_along("a picture in --out", figures::pdf_path(&self.out, *figure));
        }
        paths
    }

    /// A spec for each figure asked for, the user's where there is one.
    fn specs(&self) -> Result<Vec<Spec>> {
        let given = self.spec.iter().map(|path| Spec::read(path)).collect::<Result<Vec<_>>>()?;
        let mut figures = if self.figures.is_empty() { Figure::ALL.to_vec() } else { self.figures.clone() };
        figures.sort_unstable();
        figures.dedup();
        for (i, spec) in given.iter().enumerate() {
            let (figure, path) = (spec.figure(), self.spec[i].display());
            if !figures.contains(&figure) {
                let complaint = format!(
                    "spec {path}: expected a spec of one of the figures asked for, got one for {}",
                    figure.name()
                );
                return Err(Usage(complaint).into());
            }
            if given[..i].iter().any(|earlier| earlier.figure() == figure) {
                return Err(Usage(format!(
                    "spec {path}: expected one spec for each figure, got a second one for {}",
                    figure.name()
                ))
                .into());
            }
        }
        let spec = |figure| match given.iter().find(|spec| spec.figure() == figure) {
            Some(spec) => Ok(spec.clone()),
            None => Spec::embedded(figure),
        };
        figures.into_iter().map(spec).collect()
    }
}

/// Draws figures and writes the report from the results in a directory.
fn draw(directory: &Path) -> Result<()> {
    let (findings, references) = (Findings::read(directory)?, References::embedded()?);
    let pictures = figures::draw_all(&findings, &references)?;
    figures::write_all(&pictures, directory)?;
    report::write(&findings, &references, &pictures, directory)
}

/// `FIGURE=FILE`, or a file for all figures it fits.
fn stack(given: &str) -> Result<GivenStack> {
    let (figure, file) = split(given);
    if figure.is_none()
        && let Some((name, _)) = given.split_once('=')
        && !Path::new(given).exists()
    {
        let names: Vec<&str> = Figure::ALL.iter().map(|figure| figure.name()).collect();
        let complaint = format!(
            "--contexts {given}: expected a file, or FIGURE=FILE with one of the figures {}, got {name}",
            names.join(", ")
        );
        return Err(Usage(complaint).into());
    }
    Ok(GivenStack::new(figure, read_stack(file.as_ref())?))
}

fn split(given: &str) -> (Option<Figure>, &str) {
    let named = given.split_once('=').and_then(|(name, file)| {
        let figure = Figure::from_str(name, false).ok()?;
        Some((figure, file))
    });
    named.map_or((None, given), |(figure, file)| (Some(figure), file))
}
