//! Runs and summaries on disk.

use crate::{Plan, PlannedRun, ReportError, SUMMARY, Summary, read_json, store_directory};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Reads the summary of a finished run in `dir`; `None` if there is none. It is written last: all files of the run are
/// then complete.
pub fn read_summary(dir: &Path) -> Result<Option<Summary>, ReportError> {
    read_json(&dir.join(SUMMARY))
}

/// A run in a directory of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// Its name: `prime/seed1` in a comparison, its hash in a sweep.
    pub name: String,
    pub path: PathBuf,
    /// Load balancer or variant of a comparison.
    pub entry: Option<String>,
}

impl RunPlace {
    /// Returns `true` if the run is finished.
    pub fn is_finished(&self) -> bool {
        self.path.join(SUMMARY).exists()
    }
}

/// Returns the finished runs in the directory of a run, comparison or sweep.
pub fn finished_runs(dir: &Path) -> Result<Vec<RunPlace>, ReportError> {
    let mut runs = runs_of(dir)?;
    runs.retain(RunPlace::is_finished);
    Ok(runs)
}

/// Reads the summaries of the finished runs with their directories, under the load balancer or variant of a comparison.
pub fn read_runs(dir: &Path) -> Result<Vec<(Summary, PathBuf)>, ReportError> {
    let mut runs = vec![];
    for run in finished_runs(dir)? {
        if let Some(mut summary) = read_summary(&run.path)? {
            summary.scheme = run.entry.unwrap_or(summary.scheme);
            runs.push((summary, run.path));
        }
    }
    Ok(runs)
}

/// Returns the runs of the plan in `dir`, each name once; without a plan, the run there or all below `runs`, by path.
pub fn runs_of(dir: &Path) -> Result<Vec<RunPlace>, ReportError> {
    let place = |name: String, path: PathBuf| RunPlace { name, path, entry: None };
    if dir.join(SUMMARY).exists() {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(vec![place(name, dir.to_path_buf())]);
    }
    if let Some(plan) = Plan::read(dir)? {
        let mut seen = BTreeSet::new();
        let runs = plan.runs.iter().filter(|run| seen.insert(plan.run_name(run)));
        let of = |run: &PlannedRun| RunPlace {
            entry: plan.is_comparison().then(|| plan.entries[run.entry].clone()),
            ..place(plan.run_name(run), store_directory(dir, &run.run))
        };
        return Ok(runs.map(of).collect());
    }
    let runs = dir.join("runs");
    let mut found = vec![];
    for entry in if runs.is_dir() { Some(fs::read_dir(&runs)) } else { None }
        .transpose()
        .map_err(|error| ReportError::file(&runs, error))?
        .into_iter()
        .flatten()
    {
        let path = entry.map_err(|error| ReportError::file(&runs, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') {
            found.push(place(name, path));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
