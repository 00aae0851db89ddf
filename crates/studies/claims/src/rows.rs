//! Results of a study: a number per run, workload, bin and metric. Verdicts and figures follow from them alone.

use super::{ALL, Metric, RunData, StudyBound, StudyPlan, at};
use anabranch_results::{LimitRow, Limits, PlannedRun, ReportError};
use anabranch_scenario::{COMMIT, ScenarioError};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

pub(crate) type Part = (String, String);

/// Entry of a study's rows with the bounds of its flows.
pub(crate) const BOUND: &str = "bound";
/// Entry of a study's rows with the reference.
pub(crate) const REFERENCE: &str = "reference";

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RequiredMetrics {
    pub(crate) metrics: Vec<Metric>,
    pub(crate) parts: BTreeSet<Part>,
}

impl RequiredMetrics {
    pub(crate) fn add(&mut self, metric: &Metric, coordinate: &[(String, String)]) {
        if !self.metrics.contains(metric) {
            self.metrics.push(metric.clone());
        }
        let of = |dimension: &str| at(coordinate, dimension).unwrap_or(ALL).to_string();
        self.parts.insert((of("workload"), of("bin")));
    }
}

/// Numbers of a run over a workload and bin.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Values of the study's keys.
    pub point: Vec<String>,
    /// Load balancer or variant.
    pub scheme: String,
    /// Seed of the run.
    pub seed: u64,
    /// Workload, or `all`.
    pub workload: String,
    /// Bin of flow sizes, or `all`.
    pub bin: String,
    /// Commit of the build that executed the run.
    pub commit: String,
    /// One number per metric.
    pub values: Vec<Option<f64>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Swept keys.
    pub keys: Vec<String>,
    pub metrics: Vec<String>,
    /// One row per run, workload and bin.
    pub rows: Vec<Row>,
}

