//! `comparison.csv`: comparison of several schemes over several seeds.

use crate::{
    FctKind,
    manifest::ColumnEntry,
    ranking::Pairs,
    rows::{self, declared},
    statistics::{Estimate, Test},
    summary::{FlowSummary, RunStatus, Summary},
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Workload name of the rows over all measured workloads.
pub const ALL: &str = "all";

/// A number that a run yields. Lower is better, except where [`Metric::has_best`] returns `false`.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name in `comparison.csv`.
    pub name: &'static str,
    /// Title in tables and figures.
    pub title: &'static str,
    /// Unit; empty if it has none.
    pub unit: &'static str,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Flows(fn(&FlowSummary) -> Option<f64>),
    Run(fn(&Summary) -> Option<f64>),
}

impl Metric {
    /// Returns the metric of this name.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }
    /// Returns the value for a run, or `None`. A metric of the whole run has a value only for [`ALL`].
    pub fn value(&self, run: &Summary, workload: &str) -> Option<f64> {
        match self.source {
            Source::Flows(get) if workload == ALL => get(&run.all),
            Source::Flows(get) => run.workloads.get(workload).and_then(get),
            Source::Run(get) if workload == ALL => get(run),
            Source::Run(_) => None,
        }
    }
    /// Returns `true` if lower values are better. Packets per ACK and path changes are neither good nor bad.
    pub fn has_best(&self) -> bool {
        !matches!(self.name, "packets_per_ack" | "path_switches")
    }
    /// Returns `true` if the metric has a value per workload.
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

fn real(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

macro_rules! all_metrics {
    ($($name:ident: $how:ident, $unit:literal, $meaning:literal, $(fingerprint $place:literal)?;)*) => {
        /// Names of the metrics that are counted per flow.
        pub const FLOW_METRICS: &[&str] = &[$(stringify!($name),)*];

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
            flows("completion", "completion time", "us", |f| f.completion_us),
            run("trimmed", "packets trimmed", "packets", |s| real(s.counters.totals.trimmed)),
            run("dropped", "packets dropped", "packets", |s| real(s.counters.totals.dropped)),
            run("retransmitted", "packets retransmitted", "packets", |s| real(s.counters.totals.retransmitted)),
            run("timeouts", "timeouts", "packets", |s| real(s.counters.totals.timeouts)),
            run("out_of_order_share", "share of arrivals out of order", "", Summary::out_of_order_share),
            run("packets_per_ack", "data arrivals per ACK", "packets", Summary::packets_per_ack),
            run("max_queue", "largest switch queue", "bytes", |s| real(s.queues.max_bytes)),
            $(flows(stringify!($name), concat!($meaning, ", ", stringify!($how)), $unit, |f| real(f.metrics.$name)),)*
        ];
    };
}

anabranch_outcome::flow_metrics!(all_metrics);

declared! {
    /// Result of one scheme on one metric and one workload.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct ComparisonRow {
        pub workload: String => "text", "", "name of the workload; `all`: all measured workloads, or the whole run";
        pub scheme: String => "text", "", "load balancer";
        pub metric: &'static str => "text", "", "name of the metric; lower is better, except for packets_per_ack";
        pub unit: &'static str => "text", "", "unit of the metric, also of means, intervals and differences";
        pub mean: Option<f64> => "real", "", "mean over seeds; empty where no seed has a value";
        pub ci95_low: Option<f64> => "real", "",
            "lower end of the 95 % confidence interval of the mean (Student's t); empty below two seeds";
        pub ci95_high: Option<f64> => "real", "", "upper end";
        pub ci95_half_width: Option<f64> => "real", "", "half its width";
        pub ratio_to_baseline: Option<f64> => "real", "", "mean over the baseline's mean, over common seeds";
        pub difference: Option<f64> => "real", "", "mean of scheme minus baseline, seed by seed";
        pub difference_ci95_low: Option<f64> => "real", "", "lower end of its 95 % confidence interval";
        pub difference_ci95_high: Option<f64> => "real", "", "upper end";
        pub p_value: Option<f64> => "real", "",
            "of this paired t-test, uncorrected; empty below three seeds and where all differences are equal";
        pub significant: Option<bool> => "boolean", "",
            "true if p_holm is below 0.05; empty without a test; false where equal at every seed";
        pub best: bool => "boolean", "",
            "true if the mean is the lowest (see leading); false where measured flows are unfinished";
        pub seeds: usize => "integer", "", "seeds with a value, of those that every scheme has run";
        pub unfinished_flows: u64 => "integer", "", "measured flows that did not finish, over the seeds compared";
        pub p_holm: Option<f64> => "real", "",
            "p_value after Holm's correction over all pairs of schemes on this metric and workload";
        pub group: String => "text", "",
            "schemes that share a letter do not differ significantly; a is the lowest; empty with too few seeds";
        pub leading: bool => "boolean", "", "true if it is the lowest or does not differ significantly from the lowest";
        pub status: Option<RunStatus> => "text", "",
            "worst status of its runs: finished, time-limit, deadlock or stalled";
    }
}

