//! `comparison.csv`: what several schemes with several seeds say together.

use crate::{
    FctKind,
    manifest::ColumnEntry,
    statistics::{Estimate, PairedDifference},
    summary::{FlowSummary, Summary},
};
use serde::Serialize;

/// Workload column of the rows over all measured workloads.
pub const ALL: &str = "all";

/// A number that a run gives; the less the better, but for those that [`Metric::has_best`] leaves out.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in `comparison.csv`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its unit; empty where it has none.
    pub unit: &'static str,
    /// Where it comes from.
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// Per set of flows.
    Flows(fn(&FlowSummary) -> Option<f64>),
    /// Per run.
    Run(fn(&Summary) -> Option<f64>),
}

impl Metric {
    /// A metric by name.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }
    /// Its value for a run; `None` where the run has none. A metric of the whole run has one only for [`ALL`].
    pub fn value(&self, run: &Summary, workload: &str) -> Option<f64> {
        match self.source {
            Source::Flows(get) if workload == ALL => get(&run.all),
            Source::Flows(get) => run.workloads.get(workload).and_then(get),
            Source::Run(get) if workload == ALL => get(run),
            Source::Run(_) => None,
        }
    }
    /// Whether less of it is better; how many packets an ACK stands for is neither good nor bad.
    pub fn has_best(&self) -> bool {
        self.name != "packets_per_ack"
    }
    /// Whether it is kept per workload.
    pub fn is_of_flows(&self) -> bool {
        matches!(self.source, Source::Flows(_))
    }
}

const fn flows(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    get: fn(&FlowSummary) -> Option<f64>,
) -> Metric {
    Metric { name, title, unit, source: Source::Flows(get) }
}

const fn run(name: &'static str, title: &'static str, unit: &'static str, get: fn(&Summary) -> Option<f64>) -> Metric {
    Metric { name, title, unit, source: Source::Run(get) }
}

/// Every metric of a comparison.
pub const METRICS: &[Metric] = &[
    flows("fct_mean", "FCT, mean", "us", |f| f.fct_us.mean),
    flows("fct_p50", "FCT, median", "us", |f| f.fct_us.p50),
    flows("fct_p99", "FCT, 99th percentile", "us", |f| f.fct_us.p99),
    flows("fct_max", "FCT, max", "us", |f| f.fct_us.max),
    flows("slowdown_mean", "slowdown, mean", "", |f| f.slowdown.mean),
    flows("slowdown_p50", "slowdown, median", "", |f| f.slowdown.p50),
    flows("slowdown_p95", "slowdown, 95th percentile", "", |f| f.slowdown.p95),
    flows("slowdown_p99", "slowdown, 99th percentile", "", |f| f.slowdown.p99),
    flows("slowdown_max", "slowdown, max", "", |f| f.slowdown.max),
    flows("fct_ratio_max", "max FCT over ideal", "", |f| f.fct_ratio_max),
    flows("completion", "time of the whole", "us", |f| f.completion_us),
    run("trimmed", "packets trimmed", "packets", |s| Some(s.counters.trimmed as f64)),
    run("dropped", "packets dropped", "packets", |s| Some(s.counters.dropped as f64)),
    run("retransmitted", "packets retransmitted", "packets", |s| Some(s.counters.retransmitted as f64)),
    run("timeouts", "timeouts", "packets", |s| Some(s.counters.timeouts as f64)),
    run("out_of_order_share", "share of arrivals out of order", "", Summary::out_of_order_share),
    run("packets_per_ack", "data arrivals per ACK", "packets", Summary::packets_per_ack),
    run("max_queue", "largest switch queue", "bytes", |s| Some(s.queues.max_bytes as f64)),
];

/// One scheme, one metric, one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// Name of the workload, or [`ALL`].
    pub workload: String,
    /// The load balancer.
    pub scheme: String,
    /// Name of the metric.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Mean over seeds; `None` where no seed has a value.
    pub mean: Option<f64>,
    /// Lower end of its 95 % confidence interval; `None` below two seeds.
    pub ci95_low: Option<f64>,
    /// Upper end.
    pub ci95_high: Option<f64>,
    /// Half its width.
    pub ci95_half_width: Option<f64>,
    /// Mean over the mean of the baseline, over the seeds both have; `None` where the baseline's is zero.
    pub ratio_to_baseline: Option<f64>,
    /// Mean difference to the baseline, seed by seed; `None` for the baseline itself.
    pub difference: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    pub difference_ci95_low: Option<f64>,
    /// Upper end.
    pub difference_ci95_high: Option<f64>,
    /// Of the paired t-test.
    pub p_value: Option<f64>,
    /// Whether the difference is significant at 5 %; `None` for the baseline and below two seeds.
    pub significant: Option<bool>,
    /// Whether its mean is the lowest. A scheme that left flows unfinished is not best in a metric of flows.
    pub best: bool,
    /// Seeds with a value.
    pub seeds: usize,
    /// Flows that count but did not finish, over all seeds.
    pub unfinished_flows: u64,
}

