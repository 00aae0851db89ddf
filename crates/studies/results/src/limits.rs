//! `limits.json`: what no load balancer can beat, beside the rows of a comparison, and the reference that decides nothing.

use serde::{Deserialize, Serialize};

/// Limit of a metric of the flows of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitRow {
    /// Seed of the flows.
    pub seed: u64,
    /// Name of the workload; `all`: all measured workloads.
    pub workload: String,
    pub metric: String,
    /// Value that no load balancer falls below; `None`: no bound of this metric is known.
    pub bound: Option<f64>,
    pub by: Option<String>,
    /// Value of the reference; `None`: it was not run, or flows did not finish.
    pub reference: Option<f64>,
}

/// Bounds and reference of the flows of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// A row per seed, workload and metric.
    pub rows: Vec<LimitRow>,
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
    /// Returns `true` if they have rows of a seed.
    pub fn has(&self, seed: u64) -> bool {
        self.rows.iter().any(|row| row.seed == seed)
    }

    /// Returns the mean over `seeds` of a number of each row; `None` if a seed has none.
    pub fn mean(&self, seeds: &[u64], workload: &str, metric: &str, of: fn(&LimitRow) -> Option<f64>) -> Option<f64> {
        let row = |seed: &u64| {
            let own = |row: &&LimitRow| row.seed == *seed && row.workload == workload && row.metric == metric;
            self.rows.iter().find(own).and_then(of)
        };
        let values: Vec<f64> = seeds.iter().map(row).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Returns what limits a metric, at the first seed.
    pub fn by(&self, workload: &str, metric: &str) -> Option<&str> {
        self.rows.iter().find(|row| row.workload == workload && row.metric == metric)?.by.as_deref()
    }
}
