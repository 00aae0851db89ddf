//! One file per command.

mod agree;
mod bench;
pub(crate) mod bench_nccl;
mod bench_wire;
mod catalogue;
mod check;
pub(crate) mod collective;
#[cfg(target_os = "linux")]
mod collective_testbed;
mod compare;
mod init;
pub(crate) mod nccl;
#[cfg(target_os = "linux")]
pub(crate) mod paths;
mod report;
mod reproduce;
mod rerun;
mod run;
mod shell;
mod soak;
pub(crate) mod stats;
mod sweep;
#[cfg(target_os = "linux")]
pub(crate) mod testbed;
mod topology;
mod trace;
mod verbs;
mod verify;
mod view;
mod wire;

pub use topology::topology_of;

use crate::{
    arguments::{Arguments, Command, EntryArguments, RunOptions, ScenarioArguments},
    failure::Failure,
    printing::{note, print_json},
};
use anabranch_scenario::{
    ScenarioError,
    backend::{BackendEntry, SIMULATOR},
    library,
    scenario::Scenario,
    schema,
};
use anabranch_study::compare::Request;
use std::path::PathBuf;

/// Does what the command line says.
pub(crate) fn execute(arguments: Arguments, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments, backends),
        Command::Compare(arguments) => compare::compare(&arguments, backends),
        Command::Agree(arguments) => agree::agree(&arguments, backends),
        Command::Sweep(arguments) => sweep::sweep(&arguments, backends),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Rerun(arguments) => rerun::rerun(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::View(arguments) => view::view(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::List(arguments) => catalogue::list(&arguments),
        Command::Explain(arguments) => catalogue::explain(&arguments),
        Command::Check(arguments) => check::check(&arguments, backends),
        Command::Topology(arguments) => topology::topology(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Schema => {
            print_json(&schema::schema());
            Ok(())
        }
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Soak(arguments) => soak::soak(&arguments),
        Command::Serve(arguments) => wire::serve(&arguments),
        Command::Send(arguments) => wire::send(&arguments),
        Command::Collective(arguments) => collective::collective(&arguments),
        Command::CollectiveRank => collective::serve(),
        Command::BenchPart(arguments) => bench_nccl::part(&arguments),
        Command::Nccl(arguments) => nccl::nccl(&arguments),
        Command::Stats(arguments) => stats::stats(&arguments),
        #[cfg(target_os = "linux")]
        Command::Paths(arguments) => paths::paths(&arguments),
        #[cfg(target_os = "linux")]
        Command::Testbed(arguments) => testbed::testbed(arguments, backends),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    }
}

/// The scenario of the command line; what should be checked before its results are trusted goes to people.
pub(crate) fn load(arguments: &ScenarioArguments) -> Result<Scenario, ScenarioError> {
    let scenario = library::load(&arguments.scenario, &arguments.set, arguments.seed)?;
    for warning in scenario.warnings() {
        note(&format!("warning: {warning}"));
    }
    Ok(scenario)
}

/// What the flags say of what is compared.
fn request(arguments: &EntryArguments) -> Request {
    Request {
        schemes: arguments.schemes.clone(),
        variants: arguments.variants.clone(),
        seeds: arguments.seeds,
        baseline: arguments.baseline.clone(),
        ..Request::default()
    }
}

/// Begins the name of the directory of a scenario's results on `backend`.
fn stem(scenario: &Scenario, backend: &BackendEntry) -> String {
    match *backend == SIMULATOR {
        true => scenario.stem.clone(),
        false => format!("{}-{}", scenario.stem, backend.name),
    }
}

/// Says that runs failed, with the errors of the first few; the others are done all the same.
fn some_failed(failed: &[(String, String)], runs: usize) -> Failure {
    const MOST: usize = 5;
    let named = failed.iter().take(MOST).map(|(name, error)| format!("\n  {name}: {error}"));
    let more = if failed.len() > MOST { format!("\n  and {} more", failed.len() - MOST) } else { String::new() };
    Failure::Broken(format!("{} of {runs} runs failed{}{more}", failed.len(), named.collect::<String>()))
}

/// The threads asked for, else as many as the machine has.
fn threads(options: &RunOptions) -> usize {
    options.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// The threads asked for, else as many as the machine has, but no more than the fabric keeps busy.
fn threads_of_run(options: &RunOptions, scenario: &Scenario) -> usize {
    options.threads.map_or_else(|| threads(options).min(scenario.most_threads()), usize::from)
}

/// The directory asked for, else `results/STEM-HASH`. What stands in its way is told before anything is run.
fn directory(options: &RunOptions, stem: &str, hash: u64) -> Result<PathBuf, ScenarioError> {
    let name = || format!("{stem}-{:08x}", hash >> 32);
    let directory = options.out.clone().unwrap_or_else(|| PathBuf::from("results").join(name()));
    match directory.ancestors().find(|path| path.exists()) {
        Some(path) if !path.is_dir() => {
            Err(ScenarioError::new(format!("--out: {} is a file, not a directory for results", path.display())))
        }
        _ => Ok(directory),
    }
}