impl Rows {
    /// Reads the finished runs of `plan`; `directory` returns the folder of a run, if it has finished.
    pub(crate) fn gather(
        plan: &StudyPlan,
        required: &RequiredMetrics,
        directory: &(dyn Fn(&PlannedRun) -> Option<PathBuf> + Sync),
        limits: &dyn Fn(&PlannedRun) -> Option<Limits>,
        threads: usize,
    ) -> Result<Self, ReportError> {
        let sweep = &plan.sweep.plan;
        let is_binned = required.parts.iter().any(|(_, bin)| bin != ALL);
        let bins = plan.study.bins().into_iter().filter(|_| is_binned);
        let bins: BTreeMap<String, (u64, u64)> =
            bins.filter_map(|bin| Some((bin.clone(), plan.study.bounds(&bin)?))).collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, Row)>, ReportError> {
            let mut rows = vec![];
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = sweep.runs.get(number) else { return Ok(rows) };
                let Some(place) = directory(run) else { continue };
                if let Some(data) = RunData::read(&place, required.metrics.iter(), bins.clone())? {
                    let of = |part| Some((number, row(plan, run, &data, &required.metrics, part)?));
                    rows.extend(required.parts.iter().filter_map(of));
                }
            }
        };
        let mut rows = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(work)).collect();
            let mut rows = work()?;
            for other in others {
                rows.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, ReportError>(rows)
        })?;
        // In the order of the plan, regardless of the thread that read them.
        rows.sort_by(|a, b| (a.0, &a.1.workload, &a.1.bin).cmp(&(b.0, &b.1.workload, &b.1.bin)));
        if plan.study.bound != StudyBound::No {
            let first = sweep.runs.iter().enumerate().filter(|(_, run)| run.entry == 0);
            for (number, run) in first {
                let found = limits(run);
                rows.extend(
                    found.iter().flat_map(|limits| limit_rows(plan, run, limits, required)).map(|row| (number, row)),
                );
            }
        }
        Ok(Rows {
            keys: sweep.axes.iter().map(|axis| axis.key.clone()).collect(),
            metrics: required.metrics.iter().map(|metric| metric.name().to_string()).collect(),
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        })
    }

    /// Formats the rows as CSV: keys, scheme, seed, workload, bin, commit, metrics.
    pub fn to_csv(&self) -> String {
        let header = self.keys.iter().map(String::as_str).chain(FIXED).chain(self.metrics.iter().map(String::as_str));
        let row = |row: &Row| {
            let Row { scheme, seed, workload, bin, commit, .. } = row;
            let fixed = [scheme.clone(), seed.to_string(), workload.clone(), bin.clone(), commit.clone()];
            let values = row.values.iter().map(|value| value.map_or(String::new(), number));
            row.point.iter().cloned().chain(fixed).chain(values).collect()
        };
        csv(header, self.rows.iter().map(row))
    }

    /// Parses the output of [`Rows::to_csv`].
    pub fn from_csv(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let wrong = |line: u64, what: &str| {
            ScenarioError::new(format!("{name}, line {line}: {what}")).help("write it again with --write-docs")
        };
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let unreadable = |error: csv::Error| wrong(1, &error.to_string());
        let header = reader.headers().map_err(unreadable)?.clone();
        let header: Vec<String> = header.iter().map(str::to_string).collect();
        let first = header.windows(FIXED.len()).position(|words| words == FIXED);
        let keys = first.ok_or_else(|| wrong(1, "the header is not one of stored rows"))?;
        let mut rows = vec![];
        for record in reader.records() {
            let record = record.map_err(unreadable)?;
            let line = record.position().map_or(1, csv::Position::line);
            let cells: Vec<String> = record.iter().map(str::to_string).collect();
            if cells.len() != header.len() {
                return Err(wrong(line, "it has another number of cells than the header"));
            }
            let value = |cell: &String| match cell.as_str() {
                "" => Ok(None),
                text => text.parse().map(Some).map_err(|_| wrong(line, &format!("`{text}` is no number"))),
            };
            rows.push(Row {
                point: cells[..keys].to_vec(),
                scheme: cells[keys].clone(),
                seed: cells[keys + 1].parse().map_err(|_| wrong(line, "the seed is no number"))?,
                workload: cells[keys + 2].clone(),
                bin: cells[keys + 3].clone(),
                commit: cells[keys + 4].clone(),
                values: cells[keys + FIXED.len()..].iter().map(value).collect::<Result<_, _>>()?,
            });
        }
        Ok(Rows { keys: header[..keys].to_vec(), metrics: header[keys + FIXED.len()..].to_vec(), rows })
    }

    /// Returns the value per seed of a metric of a scheme at a coordinate.
    pub fn series(&self, coordinate: &[(String, String)], scheme: &str, metric: &str) -> BTreeMap<u64, f64> {
        let Some(place) = self.metrics.iter().position(|name| name == metric) else { return BTreeMap::new() };
        let point: Option<Vec<&str>> = self.keys.iter().map(|key| at(coordinate, key)).collect();
        let Some(point) = point else { return BTreeMap::new() };
        let (workload, bin) = (at(coordinate, "workload").unwrap_or(ALL), at(coordinate, "bin").unwrap_or(ALL));
        let fits =
            |row: &&Row| row.scheme == scheme && row.bin == bin && row.workload == workload && row.point == point;
        self.rows.iter().filter(fits).filter_map(|row| Some((row.seed, row.values[place]?))).collect()
    }

    pub fn runs(&self) -> usize {
        let is_run = |row: &&Row| row.scheme != BOUND && row.scheme != REFERENCE;
        self.rows.iter().filter(is_run).map(|row| (&row.point, &row.scheme, row.seed)).collect::<BTreeSet<_>>().len()
    }

    pub fn commits(&self) -> BTreeSet<&str> {
        self.rows.iter().map(|row| row.commit.as_str()).collect()
    }
}

const FIXED: [&str; 5] = ["scheme", "seed", "workload", "bin", "commit"];

