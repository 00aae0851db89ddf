//! Any runs into a store: existing runs are not repeated, and one that fails does not stop the others.

use crate::{Again, Batch, Observer, RunError, Runs, Store, Written, is_due, run_key};
use anabranch_results::{
    Attempt, FailedRun, NewFile, ReportError, disk, is_complete_run, replace_attempt, store_directory,
};
use anabranch_scenario::{BackendEntry, SIMULATOR, Scenario, ScenarioError};
use std::{collections::BTreeSet, io::Write, path::Path};

#[derive(Clone, Debug)]
pub struct Task {
    name: String,
    scenario: Scenario,
    key: String,
}

impl Task {
    /// Creates the task to simulate `scenario` with its seed and load balancer; `name` appears in messages.
    pub fn new(name: impl Into<String>, scenario: Scenario) -> Self {
        Task { name: name.into(), key: run_key(&scenario, &SIMULATOR), scenario }
    }
}

/// Status of a run in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Finished: its results are in the store.
    Finished,
    /// Failed, with the error.
    Failed(String),
    /// Neither finished nor failed.
    Missing,
}

struct Tasks<'t>(&'t [Task]);

impl Runs for Tasks<'_> {
    fn key(&self, number: usize) -> &str {
        &self.0[number].key
    }
    fn name(&self, number: usize) -> String {
        self.0[number].name.clone()
    }
    fn scenario(&self, number: usize) -> Result<Scenario, ScenarioError> {
        Ok(self.0[number].scenario.clone())
    }
    fn backend(&self) -> &'static BackendEntry {
        &SIMULATOR
    }
}

/// Returns the status of the run `key` in the store `directory`.
pub fn run_state(directory: &Path, key: &str) -> RunState {
    if is_complete_run(&store_directory(directory, key)) {
        return RunState::Finished;
    }
    match FailedRun::read(directory, key) {
        Ok(None) => RunState::Missing,
        Ok(Some(failed)) => RunState::Failed(failed.error),
        // The record proves only that the run failed.
        Err(_) => RunState::Failed(String::new()),
    }
}

/// Does those of `tasks` that the store `directory` lacks, on `threads` threads. Returns the status of each task afterwards;
/// those that an interruption left undone are missing.
pub fn do_runs(
    directory: &Path,
    tasks: &[Task],
    threads: usize,
    again: Again,
    observer: &dyn Observer,
) -> Result<Vec<RunState>, RunError> {
    let store = Store::open(directory)?;
    let mut seen = BTreeSet::new();
    let due = |number: &usize| is_due(directory, &tasks[*number].key, again);
    let jobs: Vec<usize> =
        (0..tasks.len()).filter(due).filter(|number| seen.insert(tasks[*number].key.as_str())).collect();
    let runs = Tasks(tasks);
    let (_, fatal) = Batch::new(&runs, &store, again).work_off(jobs, threads, observer);
    match fatal {
        Some(error) => Err(error),
        None => Ok(tasks.iter().map(|task| run_state(directory, &task.key)).collect()),
    }
}

/// Puts a run of another store, with the paths of `files` there, in place whole or not at all. An existing run stays,
/// unless `replace` is set.
pub fn adopt(
    directory: &Path,
    run: &str,
    files: &[(String, Vec<u8>)],
    attempts: u64,
    replace: bool,
) -> Result<(), RunError> {
    let store = Store::open(directory)?;
    let (failed, own) = (format!("failed/{run}.json"), format!("runs/{run}/"));
    if let Some((_, content)) = files.iter().find(|(name, _)| *name == failed) {
        let given: FailedRun = serde_json::from_slice(content).map_err(|error| unreadable(run, &error))?;
        return Ok(store.record_unclaimed_failure(run, &FailedRun { attempts, ..given })?);
    }
    let (aside, mut host) = (store.aside_unclaimed(run)?, String::new());
    for (name, content) in files.iter().filter_map(|(name, content)| Some((name.strip_prefix(&own)?, content))) {
        if name == "attempt.json" {
            host = serde_json::from_slice::<Attempt>(content).map_err(|error| unreadable(run, &error))?.host;
            continue;
        }
        let path = aside.path.join(name);
        let written = path.parent().map_or(Ok(()), disk::make_directories);
        let written = written.and_then(|()| NewFile::create(&path)?.write_all(content));
        written.map_err(|source| ReportError::File { path, source })?;
    }
    replace_attempt(&aside.path, &Attempt { host, attempts })?;
    store.publish(&[Written { aside: aside.path.clone(), run: run.to_string(), replace }])?;
    Ok(())
}

fn unreadable(run: &str, error: &serde_json::Error) -> ScenarioError {
    ScenarioError::new(format!("{run}: the result of a worker cannot be read: {error}"))
}

/// Records that the run `run` failed elsewhere; `name` appears in messages.
pub fn give_up(directory: &Path, run: &str, name: &str, error: &str, attempts: u64) -> Result<(), RunError> {
    let store = Store::open(directory)?;
    Ok(store.record_unclaimed_failure(run, &store.failure(name, error, attempts))?)
}

/// Adds a start that happened elsewhere to the log of the store `directory`.
pub fn log_start(directory: &Path, line: &str) -> Result<(), RunError> {
    Ok(Store::open(directory)?.log_start(line)?)
}