impl ComparisonRow {
    pub(crate) fn ranks(&self, metric: &Metric) -> bool {
        self.mean.is_some() && (!metric.is_of_flows() || self.unfinished_flows == 0)
    }
}

/// Seeds for which a scheme has results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// The load balancer.
    pub scheme: String,
    /// Its finished seeds, ascending.
    pub seeds: Vec<u64>,
}

/// A comparison of schemes over the same flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// The load balancer that the others are compared with.
    pub baseline: String,
    /// The load balancers with a run, in the requested order.
    pub schemes: Vec<String>,
    /// All seeds that any scheme has run, ascending.
    pub seeds: Vec<u64>,
    /// Metric on which the schemes are ranked over all measured workloads.
    pub main_metric: &'static str,
    /// Kind of the completion times in the rows; `None` if there is no run.
    pub fct_kind: Option<FctKind>,
    /// A row per workload, metric and scheme.
    pub rows: Vec<ComparisonRow>,
    /// Seeds per requested scheme, including schemes without a run.
    pub coverage: Vec<Coverage>,
    /// The seeds that every scheme has run; all numbers are over them. If there is none, each scheme has its own seeds,
    /// and differences are over those that a pair shares.
    pub compared_seeds: Vec<u64>,
    /// Metric on which the schemes are ranked, per workload.
    pub main_metrics: BTreeMap<String, &'static str>,
    /// Names of the measured workloads.
    pub measured: Vec<String>,
    /// `true` if every pair has the same differences at every seed: more seeds add no information.
    pub seeds_change_nothing: bool,
    /// Runs (`scheme/seedN`) whose results reflect the machine. Their seeds are not compared if others are left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_bound: Vec<String>,
}

impl Comparison {
    /// Compares `runs`. The schemes appear in the order of `schemes`; those without a run are omitted.
    pub fn new(runs: &[Summary], schemes: &[String], baseline: &str) -> Self {
        let of = |scheme: &str| -> Vec<&Summary> {
            let mut runs: Vec<_> = runs.iter().filter(|run| run.scheme == scheme).collect();
            runs.sort_by_key(|run| run.seed);
            runs
        };
        let seeds_of = |runs: &[&Summary]| runs.iter().map(|run| run.seed).collect::<Vec<u64>>();
        let coverage = schemes.iter().map(|s| Coverage { scheme: s.clone(), seeds: seeds_of(&of(s)) }).collect();
        let mut groups: Vec<(&String, Vec<&Summary>)> =
            schemes.iter().map(|scheme| (scheme, of(scheme))).filter(|(_, runs)| !runs.is_empty()).collect();
        let seeds: BTreeSet<u64> = runs.iter().map(|run| run.seed).collect();
        let everywhere = |seed: &u64| groups.iter().all(|(_, runs)| runs.iter().any(|run| run.seed == *seed));
        let mut compared_seeds: Vec<u64> = seeds.iter().copied().filter(everywhere).collect();
        let bound = || runs.iter().filter(|run| run.is_machine_bound());
        let bound_seeds: BTreeSet<u64> = bound().map(|run| run.seed).collect();
        if compared_seeds.iter().any(|seed| !bound_seeds.contains(seed)) {
            compared_seeds.retain(|seed| !bound_seeds.contains(seed));
        }
        let machine_bound = bound().map(|run| format!("{}/seed{}", run.scheme, run.seed)).collect();
        if !compared_seeds.is_empty() {
            groups.iter_mut().for_each(|(_, runs)| runs.retain(|run| compared_seeds.contains(&run.seed)));
        }
        let compared: Vec<Summary> = groups.iter().flat_map(|(_, runs)| runs.iter().copied().cloned()).collect();
        let names: BTreeSet<&String> = compared.iter().flat_map(|run| run.workloads.keys()).collect();
        let is_measured = |name: &String| compared.iter().filter_map(|run| run.workloads.get(name)).any(|w| w.measured);
        let measured: Vec<String> = names.iter().copied().filter(|name| is_measured(name)).cloned().collect();
        let mut workloads = vec![ALL.to_string()];
        if names.len() > 1 {
            workloads.extend(names.into_iter().cloned());
        }
        let mut rows = vec![];
        for workload in &workloads {
            for metric in METRICS.iter().filter(|metric| workload == ALL || metric.is_of_flows()) {
                rows.extend(rows_of(workload, metric, &groups, baseline));
            }
        }
        Comparison {
            scenario: runs.first().map(|run| run.scenario.clone()).unwrap_or_default(),
            baseline: baseline.to_string(),
            schemes: groups.iter().map(|(scheme, _)| (*scheme).clone()).collect(),
            seeds: seeds.into_iter().collect(),
            main_metric: main_metric(&compared, ALL),
            main_metrics: workloads.iter().map(|w| (w.clone(), main_metric(&compared, w))).collect(),
            seeds_change_nothing: compared_seeds.len() > 1 && seeds_change_nothing(&groups),
            fct_kind: runs.first().map(|run| run.all.fct_kind),
            rows,
            coverage,
            compared_seeds,
            measured,
            machine_bound,
        }
    }

