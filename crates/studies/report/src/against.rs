//! Changes of a comparison since an earlier one: per scheme, workload and metric.

use crate::{ALL, Comparison, METRICS, Metric};
use anabranch_results::{RunStatus, Summary, significant_digits, significant_digits_trimmed};
use anabranch_statistics::{PairedDifference, SIGNIFICANCE, holm};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

anabranch_settings::worded! {
    /// Verdict on a metric of a scheme.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Change {
        /// All runs have the fingerprints of the earlier ones.
        SameFingerprint = "equal, same fingerprint",
        /// Equal values, from runs that differ or have no fingerprint.
        Equal = "equal",
        /// Significantly lower.
        Lower = "lower",
        /// Significantly higher.
        Higher = "higher",
        /// Different, and not significantly.
        Undecided = "n.s.",
        /// Different, with fewer seeds than a test needs.
        FewSeeds = "differs, too few seeds for a test",
        /// Flows of either did not finish.
        Censored = "flows did not finish",
        /// One of both lacks a value.
        Missing = "not in both",
    }
}

/// Change of one metric of one scheme.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeRow {
    /// Workload; `all` for all measured ones.
    pub workload: String,
    /// Load balancer.
    pub scheme: String,
    pub metric: &'static str,
    pub unit: &'static str,
    /// Mean over the common seeds, earlier.
    pub before: Option<f64>,
    /// Mean over the common seeds, now.
    pub now: Option<f64>,
    /// Mean of now minus before, seed by seed.
    pub difference: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    pub difference_ci95_low: Option<f64>,
    /// Upper end.
    pub difference_ci95_high: Option<f64>,
    pub seeds: usize,
    /// Verdict, after Holm's correction over the schemes.
    pub change: Change,
}

impl ChangeRow {
    fn regression(&self, share: f64) -> Option<String> {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match (self.change, self.before, self.now) {
            (Change::Censored, ..) => Some("flows did not finish, so the times do not compare".to_string()),
            (Change::Missing, Some(_), None) => Some("it has no value any more".to_string()),
            (Change::Higher | Change::FewSeeds, Some(before), Some(now)) if now - before > share * before => {
                let words = |value: f64| significant_digits(value, 4);
                let more = if before > 0.0 {
                    format!("{} % higher", significant_digits_trimmed((now / before - 1.0) * 100.0, 3))
                } else {
                    "higher".to_string()
                };
                let test = match self.change {
                    Change::FewSeeds if self.seeds == 1 => "one seed is too few for a test".to_string(),
                    Change::FewSeeds => format!("{} seeds are too few for a test", self.seeds),
                    _ => format!("significant over {} seeds", self.seeds),
                };
                Some(format!("{more}: {} before, {}{unit} now; {test}", words(before), words(now)))
            }
            _ => None,
        }
    }
}

/// Changes since an earlier comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changes {
    /// Rows per workload, metric and scheme.
    pub rows: Vec<ChangeRow>,
    /// Metrics that the earlier results lack, and the later ones have.
    pub missing: Vec<&'static str>,
    /// Schemes of one of both only.
    pub unmatched: Vec<String>,
}

/// Runs of a scheme by seed, as pairs of both comparisons.
type Pairs<'r> = Vec<(&'r Summary, &'r Summary)>;

impl Changes {
    /// Compares the runs `now` with the runs `before`, seed by seed. Schemes are in the order of `comparison`.
    pub fn new(before: &[Summary], now: &[Summary], comparison: &Comparison) -> Self {
        let mut pairs: BTreeMap<&str, Pairs<'_>> = BTreeMap::new();
        for run in now {
            let earlier = before.iter().find(|other| other.scheme == run.scheme && other.seed == run.seed);
            if let Some(earlier) = earlier {
                pairs.entry(&run.scheme).or_default().push((earlier, run));
            }
        }
        let schemes: Vec<&String> = comparison.schemes.iter().filter(|s| pairs.contains_key(s.as_str())).collect();
        let known: BTreeSet<&String> = before.iter().chain(now).map(|run| &run.scheme).collect();
        let unmatched = known.into_iter().filter(|scheme| !schemes.contains(scheme)).cloned().collect();
        let (mut rows, mut missing) = (Vec::new(), Vec::new());
        for workload in comparison.workloads() {
            for metric in METRICS.iter().filter(|metric| workload == ALL || metric.is_of_flows()) {
                let of = |scheme: &&String| row(workload, scheme, metric, &pairs[scheme.as_str()]);
                let mut own: Vec<(ChangeRow, Option<f64>)> = schemes.iter().map(of).collect();
                if workload == ALL
                    && own.iter().all(|(row, _)| row.before.is_none())
                    && own.iter().any(|(row, _)| row.now.is_some())
                {
                    missing.push(metric.name);
                }
                let tested: Vec<f64> = own.iter().filter_map(|(_, p)| *p).collect();
                let mut corrected = holm(&tested).into_iter();
                for (row, _) in own.iter_mut().filter(|(_, p)| p.is_some()) {
                    let is_significant = corrected.next().is_some_and(|p| p < SIGNIFICANCE);
                    row.change = match (is_significant, row.difference.is_some_and(|difference| difference < 0.0)) {
                        (false, _) => Change::Undecided,
                        (true, true) => Change::Lower,
                        (true, false) => Change::Higher,
                    };
                }
                rows.extend(own.into_iter().map(|(row, _)| row));
            }
        }
        Changes { rows, missing, unmatched }
    }

