//! `view --record`: runs again, with series and a trace, what was run without them.

use super::request::available_threads;
use crate::{Failure, ProgressDisplay, ProgressMode, note};
use anabranch_results::{Frame, Manifest, read_summary};
use anabranch_scenario::SIMULATOR;
use anabranch_study::{Observer, Permission, Recorded, Single, rerun::recorded, results::run};
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Maximum number of samples of all links together; a page of more is slow to open.
const MAX_SAMPLES: u64 = 4_000_000;
/// Samples per link.
const SAMPLES: std::ops::RangeInclusive<u64> = 40..=1000;

/// Runs recorded again, in a directory that is removed at the end.
pub(super) struct Recording {
    /// Directories of the runs; of those that had series and a trace, their own.
    pub(super) runs: Vec<PathBuf>,
    folder: TempDir,
}

/// Runs those of `runs` again that lack series or a trace. Fingerprints must be the recorded ones.
/// Fails where a run cannot be repeated, or gives another result.
pub(super) fn record(runs: &[PathBuf]) -> Result<Recording, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::input(format!("no temporary directory: {error}")))?;
    let mut recording = Recording { runs: Vec::new(), folder };
    for (number, dir) in runs.iter().enumerate() {
        if has(dir, "series")? && has(dir, "trace")? {
            note(&format!("{} has series and a trace; it is not run again", dir.display()));
            recording.runs.push(dir.clone());
            continue;
        }
        let target = recording.folder.path().join(number.to_string());
        repeat(dir, &target)?;
        recording.runs.push(target);
    }
    Ok(recording)
}

fn has(dir: &Path, table: &str) -> Result<bool, Failure> {
    let manifest = Manifest::read(dir)?.unwrap_or_default();
    Ok(["csv", "parquet"].iter().any(|extension| manifest.file(&format!("{table}.{extension}")).is_some()))
}

fn repeat(dir: &Path, target: &Path) -> Result<(), Failure> {
    let (of, _) = recorded(dir, None)?;
    let [of]: [Recorded; 1] = of.try_into().map_err(|_| Failure::input(format!("{}: not one run", dir.display())))?;
    let Some(summary) = read_summary(dir)? else {
        return Err(Failure::input(format!("{}: there is no summary.json", dir.display())));
    };
    if let Some(build) = &of.other_build {
        note(&format!("warning: recorded with another build, {build}, so results may differ"));
    }
    let flows = Frame::read(dir, "flows", &["flow_id", "slowdown", "workload", "measured"])?;
    let traced: Vec<String> = flows.iter().flat_map(traced).map(|flow| flow.to_string()).collect();
    let scenario = of.scenario.changed("--record", &changes(dir, summary.simulated_s, &traced)?)?;
    let name = format!("{}, seed {}", summary.scheme, summary.seed);
    let watch = ProgressDisplay::new(ProgressMode::Auto, vec![name.clone()]);
    watch.started(0);
    let threads = available_threads().min(scenario.max_threads());
    let ran = run(&scenario, &SIMULATOR, threads, &|_| Ok(()), &mut |progress| watch.progress(0, progress));
    watch.close();
    let mut ran = ran?;
    if ran.result.interrupted {
        return Err(Failure::Interrupted);
    }
    // A variant has a name of its own.
    ran.meta.scheme.clone_from(&summary.scheme);
    let found = ran.result.fingerprint.map_or_else(|| "none".to_string(), |found| format!("{found:016x}"));
    if found != of.fingerprint() {
        let build = of.other_build.as_ref().map_or(String::new(), |build| format!(" by {build}"));
        return Err(Failure::Check(format!(
            "{name}: the run gives the fingerprint {found}, recorded{build} is {}; no page is written",
            of.fingerprint()
        )));
    }
    let flows = match traced.as_slice() {
        [] => String::new(),
        [flow] => format!(" and a trace of flow {flow}"),
        flows => format!(" and a trace of flows {}", flows.join(", ")),
    };
    note(&format!("{name}: run again with series{flows}, same fingerprint {found}"));
    let single = Single::new(&scenario, &SIMULATOR, target, Permission::default())?;
    single.begin()?;
    single.write(&ran)?;
    Ok(())
}

/// Returns the measurements to add: series of all links, and a trace of flows.
fn changes(dir: &Path, simulated_s: f64, traced: &[String]) -> Result<Vec<String>, Failure> {
    let links = Frame::read(dir, "links", &["rate_bps"])?.map_or(0, |links| links.rows() as u64);
    let samples = (MAX_SAMPLES / links.max(1)).clamp(*SAMPLES.start(), *SAMPLES.end());
    let interval = Time::from_ns(((simulated_s * 1e9) as u64).div_ceil(samples).max(1));
    let mut changes = vec![format!("measure.series_interval={interval}"), "measure.series_links=[\"*\"]".to_string()];
    if !traced.is_empty() {
        changes.push(format!("measure.trace_flows=[\"{}\"]", traced.join("\", \"")));
        changes.push("measure.trace_scheme=true".to_string());
    }
    Ok(changes)
}

/// Returns the slowest flow of each workload that finished, and the first one that did not.
fn traced(flows: &Frame) -> BTreeSet<u64> {
    let (ids, slowdowns) = (flows.integers("flow_id"), flows.reals("slowdown"));
    let (workloads, measured) = (flows.texts("workload"), flows.flags("measured"));
    let mut found: BTreeMap<(&str, bool), (f64, u64)> = BTreeMap::new();
    for (row, id) in ids.iter().enumerate().filter_map(|(row, id)| Some((row, (*id)?))) {
        if measured.get(row) == Some(&false) {
            continue;
        }
        let workload = workloads.get(row).map_or("", String::as_str);
        let slowdown = slowdowns.get(row).copied().flatten();
        let found = found.entry((workload, slowdown.is_some())).or_insert((f64::NEG_INFINITY, id));
        if slowdown.is_some_and(|slowdown| slowdown > found.0) {
            *found = (slowdown.unwrap_or_default(), id);
        }
    }
    found.into_values().map(|(_, id)| id).collect()
}
