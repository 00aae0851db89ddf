//! `comparison.csv`: comparison of several schemes over several seeds.

use anabranch_results::{ColumnEntry, FctKind, FlowSummary, Limits, RunStatus, Summary, declared, list, rows};
use anabranch_statistics::{Estimate, Method, Pairs, Range, Sequential, Tested, against};
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
    /// Returns the range that no value leaves. Slowdowns are at least 1 in a simulation; on a real network they may be less.
    pub fn range(&self, values: &[f64]) -> Range {
        let is_slowdown = self.name.contains("slowdown_") || self.name == "fct_ratio_max";
        match self.name {
            "out_of_order_share" => Range::Share,
            _ if is_slowdown && values.iter().all(|value| *value >= 1.0) => Range::AtLeast(1.0),
            _ => Range::AtLeast(0.0),
        }
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
    ($($name:ident: $how:ident, $unit:literal, $meaning:literal $(, fingerprint $place:literal)?;)*) => {
        /// Names of the metrics that are counted per flow.
        pub const FLOW_METRICS: &[&str] = &[$(stringify!($name),)*];

        pub const METRICS: &[Metric] = &[
            flows("fct_mean", "FCT, mean", "us", |f| f.fct_us.mean),
            flows("fct_p50", "FCT, median", "us", |f| f.fct_us.p50),
            flows("fct_p99", "FCT, 99th percentile", "us", |f| f.fct_us.p99),
            flows("fct_max", "FCT, max", "us", |f| f.fct_us.max),
            flows("slowdown_mean", "slowdown, mean", "", |f| f.slowdown.mean),
            flows("slowdown_p50", "slowdown, median", "", |f| f.slowdown.p50),
            flows("slowdown_p95", "slowdown, 95th percentile", "", |f| f.slowdown.p95),
            flows("slowdown_p99", "slowdown, 99th percentile", "", |f| f.slowdown.p99),
            flows("slowdown_p99_small", "slowdown of flows up to 100 kB, 99th percentile", "", |f| f.slowdown_p99_small),
            flows("slowdown_p99_large", "slowdown of flows from 10 MB, 99th percentile", "", |f| f.slowdown_p99_large),
            flows("slowdown_max", "slowdown, max", "", |f| f.slowdown.max),
            flows("fct_ratio_max", "max FCT over ideal", "", |f| f.fct_ratio_max),
            flows("nic_wait_mean", "wait at the NIC, mean", "us", |f| f.nic_wait_us.mean),
            flows("nic_wait_max", "wait at the NIC, max", "us", |f| f.nic_wait_us.max),
            flows("completion", "completion time", "us", |f| f.completion_us),
            flows("group_completion_p50", "completion of a group, median", "us", |f| f.groups.as_ref()?.completion_us.p50),
            flows("group_completion_p99", "completion of a group, 99th percentile", "us", |f| f.groups.as_ref()?.completion_us.p99),
            flows("group_completion_max", "completion of a group, max", "us", |f| f.groups.as_ref()?.completion_us.max),
            flows("group_slowdown_p50", "slowdown of a group, median", "", |f| f.groups.as_ref()?.slowdown.p50),
            flows("group_slowdown_p99", "slowdown of a group, 99th percentile", "", |f| f.groups.as_ref()?.slowdown.p99),
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
        pub metric: &'static str => "text", "", "name of the metric; lower is better, except for packets_per_ack and path_switches";
        pub unit: &'static str => "text", "", "unit of the metric, also of means, intervals and differences";
        pub mean: Option<f64> => "real", "", "mean over seeds; empty where no seed has a value";
        pub ci95_low: Option<f64> => "real", "",
            "lower end of the 95 % confidence interval of the mean (Student's t on a log scale); empty below two seeds";
        pub ci95_high: Option<f64> => "real", "", "upper end";
        pub ci95_half_width: Option<f64> => "real", "", "half its width";
        pub ratio_to_baseline: Option<f64> => "real", "",
            "mean over the baseline's mean, over common seeds; empty if flows of either did not finish";
        pub difference: Option<f64> => "real", "", "mean of scheme minus baseline, seed by seed";
        pub difference_ci95_low: Option<f64> => "real", "", "lower end of its 95 % confidence interval";
        pub difference_ci95_high: Option<f64> => "real", "", "upper end";
        pub p_value: Option<f64> => "real", "",
            "of this test, uncorrected; empty below three seeds and where all differences are equal";
        pub significant: Option<bool> => "boolean", "",
            "true if p_holm is below 0.05; empty without a test; false where equal at every seed";
        pub best: bool => "boolean", "",
            "true if the mean is the lowest (see leading); false where measured flows are unfinished";
        pub seeds: usize => "integer", "", "seeds with a value, of those that every scheme has run";
        pub unfinished_flows: u64 => "integer", "", "measured flows that did not finish, over the seeds compared";
        pub p_holm: Option<f64> => "real", "",
            "p_value after Holm's correction over the comparisons with the baseline on this metric and workload";
        pub group: String => "text", "",
            "schemes that share a letter do not differ significantly; a is the lowest; empty where no pair does";
        pub leading: Option<bool> => "boolean", "",
            "true if it is the lowest or does not differ significantly from the lowest; empty where that is not tested";
        pub status: Option<RunStatus> => "text", "",
            "worst status of its runs, in this order: finished, skipped, time-limit, interrupted, lost-peers, deadlock, stalled";
        pub test: Option<Method> => "text", "",
            "test against the baseline: blocked, paired, separated, equal or constant; or why there is none: few-seeds, censored, baseline-censored";
        pub seeds_needed: Option<usize> => "integer", "",
            "seeds that make the difference to the baseline significant with 80 % power, at the difference and variance observed; empty where it is significant, and above 10000";
        pub over_bound: Option<f64> => "real", "",
            "mean over the bound that no load balancer beats, over the same seeds; empty without --bound, where none is known, and where flows are unfinished";
        pub over_reference: Option<f64> => "real", "",
            "mean over that of the reference: the same flows under ECMP with links between switches 16 times as fast; empty as over_bound";
    }
}

impl ComparisonRow {
    /// Returns `true` if the scheme is compared: it has a value, and its flows finished.
    pub(crate) fn ranks(&self) -> bool {
        self.mean.is_some() && self.test != Some(Method::Censored)
    }

    /// Returns `true` if no scheme is significantly lower.
    pub(crate) fn leads(&self) -> bool {
        self.leading == Some(true)
    }

    /// Returns half the interval, `±0.04`, or the way to its ends where one is half as long again: `−0.5/+0.9`.
    pub(crate) fn spread(&self, format: impl Fn(f64) -> String) -> Option<String> {
        let (mean, low, high) = (self.mean?, self.ci95_low?, self.ci95_high?);
        let (below, above) = (mean - low, high - mean);
        let is_even = above <= LOPSIDED * below && below <= LOPSIDED * above;
        Some(match is_even {
            true => format!("±{}", format((below + above) / 2.0)),
            false => format!("\u{2212}{}/+{}", format(below), format(above)),
        })
    }
}

/// Ratio of the two parts of an interval from which tables show both.
const LOPSIDED: f64 = 1.5;

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
    pub measured: Vec<String>,
    /// `true` if every pair has the same differences at every seed: more seeds add no information.
    pub seeds_change_nothing: bool,
    /// Schemes with the same flow times at every seed, a sentence for each group of them.
    #[serde(skip)]
    pub alike: Vec<String>,
    /// Runs (`scheme/seedN`) whose results reflect the machine. Their seeds are not compared if others are left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_bound: Vec<String>,
    /// Plan by which seeds were added until the differences were decided; absent if their number was fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_decided: Option<Sequential>,
    /// Bounds and reference of the flows; absent if they were not requested.
    #[serde(skip)]
    pub limits: Option<Limits>,
    /// Differences on the main metrics that such a comparison has not decided: workload and scheme.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<(String, String)>,
}

