//! `limits.json`: what no load balancer can beat, beside the rows of a comparison, and the reference that decides nothing.

use crate::{
    comparison::Comparison,
    disk,
    error::ReportError,
    json::{read_json, to_json},
    manifest::FileEntry,
    names::LIMITS,
    output::OutputDir,
    staging::Staging,
};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Limit of a metric of the flows of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitRow {
    /// Seed of the flows.
    pub seed: u64,
    /// Name of the workload; `all`: all measured workloads.
    pub workload: String,
    /// Name of the metric.
    pub metric: String,
    /// Value that no load balancer falls below; `None`: no bound of this metric is known.
    pub bound: Option<f64>,
    /// Cause of the limit.
    pub by: Option<String>,
    /// Value of the reference; `None`: it was not run, or flows did not finish.
    pub reference: Option<f64>,
}

/// Bounds and reference of the flows of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// A row per seed, workload and metric.
    pub rows: Vec<LimitRow>,
    /// Description of the reference.
    pub reference: String,
    /// Reasons why bounds are looser than they could be.
    pub loose: Vec<String>,
    /// Wall time of the bounds in seconds, over all seeds.
    pub bound_seconds: f64,
    /// Wall time of the reference in seconds, over all seeds.
    pub reference_seconds: f64,
    /// Identity of the flows: hash of the scenario without its load balancer.
    pub scenario: String,
    /// Load balancers and variants with these flows, fabric and clock; others are not held against the limits.
    pub schemes: Vec<String>,
}

impl Limits {
    /// Reads the limits in `dir`; `None` if there are none.
    ///
    /// # Errors
    /// [`ReportError`] if the file cannot be read.
    pub fn read(dir: &Path) -> Result<Option<Self>, ReportError> {
        read_json(&dir.join(LIMITS))
    }

    /// Writes them into `dir`, and lists the file in its manifest.
    ///
    /// # Errors
    /// [`ReportError`] if it cannot be written, or exists and no manifest lists it.
    pub fn write(&self, dir: &Path) -> Result<(), ReportError> {
        let mut staging = Staging::new(OutputDir::open(dir)?)?;
        let mut manifest = staging.target().manifest().cloned().unwrap_or_default();
        staging.write_all(LIMITS, to_json(self))?;
        manifest.files.retain(|file| file.name != LIMITS);
        manifest.files.push(FileEntry::new(
            LIMITS,
            "bounds and reference of the flows, per seed, workload and metric",
            vec![],
        ));
        staging.publish(manifest)
    }

    /// Reads the limits in a file of a store; `None` if it does not exist.
    ///
    /// # Errors
    /// [`ReportError`] if it cannot be read.
    pub fn read_alone(path: &Path) -> Result<Option<Self>, ReportError> {
        read_json(path)
    }

    /// Writes them to a file of a store, whole or not at all.
    ///
    /// # Errors
    /// [`ReportError`] if it cannot be written.
    pub fn write_alone(&self, path: &Path) -> Result<(), ReportError> {
        let failed = |error| ReportError::file(path, error);
        disk::make_directories(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
        // A name of its own: another process may write the same limits.
        let draft = path.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&draft, to_json(self)).map_err(failed)?;
        disk::rename(&draft, path).map_err(failed)
    }

    /// Returns `true` if they have rows of a seed.
    pub fn has(&self, seed: u64) -> bool {
        self.rows.iter().any(|row| row.seed == seed)
    }

    /// Returns the mean over `seeds` of a number of each row; `None` if a seed has none.
    fn mean(&self, seeds: &[u64], workload: &str, metric: &str, of: fn(&LimitRow) -> Option<f64>) -> Option<f64> {
        let row = |seed: &u64| {
            let own = |row: &&LimitRow| row.seed == *seed && row.workload == workload && row.metric == metric;
            self.rows.iter().find(own).and_then(of)
        };
        let values: Vec<f64> = seeds.iter().map(row).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Returns what limits a metric, at the first seed.
    pub(crate) fn by(&self, workload: &str, metric: &str) -> Option<&str> {
        self.rows.iter().find(|row| row.workload == workload && row.metric == metric)?.by.as_deref()
    }
}

impl Comparison {
    /// Returns the comparison with its values over `limits`. A scheme that lacks a seed, or with unfinished flows, has none.
    #[must_use]
    pub fn with_limits(mut self, limits: Option<&Limits>) -> Self {
        let Some(limits) = limits else { return self };
        for row in &mut self.rows {
            let is_whole = limits.schemes.contains(&row.scheme)
                && row.ranks()
                && row.seeds == self.compared_seeds.len()
                && row.unfinished_flows == 0;
            let Some(mean) = row.mean.filter(|_| is_whole) else { continue };
            let over = |of| {
                let limit = limits.mean(&self.compared_seeds, &row.workload, row.metric, of)?;
                (limit > 0.0).then_some(mean / limit)
            };
            row.over_bound = over(|limit| limit.bound);
            row.over_reference = over(|limit| limit.reference);
        }
        self.limits = Some(limits.clone());
        self
    }

    /// Returns the metric whose bound a table of `workload` shows: that of the ranking, or the mean completion time.
    pub(crate) fn bounded_metric(&self, workload: &str) -> Option<&'static str> {
        let has = |metric: &&'static str| {
            self.schemes
                .iter()
                .filter_map(|scheme| self.row(workload, scheme, metric))
                .any(|row| row.over_bound.is_some())
        };
        [self.main_metric_of(workload), "fct_mean"].into_iter().find(has)
    }

    /// Returns the values over bound and reference of each scheme, with headings; empty if none is known.
    pub(crate) fn over_limits(&self, workload: &str) -> Vec<(String, Vec<Option<f64>>)> {
        let column = |metric: &str, of: fn(&crate::ComparisonRow) -> Option<f64>| {
            let value = |scheme: &String| self.row(workload, scheme, metric).and_then(of);
            self.schemes.iter().map(value).collect::<Vec<_>>()
        };
        let main = self.main_metric_of(workload);
        let title = |metric: &str, what: &str| match metric == main {
            true => what.to_string(),
            false => format!("FCT mean {what}"),
        };
        let bound = self.bounded_metric(workload);
        let bound = bound.map(|metric| (title(metric, "over bound"), column(metric, |row| row.over_bound)));
        let reference = ("over reference".to_string(), column(main, |row| row.over_reference));
        bound.into_iter().chain([reference]).filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    }

    /// Returns what bound and reference are, a line each; empty without limits.
    pub(crate) fn limit_lines(&self) -> Vec<String> {
        let Some(limits) = &self.limits else { return vec![] };
        let mut lines = vec![];
        for workload in self.shown(false) {
            if let Some((metric, by)) =
                self.bounded_metric(workload).and_then(|metric| Some((metric, limits.by(workload, metric)?)))
            {
                let of =
                    if self.workloads().len() > 1 { format!(" of {}", self.label(workload)) } else { String::new() };
                lines.push(format!(
                    "bound{of}: no load balancer has a lower {metric}; limited by {by} (proven; fractional and without time, so it may be loose)"
                ));
            }
        }
        lines.extend(limits.loose.iter().map(|reason| format!("bound is loose: {reason}")));
        if limits.rows.iter().any(|row| row.reference.is_some()) {
            lines.push(format!("reference, which proves nothing: {}", limits.reference));
        }
        lines
    }
}
