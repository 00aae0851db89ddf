//! `rerun`.

use crate::{
    arguments::{Format, Rerun},
    failure::Failure,
    printing::{note, print, print_json, table},
    progress::Watch,
};
use anabranch_study::{
    Observer,
    rerun::{self, Recorded},
};
use serde_json::{Value, json};

/// `anabranch rerun`.
pub(crate) fn rerun(arguments: &Rerun) -> Result<(), Failure> {
    if !arguments.dir.is_dir() {
        return Err(Failure::input(format!("there is no directory {}", arguments.dir.display())));
    }
    let runs = rerun::recorded(&arguments.dir, arguments.run.as_deref())?;
    if let Some(build) = runs.iter().find_map(|run| run.other_build.as_ref()) {
        note(&format!("warning: done with another build, {build}: where results differ, that may be why"));
    }
    let watch = Watch::new(arguments.progress, runs.iter().map(|run| run.name.clone()).collect());
    let threads =
        arguments.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let found = rerun::rerun(&runs, threads, &watch);
    watch.close();
    let outcomes: Vec<(&Recorded, String, &[String], bool)> = runs
        .iter()
        .zip(&found)
        .map(|(run, found)| match found {
            Some(Ok(again)) => {
                (run, again.fingerprint.clone(), again.differences.as_slice(), again.differences.is_empty())
            }
            Some(Err(error)) => (run, error.to_string(), [].as_slice(), false),
            None => (run, "interrupted".to_string(), [].as_slice(), false),
        })
        .collect();
    match arguments.format {
        Format::Json => {
            let one = |(run, found, differences, same): &(&Recorded, String, &[String], bool)| {
                json!({ "run": run.name, "recorded": run.fingerprint(), "found": found, "same": same,
                        "differences": differences, "other_build": run.other_build })
            };
            let all: Vec<Value> = outcomes.iter().map(one).collect();
            print_json(&json!({ "same": outcomes.iter().all(|(.., same)| *same), "runs": all }));
        }
        Format::Table => {
            let row = |(run, found, _, same): &(&Recorded, String, &[String], bool)| {
                let verdict = if *same { "same" } else { "DIFFERS" };
                vec![run.name.clone(), run.fingerprint().to_string(), found.clone(), verdict.to_string()]
            };
            let rows: Vec<_> = outcomes.iter().map(row).collect();
            print(&table(&["run", "recorded", "now", ""], &rows));
            for (run, _, differences, _) in &outcomes {
                differences.iter().for_each(|difference| print(&format!("{}: {difference}\n", run.name)));
            }
        }
    }
    if found.iter().any(Option::is_none) || watch.interrupted() {
        return Err(Failure::Interrupted);
    }
    let differ = outcomes.iter().filter(|(.., same)| !same).count();
    match differ {
        0 => Ok(()),
        _ => Err(Failure::Check(format!("{differ} of {} results differ from what is recorded", runs.len()))),
    }
}