/// Returns the note that the reference of these metrics is below their bound.
pub fn below_bound(metrics: &[String]) -> String {
    format!(
        "reference below the bound: {}; no load balancer on this fabric reaches it, and what is left to gain ends at the bound",
        metrics.join(", ")
    )
}

/// Returns a line per consequence, with the first reason: seeds and workloads have reasons that differ in numbers alone.
fn loose_lines(reasons: &[String]) -> Vec<String> {
    let mut lines: Vec<(&str, &String, usize)> = vec![];
    for reason in reasons {
        let consequence = reason.rsplit_once(": ").map_or(reason.as_str(), |(_, consequence)| consequence);
        match lines.iter_mut().find(|line| line.0 == consequence) {
            Some(line) => line.2 += 1,
            None => lines.push((consequence, reason, 0)),
        }
    }
    let text = |(_, reason, others): (&str, &String, usize)| match others {
        0 => format!("bound: {reason}"),
        others => format!("bound: {reason} ({others} more of other seeds or workloads)"),
    };
    lines.into_iter().map(text).collect()
}

impl Comparison {
    /// Compares `runs`. The schemes appear in the order of `schemes`; those without a run are omitted.
    pub fn new(runs: &[Summary], schemes: &[String], baseline: &str) -> Self {
        Comparison::planned(runs, schemes, baseline, None)
    }

