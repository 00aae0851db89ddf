//! Metric of a run, by name: of a comparison, a quantile of flow times, a number of the summary, a sum over links, or
//! two of these with `/`, `+` or `-` between them.

mod run_data;

pub use run_data::RunData;

use crate::{ALL, FLOW_METRICS, METRICS, comparison::Metric as OfComparison};
use anabranch_results::{ColumnEntry, ConservationSummary, FlowSummary, Summary};
use anabranch_units::Rate;
use run_data::{Pick, take};
use std::fmt;

const FLOW_COUNT: &str = "flows";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Mean,
    /// Quantile from 0 to 1.
    Quantile(f64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkFilter {
    pub(crate) rate: Option<Rate>,
    pub(crate) tier: Option<String>,
    pub(crate) direction: Option<String>,
    pub(crate) failed: Option<bool>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Metric of `comparison.csv`.
    Compared(&'static OfComparison),
    /// Statistic over flows: of their slowdowns, else of their times in us.
    Flows { slowdown: bool, of: Of },
    /// Number of finished flows.
    Count,
    /// Column of `flows` over the finished flows; `None` for the sum.
    Column { column: &'static str, of: Option<Of> },
    /// Number in `summary.json`.
    Path(String),
    /// Column of `links` over the links that match a filter; `None` for the sum.
    Links { column: String, of: Option<Of>, filter: LinkFilter },
    /// Unevenness of the uplinks of the switch of this name, or of all, over flows.
    UplinkSpread { from: String },
    /// Jain's index over the finished flows: of their slowdowns, else of their times.
    JainOfFlows { slowdown: bool },
    /// Jain's index of a metric over the measured workloads: the jobs.
    JainOfJobs(Box<Metric>),
    /// Two metrics with an operator.
    Two(Box<Metric>, char, Box<Metric>),
}

#[derive(Clone, Debug)]
pub struct Metric {
    text: String,
    kind: Kind,
}

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MetricError {
    pub message: String,
    /// Most similar valid name.
    pub nearest: Option<String>,
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const COLUMNS: &[&str] = &[
    "bytes",
    "packets",
    "utilisation",
    "window_utilisation",
    "drops",
    "trims",
    "ecn_marks",
    "pauses",
    "queue_max_bytes",
    "queue_mean_bytes",
    "queue_p99_bytes",
];

const FLOW_COLUMNS: [&str; 1 + FLOW_METRICS.len()] = {
    let mut columns = ["size_bytes"; 1 + FLOW_METRICS.len()];
    let mut place = 0;
    while place < FLOW_METRICS.len() {
        columns[place + 1] = FLOW_METRICS[place];
        place += 1;
    }
    columns
};

const DIRECTIONS: &[&str] = &["up", "down", "flat"];

const FILTERS: &[&str] = &["rate", "tier", "direction", "failed", "from", "to"];

impl Metric {
    pub fn read(text: &str) -> Result<Self, MetricError> {
        let text = text.trim();
        let signs: Vec<&str> = text.split(' ').filter(|word| matches!(*word, "/" | "+" | "-")).collect();
        // Without parentheses, other combinations have more than one meaning.
        if let [sums @ .., last] = signs.as_slice()
            && !sums.is_empty()
            && (sums.iter().any(|sign| *sign != "+") || *last == "-")
        {
            let message = format!(
                "`{text}`: found {} operators, expected two metrics with `/`, `+` or `-` between, or a sum with `/` and one metric",
                signs.len()
            );
            return Err(MetricError { message, nearest: None });
        }
        for sign in ['/', '+', '-'] {
            if let Some((left, right)) = text.split_once(&format!(" {sign} ")) {
                let kind = Kind::Two(Box::new(Metric::read(left)?), sign, Box::new(Metric::read(right)?));
                return Ok(Metric { text: text.to_string(), kind });
            }
        }
        Ok(Metric { text: text.to_string(), kind: one(text)? })
    }

    /// Returns the metric of `comparison.csv` that it is; `None` for any other.
    pub(crate) fn compared(&self) -> Option<&'static OfComparison> {
        if let Kind::Compared(metric) = &self.kind { Some(metric) } else { None }
    }

    /// Returns the metric of one workload, if it is a number of the summary that is kept for workloads too.
    pub(crate) fn of_workload(&self, workload: &str) -> Metric {
        let text = format!("workloads.{workload}.{}", self.text);
        match &self.kind {
            Kind::Path(path) if workload != ALL && !path.starts_with("workloads.") => {
                Metric { kind: Kind::Path(text.clone()), text }
            }
            _ => self.clone(),
        }
    }

    /// Returns the name as it was read.
    pub fn name(&self) -> &str {
        &self.text
    }

    /// Returns `true` if it is a difference, of which no percentage can be taken.
    pub fn is_difference(&self) -> bool {
        matches!(self.kind, Kind::Two(_, '-', _))
    }

    /// Returns `true` if the metric is available per workload.
    pub fn is_per_workload(&self) -> bool {
        self.is_over_flows(&|metric| metric.is_of_flows())
    }

    /// Returns `true` if the metric is available per bin of flow sizes.
    pub fn is_per_bin(&self) -> bool {
        self.is_over_flows(&|metric| over_flows(metric.name).is_some())
    }

    fn is_over_flows(&self, compared: &dyn Fn(&OfComparison) -> bool) -> bool {
        match &self.kind {
            Kind::Compared(metric) => compared(metric),
            Kind::Flows { .. } | Kind::Count | Kind::Column { .. } | Kind::JainOfFlows { .. } => true,
            Kind::Path(_) | Kind::Links { .. } | Kind::UplinkSpread { .. } | Kind::JainOfJobs(_) => false,
            Kind::Two(left, _, right) => left.is_over_flows(compared) && right.is_over_flows(compared),
        }
    }

    /// Returns `true` if the metric is over times of flows. It then has no finite value if some of them never end.
    pub(crate) fn is_of_times(&self) -> bool {
        match &self.kind {
            Kind::Compared(metric) => metric.is_of_flows(),
            Kind::Flows { .. } | Kind::JainOfFlows { .. } => true,
            Kind::Path(path) => is_path_of_times(path),
            Kind::Count | Kind::Column { .. } | Kind::Links { .. } | Kind::UplinkSpread { .. } => false,
            Kind::JainOfJobs(of) => of.is_of_times(),
            Kind::Two(left, _, right) => left.is_of_times() || right.is_of_times(),
        }
    }

    /// Returns the number of flows below which the metric is no more than its few slowest flows: three beyond a quantile, so
    /// 300 for a 99th percentile; `None` if it is no quantile of flows from the 95th on.
    pub fn required_flows(&self) -> Option<u64> {
        let of = match &self.kind {
            // Of small or large flows alone: they are at most as many as all.
            Kind::Compared(metric) => over_flows(metric.name.trim_end_matches("_small").trim_end_matches("_large"))?.1,
            Kind::Flows { of, .. } | Kind::Column { of: Some(of), .. } => *of,
            Kind::Path(path) => of_path(path)?,
            Kind::JainOfJobs(of) => return of.required_flows(),
            Kind::Two(left, _, right) => return left.required_flows().max(right.required_flows()),
            _ => return None,
        };
        match of {
            Of::Quantile(share) if (0.95..1.0).contains(&share) => Some((3.0 / (1.0 - share)).round() as u64),
            _ => None,
        }
    }

    pub fn flow_count() -> Self {
        Metric { text: FLOW_COUNT.to_string(), kind: Kind::Count }
    }

    /// Returns the unit, or an empty text.
    pub fn unit(&self) -> &'static str {
        match &self.kind {
            Kind::Compared(metric) => metric.unit,
            Kind::Flows { slowdown: false, .. } => "us",
            _ => "",
        }
    }

    /// Returns the title without a unit.
    pub(crate) fn label(&self) -> String {
        match &self.kind {
            Kind::Compared(metric) => metric.title.to_string(),
            Kind::Flows { slowdown, of } => {
                let what = if *slowdown { "slowdown" } else { "FCT" };
                let of = match of {
                    Of::Mean => "mean".to_string(),
                    Of::Quantile(q) if *q >= 1.0 => "max".to_string(),
                    Of::Quantile(q) => format!("p{}", (q * 1e6).round() / 1e4),
                };
                format!("{what}, {of}")
            }
            _ => self.text.clone(),
        }
    }

    /// Returns the title for tables and figures.
    pub fn title(&self) -> String {
        let (title, unit) = (self.label(), self.unit());
        let unit = if unit == "us" { "µs" } else { unit };
        if unit.is_empty() { title } else { format!("{title} ({unit})") }
    }

    /// Returns the quantiles of a distribution as shares and metrics. `word` is `slowdown` or `fct`.
    pub fn distribution(word: &str) -> Vec<(f64, Metric)> {
        const SHARES: [f64; 15] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
        let slowdown = word == "slowdown";
        let of = |share: f64| {
            let text = format!("{word}_p{}", (share * 1e6).round() / 1e4);
            (share, Metric { text, kind: Kind::Flows { slowdown, of: Of::Quantile(share) } })
        };
        SHARES.into_iter().map(of).collect()
    }

    /// Returns the distribution of a column over links, `links.COLUMN` or `links.COLUMN[FILTERS]`, as shares and metrics.
    /// Errors: [`MetricError`] for an unknown column or filter.
    pub fn distribution_over_links(text: &str) -> Result<Vec<(f64, Metric)>, MetricError> {
        let (column, filters) = text.split_once('[').map_or((text, String::new()), |(c, f)| (c, format!("[{f}")));
        let shares = Metric::distribution("slowdown").into_iter().map(|(share, _)| share);
        shares
            .map(|share| Ok((share, Metric::read(&format!("{column}.p{}{filters}", (share * 1e6).round() / 1e4))?)))
            .collect()
    }

    /// Returns the value for a run; `None` if the run has none. Infinite if flows that count never ended.
    pub fn value(&self, run: &RunData, workload: &str, bin: &str) -> Option<f64> {
        if self.is_of_times() && run.has_unfinished_flows(workload, bin) {
            // A rate over what ended excludes the rest.
            let is_rate = matches!(&self.kind, Kind::Path(path) if path.ends_with("_bps"));
            return (!is_rate).then_some(f64::INFINITY);
        }
        if (bin != ALL && !self.is_per_bin()) || (workload != ALL && !self.is_per_workload()) {
            return None;
        }
        match &self.kind {
            Kind::Compared(metric) if bin == ALL => metric.value(&run.summary, workload),
            Kind::Compared(metric) => {
                let (slowdown, of) = over_flows(metric.name)?;
                run.over_flows(slowdown, of, workload, bin)
            }
            Kind::Flows { slowdown, of } => run.over_flows(*slowdown, *of, workload, bin),
            Kind::Count => Some(run.sorted(Pick::Slowdown, workload, bin).len() as f64),
            Kind::Column { column, of } => {
                let place = FLOW_COLUMNS.iter().position(|name| name == column)?;
                let values = run.sorted(Pick::Column(place), workload, bin);
                of.map_or_else(|| (!values.is_empty()).then(|| values.iter().sum()), |of| take(&values, of))
            }
            Kind::Path(path) => {
                // Names of workloads may contain dots.
                let of = path.strip_prefix("workloads.").and_then(|rest| {
                    let of = |name: &str| rest.strip_prefix(name)?.strip_prefix('.');
                    run.summary
                        .workloads
                        .keys()
                        .filter_map(|name| Some((name, of(name)?)))
                        .max_by_key(|(name, _)| name.len())
                });
                let (at, path) = match of {
                    Some((name, path)) => (run.json.get("workloads")?.get(name)?, path),
                    None => (&run.json, path.as_str()),
                };
                path.split('.').try_fold(at, |at, part| at.get(part))?.as_f64()
            }
            Kind::Links { column, of, filter } => run.over_links(column, *of, filter),
            Kind::UplinkSpread { from } => run.uplink_spread(from),
            Kind::JainOfFlows { slowdown } => {
                let pick = if *slowdown { Pick::Slowdown } else { Pick::Time };
                jain(&run.sorted(pick, workload, bin))
            }
            Kind::JainOfJobs(of) => {
                let measured = run.summary.workloads.iter().filter(|(_, flows)| flows.measured);
                let values: Option<Vec<f64>> = measured.map(|(name, _)| of.value(run, name, ALL)).collect();
                jain(&values?)
            }
            Kind::Two(left, sign, right) => {
                let (left, right) = (left.value(run, workload, bin)?, right.value(run, workload, bin)?);
                match sign {
                    '/' if right == 0.0 => None,
                    '/' => Some(left / right),
                    '+' => Some(left + right),
                    _ => Some(left - right),
                }
            }
        }
    }

    /// Returns `true` if rows of flows, links or uplinks, as `is` selects, are needed for a part of the metric.
    fn needs(&self, is: &dyn Fn(&Kind) -> bool) -> bool {
        match &self.kind {
            Kind::JainOfJobs(of) => of.needs(is),
            Kind::Two(left, _, right) => left.needs(is) || right.needs(is),
            kind => is(kind),
        }
    }
}

/// Returns the statistic of flow times that a path into a summary names, such as `workloads.web.slowdown.p99`.
fn of_path(path: &str) -> Option<Of> {
    let (rest, of) = path.rsplit_once('.')?;
    let is_of_flows = !path.split('.').any(|part| part == "groups");
    let of = of.trim_end_matches("_small").trim_end_matches("_large");
    match rest.rsplit('.').next()? {
        "fct_us" | "slowdown" if is_of_flows => over_flows(&format!("fct_{of}")).map(|(_, of)| of),
        _ => over_flows(of).map(|(_, of)| of),
    }
}

/// Returns `true` for a number of a summary over times of flows or groups, such as `workloads.web.slowdown.p99`.
fn is_path_of_times(path: &str) -> bool {
    let of_times = ["fct_us", "slowdown", "nic_wait_us", "groups", "fct_ratio_max", "completion_us"];
    path.split('.').any(|part| of_times.contains(&part))
}

/// Returns Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything (Jain, Chiu
/// and Hawe, 1984). `None` without values.
fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Parses names such as `fct_p99`. Returns `true` for slowdowns, and the statistic.
fn over_flows(name: &str) -> Option<(bool, Of)> {
    let (what, of) = name.split_once('_')?;
    let slowdown = match what {
        "slowdown" => true,
        "fct" => false,
        _ => return None,
    };
    let of = match of {
        "mean" => Of::Mean,
        "max" => Of::Quantile(1.0),
        _ => {
            let share: f64 = of.strip_prefix('p')?.parse().ok()?;
            (0.0..=100.0).contains(&share).then_some(Of::Quantile(share / 100.0))?
        }
    };
    Some((slowdown, of))
}

fn one(text: &str) -> Result<Kind, MetricError> {
    let wrong = |message: String, nearest| Err(MetricError { message, nearest });
    if let Some(metric) = OfComparison::named(text) {
        return Ok(Kind::Compared(metric));
    }
    if let Some((slowdown, of)) = over_flows(text) {
        return Ok(Kind::Flows { slowdown, of });
    }
    if let Some(of) = text.strip_prefix("jain(").and_then(|rest| rest.strip_suffix(')')) {
        if let "fct" | "slowdown" = of {
            return Ok(Kind::JainOfFlows { slowdown: of == "slowdown" });
        }
        let of = Metric::read(of)?;
        if !of.is_per_workload() {
            return wrong(format!("`{text}`: `{of}` is not kept per workload"), None);
        }
        return Ok(Kind::JainOfJobs(Box::new(of)));
    }
    if text == FLOW_COUNT {
        return Ok(Kind::Count);
    }
    if let Some((column, of)) = text.strip_prefix("flows.").and_then(|rest| rest.split_once('.'))
        && (of == "sum" || over_flows(&format!("fct_{of}")).is_some())
    {
        let Some(column) = FLOW_COLUMNS.iter().find(|name| **name == column) else {
            let near = anabranch_settings::nearest(column, FLOW_COLUMNS.iter().copied());
            return wrong(format!("`{text}`: no column `{column}`; there are {}", FLOW_COLUMNS.join(", ")), near);
        };
        return Ok(Kind::Column { column, of: over_flows(&format!("fct_{of}")).map(|(_, of)| of) });
    }
    if let Some(rest) = text.strip_prefix("links.") {
        return links(rest);
    }
    if let Some(rest) = text.strip_prefix("uplinks.spread") {
        let from = rest.strip_prefix("[from=").and_then(|rest| rest.strip_suffix(']'));
        return match (rest, from) {
            ("", _) => Ok(Kind::UplinkSpread { from: String::new() }),
            (_, Some(from)) => Ok(Kind::UplinkSpread { from: from.to_string() }),
            _ => wrong(format!("`{text}`: write uplinks.spread, or uplinks.spread[from=leaf0]"), None),
        };
    }
    let paths = numbers_of_a_summary();
    if paths.iter().any(|path| path == text) {
        return Ok(Kind::Path(text.to_string()));
    }
    // Names of workloads are unknown here.
    if let Some(rest) = text.strip_prefix("workloads.")
        && rest.match_indices('.').any(|(at, _)| paths.iter().any(|path| *path == rest[at + 1..]))
    {
        return Ok(Kind::Path(text.to_string()));
    }
    let names = METRICS.iter().map(|metric| metric.name).chain(paths.iter().map(String::as_str)).chain([FLOW_COUNT]);
    let near = anabranch_settings::nearest(text, names);
    let message = format!(
        "no metric is called `{text}`; metrics are those of `anabranch list metrics`, numbers of summary.json, flows.COLUMN.p99, links.COLUMN.sum"
    );
    wrong(message, near)
}

fn links(text: &str) -> Result<Kind, MetricError> {
    let wrong = |message: String, nearest| Err(MetricError { message, nearest });
    let (head, filters) = match text.split_once('[') {
        None => (text, ""),
        Some((head, rest)) => match rest.strip_suffix(']') {
            Some(filters) => (head, filters),
            None => return wrong(format!("`links.{text}`: the bracket is not closed"), None),
        },
    };
    let Some((column, of)) = head.split_once('.') else {
        return wrong(format!("`links.{text}`: write links.COLUMN.sum[rate=10Gbps], or mean, max, p99"), None);
    };
    if !COLUMNS.contains(&column) {
        let near = anabranch_settings::nearest(column, COLUMNS.iter().copied());
        return wrong(format!("`links.{text}`: no column `{column}`; there are {}", COLUMNS.join(", ")), near);
    }
    let of = match of {
        "sum" => None,
        _ => match over_flows(&format!("fct_{of}")) {
            Some((_, of)) => Some(of),
            None => {
                let near = anabranch_settings::nearest(of, ["sum", "mean", "max", "p99"]);
                return wrong(format!("`links.{text}`: found `{of}`, expected sum, mean, max or p99"), near);
            }
        },
    };
    let mut filter = LinkFilter::default();
    let mut seen = vec![];
    for part in filters.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if seen.contains(&key) {
            return wrong(format!("`links.{text}`: found `{key}` twice; one link has one"), None);
        }
        seen.push(key);
        if key == "direction" && !DIRECTIONS.contains(&value) {
            let message = format!("`links.{text}`: found `{value}`, expected one of {}", DIRECTIONS.join(", "));
            return wrong(message, anabranch_settings::nearest(value, DIRECTIONS.iter().copied()));
        }
        let text_value = Some(value.to_string()).filter(|value| !value.is_empty());
        match key {
            "rate" => match value.parse() {
                Ok(rate) => filter.rate = Some(rate),
                Err(_) => return wrong(format!("`links.{text}`: `{value}` is no rate"), None),
            },
            "tier" => filter.tier = text_value,
            "direction" => filter.direction = text_value,
            "from" => filter.from = text_value,
            "to" => filter.to = text_value,
            "failed" => match value.parse() {
                Ok(failed) => filter.failed = Some(failed),
                Err(_) => return wrong(format!("`links.{text}`: failed is true or false, found `{value}`"), None),
            },
            _ => {
                let near = anabranch_settings::nearest(key, FILTERS.iter().copied());
                let message = format!("`links.{text}`: no filter `{key}`; there are {}", FILTERS.join(", "));
                return wrong(message, near);
            }
        }
    }
    Ok(Kind::Links { column: column.to_string(), of, filter })
}

fn numbers_of_a_summary() -> Vec<String> {
    fn walk(path: &str, value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(members) => {
                for (key, value) in members {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    walk(&path, value, found);
                }
            }
            serde_json::Value::Number(_) | serde_json::Value::Null => found.push(path.to_string()),
            _ => {}
        }
    }
    let mut found = vec![];
    // With the parts that some runs lack.
    let groups_and_rest =
        FlowSummary { groups: Some(Default::default()), unlisted: Some(Default::default()), ..FlowSummary::default() };
    let all = Summary {
        conservation: Some(ConservationSummary::default()),
        all: groups_and_rest,
        scale_up: Some(Default::default()),
        machine_load: Some(Default::default()),
        ..Summary::default()
    };
    walk("", &serde_json::to_value(all).unwrap_or_default(), &mut found);
    let is_number = |key: &ColumnEntry| ["integer", "real"].contains(&key.kind.as_str());
    found.extend(Summary::keys().into_iter().filter(is_number).map(|key| key.name));
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uplinks_of_a_switch() {
        assert!(
            matches!(Metric::read("uplinks.spread[from=leaf0]").unwrap().kind, Kind::UplinkSpread { from } if from == "leaf0")
        );
        assert!(Metric::read("uplinks.spread[leaf0]").unwrap_err().message.contains("write uplinks.spread"));
    }

    #[test]
    fn jains_index_by_hand() {
        // 2, 2, 2: 36 / (3 * 12) = 1. 1, 2, 3: 36 / (3 * 14) = 6/7. One of four: 1/4.
        assert_eq!(jain(&[2.0; 3]), Some(1.0));
        assert_eq!(jain(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!((jain(&[5.0, 0.0, 0.0, 0.0]), jain(&[])), (Some(0.25), None));
        assert!(matches!(Metric::read("jain(fct)").unwrap().kind, Kind::JainOfFlows { slowdown: false }));
        assert!(matches!(Metric::read("jain(fct_max)").unwrap().kind, Kind::JainOfJobs(_)));
        assert!(Metric::read("jain(counters.flowlets)").unwrap_err().message.contains("not kept per workload"));
    }

    #[test]
    fn a_column_of_links_has_a_distribution() {
        let of = Metric::distribution_over_links("links.queue_max_bytes[tier=fabric]").unwrap();
        let ends = [&of[0], &of[of.len() - 1]].map(|(share, metric)| (*share, metric.name()));
        assert_eq!(ends[0], (0.0, "links.queue_max_bytes.p0[tier=fabric]"));
        assert_eq!(ends[1], (1.0, "links.queue_max_bytes.p100[tier=fabric]"));
        let error = Metric::distribution_over_links("links.queue_max").unwrap_err();
        assert!(error.message.contains("no column `queue_max`"), "{error:?}");
    }

    #[test]
    fn metrics_by_name() {
        for text in [
            "fct_mean",
            "slowdown_p99.9",
            "fct_ratio_max",
            "counters.probe_bytes",
            "counters.gaps_1_rtt / counters.gaps",
            "counters.gaps_1_rtt + counters.gaps_2_rtt / counters.gaps",
            "links.bytes.sum[rate=10Gbps,direction=up]",
            "links.utilisation.p99",
            "workloads.web.slowdown.p95",
            "flows",
            "flows.retransmitted_packets.sum",
            "queues.p99_bytes",
            // Parts that some runs lack.
            "groups.exposed_us.p50",
            "workloads.ring.groups.bus_bandwidth_bps",
            "unlisted.total",
            "scale_up.bytes",
            "skipped_s",
            "machine_load.late_share",
        ] {
            let metric = Metric::read(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!(metric.name(), text);
        }
        for (text, near) in [
            ("slowdwn_p99", Some("slowdown_p99")),
            ("counters.probe_byte", Some("counters.probe_bytes")),
            ("links.byte.sum", Some("bytes")),
            ("links.bytes.sum[rates=1Gbps]", Some("rate")),
            ("links.bytes.sum[rate=fast]", None),
            ("links.bytes.some", None),
            ("flows.retransmitted.sum", Some("retransmitted_packets")),
            ("links.bytes.sum[rate=1Gbps", None),
            ("links.bytes.sum[direction=up,direction=down]", None),
            ("links.bytes.sum[direction=upp]", Some("up")),
            ("links.bytes.summ", Some("sum")),
            ("fct_p101", Some("fct_p50")),
            ("", None),
            ("completion - fct_max - fct_max", None),
            ("fct_max / fct_mean / fct_max", None),
            ("fct_max / fct_mean + fct_max", None),
            ("fct_max + fct_mean - fct_max", None),
        ] {
            let error = Metric::read(text).unwrap_err();
            if near.is_some() {
                assert_eq!(error.nearest.as_deref(), near, "{text}: {error:?}");
            }
        }
    }

    #[test]
    fn quantiles_need_three_flows_beyond_them() {
        let of = |text: &str| Metric::read(text).unwrap().required_flows();
        assert_eq!(
            (of("slowdown_p99"), of("fct_p99"), of("fct_p95"), of("fct_p99.9")),
            (Some(300), Some(300), Some(60), Some(3000))
        );
        assert_eq!(
            (of("slowdown.p99"), of("workloads.web.fct_us.p95"), of("slowdown_p99_small"), of("groups.slowdown.p99")),
            (Some(300), Some(60), Some(300), None)
        );
        assert_eq!(
            (of("slowdown_p99 / slowdown_p50"), of("fct_p50 + fct_p95"), of("flows.retransmitted_packets.p99")),
            (Some(300), Some(60), Some(300))
        );
        // All flows count in a mean, one alone in a maximum, and half of them are beyond a median.
        assert_eq!(
            (of("slowdown_mean"), of("fct_max"), of("fct_p50"), of("queues.p99_bytes")),
            (None, None, None, None)
        );
    }

    #[test]
    fn times_are_unknown_while_flows_are_open() {
        let of = |text: &str| Metric::read(text).unwrap().is_of_times();
        for text in
            ["slowdown.p99", "fct_us.max", "workloads.web.slowdown.p95", "fct_p99.9", "jain(fct)", "fct_p99 - fct_p50"]
        {
            assert!(of(text), "{text}");
        }
        for text in
            ["counters.timeouts", "queues.p99_bytes", "flows", "links.bytes.sum", "workloads.web.flows.finished"]
        {
            assert!(!of(text), "{text}");
        }
    }

    #[test]
    fn bins_and_workloads_are_stored() {
        let of = |text: &str| {
            let metric = Metric::read(text).unwrap();
            (metric.is_per_workload(), metric.is_per_bin())
        };
        assert_eq!(of("slowdown_p99"), (true, true));
        assert_eq!(of("fct_ratio_max"), (true, false));
        assert_eq!(of("counters.flowlets"), (false, false));
        assert_eq!(of("slowdown_p99 / slowdown_mean"), (true, true));
    }
}