fn row(plan: &StudyPlan, run: &PlannedRun, data: &RunData, metrics: &[Metric], (workload, bin): &Part) -> Option<Row> {
    let values: Vec<Option<f64>> =
        metrics.iter().map(|metric| metric.value(data, workload, bin).map(rounded)).collect();
    // A row without any value carries no information.
    values.iter().any(Option::is_some).then(|| Row {
        point: plan.sweep.plan.values(run.point).into_iter().map(str::to_string).collect(),
        scheme: plan.sweep.plan.entries[run.entry].clone(),
        seed: run.seed,
        workload: workload.clone(),
        bin: bin.clone(),
        commit: data.summary.commit.clone(),
        values,
    })
}

/// Returns the rows of bound and reference for the flows of a run, over all bins.
fn limit_rows(plan: &StudyPlan, run: &PlannedRun, limits: &Limits, required: &RequiredMetrics) -> Vec<Row> {
    let row = |scheme: &str, of: fn(&LimitRow) -> Option<f64>, workload: &String| {
        let value = |metric: &Metric| {
            let own = |row: &&LimitRow| row.workload == *workload && row.metric == metric.name();
            limits.rows.iter().find(own).and_then(of).map(rounded)
        };
        let values: Vec<Option<f64>> = required.metrics.iter().map(value).collect();
        values.iter().any(Option::is_some).then(|| Row {
            point: plan.sweep.plan.values(run.point).into_iter().map(str::to_string).collect(),
            scheme: scheme.to_string(),
            seed: run.seed,
            workload: workload.clone(),
            bin: ALL.to_string(),
            commit: COMMIT.to_string(),
            values,
        })
    };
    let parts = required.parts.iter().filter(|(_, bin)| bin == ALL).map(|(workload, _)| workload);
    parts
        .flat_map(|workload| [row(BOUND, |row| row.bound, workload), row(REFERENCE, |row| row.reference, workload)])
        .flatten()
        .collect()
}

/// Rounds to seven significant digits, the precision of stored rows, so that they give the same verdict as the runs.
fn rounded(value: f64) -> f64 {
    if value.is_finite() { format!("{value:.6e}").parse().unwrap_or(value) } else { value }
}

fn number(value: f64) -> String {
    let (plain, short) = (value.to_string(), format!("{value:e}"));
    if short.len() + 2 < plain.len() { short } else { plain }
}

pub(crate) fn csv<'h>(header: impl Iterator<Item = &'h str>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(vec![]);
    // Writing to memory cannot fail, and every row has one cell per column.
    let _ = writer.write_record(header);
    rows.for_each(|row| drop(writer.write_record(row)));
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back() {
        let row = |seed, value| Row {
            point: vec!["0.5".into(), "[50,50]".into()],
            scheme: "prime".into(),
            seed,
            workload: "all".into(),
            bin: "<2kB".into(),
            commit: "abc".into(),
            values: vec![value, None, Some(f64::INFINITY)],
        };
        let rows = Rows {
            keys: vec!["workload.0.load".into(), "fabric.class_weights".into()],
            metrics: vec!["fct_mean".into(), "links.bytes.sum[rate=1Gbps,direction=up]".into(), "fct_max".into()],
            rows: vec![row(1, Some(1.25)), row(2, Some(rounded(1.0 / 3e9)))],
        };
        assert_eq!(Rows::from_csv("x", &rows.to_csv()).unwrap(), rows);
        let coordinate: Vec<(String, String)> = [
            ("study", "s"),
            ("workload.0.load", "0.5"),
            ("fabric.class_weights", "[50,50]"),
            ("workload", "all"),
            ("bin", "<2kB"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .to_vec();
        assert_eq!(rows.series(&coordinate, "prime", "fct_mean")[&1], 1.25);
        assert!(rows.series(&coordinate, "ecmp", "fct_mean").is_empty());
        for text in [
            "",
            "a,b\n1,2\n",
            "scheme,seed,workload,bin,commit,m\nprime,1,all\n",
            "scheme,seed,workload,bin,commit\nx,y,all,all,c\n",
        ] {
            assert!(Rows::from_csv("x", text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_keep_seven_digits() {
        assert_eq!(rounded(123.456_789_4), 123.4568);
        assert_eq!(rounded(f64::INFINITY), f64::INFINITY);
        assert_eq!(number(1e-9), "1e-9");
        assert_eq!(number(1234567.0), "1234567");
    }
}
