use super::{
    request::require_directory,
    verify::{findings_table, integrity_failure},
};
use crate::{Failure, Format, MAX_THREADS, ProgressDisplay, ProgressMode, note, print, print_json, table};
use anabranch_results::{Finding, FindingKind, ReportError, is_data, verify};
use anabranch_study::{Observer, Recorded, rerun};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Rerun {
    /// Directory written by `run`, `compare` or `sweep`
    pub(crate) dir: PathBuf,
    /// One of its runs: SCHEME/seedN of a comparison, a hash of a sweep [default: all]
    pub(crate) run: Option<String>,
    /// Number of threads [default: the machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    pub(crate) threads: Option<u16>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Progress output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}

/// Findings of `verify` except changed inputs (runs report them), foreign files and moved runs.
fn damaged(dir: &Path) -> Result<Vec<Finding>, Failure> {
    let mut findings = match verify(dir) {
        Ok(verified) => verified.findings,
        Err(ReportError::NoResults { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    findings.retain(|finding| {
        let name = finding.path.file_name().unwrap_or_default().to_string_lossy();
        let is_result = finding.fault != FindingKind::Unlisted || finding.path.is_dir() || is_data(&name);
        let is_aside = finding.path.starts_with(dir.join("earlier-runs"));
        is_result && finding.path.starts_with(dir) && !is_aside
    });
    Ok(findings)
}

pub(crate) fn rerun(arguments: &Rerun) -> Result<(), Failure> {
    require_directory(&arguments.dir, "")?;
    let damaged = damaged(&arguments.dir)?;
    let failed = integrity_failure(&arguments.dir, damaged.len());
    let runs = match (rerun::recorded(&arguments.dir, arguments.run.as_deref()), failed) {
        (Ok((runs, skipped)), _) => {
            if skipped > 0 {
                note(&format!("{skipped} runs with real packets are not repeated: no two such runs are alike"));
            }
            runs
        }
        (Err(error), None) => return Err(error.into()),
        (Err(error), Some(failure)) => {
            print(&findings_table(&damaged));
            note(&format!("no run is repeated: {error}"));
            return Err(failure);
        }
    };
    if let Some(build) = runs.iter().find_map(|run| run.other_build.as_ref()) {
        note(&format!("warning: recorded with another build, {build}, so results may differ"));
    }
    let watch = ProgressDisplay::new(arguments.progress, runs.iter().map(|run| run.name.clone()).collect());
    let threads = super::request::threads_or_cores(arguments.threads);
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
            let same = damaged.is_empty() && outcomes.iter().all(|(.., same)| *same);
            print_json(&json!({ "same": same, "findings": damaged, "runs": all }));
        }
        Format::Table => {
            let row = |(run, found, _, same): &(&Recorded, String, &[String], bool)| {
                let verdict = if *same { "same" } else { "DIFFERS" };
                vec![run.name.clone(), run.fingerprint().to_string(), found.clone(), verdict.to_string()]
            };
            let rows: Vec<_> = outcomes.iter().map(row).collect();
            print(&findings_table(&damaged));
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
        0 => integrity_failure(&arguments.dir, damaged.len()).map_or(Ok(()), Err),
        _ => Err(Failure::Check(format!("{differ} of {} results differ from the recorded ones", runs.len()))),
    }
}
