//! Comparisons.

use crate::{error, scenario::Scenario, scheme, table::Table, wait};
use anabranch_report::{Comparison as Report, read_comparison};
use anabranch_study::{
    compare::{ComparePlan, Permission, Request},
    place::Place,
};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Comparison of load balancers.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Comparison {
    report: Option<Report>,
    /// Failed runs and their errors.
    #[pyo3(get)]
    failed: Vec<(String, String)>,
    /// Number of reused runs.
    #[pyo3(get)]
    reused: usize,
}

#[pymethods]
impl Comparison {
    /// Reads the comparison in a directory.
    #[staticmethod]
    fn read(py: Python<'_>, directory: PathBuf) -> PyResult<Self> {
        let report = py.detach(|| read_comparison(&directory)).map_err(|e| error::report(&e))?;
        Ok(Comparison { report, failed: vec![], reused: 0 })
    }

    /// Rows of `comparison.csv`.
    fn table(&self) -> PyResult<Table> {
        let text = self.report.as_ref().map(Report::to_csv).unwrap_or_default();
        Table::of_csv(&text, &Report::columns())
    }

    /// Load balancers and variants with a run, in the order requested.
    fn entries(&self) -> Vec<String> {
        self.report.as_ref().map(|report| report.schemes.clone()).unwrap_or_default()
    }

    /// Most informative metric over all flows.
    fn main_metric(&self) -> &'static str {
        self.report.as_ref().map_or("slowdown_p99", |report| report.main_metric_of("all"))
    }
}

/// Entries of a comparison.
pub(crate) fn request(
    schemes: Vec<String>,
    variants: Vec<String>,
    seeds: Option<u64>,
    baseline: Option<String>,
) -> Request {
    Request { schemes, variants, seeds, baseline, ..Request::default() }
}

/// Compares load balancers and variants in `directory`, whose finished runs are reused.
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
    let names = request.schemes.iter().chain(&request.variants).map(String::as_str);
    let threads = scheme::threads(threads, &names.chain([scenario.checked.to_toml().as_str()]).collect::<Vec<_>>());
    let plan = ComparePlan::new(&scenario.checked, &request).map_err(|e| error::scenario(&e))?;
    let (scenario, permission) = (scenario.checked.clone(), Permission { again, replace });
    let compared = wait::attend(py, plan.jobs.len(), callback, move |watch| {
        plan.execute(&scenario, &Place::one(&directory), threads, permission, watch)
    })?;
    let compared = compared.map_err(error::run)?;
    Ok(Comparison { report: compared.comparison, failed: compared.failed, reused: compared.reused })
}
