//! Runs a plan on all cores, keeps what is finished and stops when asked to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};

use super::plan::{Plan, Planned};
use super::results::{Reported, Results};
use super::store::Store;
use super::{Figure, RecordMap, Records, Setting, Task};
use crate::outlook::Outlook;
use crate::threads::side_by_side;

/// A figure's records and where they are kept.
struct Progress<'a> {
    planned: &'a Planned,
    store: Store,
    records: Mutex<RecordMap>,
}

struct Pending<'a> {
    progress: &'a Progress<'a>,
    task: Task,
    work: u64,
}

/// How a call wants its plan executed.
pub struct Execution<'a> {
    /// Where records and results go.
    pub directory: &'a Path,
    /// The number of threads.
    pub jobs: usize,
    /// Where progress is reported.
    pub outlook: &'a dyn Outlook,
    /// Set from outside to end the work early.
    pub stop: &'a AtomicBool,
}

/// Runs all tasks that no earlier call has finished, and sums up. `None` when it was stopped before the end; finished
/// tasks are then kept in the directory.
///
/// # Errors
/// When a task fails or a file cannot be written.
pub fn execute(plan: &Plan, setting: &Setting, how: &Execution<'_>) -> Result<Option<Results>> {
    let start = Instant::now();
    let figures = plan.figures.iter().map(|planned| open(planned, how)).collect::<Result<Vec<_>>>()?;
    let pending: Vec<Pending> = figures.iter().flat_map(pending).collect();
    how.outlook.begin(pending.iter().map(|pending| pending.work).sum());
    let finished = work_off(&pending, how);
    how.outlook.end();
    if !finished? {
        return Ok(None);
    }
    let reported = figures.into_iter().map(report).collect::<Result<BTreeMap<_, _>>>()?;
    let commit = Some(env!("LEUKOS_COMMIT")).filter(|commit| !commit.is_empty());
    Ok(Some(Results {
        leukos: env!("CARGO_PKG_VERSION"),
        commit,
        scale: setting.scale,
        seed: setting.seed,
        processor: processor(),
        jobs: how.jobs,
        seconds: start.elapsed().as_secs_f64(),
        figures: reported,
    }))
}

/// The name of the processor, as Linux tells it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// Where the finished runs of a figure are kept.
pub fn runs_path(directory: &Path, figure: Figure) -> PathBuf {
    directory.join("runs").join(format!("{}.jsonl", figure.name()))
}

fn open<'a>(planned: &'a Planned, how: &Execution<'_>) -> Result<Progress<'a>> {
    let name = planned.figure.name();
    let path = runs_path(how.directory, planned.figure);
    let (store, mut found) = Store::open(&path, &planned.key)?;
    let tasks = planned.experiment.tasks();
    found.records.retain(|task, _| tasks.iter().any(|(known, _)| known == task));
    if found.damaged > 0 {
        let lines = if found.damaged == 1 { "line was" } else { "lines were" };
        how.outlook.say(&format!(
            "{name}: {} {lines} damaged or incomplete in {}; these runs are repeated",
            found.damaged,
            path.display()
        ));
    }
    if found.outdated {
        how.outlook.say(&format!(
            "{name}: starting from scratch, because the runs in {} were made with another spec, scale, seed, contexts or program",
            path.display()
        ));
    } else if !found.records.is_empty() {
        let (found, all) = (found.records.len(), tasks.len());
        how.outlook.say(&format!("{name}: {found} of {all} runs were finished by an earlier call"));
    }
    Ok(Progress { planned, store, records: Mutex::new(found.records) })
}

fn pending<'a>(progress: &'a Progress<'a>) -> Vec<Pending<'a>> {
    let records = progress.records.lock().unwrap_or_else(PoisonError::into_inner);
    let tasks = progress.planned.experiment.tasks().into_iter();
    let missing = tasks.filter(|(task, _)| !records.contains_key(task));
    missing.map(|(task, work)| Pending { progress, task, work }).collect()
}

/// Whether everything was done.
fn work_off(pending: &[Pending<'_>], how: &Execution<'_>) -> Result<bool> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    side_by_side(how.jobs.min(pending.len()), || {
        while !how.stop.load(Ordering::Relaxed)
            && let Some(pending) = pending.get(next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(error) = pending.work_off(how) {
                next.store(usize::MAX / 2, Ordering::Relaxed);
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(!how.stop.load(Ordering::Relaxed)),
    }
}

impl Pending<'_> {
    fn work_off(&self, how: &Execution<'_>) -> Result<()> {
        let Progress { planned, store, records } = self.progress;
        let (name, Task { variant, case, start }) = (planned.figure.name(), &self.task);
        let record = planned
            .experiment
            .run(&self.task)
            .with_context(|| format!("{name}, variant {variant} {case}, start {start}"))?;
        store.add(&self.task, &record)?;
        records.lock().unwrap_or_else(PoisonError::into_inner).insert(self.task.clone(), record);
        how.outlook.done(name, self.work);
        Ok(())
    }
}

fn report(progress: Progress<'_>) -> Result<(&'static str, Reported)> {
    let Progress { planned, records, .. } = progress;
    let records = Records(records.into_inner().unwrap_or_else(PoisonError::into_inner));
    let summary = planned.experiment.summarise(&records)?;
    Ok((planned.figure.name(), Reported::new(&planned.experiment.origins(), summary)))
}
