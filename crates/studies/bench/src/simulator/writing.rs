//! Time to write a run's results.

use super::{BenchError, CaseResult};
use anabranch_scenario::{SIMULATOR, Scenario, cpu_seconds};
use anabranch_study::{Permission, RunError, Single, results::run};

/// Writing of the tables of a run as CSV and Parquet, with summary and manifest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// Rows of flows and links. A row is written twice, once per format.
    pub rows: u64,
    /// Processor time; `None` where the system does not report it.
    pub cpu_seconds: Option<f64>,
}

impl Written {
    /// Rows per second of processor time.
    pub fn per_cpu_second(&self) -> Option<f64> {
        self.cpu_seconds.map(|seconds| self.rows as f64 / seconds.max(1e-9))
    }
}

/// Runs `scenario` once more, and writes its results into a temporary directory.
pub(super) fn write(scenario: &Scenario, measured: &CaseResult) -> Result<Written, BenchError> {
    let failed = |error: RunError| BenchError::Write(error.to_string());
    let ran = run(scenario, &SIMULATOR, 1, &|_| Ok(()), &mut |_| true).map_err(failed)?;
    measured.same(&ran.result, 1)?;
    let directory = tempfile::tempdir().map_err(|error| BenchError::Write(error.to_string()))?;
    let before = cpu_seconds();
    let single = Single::new(scenario, &SIMULATOR, directory.path(), Permission::default());
    single.and_then(|single| single.write(&ran)).map_err(failed)?;
    let cpu_seconds = cpu_seconds().zip(before).map(|(after, before)| after - before);
    Ok(Written { rows: (ran.result.flows.len() + ran.result.links.len()) as u64, cpu_seconds })
}
