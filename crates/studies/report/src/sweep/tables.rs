use super::{Sweep, model::RunState};
use crate::{Comparison, ComparisonRow, INTERVAL, METRICS, Metric, wording};
use anabranch_results::{ColumnEntry, Plan, PlannedRun, RunStatus, cell, percent_change, rows, significant_digits};

type CellOf = fn(&Plan, &PlannedRun, &RunState) -> String;

/// Columns of `runs.csv` between the keys and the metrics.
const RUN_COLUMNS: [(&str, &str, &str, CellOf); 8] = [
    ("scheme", "text", "load balancer or variant", |plan, run, _| plan.entries[run.entry].clone()),
    ("seed", "integer", "seed of the run", |_, run, _| run.seed.to_string()),
    ("run", "text", "hash of the run, the name of its directory in `runs`; several rows may share one", |_, run, _| {
        run.run.clone()
    }),
    ("status", "text", "finished, deadlock, stalled, failed or missing", |_, _, state| {
        // A run at its time limit counts as finished; its unfinished flows show the limit.
        let word = match state {
            RunState::Finished { status: status @ (RunStatus::Deadlock | RunStatus::Stalled), .. } => status.word(),
            RunState::Finished { .. } => RunStatus::Finished.word(),
            RunState::Failed(_) => "failed",
            RunState::Missing => "missing",
        };
        word.to_string()
    }),
    ("fingerprint", "text", "of its results; empty without results", |_, _, state| match state {
        RunState::Finished { fingerprint, .. } => cell(fingerprint.as_ref()),
        _ => String::new(),
    }),
    ("host", "text", "host that ran it", |_, _, state| match state {
        RunState::Finished { attempt, .. } => attempt.host.clone(),
        RunState::Failed(failed) => failed.host.clone(),
        RunState::Missing => String::new(),
    }),
    ("attempts", "integer", "number of starts; above 1 if its process was killed", |_, _, state| match state {
        RunState::Finished { attempt, .. } => attempt.attempts.to_string(),
        RunState::Failed(failed) => failed.attempts.to_string(),
        RunState::Missing => String::new(),
    }),
    ("error", "text", "first line of its error; the whole error is in `failed`", |_, _, state| match state {
        RunState::Failed(failed) => failed.error.lines().next().unwrap_or_default().to_string(),
        _ => String::new(),
    }),
];

