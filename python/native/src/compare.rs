//! Comparisons.

use crate::{error, scenario::Scenario, table::Table, wait};
use anabranch_report::{Comparison as Report, read_comparison};
use anabranch_study::compare::{Permission, Plan, Request};
use pyo3::prelude::*;
use std::path::PathBuf;

/// What several load balancers say together.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Comparison {
    report: Option<Report>,
    /// Runs that failed, and why.
    #[pyo3(get)]
    failed: Vec<(String, String)>,
    /// Runs that were there before.
    #[pyo3(get)]
    reused: usize,
}

#[pymethods]
impl Comparison {
    /// The comparison in a directory.
    #[staticmethod]
    fn read(py: Python<'_>, directory: PathBuf) -> PyResult<Self> {
        let report = py.detach(|| read_comparison(&directory)).map_err(|e| error::report(&e))?;
        Ok(Comparison { report, failed: vec![], reused: 0 })
    }

    /// The rows of `comparison.csv`.
    fn table(&self) -> PyResult<Table> {
        let text = self.report.as_ref().map(Report::to_csv).unwrap_or_default();
        Table::of_csv(&text, &Report::columns())
    }

    /// The load balancers and variants with a run, in the order asked for.
    fn entries(&self) -> Vec<String> {
        self.report.as_ref().map(|report| report.schemes.clone()).unwrap_or_default()
    }

    /// The metric that tells most, over all flows.
    fn main_metric(&self) -> &'static str {
        self.report.as_ref().map_or("slowdown_p99", |report| report.main_metric_of("all"))
    }
}

/// What is compared with what.
pub(crate) fn request(
    schemes: Vec<String>,
    variants: Vec<String>,
    seeds: Option<u64>,
    baseline: Option<String>,
) -> Request {
    Request { schemes, variants, seeds, baseline, ..Request::default() }
}

/// Compares load balancers and variants into `directory`; finished runs there are not repeated.
#[pyfunction]
#[pyo3(signature = (scenario, directory, schemes, variants, seeds, baseline, threads, again, replace, callback=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn compare(
    py: Python<'_>,
    scenario: &Scenario,
    directory: PathBuf,
    schemes: Vec<String>,
    variants: Vec<String>,
    seeds: Option<u64>,
    baseline: Option<String>,
    threads: usize,
    again: bool,
    replace: bool,
    callback: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let request = request(schemes, variants, seeds, baseline);
    let plan = Plan::new(&scenario.checked, &request).map_err(|e| error::scenario(&e))?;
    let (scenario, permission) = (scenario.checked.clone(), Permission { again, replace });
    let compared = wait::attend(py, plan.jobs.len(), callback, move |watch| {
        plan.execute(&scenario, &directory, threads, permission, watch)
    })?;
    let compared = compared.map_err(error::run)?;
    let failed = compared.failed.iter().map(|(name, error)| (name.clone(), error.to_string())).collect();
    Ok(Comparison { report: compared.comparison, failed, reused: compared.reused })
}
