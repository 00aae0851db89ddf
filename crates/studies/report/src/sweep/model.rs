use crate::{ALL, Comparison, METRICS};
use anabranch_outcome::RunMetrics;
use anabranch_results::{
    ATTEMPT, Attempt, FailedRun, Plan, ReportError, RunStatus, Summary, is_complete_run, read_json, read_summary,
    store_directory,
};
use std::{collections::BTreeMap, path::Path};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunState {
    Finished {
        status: RunStatus,
        fingerprint: Option<String>,
        attempt: Attempt,
        metrics: Vec<Option<f64>>,
        totals: Box<RunMetrics>,
    },
    Failed(FailedRun),
    Missing,
}

/// A sweep with the results of its runs.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub plan: Plan,
    /// Comparison of the finished runs at each point; `None` if there are none.
    pub comparisons: Vec<Option<Comparison>>,
    /// State of each run of the plan.
    pub(super) states: Vec<RunState>,
}

impl Sweep {
    /// Reads the sweep in `dir`; `None` if there is none.
    pub fn read(dir: &Path) -> Result<Option<Self>, ReportError> {
        let Some(plan) = Plan::read(dir)? else { return Ok(None) };
        let mut comparisons = vec![];
        let mut states = vec![];
        for runs in plan.runs.chunk_by(|a, b| a.point == b.point) {
            let mut summaries: Vec<Summary> = vec![];
            for run in runs {
                let directory = store_directory(dir, &run.run);
                let summary = if is_complete_run(&directory) { read_summary(&directory)? } else { None };
                let Some(mut summary) = summary else {
                    let failed = FailedRun::read(dir, &run.run)?;
                    states.push(failed.map_or(RunState::Missing, RunState::Failed));
                    continue;
                };
                summary.scheme.clone_from(&plan.entries[run.entry]);
                states.push(RunState::Finished {
                    status: summary.status.unwrap_or(RunStatus::Finished),
                    fingerprint: summary.fingerprint.clone(),
                    attempt: read_json(&directory.join(ATTEMPT))?.unwrap_or_default(),
                    metrics: METRICS.iter().map(|metric| metric.value(&summary, ALL)).collect(),
                    totals: Box::new(summary.counters.totals),
                });
                summaries.push(summary);
            }
            let comparison = Comparison::new(&summaries, &plan.entries, &plan.baseline);
            comparisons.push((!summaries.is_empty()).then_some(comparison));
        }
        Ok(Some(Sweep { plan, comparisons, states }))
    }

    /// Returns the numbers of finished, failed and missing runs.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&RunState) -> bool| self.states.iter().filter(|state| is(state)).count();
        (
            count(|state| matches!(state, RunState::Finished { .. })),
            count(|state| matches!(state, RunState::Failed(_))),
            count(|state| matches!(state, RunState::Missing)),
        )
    }

    /// Returns the metric that is shown for all points: the most frequent main metric of their comparisons.
    pub fn main_metric(&self) -> &'static str {
        let mut votes: BTreeMap<&'static str, usize> = BTreeMap::new();
        let workloads = self.workloads();
        for comparison in self.comparisons.iter().flatten() {
            for workload in &workloads {
                *votes.entry(comparison.main_metric_of(workload)).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, votes)| *votes).map_or("slowdown_p99", |(metric, _)| metric)
    }

    /// Returns the workloads that are shown separately: those of the scenario if it has several, else all flows.
    pub fn workloads(&self) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        for comparison in self.comparisons.iter().flatten() {
            for name in comparison.shown(false) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_string());
                }
            }
        }
        names
    }

    pub(super) fn provenance(&self) -> String {
        let plan = &self.plan;
        format!(
            "Anabranch {} commit {}; scenario {} hash {}; {} seeds; {} runs.",
            plan.version,
            plan.commit,
            plan.name,
            plan.scenario_hash,
            plan.seeds.len(),
            plan.runs.len()
        )
    }
}