/// A comparison of schemes over the same flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// The load balancer that the others are related to.
    pub baseline: String,
    /// The load balancers, in the order asked for.
    pub schemes: Vec<String>,
    /// All seeds, ascending.
    pub seeds: Vec<u64>,
    /// Metric on which the schemes are ranked.
    pub main_metric: &'static str,
    /// Which completion time the rows are over; `None` where there is no run.
    pub fct_kind: Option<FctKind>,
    /// A row per workload, metric and scheme.
    pub rows: Vec<ComparisonRow>,
}

impl Comparison {
    /// Compares `runs`; the schemes appear in the order of `schemes`, those without a run are left out.
    pub fn new(runs: &[Summary], schemes: &[String], baseline: &str) -> Self {
        let of = |scheme: &str| -> Vec<&Summary> {
            let mut runs: Vec<_> = runs.iter().filter(|run| run.scheme == scheme).collect();
            runs.sort_by_key(|run| run.seed);
            runs
        };
        let groups: Vec<(&String, Vec<&Summary>)> =
            schemes.iter().map(|scheme| (scheme, of(scheme))).filter(|(_, runs)| !runs.is_empty()).collect();
        let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let mut workloads = vec![ALL.to_string()];
        let mut names: Vec<&String> = runs.iter().flat_map(|run| run.workloads.keys()).collect();
        names.sort();
        names.dedup();
        if names.len() > 1 {
            workloads.extend(names.into_iter().cloned());
        }
        let mut rows = vec![];
        for workload in &workloads {
            for metric in METRICS.iter().filter(|metric| workload == ALL || metric.is_of_flows()) {
                let first = rows.len();
                let base = of(baseline);
                for (scheme, runs) in &groups {
                    rows.push(row(workload, scheme, metric, runs, (*scheme != baseline).then_some(&base)));
                }
                mark_best(&mut rows[first..], metric);
            }
        }
        Comparison {
            scenario: runs.first().map(|run| run.scenario.clone()).unwrap_or_default(),
            baseline: baseline.to_string(),
            schemes: groups.iter().map(|(scheme, _)| (*scheme).clone()).collect(),
            seeds,
            main_metric: main_metric(runs),
            fct_kind: runs.first().map(|run| run.all.fct_kind),
            rows,
        }
    }

    /// A row by workload, scheme and metric.
    pub fn row(&self, workload: &str, scheme: &str, metric: &str) -> Option<&ComparisonRow> {
        self.rows.iter().find(|row| row.workload == workload && row.scheme == scheme && row.metric == metric)
    }

    /// Workloads of the rows, [`ALL`] first.
    pub fn workloads(&self) -> Vec<&str> {
        let mut workloads: Vec<&str> = vec![];
        for row in &self.rows {
            if !workloads.contains(&row.workload.as_str()) {
                workloads.push(&row.workload);
            }
        }
        workloads
    }

    /// `comparison.csv`.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(vec![]);
        for row in &self.rows {
            // Writing to memory cannot fail.
            let _ = writer.serialize(row);
        }
        writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// What the columns of `comparison.csv` mean.
    pub(crate) fn columns() -> Vec<ColumnEntry> {
        let entry = |&(name, kind, meaning): &(&str, &str, &str)| ColumnEntry::new(name, kind, "", meaning);
        COLUMNS.iter().map(entry).collect()
    }
}

/// Where flows start after each other, as in a collective, the time of the whole counts; with one size of flow the slowest
/// flow; else the tail of the slowdown.
fn main_metric(runs: &[Summary]) -> &'static str {
    let one_after_the_other =
        |run: &Summary| run.all.completion_us.zip(run.all.fct_us.max).is_some_and(|(all, one)| all > 2.0 * one);
    if runs.iter().all(|run| run.flows_wait && one_after_the_other(run)) {
        return "completion";
    }
    let one_size = |run: &Summary| run.all.size_bytes.min == run.all.size_bytes.max;
    let known = |run: &Summary| run.all.fct_ratio_max.is_some();
    if runs.iter().all(|run| one_size(run) && known(run)) { "fct_ratio_max" } else { "slowdown_p99" }
}