    /// Returns the workloads that tables and figures show, the measured ones first, and with `with_all` also [`ALL`] of
    /// them together. A single workload is returned as [`ALL`].
    pub fn shown(&self, with_all: bool) -> Vec<&str> {
        let workloads = self.workloads();
        if workloads.len() == 1 {
            return workloads;
        }
        let counts = |workload: &&str| self.measured.iter().any(|measured| measured == workload);
        let (first, then): (Vec<&str>, Vec<&str>) = workloads.into_iter().filter(|w| *w != ALL).partition(counts);
        let pooled = (with_all && first.len() > 1).then_some(ALL);
        first.into_iter().chain(then).chain(pooled).collect()
    }

    /// Returns the metric on which the schemes are ranked on `workload`.
    pub fn main_metric_of(&self, workload: &str) -> &'static str {
        self.main_metrics.get(workload).copied().unwrap_or(self.main_metric)
    }

    /// Returns the missing runs: per requested scheme, the seeds that other schemes have and it lacks.
    pub fn missing(&self) -> Vec<(&str, Vec<u64>)> {
        let lacks =
            |c: &Coverage| self.seeds.iter().copied().filter(|seed| !c.seeds.contains(seed)).collect::<Vec<_>>();
        let missing = self.coverage.iter().map(|c| (c.scheme.as_str(), lacks(c)));
        missing.filter(|(_, seeds)| !seeds.is_empty()).collect()
    }

    /// Returns the row of this workload, scheme and metric.
    pub fn row(&self, workload: &str, scheme: &str, metric: &str) -> Option<&ComparisonRow> {
        self.rows.iter().find(|row| row.workload == workload && row.scheme == scheme && row.metric == metric)
    }

    /// Returns the workloads of the rows, [`ALL`] first.
    pub fn workloads(&self) -> Vec<&str> {
        let mut workloads: Vec<&str> = vec![];
        for row in &self.rows {
            if !workloads.contains(&row.workload.as_str()) {
                workloads.push(&row.workload);
            }
        }
        workloads
    }

    /// Returns the content of `comparison.csv`.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(vec![]);
        for row in &self.rows {
            // Writing to memory cannot fail.
            let _ = writer.serialize(row);
        }
        rows::text(writer)
    }

    /// Returns the columns of `comparison.csv` with their meanings.
    pub fn columns() -> Vec<ColumnEntry> {
        ComparisonRow::KEYS.iter().map(ColumnEntry::from).collect()
    }
}

/// Metric of the ranking: completion of the whole if flows start after each other, as in a collective; the slowest flow
/// if all have one size; else the tail of the slowdown.
fn main_metric(runs: &[Summary], workload: &str) -> &'static str {
    let flows =
        |run: &Summary| if workload == ALL { Some(run.all.clone()) } else { run.workloads.get(workload).cloned() };
    let flows: Vec<(bool, FlowSummary)> = runs.iter().filter_map(|run| Some((run.flows_wait, flows(run)?))).collect();
    let one_after_the_other =
        |f: &FlowSummary| f.completion_us.zip(f.fct_us.max).is_some_and(|(all, one)| all > 2.0 * one);
    if flows.iter().all(|(wait, f)| *wait && one_after_the_other(f)) {
        return "completion";
    }
    let one_size = |f: &FlowSummary| f.size_bytes.min == f.size_bytes.max && f.fct_ratio_max.is_some();
    if flows.iter().all(|(_, f)| one_size(f)) { "fct_ratio_max" } else { "slowdown_p99" }
}

