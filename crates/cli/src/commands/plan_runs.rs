//! Runs of a plan, of one comparison or of several after each other.

use super::request::{runs_failed, threads};
use crate::{Failure, ProgressDisplay, RunOptions, note};
use anabranch_scenario::Scenario;
use anabranch_study::{ComparePlan, Compared, Permission, Place};
use std::collections::BTreeSet;

/// Runs whose notes were printed, if several plans are run after each other.
#[derive(Debug, Default)]
pub(super) struct Seen {
    runs: BTreeSet<(String, u64)>,
}

/// Runs the missing runs of `plan` in `place` and prints the warnings of those that are not in `seen`.
pub(super) fn run_plan(
    plan: &ComparePlan,
    scenario: &Scenario,
    place: &Place,
    permission: Permission,
    options: &RunOptions,
    seen: &mut Seen,
) -> Result<Compared, Failure> {
    let watch = ProgressDisplay::new(options.progress, plan.jobs.iter().map(|job| job.name.clone()).collect());
    let compared = plan.execute(scenario, place, threads(options), permission, &watch);
    watch.close();
    let compared = compared?;
    if compared.reused > seen.runs.len() {
        note(&format!("{} of {} runs were already finished and not repeated", compared.reused, plan.jobs.len()));
    }
    for summary in &compared.summaries {
        if !seen.runs.insert((summary.scheme.clone(), summary.seed)) {
            continue;
        }
        for warning in summary.warnings() {
            note(&format!("warning: {}, seed {}: {warning}", summary.scheme, summary.seed));
        }
    }
    Ok(compared)
}

pub(super) fn ended(compared: &Compared, runs: usize) -> Result<(), Failure> {
    if compared.interrupted {
        note(&format!(
            "partial: {} of {runs} runs are finished; repeat the command to continue",
            compared.summaries.len()
        ));
        return Err(Failure::Interrupted);
    }
    if !compared.failed.is_empty() {
        return Err(runs_failed(&compared.failed, runs));
    }
    Ok(())
}
