//! What the command line asks for: scenario, load balancers, threads, a directory.

use crate::{
    arguments::{EntryArguments, RunOptions, ScenarioArguments},
    failure::Failure,
    printing::note,
};
use anabranch_scenario::{
    ScenarioError,
    backend::{BackendEntry, SIMULATOR},
    library,
    scenario::Scenario,
};
use anabranch_study::compare::Request;
use std::path::PathBuf;

/// The scenario of the command line; what should be checked before its results are trusted goes to people.
pub(crate) fn load(arguments: &ScenarioArguments) -> Result<Scenario, ScenarioError> {
    let scenario = library::load(&arguments.scenario, &arguments.set, arguments.seed)?;
    for warning in scenario.warnings() {
        note(&format!("warning: {warning}"));
    }
    Ok(scenario)
}

/// What the flags say of what is compared.
pub(crate) fn request(arguments: &EntryArguments) -> Request {
    Request {
        schemes: arguments.schemes.clone(),
        variants: arguments.variants.clone(),
        seeds: arguments.seeds,
        baseline: arguments.baseline.clone(),
        ..Request::default()
    }
}

/// Begins the name of the directory of a scenario's results on `backend`.
pub(crate) fn stem(scenario: &Scenario, backend: &BackendEntry) -> String {
    match *backend == SIMULATOR {
        true => scenario.stem.clone(),
        false => format!("{}-{}", scenario.stem, backend.name),
    }
}

/// Says that runs failed, with the errors of the first few; the others are done all the same.
pub(crate) fn some_failed(failed: &[(String, String)], runs: usize) -> Failure {
    const MOST: usize = 5;
    let named = failed.iter().take(MOST).map(|(name, error)| format!("\n  {name}: {error}"));
    let more = if failed.len() > MOST { format!("\n  and {} more", failed.len() - MOST) } else { String::new() };
    Failure::Broken(format!("{} of {runs} runs failed{}{more}", failed.len(), named.collect::<String>()))
}

/// The threads asked for, else as many as the machine has.
pub(crate) fn threads(options: &RunOptions) -> usize {
    options.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// The threads asked for, else as many as the machine has, but no more than the fabric keeps busy.
pub(crate) fn threads_of_run(options: &RunOptions, scenario: &Scenario) -> usize {
    options.threads.map_or_else(|| threads(options).min(scenario.most_threads()), usize::from)
}

/// The directory asked for, else `results/STEM-HASH`. What stands in its way is told before anything is run.
pub(crate) fn directory(options: &RunOptions, stem: &str, hash: u64) -> Result<PathBuf, ScenarioError> {
    let name = || format!("{stem}-{:08x}", hash >> 32);
    let directory = options.out.clone().unwrap_or_else(|| PathBuf::from("results").join(name()));
    match directory.ancestors().find(|path| path.exists()) {
        Some(path) if !path.is_dir() => {
            Err(ScenarioError::new(format!("--out: {} is a file, not a directory for results", path.display())))
        }
        _ => Ok(directory),
    }
}