fn row(
    workload: &str,
    scheme: &str,
    metric: &Metric,
    runs: &[&Summary],
    baseline: Option<&Vec<&Summary>>,
) -> ComparisonRow {
    let values: Vec<f64> = runs.iter().filter_map(|run| metric.value(run, workload)).collect();
    let estimate = Estimate::of(&values);
    let interval = estimate.and_then(|e| e.interval());
    let pairs: Vec<(f64, f64)> = baseline.map_or(vec![], |baseline| {
        let at = |seed| baseline.iter().find(|b| b.seed == seed).and_then(|b| metric.value(b, workload));
        runs.iter().filter_map(|run| Some((metric.value(run, workload)?, at(run.seed)?))).collect()
    });
    let paired = PairedDifference::of(&pairs);
    let difference_interval = paired.and_then(|p| p.difference.interval());
    let (own, base) = pairs.iter().fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
    let of_flows = |run: &&Summary| match workload {
        ALL => run.all.flows.measured_unfinished,
        _ => run.workloads.get(workload).map_or(0, |w| w.flows.measured_unfinished),
    };
    ComparisonRow {
        workload: workload.to_string(),
        scheme: scheme.to_string(),
        metric: metric.name,
        unit: metric.unit,
        mean: estimate.map(|e| e.mean),
        ci95_low: interval.map(|i| i.0),
        ci95_high: interval.map(|i| i.1),
        ci95_half_width: estimate.and_then(|e| e.half_width),
        ratio_to_baseline: match baseline {
            None => estimate.filter(|e| e.mean != 0.0).map(|_| 1.0),
            Some(_) => (base != 0.0).then(|| own / base),
        },
        difference: paired.map(|p| p.difference.mean),
        difference_ci95_low: difference_interval.map(|i| i.0),
        difference_ci95_high: difference_interval.map(|i| i.1),
        p_value: paired.and_then(|p| p.p_value),
        significant: paired.and_then(|p| p.significant()),
        best: false,
        seeds: values.len(),
        unfinished_flows: runs.iter().map(of_flows).sum(),
    }
}

fn mark_best(rows: &mut [ComparisonRow], metric: &Metric) {
    let eligible = |row: &ComparisonRow| !metric.is_of_flows() || row.unfinished_flows == 0;
    let Some(least) = rows.iter().filter(|row| eligible(row)).filter_map(|row| row.mean).min_by(f64::total_cmp) else {
        return;
    };
    // Where all are equal none is best.
    if !metric.has_best() || rows.iter().all(|row| row.mean == Some(least)) {
        return;
    }
    for row in rows {
        row.best = eligible(row) && row.mean == Some(least);
    }
}

const COLUMNS: &[(&str, &str, &str)] = &[
    ("workload", "text", "name of the workload; `all`: the measured ones together, or the whole run"),
    ("scheme", "text", "load balancer"),
    ("metric", "text", "what is compared; the less the better, but for packets_per_ack"),
    ("unit", "text", "unit of the metric, also of means, intervals and differences"),
    ("mean", "real", "mean over seeds; empty where no seed has a value"),
    ("ci95_low", "real", "lower end of the 95 % confidence interval of the mean (Student's t); empty below two seeds"),
    ("ci95_high", "real", "upper end"),
    ("ci95_half_width", "real", "half its width"),
    ("ratio_to_baseline", "real", "mean over the baseline's mean, over the seeds both have"),
    ("difference", "real", "mean of scheme minus baseline, seed by seed"),
    ("difference_ci95_low", "real", "lower end of its 95 % confidence interval"),
    ("difference_ci95_high", "real", "upper end"),
    ("p_value", "real", "of the paired t-test; not corrected for the number of comparisons"),
    ("significant", "boolean", "whether p_value is below 0.05; empty for the baseline and below two seeds"),
    ("best", "boolean", "whether the mean is the lowest; never where flows that count are unfinished"),
    ("seeds", "integer", "seeds with a value"),
    ("unfinished_flows", "integer", "flows that count but did not finish, over all seeds"),
];
