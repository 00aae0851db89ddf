//! Files and directories of a store of runs, of a sweep in it, and of each run.

use crate::{
    ATTEMPT, FileEntry, Inputs, LIMITS, MANIFEST, Manifest, OutputDir, PLAN, Plan, ReportError, SUMMARY, Staging, disk,
    failed_file, is_intact, read_json, staging::write, store_directory, to_json,
};
use serde::{Deserialize, Serialize};
use std::{io::Write as _, path::Path};

const STORE: [(&str, &str); 6] = [
    (
        "runs",
        "a directory per run, named by its hash, each with a manifest of its own; in a comparison also links to them, SCHEME/seedN",
    ),
    ("failed", "a file per run that failed, with its error"),
    ("starts.log", "a line per start of a run: hash, computer, process"),
    ("earlier-runs", "runs that were found damaged, or that were replaced beside files of others"),
    (".writing", "runs that are being written"),
    (".claims", "runs that a process works on"),
];

/// Tables and limits of a comparison or sweep.
const OF_PLAN: [&str; 10] = [
    PLAN,
    SUMMARY,
    "comparison.csv",
    "comparison.json",
    LIMITS,
    "sweep.csv",
    "runs.csv",
    "agreement.csv",
    "explanations.csv",
    "agreement.json",
];

/// Returns the names of directories of a store that only its commands write.
pub fn part_names() -> impl Iterator<Item = &'static str> {
    STORE.into_iter().map(|(name, _)| name).chain(["figures"])
}

/// Returns the names of the files and directories of a comparison or sweep besides rows, figures and page.
pub fn study_files() -> Vec<&'static str> {
    OF_PLAN.into_iter().chain(STORE.map(|(name, _)| name)).chain([".reported"]).collect()
}

/// Writes the plan of a comparison or sweep into `dir`, with a manifest that makes it a directory of results. Tables and
/// figures of a plan over other keys are removed; runs stay.
///
/// Fails if it cannot be written, or exists and no manifest lists it.
pub fn write_plan(plan: &Plan, dir: &Path) -> Result<(), ReportError> {
    let mut staging = Staging::new(OutputDir::keeping(dir, Inputs::default())?)?;
    let mut manifest = Manifest { files: plan_entries(), ..plan.described() };
    let is_same = Plan::read(dir).ok().flatten().is_some_and(|there| there.is_alike(plan));
    if let Some(there) = staging.target().manifest() {
        if is_same {
            let until_decided = plan.until_decided.clone();
            manifest = Manifest { files: manifest.files, until_decided, ..there.clone() };
        }
        manifest.keep_entries(there.files.iter().filter(|file| is_same || file.open));
    }
    // Its table and page are listed before they are there.
    let table = match plan {
        plan if plan.is_run => SUMMARY,
        plan if !plan.backends.is_empty() => "agreement.csv",
        plan if plan.is_comparison() => "comparison.csv",
        _ => "sweep.csv",
    };
    for entry in [FileEntry::new(table, "", vec![]), FileEntry::page()] {
        if manifest.file(&entry.name).is_none() {
            manifest.files.push(entry);
        }
    }
    staging.write_all(PLAN, to_json(plan))?;
    staging.publish(manifest)
}

/// Makes the files of the one run of the plan in `dir` files of `dir` too, without a copy where the file system can, and
/// lists the page as not yet drawn.
pub fn show_run(plan: &Plan, dir: &Path) -> Result<(), ReportError> {
    let Some(run) = plan.runs.first() else { return Ok(()) };
    let place = store_directory(dir, &run.run);
    let Some(own) = Manifest::read(&place)? else { return Err(ReportError::NoResults { path: place }) };
    let mut staging = Staging::new(OutputDir::keeping(dir, Inputs::default())?)?;
    let there = staging.target().manifest().cloned().unwrap_or_default();
    let mut manifest = Manifest { files: vec![FileEntry::page()], ..own.clone() };
    for file in own.files.into_iter().filter(|file| file.name != ATTEMPT) {
        if let Some(content) = file.content() {
            staging.link(&file.name, &place.join(&file.name), content)?;
        }
        manifest.files.push(file);
    }
    manifest.keep_entries(there.files.iter().filter(|file| file.open || file.name == PLAN));
    staging.publish(manifest)
}

