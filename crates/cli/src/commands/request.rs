//! The scenario, load balancers, threads and directory that the command line requests.

use crate::{EntryArguments, Failure, RunOptions, ScenarioArguments, note};
use anabranch_results::Summary;
use anabranch_scenario::{BackendEntry, SIMULATOR, Scenario, ScenarioError, library};
use anabranch_study::Request;
use std::{
    path::{Path, PathBuf},
    sync::Once,
};

pub(crate) fn load(arguments: &ScenarioArguments) -> Result<Scenario, ScenarioError> {
    let scenario = library::load(&arguments.scenario, &arguments.set, arguments.seed)?;
    for warning in scenario.warnings() {
        note(&format!("warning: {warning}"));
    }
    Ok(scenario)
}

pub(crate) fn request(arguments: &EntryArguments) -> Request {
    Request {
        schemes: arguments.schemes.clone(),
        variants: arguments.variants.clone(),
        seeds: arguments.seeds,
        baseline: arguments.baseline.clone(),
        ..Request::default()
    }
}

/// Prefix of the result directory of a scenario on `backend`.
pub(crate) fn stem(scenario: &Scenario, backend: &BackendEntry) -> String {
    if *backend == SIMULATOR { scenario.stem.clone() } else { format!("{}-{}", scenario.stem, backend.name) }
}

pub(crate) fn runs_failed(failed: &[(String, String)], runs: usize) -> Failure {
    let lines: Vec<String> = failed.iter().map(|(name, error)| format!("\n  {name}: {error}")).collect();
    Failure::Broken(format!("{} of {runs} runs failed{}", failed.len(), first(&lines)))
}

/// Joins the first lines, with the number of others.
fn first(lines: &[String]) -> String {
    const MAX_LISTED: usize = 5;
    match lines.split_at_checked(MAX_LISTED) {
        Some((listed, others @ [_, ..])) => format!("{}\n  and {} more", listed.concat(), others.len()),
        _ => lines.concat(),
    }
}

/// Fails if there is no such directory, with the remedy.
pub(crate) fn require_directory(dir: &Path, remedy: &str) -> Result<(), Failure> {
    if dir.is_dir() {
        return Ok(());
    }
    Err(Failure::input(format!("directory {} does not exist{remedy}", dir.display())))
}

/// Fails if a run has unfinished flows, for `--strict`.
pub(crate) fn require_finished<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> Result<(), Failure> {
    unfinished(&unfinished_of(summaries).collect::<Vec<_>>())
}

/// Returns a line per run with unfinished flows.
pub(crate) fn unfinished_of<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> impl Iterator<Item = String> {
    let open = summaries.into_iter().filter(|summary| summary.all.flows.unfinished > 0);
    open.map(|summary| {
        let counts = &summary.all.flows;
        format!("\n  {}, seed {}: {} of {}", summary.scheme, summary.seed, counts.unfinished, counts.total)
    })
}

/// Fails if a line names unfinished flows.
pub(crate) fn unfinished(lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() {
        return Ok(());
    }
    Err(Failure::Check(format!("--strict: flows did not finish:{}", first(lines))))
}

/// Number of threads: `--threads`, else that of the machine.
pub(crate) fn threads(options: &RunOptions) -> usize {
    threads_or_cores(options.threads)
}

/// Number of threads of the machine.
pub(crate) fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the requested number of threads, with a warning where it exceeds the cores; without a request that of the cores.
pub(crate) fn threads_or_cores(requested: Option<u16>) -> usize {
    static WARN: Once = Once::new();
    let cores = available_threads();
    let Some(threads) = requested.map(usize::from) else { return cores };
    if threads > cores {
        WARN.call_once(|| {
            note(&format!(
                "warning: --threads: found {threads}, this process may use {cores}: more threads than cores take longer, \
                 results are the same"
            ));
        });
    }
    threads
}

/// Number of threads of one run: `--threads`, else that of the machine, at most as many as the fabric can use.
pub(crate) fn threads_of_run(options: &RunOptions, scenario: &Scenario) -> usize {
    let threads = threads(options);
    if options.threads.is_some() { threads } else { threads.min(scenario.max_threads()) }
}

/// Returns the result directory: `--out`, else `results/STEM-HASH`. Refuses a path that is or passes a file.
pub(crate) fn directory(options: &RunOptions, stem: &str, hash: u64) -> Result<PathBuf, ScenarioError> {
    let name = || format!("{stem}-{:08x}", hash >> 32);
    let directory = options.out.clone().unwrap_or_else(|| PathBuf::from("results").join(name()));
    match directory.ancestors().find(|path| path.exists()) {
        Some(path) if !path.is_dir() => {
            Err(ScenarioError::new(format!("--out: {} is a file, expected a directory for results", path.display())))
        }
        _ => Ok(directory),
    }
}
