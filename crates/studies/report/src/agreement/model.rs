use super::{Explanation, explain::explanations};
use crate::{ALL, RunData, metric::Metric};
use anabranch_results::{
    ColumnEntry, Plan, ReportError, Summary, cell, is_complete_run, read_summary, rows, store_directory,
};
use anabranch_statistics::{Estimate, mean};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Range of ratios within which two backends are alike.
pub(crate) const ALIKE: (f64, f64) = (0.9, 1.1);

anabranch_settings::worded! {
    /// Verdict on the ratio of two backends for a scheme: the first variant that applies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Verdict {
        /// Every pair has a machine-bound run: the results reflect the machine.
        MachineBound = "machine-bound",
        /// The interval is within 0.9 to 1.1.
        Alike = "alike",
        /// The interval contains 1 but is wider, or there are too few pairs for an interval.
        Undecided = "undecided",
        /// The interval does not contain 1.
        Apart = "apart",
        /// One of the two backends has no runs.
        Missing = "missing",
    }
}

impl Verdict {
    /// `bound` further pairs had a machine-bound run.
    fn of(pairs: usize, bound: usize, interval: Option<(f64, f64)>) -> Self {
        match interval {
            _ if pairs == 0 && bound > 0 => Verdict::MachineBound,
            _ if pairs == 0 => Verdict::Missing,
            None => Verdict::Undecided,
            Some((low, high)) if ALIKE.0 <= low && high <= ALIKE.1 => Verdict::Alike,
            Some((low, high)) if low <= 1.0 && 1.0 <= high => Verdict::Undecided,
            Some(_) => Verdict::Apart,
        }
    }
}

/// One scheme on the first backend and on another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgreementRow {
    /// The load balancer or variant.
    pub scheme: String,
    pub backend: String,
    /// Mean on the first backend over the paired seeds, or over its own seeds if there is no pair; `None` if it has no values.
    pub reference: Option<f64>,
    /// Mean on the other backend.
    pub value: Option<f64>,
    /// Value on the other backend over value on the first: geometric mean over the paired seeds.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % confidence interval (Student's t over the logarithms); `None` below two pairs.
    pub ratio_ci95_low: Option<f64>,
    /// Upper end of the interval.
    pub ratio_ci95_high: Option<f64>,
    pub seeds: usize,
    /// Seeds excluded because a run was machine-bound.
    pub machine_bound_seeds: Vec<u64>,
    pub verdict: Verdict,
}

/// Several backends on the same flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    pub scenario: String,
    /// The backends; the others are compared with the first.
    pub backends: Vec<String>,
    pub metric: String,
    pub title: String,
    pub unit: &'static str,
    /// A row per scheme and other backend.
    pub rows: Vec<AgreementRow>,
    /// Quantities that explain the differences.
    pub explanations: Vec<Explanation>,
    /// Limitations of the ratios.
    pub notes: Vec<String>,
    /// What a backend does otherwise than a simulation of the scenario.
    pub unlike: Vec<String>,
}

/// The runs of one backend.
#[derive(Clone, Debug)]
pub struct Side {
    /// Name of the backend, and of the directory that contains its results.
    pub backend: String,
    /// Summaries, each with the directory of its run.
    pub runs: Vec<(Summary, PathBuf)>,
}

impl Side {
    /// Reads the comparison or sweep of `backend` below `directory`. In a sweep, each load balancer at each point is a
    /// scheme: `load = 0.3, ecmp`.
    pub fn read(backend: &str, directory: &Path) -> Result<Self, ReportError> {
        let directory = directory.join(backend);
        let runs = match Plan::read(&directory)? {
            None => vec![],
            Some(plan) => {
                let mut runs = vec![];
                for run in &plan.runs {
                    let place = store_directory(&directory, &run.run);
                    let scheme = plan.scheme_at(run);
                    let summary = if is_complete_run(&place) { read_summary(&place)? } else { None };
                    runs.extend(summary.map(|summary| (Summary { scheme, ..summary }, place)));
                }
                runs
            }
        };
        Ok(Side { backend: backend.into(), runs })
    }

    /// Returns the schemes of the runs, each once.
    pub fn schemes(&self) -> Vec<String> {
        let mut schemes: Vec<String> = vec![];
        for run in self.summaries().filter(|run| run.seed == self.runs[0].0.seed) {
            if !schemes.contains(&run.scheme) {
                schemes.push(run.scheme.clone());
            }
        }
        schemes
    }

    fn run(&self, scheme: &str, seed: u64) -> Option<&(Summary, PathBuf)> {
        self.runs.iter().find(|(run, _)| run.scheme == scheme && run.seed == seed)
    }