impl Sweep {
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.plan.axes.iter().map(|axis| axis.key.as_str())
    }

    /// Returns the content of `sweep.csv`: the rows of every point's `comparison.csv`, preceded by the values of the keys.
    pub fn to_csv(&self) -> String {
        let mut rows = vec![];
        for (point, comparison) in self.comparisons.iter().enumerate() {
            let Some(comparison) = comparison else { continue };
            let values: csv::StringRecord = self.plan.values(point).into();
            for record in csv::Reader::from_reader(comparison.to_csv().as_bytes()).records().flatten() {
                rows.push(values.iter().chain(record.iter()).map(str::to_string).collect::<Vec<_>>());
            }
        }
        rows::to_csv(&self.columns(), rows)
    }

    /// Returns the columns of `sweep.csv` with their meanings.
    pub fn columns(&self) -> Vec<ColumnEntry> {
        self.key_columns().chain(Comparison::columns()).collect()
    }

    fn key_columns(&self) -> impl Iterator<Item = ColumnEntry> {
        self.plan.axes.iter().map(|axis| ColumnEntry::new(&axis.key, "text", "", "value of this key of the scenario"))
    }

    /// Returns the content of `runs.csv`: a row per run of the plan.
    pub fn runs_csv(&self) -> String {
        let row = |(run, state): (&PlannedRun, &RunState)| {
            let values = self.plan.values(run.point).into_iter().map(str::to_string);
            let own = RUN_COLUMNS.iter().map(|(_, _, _, cell)| cell(&self.plan, run, state));
            let known = if let RunState::Finished { metrics, .. } = state { metrics.as_slice() } else { &[] };
            let metrics = (0..METRICS.len()).map(|number| cell(known.get(number).copied().flatten()));
            values.chain(own).chain(metrics).collect::<Vec<_>>()
        };
        rows::to_csv(&self.run_columns(), self.plan.runs.iter().zip(&self.states).map(row))
    }

    /// Returns the columns of `runs.csv` with their meanings.
    pub fn run_columns(&self) -> Vec<ColumnEntry> {
        let own = RUN_COLUMNS.iter().map(|(name, kind, meaning, _)| ColumnEntry::new(name, kind, "", meaning));
        let metric = |metric: &Metric| ColumnEntry::new(metric.name, "real", metric.unit, metric.title);
        self.key_columns().chain(own).chain(METRICS.iter().map(metric)).collect()
    }

    /// Returns header and cells of a table for the terminal: a row per point, workload and scheme, with the main metric
    /// and at most `others` others.
    pub fn table(&self, others: usize) -> (Vec<String>, Vec<Vec<String>>) {
        let (workloads, mut metrics) = (self.workloads(), self.shown_metrics());
        metrics.truncate(1 + others);
        let (several, compared) = (workloads.len() > 1, self.plan.entries.len() > 1);
        let mut header = self.titles();
        if several {
            header.push("workload".into());
        }
        header.push("scheme".into());
        for metric in &metrics {
            let unit = if metric.unit.is_empty() { String::new() } else { format!(" ({})", metric.unit) };
            header.push(format!("{}{unit}", metric.title));
            if compared {
                header.push("change".into());
            }
        }
        let mut rows = vec![];
        for (point, comparison) in self.comparisons.iter().enumerate() {
            let Some(comparison) = comparison else { continue };
            for workload in &workloads {
                for scheme in &comparison.schemes {
                    let mut cells: Vec<String> = self.plan.values(point).into_iter().map(str::to_string).collect();
                    if several {
                        cells.push(workload.clone());
                    }
                    cells.push(scheme.clone());
                    for metric in &metrics {
                        let row = comparison.row(workload, scheme, metric.name);
                        let mean = row.and_then(|row| row.mean).map(|mean| significant_digits(mean, 4));
                        let half = row.and_then(|row| row.spread(|half| significant_digits(half, 2)));
                        let half = half.map_or(String::new(), |half| format!(" {half}"));
                        let mark = if row.is_some_and(|row| !row.ranks()) { "!" } else { "" };
                        cells.push(mean.map_or("n/a".into(), |mean| format!("{mean}{half}{mark}")));
                        if compared {
                            let row = row.filter(|row| row.difference.is_some());
                            let change = row.and_then(|row| row.ratio_to_baseline).map(percent_change);
                            let unsure = if row.and_then(|row| row.significant) == Some(false) { "~" } else { "" };
                            cells.push(change.map_or(String::new(), |change| format!("{change}{unsure}")));
                        }
                    }
                    rows.push(cells);
                }
            }
        }
        (header, rows)
    }

    /// Returns what intervals and marks of the table mean, and how the schemes were tested.
    pub fn notes(&self) -> Vec<String> {
        let baseline = &self.plan.baseline;
        let compared = self.plan.entries.len() > 1;
        let change = if compared { format!("; change against {baseline}") } else { String::new() };
        let mut notes = vec![match self.plan.seeds.len() {
            1 => format!("one seed: confidence intervals and tests n/a{change}"),
            seeds => format!("mean of {seeds} seeds, {INTERVAL}{change}"),
        }];
        let rows = self.main_rows();
        let rows: Vec<&ComparisonRow> = rows.iter().collect();
        let found = |significant| rows.iter().any(|row| row.significant == Some(significant));
        notes.extend(wording::tests(&rows, baseline).map(|tests| format!("{tests}, at each point")));
        if found(false) {
            notes.push(
                "~ not significant; `seeds_needed` in sweep.csv is the number of seeds that would make it so"
                    .to_string(),
            );
        } else if compared && self.plan.seeds.len() > 1 && !found(true) {
            notes.push(wording::undecided(&rows));
        }
        if rows.iter().any(|row| !row.ranks()) {
            notes.push(
                "! measured flows did not finish: the figures are too good, the scheme is not compared".to_string(),
            );
        }
        notes
    }

    /// Returns the rows of the main metric of every point.
    pub(super) fn main_rows(&self) -> Vec<ComparisonRow> {
        let (metric, workloads) = (self.main_metric(), self.workloads());
        let of = |comparison: &Comparison| -> Vec<ComparisonRow> {
            let rows = workloads.iter().flat_map(|workload| {
                comparison.schemes.iter().filter_map(move |scheme| comparison.row(workload, scheme, metric))
            });
            rows.cloned().collect()
        };
        self.comparisons.iter().flatten().flat_map(of).collect()
    }

    /// Returns the main metric first.
    pub(super) fn shown_metrics(&self) -> Vec<&'static Metric> {
        let main = self.main_metric();
        let others = ["slowdown_p99", "slowdown_p50", "fct_mean"].into_iter().filter(|name| *name != main).take(2);
        std::iter::once(main).chain(others).filter_map(Metric::named).collect()
    }

    /// Returns the titles of the keys for figures, without underscores.
    pub(super) fn words(&self) -> Vec<String> {
        self.titles().into_iter().map(|title| title.replace('_', " ")).collect()
    }

    /// Shortens `workload.0.load` to `load`, unless another key has the same last part.
    pub(super) fn titles(&self) -> Vec<String> {
        let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_string();
        let alike = |key: &str| self.keys().filter(|other| last(other) == last(key)).count() > 1;
        self.keys().map(|key| if alike(key) { key.to_string() } else { last(key) }).collect()
    }
}
