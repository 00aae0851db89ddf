//! Jobs whose flows have rows although the run is to keep none (`measure.flow_rows`).

use super::Workload;
use crate::Tree;
use anabranch_backend::Setup;
use std::collections::BTreeSet;

/// Returns a warning per job of `setup`, made without rows of jobs, that keeps rows of its flows.
pub(crate) fn warnings(workloads: &[Workload], setup: &Setup, tree: &Tree) -> Vec<String> {
    let set = &setup.flows;
    let made: BTreeSet<u16> = set.templates.iter().map(|of| set.grouped[of.job as usize].workload).collect();
    let names: BTreeSet<&str> = made.iter().map(|number| set.workloads[usize::from(*number)].name.as_str()).collect();
    let keeps = |workload: &Workload| workload.kind.is_job() && !names.contains(workload.name.as_str());
    let kept = workloads.iter().enumerate().filter(|(_, workload)| keeps(workload));
    kept.map(|(number, workload)| {
        let reason = match workload.kind.listed_because() {
            Some(reason) => reason,
            None if set.servers.is_some() => "with [servers] messages become flows of two networks",
            None if workload.common.split_share > 0.0 => "a `split_share` is drawn from all flows",
            None => "its groups differ",
        };
        format!(
            "{}[[workload]] {}: `measure.flow_rows = \"without-jobs\"`: the job `{}` keeps rows of its flows: {reason}; its \
             memory grows with the number of its flows",
            tree.line_of(&format!("workload[{number}]")),
            number + 1,
            workload.name
        )
    })
    .collect()
}