    pub(super) fn summaries(&self) -> impl Iterator<Item = &Summary> {
        self.runs.iter().map(|(summary, _)| summary)
    }
}

/// Returns the completion time of the whole workload if flows wait for each other, else the mean completion time of flows.
fn usual_metric(sides: &[Side]) -> &'static str {
    let mut runs = sides.iter().flat_map(Side::summaries).peekable();
    let all_wait = runs.peek().is_some() && runs.all(|run| run.flows_wait);
    if all_wait { "completion" } else { "fct_mean" }
}

impl Agreement {
    /// Compares the runs of `sides` with those of the first, in the order of `schemes`.
    pub fn new(sides: &[Side], schemes: &[String], metric: Option<&Metric>) -> Result<Self, ReportError> {
        let usual = || Metric::read(usual_metric(sides)).expect("a metric of comparisons");
        let metric = &metric.cloned().unwrap_or_else(usual);
        let (name, title, unit) = (metric.name().to_string(), metric.label(), metric.unit());
        let others = sides.get(1..).unwrap_or_default();
        let rows: Vec<AgreementRow> = schemes
            .iter()
            .flat_map(|scheme| others.iter().map(move |other| (scheme, other)))
            .map(|(scheme, other)| row(scheme, &sides[0], other, metric))
            .collect::<Result<_, _>>()?;
        Ok(Agreement {
            scenario: sides.iter().flat_map(Side::summaries).next().map(|run| run.scenario.clone()).unwrap_or_default(),
            backends: sides.iter().map(|side| side.backend.clone()).collect(),
            metric: name,
            title,
            unit,
            notes: notes(&rows, sides, metric),
            unlike: vec![],
            rows,
            explanations: explanations(sides, schemes)?,
        })
    }

    /// Returns `true` if the verdict of any row is [`Verdict::Apart`].
    pub fn is_apart(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Apart)
    }

    /// Returns the content of `agreement.csv`.
    pub fn to_csv(&self) -> String {
        let row = |row| COLUMNS.iter().map(move |(_, _, _, cell)| cell(self, row));
        rows::to_csv(&self.columns(), self.rows.iter().map(row))
    }

    /// Returns the columns of `agreement.csv` with their meanings.
    pub fn columns(&self) -> Vec<ColumnEntry> {
        COLUMNS.iter().map(|(name, kind, meaning, _)| ColumnEntry::new(name, kind, "", meaning)).collect()
    }
}

/// Function that returns a cell of a column of `agreement.csv`.
type CellOf = fn(&Agreement, &AgreementRow) -> String;

const COLUMNS: [(&str, &str, &str, CellOf); 13] = [
    ("scheme", "text", "load balancer or variant", |_, row| row.scheme.clone()),
    ("reference_backend", "text", "the first backend", |of, _| of.backends[0].clone()),
    ("backend", "text", "the other one", |_, row| row.backend.clone()),
    ("metric", "text", "name of the metric", |of, _| of.metric.to_string()),
    ("unit", "text", "its unit", |of, _| of.unit.to_string()),
    ("reference", "real", "mean on the first backend over the seeds compared", |_, row| cell(row.reference)),
    ("value", "real", "mean on the other", |_, row| cell(row.value)),
    ("ratio", "real", "other over first, geometric mean over seeds", |_, row| cell(row.ratio)),
    ("ratio_ci95_low", "real", "lower end of its 95 % confidence interval; empty below two seeds", |_, row| {
        cell(row.ratio_ci95_low)
    }),
    ("ratio_ci95_high", "real", "upper end", |_, row| cell(row.ratio_ci95_high)),
    ("seeds", "integer", "seeds compared", |_, row| row.seeds.to_string()),
    ("machine_bound_seeds", "text", "seeds excluded because a run was machine-bound", |_, row| {
        row.machine_bound_seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    }),
    ("verdict", "text", "the first that applies of machine-bound, alike, undecided, apart, missing", |_, row| {
        row.verdict.word().to_string()
    }),
];

/// Returns the seeds of a scheme at which no backend was machine-bound; all seeds if there is none.
pub(super) fn compared_seeds(sides: &[Side], scheme: &str) -> BTreeSet<u64> {
    let own = || sides.iter().flat_map(Side::summaries).filter(|run| run.scheme == scheme);
    let all: BTreeSet<u64> = own().map(|run| run.seed).collect();
    let bound: BTreeSet<u64> = own().filter(|run| run.is_machine_bound()).map(|run| run.seed).collect();
    let rest = &all - &bound;
    if rest.is_empty() { all } else { rest }
}