    /// As [`Comparison::new`]; `sequential` is the plan by which the number of seeds was chosen.
    pub fn planned(runs: &[Summary], schemes: &[String], baseline: &str, sequential: Option<&Sequential>) -> Self {
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
        let main_metrics: BTreeMap<String, &'static str> =
            workloads.iter().map(|w| (w.clone(), main_metric(&compared, w))).collect();
        let (mut rows, mut undecided) = (vec![], vec![]);
        let decides = |workload: &String| match measured.len() {
            0 | 1 => workload == ALL,
            _ => measured.contains(workload),
        };
        for workload in &workloads {
            for metric in METRICS.iter().filter(|metric| workload == ALL || metric.is_of_flows()) {
                let (own, open) = rows_of(workload, metric, &groups, baseline, sequential);
                rows.extend(own);
                if decides(workload) && main_metrics[workload] == metric.name {
                    undecided.extend(open.into_iter().map(|scheme| (workload.clone(), scheme)));
                }
            }
        }
        Comparison {
            scenario: runs.first().map(|run| run.scenario.clone()).unwrap_or_default(),
            baseline: baseline.to_string(),
            schemes: groups.iter().map(|(scheme, _)| (*scheme).clone()).collect(),
            seeds: seeds.into_iter().collect(),
            main_metric: main_metric(&compared, ALL),
            main_metrics,
            seeds_change_nothing: compared_seeds.len() > 1 && seeds_change_nothing(&groups),
            alike: alike(groups.iter().map(|(scheme, runs)| (scheme.as_str(), runs.clone()))),
            fct_kind: runs.first().map(|run| run.all.fct_kind),
            rows,
            coverage,
            compared_seeds,
            measured,
            machine_bound,
            until_decided: sequential.cloned(),
            limits: None,
            undecided,
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

    /// Returns a workload's name in tables and headings.
    pub fn label(&self, workload: &str) -> String {
        match workload {
            ALL if self.measured.len() > 1 => format!("all {} workloads pooled", self.measured.len()),
            ALL => self.measured.first().cloned().unwrap_or_else(|| ALL.to_string()),
            name => name.to_string(),
        }
    }

    /// Returns the metric on which the schemes are ranked on `workload`.
    pub fn main_metric_of(&self, workload: &str) -> &'static str {
        self.main_metrics.get(workload).copied().unwrap_or(self.main_metric)
    }

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
        let column = |metric: &str, of: fn(&ComparisonRow) -> Option<f64>| {
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
        lines.extend(loose_lines(&limits.loose));
        if limits.rows.iter().any(|row| row.reference.is_some()) {
            lines.push(format!("reference, which proves nothing: {}", limits.reference));
            lines.extend(self.below_bound_line(limits));
        }
        lines
    }

    /// Returns of which metrics the reference is below the bound, so that no load balancer reaches it.
    fn below_bound_line(&self, limits: &Limits) -> Option<String> {
        let of = |workload: &&str| {
            let metric = self.bounded_metric(workload)?;
            let mean = |of| limits.mean(&self.compared_seeds, workload, metric, of);
            let (bound, reference) = (mean(|row| row.bound)?, mean(|row| row.reference)?);
            let of = if self.workloads().len() > 1 { format!(" of {}", self.label(workload)) } else { String::new() };
            (reference < bound).then(|| format!("{metric}{of}"))
        };
        let metrics: Vec<String> = self.shown(false).iter().filter_map(of).collect();
        (!metrics.is_empty()).then(|| below_bound(&metrics))
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

/// Metric of the ranking, which follows from the scenario alone: completion of the whole for a collective, a job and flows
/// that wait for others; the slowest flow if all have one size; else the tail of the slowdown.
fn main_metric(runs: &[Summary], workload: &str) -> &'static str {
    let flows =
        |run: &Summary| if workload == ALL { Some(run.all.clone()) } else { run.workloads.get(workload).cloned() };
    let flows: Vec<(bool, FlowSummary)> = runs.iter().filter_map(|run| Some((run.flows_wait, flows(run)?))).collect();
    // Results of older versions record only whether flows of any workload wait.
    if !flows.is_empty() && flows.iter().all(|(wait, f)| f.is_job.unwrap_or(*wait)) {
        return "completion";
    }
    let sizes = |of: fn(&FlowSummary) -> Option<u64>| flows.iter().filter_map(move |(_, f)| of(f));
    let (smallest, largest) = (sizes(|f| f.size_bytes.min).min(), sizes(|f| f.size_bytes.max).max());
    if smallest.is_some() && smallest == largest { "fct_ratio_max" } else { "slowdown_p99" }
}

fn seeds_change_nothing(groups: &[(&String, Vec<&Summary>)]) -> bool {
    let alike = |a: &Summary, b: &Summary| a.all.slowdown == b.all.slowdown && a.all.fct_us == b.all.fct_us;
    groups.iter().all(|(_, runs)| runs.windows(2).all(|pair| alike(pair[0], pair[1])))
}

/// Schemes with the same flow times at every seed: none of them acted differently.
pub(crate) fn alike<'s>(schemes: impl Iterator<Item = (&'s str, Vec<&'s Summary>)>) -> Vec<String> {
    let mut groups: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for (scheme, runs) in schemes {
        let times = |s: &&Summary| format!("{} {:?} {:?} {:?}", s.seed, s.all.flows, s.all.fct_us, s.all.slowdown);
        groups.entry(runs.iter().map(times).collect()).or_default().push(scheme);
    }
    let several = groups.into_values().filter(|names| names.len() > 1);
    several
        .map(|names| {
            format!("{} have the same flow times at every seed: they acted alike, or not at all.", list(names))
        })
        .collect()
}

/// Returns `true` if flows of the workload did not finish, or its run stalled or ended as a deadlock: the times of
/// the others exclude the slowest.
fn is_censored(runs: &[&Summary], workload: &str) -> bool {
    let stands = |run: &&Summary| matches!(run.status, Some(RunStatus::Deadlock | RunStatus::Stalled));
    runs.iter().any(|run| unfinished(run, workload) > 0 || stands(run))
}

fn unfinished(run: &Summary, workload: &str) -> u64 {
    match workload {
        ALL => run.all.flows.measured_unfinished,
        _ => run.workloads.get(workload).map_or(0, |w| w.flows.measured_unfinished),
    }
}

/// Returns the rows of a metric, and the schemes whose difference to the baseline `sequential` has not decided.
fn rows_of(
    workload: &str,
    metric: &Metric,
    groups: &[(&String, Vec<&Summary>)],
    baseline: &str,
    sequential: Option<&Sequential>,
) -> (Vec<ComparisonRow>, Vec<String>) {
    let seeds: BTreeSet<u64> = groups.iter().flat_map(|(_, runs)| runs.iter().map(|run| run.seed)).collect();
    let value_at = |runs: &[&Summary], seed: u64| metric.value(runs.iter().find(|run| run.seed == seed)?, workload);
    let values: Vec<Vec<Option<f64>>> =
        groups.iter().map(|(_, runs)| seeds.iter().map(|seed| value_at(runs, *seed)).collect()).collect();
    let censored: Vec<bool> = groups.iter().map(|(_, runs)| is_censored(runs, workload)).collect();
    let base = groups.iter().position(|(scheme, _)| *scheme == baseline);
    let others: Vec<usize> = (0..groups.len()).filter(|at| Some(*at) != base && !censored[*at]).collect();
    let mut tested: Vec<Option<Tested>> = vec![None; groups.len()];
    if let Some(base) = base.filter(|base| !censored[*base]) {
        let of: Vec<&[Option<f64>]> = others.iter().map(|at| values[*at].as_slice()).collect();
        for (at, own) in others.iter().zip(against(&values[base], &of, sequential)) {
            tested[*at] = own;
        }
    }
    let mut rows: Vec<ComparisonRow> = groups
        .iter()
        .enumerate()
        .map(|(at, (scheme, runs))| {
            let side = Side { values: &values, censored: &censored, tested: tested[at], at, base };
            row(workload, scheme, metric, runs, &side)
        })
        .collect();
    let is_open = |at: &usize| {
        tested[*at]
            .is_some_and(|own| own.differs != Some(true) && own.is_small != Some(true) && own.method != Method::Equal)
    };
    let open = if sequential.is_some() { others.iter().copied().filter(is_open).collect() } else { vec![] };
    let open = open.into_iter().map(|at: usize| groups[at].0.clone()).collect();
    let mut ranked: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].ranks()).collect();
    ranked.sort_by(|a, b| rows[*a].mean.unwrap_or(f64::MAX).total_cmp(&rows[*b].mean.unwrap_or(f64::MAX)));
    if !metric.has_best() {
        return (rows, open);
    }
    let compared: Vec<Vec<Option<f64>>> = ranked.iter().map(|at| values[*at].clone()).collect();
    let pairs = Pairs::of(&compared, sequential);
    let places: Vec<usize> = (0..ranked.len()).collect();
    let letters = pairs.letters(&places);
    for (place, at) in ranked.iter().enumerate() {
        if ranked.len() > 1 && pairs.is_tested() {
            rows[*at].leading = if place == 0 { Some(true) } else { pairs.apart(0, place).map(|apart| !apart) };
        }
        if let Some(letters) = &letters {
            rows[*at].group.clone_from(&letters[place]);
        }
    }
    // If all are equal, none is best.
    if let Some(least) = ranked.first().map(|at| rows[*at].mean)
        && !rows.iter().all(|row| row.mean == least)
    {
        ranked.iter().for_each(|at| rows[*at].best = rows[*at].mean == least);
    }
    (rows, open)
}