/// Makes `dir` the directory of a store, by a manifest of its parts and the directories `also`. An existing store is not changed.
/// Fails if it cannot be written, or exists and no manifest lists it.
pub fn create_store(dir: &Path, version: &str, also: &[(&str, &str)]) -> Result<(), ReportError> {
    let names = || STORE.map(|(name, _)| name).into_iter().chain(also.iter().map(|(name, _)| *name));
    let is_begun =
        |output: &OutputDir| output.manifest().is_some_and(|there| names().all(|name| there.file(name).is_some()));
    let begin = || {
        let output = OutputDir::keeping(dir, Inputs::default())?;
        if is_begun(&output) {
            return Ok(());
        }
        output.admit(names())?;
        let mut manifest = output.manifest().cloned().unwrap_or_else(|| Manifest {
            version: version.to_string(),
            name: "store of runs".into(),
            ..Manifest::default()
        });
        let also = also.iter().map(|(name, meaning)| FileEntry::open(name, meaning));
        let known: Vec<String> = manifest.files.iter().map(|file| file.name.clone()).collect();
        manifest.files.extend(store_entries().chain(also).filter(|file| !known.contains(&file.name)));
        Staging::new(output)?.publish(manifest)
    };
    // Another process may have begun the same store in the meantime.
    begin().or_else(|error| match OutputDir::keeping(dir, Inputs::default()) {
        Ok(output) if is_begun(&output) => Ok(()),
        _ => Err(error),
    })
}

/// A failed run, as recorded in `failed/HASH.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedRun {
    pub name: String,
    pub error: String,
    /// Number of times that the run was begun.
    pub attempts: u64,
    pub host: String,
}

impl FailedRun {
    /// Reads the failure of `run` of the store `dir`; `None` if it did not fail.
    pub fn read(dir: &Path, run: &str) -> Result<Option<Self>, ReportError> {
        read_json(&failed_file(dir, run))
    }
}

/// Host and number of attempts of a run, as recorded in `attempt.json` in its directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Host on which the run was done.
    pub host: String,
    /// Number of times that the run was begun, including this one.
    pub attempts: u64,
}

impl Attempt {
    /// Entry of `attempt.json` in the manifest.
    pub fn entry() -> FileEntry {
        FileEntry::new(ATTEMPT, "host of the run and number of its attempts", vec![])
    }
}

/// Replaces `attempt.json` in the directory of a run that no other process reads yet, and its digest in the manifest there.
pub fn replace_attempt(run: &Path, attempt: &Attempt) -> Result<(), ReportError> {
    let failed = |error| ReportError::file(run, error);
    let put = |name: &str, text: String| {
        let path = run.join(name);
        disk::remove_file(&path).map_err(failed)?;
        write(&path, |file| file.write_all(text.as_bytes()), false).map_err(failed)
    };
    let content = put(ATTEMPT, to_json(attempt))?;
    if let Some(mut manifest) = Manifest::read(run)? {
        manifest.files.retain(|file| file.name != ATTEMPT);
        manifest.files.push(Attempt::entry().holding(&content));
        put(MANIFEST, manifest.to_json())?;
    }
    Ok(())
}

/// Returns `true` if `run` contains a run of a store with all its files unchanged.
pub fn is_complete_run(run: &Path) -> bool {
    // Without the file it is not a run of a store, or one that was copied.
    run.join(SUMMARY).exists() && is_intact(run) && read_json::<Attempt>(&run.join(ATTEMPT)).is_ok()
}

fn store_entries() -> impl Iterator<Item = FileEntry> {
    STORE.iter().map(|(name, meaning)| FileEntry::open(name, meaning))
}

/// Entries of a plan and of its store in the manifest.
pub fn plan_entries() -> Vec<FileEntry> {
    let meaning = "keys, values, load balancers and variants, seeds, and every run with its hash";
    std::iter::once(FileEntry::new(PLAN, meaning, vec![])).chain(store_entries()).collect()
}