/// Returns `None` if measured flows did not finish: the metric over the others would be too favourable.
fn value(metric: &Metric, (run, place): &(Summary, PathBuf)) -> Result<Option<f64>, ReportError> {
    if metric.is_of_times() && run.all.flows.measured_unfinished > 0 {
        return Ok(None);
    }
    if let Some(compared) = metric.compared() {
        return Ok(compared.value(run, ALL));
    }
    let data = RunData::read(place, std::iter::once(metric), BTreeMap::new())?;
    Ok(data.and_then(|data| metric.value(&data, ALL, ALL)))
}

fn row(scheme: &str, first: &Side, other: &Side, metric: &Metric) -> Result<AgreementRow, ReportError> {
    let seeds: BTreeSet<u64> = other.summaries().filter(|run| run.scheme == scheme).map(|run| run.seed).collect();
    let (mut pairs, mut bound) = (vec![], vec![]);
    let (mut of_first, mut of_other) = (vec![], vec![]);
    for seed in seeds {
        let (Some(a), Some(b)) = (first.run(scheme, seed), other.run(scheme, seed)) else { continue };
        if a.0.is_machine_bound() || b.0.is_machine_bound() {
            bound.push(seed);
            continue;
        }
        let (a, b) = (value(metric, a)?, value(metric, b)?);
        of_first.extend(a);
        of_other.extend(b);
        pairs.extend(a.zip(b));
    }
    // A metric that one backend does not measure keeps its mean on the other.
    if !pairs.is_empty() {
        (of_first, of_other) = pairs.iter().copied().unzip();
    }
    let positive = pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
    let logarithms: Vec<f64> = positive.map(|(a, b)| (b / a).ln()).collect();
    let estimate = Estimate::of(&logarithms);
    let interval = estimate.and_then(|estimate| estimate.interval()).map(|(low, high)| (low.exp(), high.exp()));
    Ok(AgreementRow {
        scheme: scheme.to_string(),
        backend: other.backend.clone(),
        reference: mean(&of_first),
        value: mean(&of_other),
        ratio: estimate.map(|estimate| estimate.mean.exp()),
        ratio_ci95_low: interval.map(|interval| interval.0),
        ratio_ci95_high: interval.map(|interval| interval.1),
        seeds: pairs.len(),
        verdict: Verdict::of(pairs.len(), bound.len(), interval),
        machine_bound_seeds: bound,
    })
}

fn notes(rows: &[AgreementRow], sides: &[Side], metric: &Metric) -> Vec<String> {
    let mut notes = vec![];
    for (side, run) in sides.iter().flat_map(|side| side.summaries().map(move |run| (side, run))) {
        let open = run.all.flows.measured_unfinished;
        if open > 0 {
            notes.push(format!(
                "{} on {}, seed {}: {open} measured flows did not finish; metrics of flows exclude the seed.",
                run.scheme, side.backend, run.seed
            ));
        }
    }
    for row in rows.iter().filter(|row| !row.machine_bound_seeds.is_empty()) {
        let seeds: Vec<String> = row.machine_bound_seeds.iter().map(u64::to_string).collect();
        notes.push(format!(
            "{} on {}: machine-bound at seed {}; excluded from the ratio.",
            row.scheme,
            row.backend,
            seeds.join(", ")
        ));
    }
    for row in rows.iter().filter(|row| row.verdict == Verdict::Missing) {
        let unknown = match (row.reference, row.value) {
            (Some(_), None) => &row.backend,
            (None, Some(_)) => &sides[0].backend,
            _ => continue,
        };
        notes.push(format!("{} on {}: `{unknown}` has no values of {}.", row.scheme, row.backend, metric.name()));
    }
    for row in rows.iter().filter(|row| row.seeds == 1) {
        notes.push(format!("{} on {}: one pair gives no interval; give more seeds.", row.scheme, row.backend));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_applicable_verdict_is_returned() {
        let of = |pairs, bound, interval| Verdict::of(pairs, bound, interval);
        assert_eq!(of(0, 3, None), Verdict::MachineBound);
        assert_eq!(of(0, 0, None), Verdict::Missing);
        assert_eq!(of(1, 2, None), Verdict::Undecided, "one pair has no interval");
        assert_eq!(of(5, 0, Some((0.9, 1.1))), Verdict::Alike);
        assert_eq!(of(5, 0, Some((1.01, 1.09))), Verdict::Alike, "within the band, though it does not hold 1");
        assert_eq!(of(5, 0, Some((0.8, 1.05))), Verdict::Undecided);
        assert_eq!(of(5, 0, Some((1.05, 1.2))), Verdict::Apart);
        assert_eq!(of(5, 0, Some((0.5, 0.95))), Verdict::Apart);
    }
}