    /// Returns the times of flows and jobs, each with the reason if it is a regression: significantly higher by more than `share`
    /// of the earlier mean, or not to be compared although it was known.
    pub fn regressions(&self, share: f64) -> Vec<(&ChangeRow, Option<String>)> {
        let is_time = |metric: &Metric| {
            metric.unit == "us" || metric.name.starts_with("slowdown") || metric.name.starts_with("fct")
        };
        let is_judged =
            |row: &&ChangeRow| Metric::named(row.metric).is_some_and(|metric| metric.is_of_flows() && is_time(metric));
        self.rows.iter().filter(is_judged).map(|row| (row, row.regression(share))).collect()
    }

    /// Returns `true` if every run has the fingerprint of the earlier one.
    pub fn are_none(&self) -> bool {
        self.rows.iter().all(|row| row.change == Change::SameFingerprint)
    }
}

fn has_stopped(run: &Summary) -> bool {
    run.all.flows.measured_unfinished > 0 || matches!(run.status, Some(RunStatus::Deadlock | RunStatus::Stalled))
}

/// Returns the row, and the p-value of a test.
fn row(workload: &str, scheme: &str, metric: &Metric, pairs: &[(&Summary, &Summary)]) -> (ChangeRow, Option<f64>) {
    let values: Vec<(Option<f64>, Option<f64>)> =
        pairs.iter().map(|(before, now)| (metric.value(before, workload), metric.value(now, workload))).collect();
    let mean = |values: Vec<Option<f64>>| {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        (!known.is_empty() && known.len() == values.len()).then(|| anabranch_statistics::mean(&known)).flatten()
    };
    let before = mean(values.iter().map(|(before, _)| *before).collect());
    let now = mean(values.iter().map(|(_, now)| *now).collect());
    let both: Vec<(f64, f64)> = values.iter().filter_map(|(before, now)| Some(((*now)?, (*before)?))).collect();
    let paired = PairedDifference::of(&both).filter(|_| both.len() == pairs.len());
    let is_same = pairs.iter().all(|(before, now)| now.fingerprint.is_some() && before.fingerprint == now.fingerprint);
    let is_censored = pairs.iter().any(|(before, now)| has_stopped(before) || has_stopped(now));
    let p_value = paired.as_ref().and_then(PairedDifference::p_value);
    let differs =
        paired.as_ref().is_some_and(|paired| paired.difference.mean != 0.0 || both.iter().any(|(a, b)| a != b));
    let (change, p_value) = match () {
        () if is_same => (Change::SameFingerprint, None),
        () if is_censored => (Change::Censored, None),
        () if paired.is_none() => (Change::Missing, None),
        () if !differs => (Change::Equal, None),
        () if p_value.is_some() => (Change::Undecided, p_value),
        // A difference that is the same at each of three or more seeds has no variance to test.
        () if both.len() >= anabranch_statistics::MIN_PAIRS && before < now => (Change::Higher, None),
        () if both.len() >= anabranch_statistics::MIN_PAIRS => (Change::Lower, None),
        () => (Change::FewSeeds, None),
    };
    let difference = paired.filter(|_| change != Change::Censored).map(|paired| paired.difference);
    let interval = difference.as_ref().and_then(|difference| difference.interval()).unzip();
    let row = ChangeRow {
        workload: workload.to_string(),
        scheme: scheme.to_string(),
        metric: metric.name,
        unit: metric.unit,
        before,
        now,
        difference: difference.map(|difference| difference.mean),
        difference_ci95_low: interval.0,
        difference_ci95_high: interval.1,
        seeds: pairs.len(),
        change,
    };
    (row, p_value)
}