/// A scheme of a metric beside the others.
struct Side<'s> {
    values: &'s [Vec<Option<f64>>],
    censored: &'s [bool],
    tested: Option<Tested>,
    at: usize,
    base: Option<usize>,
}

fn row(workload: &str, scheme: &str, metric: &Metric, runs: &[&Summary], side: &Side<'_>) -> ComparisonRow {
    let at = side.at;
    let own: Vec<f64> = side.values[at].iter().flatten().copied().collect();
    let estimate = Estimate::of(&own);
    let interval = estimate.and_then(|e| e.interval_in(metric.range(&own)));
    let other = side.base.filter(|base| *base != at);
    let not_compared = match other {
        _ if side.censored[at] => Some(Method::Censored),
        Some(base) if side.censored[base] => Some(Method::BaselineCensored),
        _ => None,
    };
    let sums = other.filter(|_| not_compared.is_none()).map(|base| {
        let both = side.values[at].iter().zip(&side.values[base]).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
        both.fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1))
    });
    let tested = side.tested;
    let difference_interval = tested.and_then(|tested| tested.interval);
    ComparisonRow {
        workload: workload.to_string(),
        scheme: scheme.to_string(),
        metric: metric.name,
        unit: metric.unit,
        mean: estimate.map(|e| e.mean),
        ci95_low: interval.map(|i| i.0),
        ci95_high: interval.map(|i| i.1),
        ci95_half_width: interval.map(|i| (i.1 - i.0) / 2.0),
        ratio_to_baseline: match sums {
            None => estimate.filter(|e| side.base == Some(at) && not_compared.is_none() && e.mean != 0.0).map(|_| 1.0),
            Some((own, base)) => (base != 0.0).then(|| own / base),
        },
        difference: tested.map(|t| t.difference),
        difference_ci95_low: difference_interval.map(|i| i.0),
        difference_ci95_high: difference_interval.map(|i| i.1),
        p_value: tested.and_then(|t| t.p_value),
        significant: tested.filter(|t| t.method != Method::Constant).and_then(|t| t.differs),
        best: false,
        seeds: own.len(),
        unfinished_flows: runs.iter().map(|run| unfinished(run, workload)).sum(),
        p_holm: tested.and_then(|t| t.p_holm),
        group: String::new(),
        leading: None,
        status: runs.iter().filter_map(|run| run.status).max(),
        test: not_compared.or(tested.map(|t| t.method)),
        seeds_needed: tested.and_then(|t| t.seeds_needed),
        over_bound: None,
        over_reference: None,
    }
}
