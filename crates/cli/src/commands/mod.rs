//! One file per command.

mod bench;
mod catalogue;
mod check;
mod compare;
mod report;
mod run;
mod topology;

use crate::{
    arguments::{Arguments, Command, RunOptions, ScenarioArguments},
    failure::Failure,
    printing::note,
};
use anabranch_study::{ScenarioError, library, scenario::Scenario};
use anabranch_units::Time;
use std::path::PathBuf;

/// Does what the command line says.
pub(crate) fn execute(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::List(arguments) => catalogue::list(&arguments),
        Command::Explain(arguments) => catalogue::explain(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Topology(arguments) => topology::topology(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
    }
}

/// The scenario of the command line; what should be checked before its results are trusted goes to people.
fn load(arguments: &ScenarioArguments) -> Result<Scenario, ScenarioError> {
    let scenario = library::load(&arguments.scenario, &arguments.set, arguments.seed)?;
    for warning in scenario.warnings() {
        note(&format!("warning: {warning}"));
    }
    Ok(scenario)
}

/// The threads asked for, else as many as the machine has.
fn threads(options: &RunOptions) -> usize {
    options.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// Hosts per thread from which on splitting one run pays: with fewer, the threads mostly wait for each other.
const HOSTS_PER_THREAD: usize = 48;

/// The threads asked for, else as many as the machine has, but no more than the fabric keeps busy.
fn threads_of_run(options: &RunOptions, scenario: &Scenario) -> usize {
    if let Some(threads) = options.threads {
        return threads.into();
    }
    let Ok(topology) = scenario.topology() else { return 1 };
    // Where a link takes no time at all, one thread alone can run it.
    let instant = topology.links.iter().any(|link| link.delay + topology.switch_latency == Time::ZERO);
    if instant { 1 } else { threads(options).min((topology.hosts as usize / HOSTS_PER_THREAD).max(1)) }
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