fn seeds_change_nothing(groups: &[(&String, Vec<&Summary>)]) -> bool {
    let alike = |a: &Summary, b: &Summary| a.all.slowdown == b.all.slowdown && a.all.fct_us == b.all.fct_us;
    groups.iter().all(|(_, runs)| runs.windows(2).all(|pair| alike(pair[0], pair[1])))
}

fn rows_of(workload: &str, metric: &Metric, groups: &[(&String, Vec<&Summary>)], baseline: &str) -> Vec<ComparisonRow> {
    let seeds: BTreeSet<u64> = groups.iter().flat_map(|(_, runs)| runs.iter().map(|run| run.seed)).collect();
    let value_at = |runs: &[&Summary], seed: u64| metric.value(runs.iter().find(|run| run.seed == seed)?, workload);
    let values: Vec<Vec<Option<f64>>> =
        groups.iter().map(|(_, runs)| seeds.iter().map(|seed| value_at(runs, *seed)).collect()).collect();
    let pairs = Pairs::of(&values);
    let base = groups.iter().position(|(scheme, _)| *scheme == baseline);
    let mut rows: Vec<ComparisonRow> = groups
        .iter()
        .enumerate()
        .map(|(at, (scheme, runs))| row(workload, scheme, metric, runs, (&values, &pairs, at, base)))
        .collect();
    let mut ranked: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].ranks(metric)).collect();
    ranked.sort_by(|a, b| rows[*a].mean.unwrap_or(f64::MAX).total_cmp(&rows[*b].mean.unwrap_or(f64::MAX)));
    if !metric.has_best() {
        return rows;
    }
    if let Some(letters) = pairs.letters(&ranked) {
        for (at, group) in ranked.iter().zip(letters) {
            // Schemes that tie with the lowest share its letter, `a`.
            rows[*at].leading = pairs_tie(&pairs, ranked[0], *at);
            rows[*at].group = group;
        }
    }
    // If all are equal, none is best.
    if let Some(least) = ranked.first().map(|at| rows[*at].mean)
        && !rows.iter().all(|row| row.mean == least)
    {
        ranked.iter().for_each(|at| rows[*at].best = rows[*at].mean == least);
    }
    rows
}

fn pairs_tie(pairs: &Pairs, lowest: usize, other: usize) -> bool {
    lowest == other || pairs.apart(lowest, other) == Some(false)
}

fn row(
    workload: &str,
    scheme: &str,
    metric: &Metric,
    runs: &[&Summary],
    (values, pairs, at, base): (&[Vec<Option<f64>>], &Pairs, usize, Option<usize>),
) -> ComparisonRow {
    let own: Vec<f64> = values[at].iter().flatten().copied().collect();
    let estimate = Estimate::of(&own);
    let interval = estimate.and_then(|e| e.interval());
    let other = base.filter(|base| *base != at);
    let paired = other.and_then(|base| pairs.difference(at, base));
    let difference_interval = paired.and_then(|p| p.difference.interval());
    let sums = other.map(|base| {
        let both = values[at].iter().zip(&values[base]).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
        both.fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1))
    });
    let of_flows = |run: &&Summary| match workload {
        ALL => run.all.flows.measured_unfinished,
        _ => run.workloads.get(workload).map_or(0, |w| w.flows.measured_unfinished),
    };
    let tested = |test: Test| !matches!(test, Test::TooFew | Test::Constant);
    ComparisonRow {
        workload: workload.to_string(),
        scheme: scheme.to_string(),
        metric: metric.name,
        unit: metric.unit,
        mean: estimate.map(|e| e.mean),
        ci95_low: interval.map(|i| i.0),
        ci95_high: interval.map(|i| i.1),
        ci95_half_width: estimate.and_then(|e| e.half_width),
        ratio_to_baseline: match sums {
            None => estimate.filter(|e| base == Some(at) && e.mean != 0.0).map(|_| 1.0),
            Some((own, base)) => (base != 0.0).then(|| own / base),
        },
        difference: paired.map(|p| p.difference.mean),
        difference_ci95_low: difference_interval.map(|i| i.0),
        difference_ci95_high: difference_interval.map(|i| i.1),
        p_value: paired.and_then(|p| p.p_value()),
        significant: paired.filter(|p| tested(p.test)).and_then(|_| other.and_then(|base| pairs.apart(at, base))),
        best: false,
        seeds: own.len(),
        unfinished_flows: runs.iter().map(of_flows).sum(),
        p_holm: other.and_then(|base| pairs.adjusted(at, base)),
        group: String::new(),
        leading: false,
        status: runs.iter().filter_map(|run| run.status).max(),
    }
}
