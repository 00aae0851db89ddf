//! Metric of a run, by name: of a comparison, a quantile of flow times, a number of the summary, a sum over links, or
//! two of these with `/`, `+` or `-` between them.

use anabranch_report::{
    ColumnEntry, ConservationSummary, FLOW_METRICS, FlowSummary, Frame, METRICS, Metric as OfComparison, ReportError,
    Summary, mean, quantile, read_summary,
};
use anabranch_units::Rate;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

/// Name of all workloads, or all bins, together.
pub(super) const ALL: &str = "all";
/// Metric that counts finished flows.
const FLOW_COUNT: &str = "flows";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Mean,
    /// Quantile from 0 to 1.
    Quantile(f64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkFilter {
    rate: Option<Rate>,
    tier: Option<String>,
    direction: Option<String>,
    failed: Option<bool>,
    from: Option<String>,
    to: Option<String>,
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
    /// Unevenness of the uplinks of switches whose names begin with this, over flows.
    UplinkSpread { from: String },
    /// Jain's index over the finished flows: of their slowdowns, else of their times.
    JainOfFlows { slowdown: bool },
    /// Jain's index of a metric over the measured workloads: the jobs.
    JainOfJobs(Box<Metric>),
    /// Two metrics with an operator.
    Two(Box<Metric>, char, Box<Metric>),
}

/// Metric of a run.
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

/// Error for a text that is not a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricError {
    /// Description of the error.
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

const FILTERS: &[&str] = &["rate", "tier", "direction", "failed", "from", "to"];

impl Metric {
    /// Parses a metric.
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
        match &self.kind {
            Kind::Compared(metric) => metric.is_of_flows(),
            Kind::Flows { .. } | Kind::Count | Kind::Column { .. } | Kind::JainOfFlows { .. } => true,
            Kind::Path(_) | Kind::Links { .. } | Kind::UplinkSpread { .. } | Kind::JainOfJobs(_) => false,
            Kind::Two(left, _, right) => left.is_per_workload() && right.is_per_workload(),
        }
    }

    /// Returns `true` if the metric is available per bin of flow sizes.
    pub fn is_per_bin(&self) -> bool {
        match &self.kind {
            Kind::Compared(metric) => over_flows(metric.name).is_some(),
            Kind::Flows { .. } | Kind::Count | Kind::Column { .. } | Kind::JainOfFlows { .. } => true,
            Kind::Path(_) | Kind::Links { .. } | Kind::UplinkSpread { .. } | Kind::JainOfJobs(_) => false,
            Kind::Two(left, _, right) => left.is_per_bin() && right.is_per_bin(),
        }
    }

    /// Returns `true` if the metric is over times of flows. It then has no finite value if some of them never end.
    fn is_of_times(&self) -> bool {
        match &self.kind {
            Kind::Compared(metric) => metric.is_of_flows(),
            Kind::Flows { .. } | Kind::JainOfFlows { .. } => true,
            Kind::Count | Kind::Column { .. } | Kind::Path(_) | Kind::Links { .. } | Kind::UplinkSpread { .. } => false,
            Kind::JainOfJobs(of) => of.is_of_times(),
            Kind::Two(left, _, right) => left.is_of_times() || right.is_of_times(),
        }
    }

    /// Returns the number of flows below which the metric is no more than its few slowest flows: three beyond a quantile, so
    /// 300 for a 99th percentile; `None` if it is no quantile of flows from the 95th on.
    pub(crate) fn required_flows(&self) -> Option<u64> {
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

    /// Returns the metric that counts the finished flows.
    pub(crate) fn flow_count() -> Self {
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

    /// Returns the title for tables and figures.
    pub fn title(&self) -> String {
        let (title, unit) = match &self.kind {
            Kind::Compared(metric) => (metric.title.to_string(), metric.unit),
            Kind::Flows { slowdown, of } => {
                let what = if *slowdown { "slowdown" } else { "FCT" };
                let of = match of {
                    Of::Mean => "mean".to_string(),
                    Of::Quantile(q) if *q >= 1.0 => "max".to_string(),
                    Of::Quantile(q) => format!("p{}", (q * 1e6).round() / 1e4),
                };
                (format!("{what}, {of}"), if *slowdown { "" } else { "us" })
            }
            _ => (self.text.clone(), ""),
        };
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
    ///
    /// # Errors
    /// [`MetricError`] for an unknown column or filter.
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
            return Some(f64::INFINITY);
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
                match of {
                    None => (!values.is_empty()).then(|| values.iter().sum()),
                    Some(of) => take(&values, *of),
                }
            }
            Kind::Path(path) => path.split('.').try_fold(&run.json, |at, part| at.get(part))?.as_f64(),
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

    fn needs_flows(&self, bins: bool) -> bool {
        match &self.kind {
            Kind::Compared(metric) => bins && over_flows(metric.name).is_some(),
            Kind::Flows { .. } | Kind::Count | Kind::Column { .. } | Kind::JainOfFlows { .. } => true,
            Kind::Path(_) | Kind::Links { .. } | Kind::UplinkSpread { .. } => false,
            Kind::JainOfJobs(of) => of.needs_flows(bins),
            Kind::Two(left, _, right) => left.needs_flows(bins) || right.needs_flows(bins),
        }
    }

    fn needs_links(&self) -> bool {
        match &self.kind {
            Kind::Links { .. } => true,
            Kind::Two(left, _, right) => left.needs_links() || right.needs_links(),
            _ => false,
        }
    }

    fn needs_uplinks(&self) -> bool {
        match &self.kind {
            Kind::UplinkSpread { .. } => true,
            Kind::Two(left, _, right) => left.needs_uplinks() || right.needs_uplinks(),
            _ => false,
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

/// Returns the largest value less the smallest over the mean; `None` without a mean above 0.
fn spread(values: &[f64]) -> Option<f64> {
    let ends = values.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
    let mean = mean(values).filter(|mean| *mean > 0.0)?;
    Some((ends.1 - ends.0) / mean)
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
        && let Some((_, rest)) = rest.split_once('.')
        && paths.iter().any(|path| path == rest)
    {
        return Ok(Kind::Path(text.to_string()));
    }
    let names = METRICS.iter().map(|metric| metric.name).chain(paths.iter().map(String::as_str)).chain([FLOW_COUNT]);
    let near = anabranch_settings::nearest(text, names);
    wrong(format!("no metric `{text}`: neither of comparison.csv nor a number of summary.json, and no `links.`"), near)
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
            None => return wrong(format!("`links.{text}`: found `{of}`, expected sum, mean, max or p99"), None),
        },
    };
    let mut filter = LinkFilter::default();
    for part in filters.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
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

/// Finished flow that counts.
#[derive(Clone, Copy, Debug)]
struct FlowValue {
    size: u64,
    slowdown: f64,
    time_us: f64,
    workload: usize,
    columns: [f64; FLOW_COLUMNS.len()],
}

#[derive(Clone, Copy, Debug)]
enum Pick {
    Slowdown,
    Time,
    Column(usize),
}

#[derive(Clone, Debug)]
struct LinkValue {
    rate: u64,
    words: [String; 5],
    values: Vec<f64>,
}

/// Data of a run that the metrics need.
#[derive(Debug)]
pub struct RunData {
    /// Summary of the run.
    pub summary: Summary,
    json: serde_json::Value,
    flows: Vec<FlowValue>,
    /// Sizes and workloads of the flows that count and did not finish.
    unfinished: Vec<(u64, usize)>,
    workloads: Vec<String>,
    links: Vec<LinkValue>,
    /// Per uplink (its two switches), the data packets of each flow on it.
    uplinks: BTreeMap<(String, String), Vec<f64>>,
    bins: BTreeMap<String, (u64, u64)>,
}

impl RunData {
    /// Reads the data that `metrics` need from the run in `directory`; `bins` are names with their ranges of sizes.
    /// `None` if there is no finished run.
    pub fn read<'m>(
        directory: &Path,
        metrics: impl Iterator<Item = &'m Metric> + Clone,
        bins: BTreeMap<String, (u64, u64)>,
    ) -> Result<Option<Self>, ReportError> {
        let Some(summary) = read_summary(directory)? else { return Ok(None) };
        let json = serde_json::to_value(&summary).unwrap_or_default();
        let workloads = summary.workloads.keys().cloned().collect();
        let mut data = RunData {
            summary,
            json,
            flows: vec![],
            unfinished: vec![],
            workloads,
            links: vec![],
            uplinks: BTreeMap::new(),
            bins,
        };
        if metrics.clone().any(Metric::needs_uplinks) {
            data.read_uplinks(directory)?;
        }
        if metrics.clone().any(|metric| metric.needs_flows(!data.bins.is_empty())) {
            data.read_flows(directory)?;
        }
        if metrics.clone().any(Metric::needs_links) {
            data.read_links(directory)?;
        }
        Ok(Some(data))
    }

    fn read_flows(&mut self, directory: &Path) -> Result<(), ReportError> {
        let time = match self.summary.all.fct_kind {
            anabranch_report::FctKind::Rx => "fct_rx_ps",
            anabranch_report::FctKind::Ack => "fct_ack_ps",
        };
        let columns: Vec<&str> =
            ["slowdown", "measured", "workload", time].into_iter().chain(FLOW_COLUMNS.iter().copied()).collect();
        let Some(frame) = Frame::read(directory, "flows", &columns)? else { return Ok(()) };
        let (sizes, slowdowns, times) = (frame.integers("size_bytes"), frame.reals("slowdown"), frame.integers(time));
        let (names, counts) = (frame.texts("workload"), frame.flags("measured"));
        let unmeasured = |name: &String| self.summary.workloads.get(name).is_some_and(|workload| !workload.measured);
        let place = |row: usize| {
            let name = names.get(row)?;
            if !*counts.get(row)? && !unmeasured(name) {
                return None;
            }
            Some(((*sizes.get(row)?)?, self.workloads.iter().position(|known| known == name)?))
        };
        let flow = |row: usize| {
            let (size, workload) = place(row)?;
            let (slowdown, time) = ((*slowdowns.get(row)?)?, (*times.get(row)?)?);
            let whole =
                |name: &str| frame.integers(name).get(row).copied().flatten().map_or(f64::NAN, |value| value as f64);
            let columns = FLOW_COLUMNS.map(whole);
            Some(FlowValue { size, slowdown, time_us: time as f64 / 1e6, workload, columns })
        };
        let finished = |row: &usize| times.get(*row).is_some_and(Option::is_some);
        self.unfinished = (0..frame.rows()).filter(|row| !finished(row)).filter_map(place).collect();
        self.flows = (0..frame.rows()).filter_map(flow).collect();
        Ok(())
    }

    fn read_links(&mut self, directory: &Path) -> Result<(), ReportError> {
        const WORDS: [&str; 5] = ["tier", "direction", "from", "to", "fault"];
        let columns: Vec<&str> = WORDS.iter().chain(COLUMNS).copied().chain(["rate_bps"]).collect();
        let Some(frame) = Frame::read(directory, "links", &columns)? else { return Ok(()) };
        let number = |name: &str, row: usize| {
            let whole = frame.integers(name).get(row).copied().flatten().map(|value| value as f64);
            whole.or_else(|| frame.reals(name).get(row).copied().flatten()).unwrap_or(f64::NAN)
        };
        let link = |row: usize| LinkValue {
            rate: frame.integers("rate_bps").get(row).copied().flatten().unwrap_or_default(),
            words: WORDS.map(|name| frame.texts(name).get(row).cloned().unwrap_or_default()),
            values: COLUMNS.iter().map(|name| number(name, row)).collect(),
        };
        self.links = (0..frame.rows()).map(link).collect();
        Ok(())
    }

    fn read_uplinks(&mut self, directory: &Path) -> Result<(), ReportError> {
        let columns = ["flow_id", "from", "to", "packets"];
        let Some(frame) = Frame::read(directory, "uplinks", &columns)? else { return Ok(()) };
        let (flows, from, to) = (frame.integers("flow_id"), frame.texts("from"), frame.texts("to"));
        let packets = frame.integers("packets");
        let mut of_switch: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for row in 0..frame.rows() {
            if let (Some(Some(flow)), Some(from), Some(to), Some(Some(packets))) =
                (flows.get(row), from.get(row), to.get(row), packets.get(row))
            {
                of_switch.entry(from).or_default().insert(*flow);
                self.uplinks.entry((from.clone(), to.clone())).or_default().push(*packets as f64);
            }
        }
        // A flow without a row for an uplink of its switch has sent nothing there.
        for ((from, _), packets) in &mut self.uplinks {
            let flows = of_switch.get(from.as_str()).map_or(0, BTreeSet::len);
            packets.resize(flows.max(packets.len()), 0.0);
        }
        Ok(())
    }

    /// Returns the mean over uplinks of what one flow puts on it most less what one puts there least, over the mean of all
    /// flows; `None` where uplinks were not counted.
    fn uplink_spread(&self, from: &str) -> Option<f64> {
        let of =
            self.uplinks.iter().filter(|((own, _), _)| own.starts_with(from)).filter_map(|(_, flows)| spread(flows));
        let spreads: Vec<f64> = of.collect();
        take(&spreads, Of::Mean)
    }

    /// Returns `true` if a deadlock, a stall or the time limit ended the run before flows that count had finished.
    fn has_unfinished_flows(&self, workload: &str, bin: &str) -> bool {
        let flows = if workload == ALL { Some(&self.summary.all) } else { self.summary.workloads.get(workload) };
        let ended_early = self.summary.time_limit_struck
            || self.summary.last_progress_s.is_some()
            || !self.summary.deadlock.is_empty();
        if !ended_early || flows.is_none_or(|flows| flows.flows.measured_unfinished == 0) {
            return false;
        }
        let in_bin = self.bins.get(bin).copied().unwrap_or((0, u64::MAX));
        bin == ALL || self.unfinished.iter().any(|flow| self.belongs(*flow, workload, in_bin))
    }

    /// Returns `true` if a flow, by size and workload, is of the workload and within a range of sizes.
    fn belongs(&self, (size, own): (u64, usize), workload: &str, (from, to): (u64, u64)) -> bool {
        let name = &self.workloads[own];
        let is_of_it = if workload == ALL { self.summary.workloads[name].measured } else { name == workload };
        is_of_it && (from..to).contains(&size)
    }

    /// Returns the values of the flows of a workload and bin, ascending.
    fn sorted(&self, pick: Pick, workload: &str, bin: &str) -> Vec<f64> {
        let range = self.bins.get(bin).copied().unwrap_or((0, u64::MAX));
        let belongs = |flow: &&FlowValue| self.belongs((flow.size, flow.workload), workload, range);
        let value = |flow: &FlowValue| match pick {
            Pick::Slowdown => flow.slowdown,
            Pick::Time => flow.time_us,
            Pick::Column(place) => flow.columns[place],
        };
        // A value that was not measured is not finite.
        let mut values: Vec<f64> =
            self.flows.iter().filter(belongs).map(value).filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    fn over_flows(&self, slowdown: bool, of: Of, workload: &str, bin: &str) -> Option<f64> {
        take(&self.sorted(if slowdown { Pick::Slowdown } else { Pick::Time }, workload, bin), of)
    }

    fn over_links(&self, column: &str, of: Option<Of>, filter: &LinkFilter) -> Option<f64> {
        let place = COLUMNS.iter().position(|name| *name == column)?;
        let fits = |link: &&LinkValue| {
            let [tier, direction, from, to, fault] = &link.words;
            filter.rate.is_none_or(|rate| rate.0 == link.rate)
                && filter.tier.as_ref().is_none_or(|required| required == tier)
                && filter.direction.as_ref().is_none_or(|required| required == direction)
                && filter.failed.is_none_or(|required| required != fault.is_empty())
                && filter.from.as_ref().is_none_or(|prefix| from.starts_with(prefix))
                && filter.to.as_ref().is_none_or(|prefix| to.starts_with(prefix))
        };
        let mut values: Vec<f64> =
            self.links.iter().filter(fits).map(|link| link.values[place]).filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        match of {
            None => (!values.is_empty()).then(|| values.iter().sum()),
            Some(of) => take(&values, of),
        }
    }
}

fn take(sorted: &[f64], of: Of) -> Option<f64> {
    match of {
        Of::Mean => mean(sorted),
        Of::Quantile(share) => quantile(sorted, share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_an_uplink_by_hand() {
        // 8, 10, 12 packets of three flows: (12 - 8) / 10.
        assert_eq!((spread(&[8.0, 10.0, 12.0]), spread(&[5.0; 4]), spread(&[])), (Some(0.4), Some(0.0), None));
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
    fn bins_without_unfinished_flows_have_no_value() {
        let mut summary = Summary { time_limit_struck: true, ..Summary::default() };
        summary.all.flows.measured_unfinished = 1;
        summary.workloads.insert("web".into(), FlowSummary { measured: true, ..FlowSummary::default() });
        let bins = [("<2kB", (0, 2_000)), (">=2kB", (2_000, u64::MAX))].map(|(name, range)| (name.to_string(), range));
        let run = RunData {
            summary,
            json: serde_json::Value::Null,
            flows: vec![],
            unfinished: vec![(64_000, 0)],
            workloads: vec!["web".into()],
            links: vec![],
            uplinks: BTreeMap::new(),
            bins: bins.into(),
        };
        let of = |bin: &str| Metric::read("slowdown_mean").unwrap().value(&run, ALL, bin);
        assert_eq!((of("<2kB"), of(">=2kB"), of(ALL)), (None, Some(f64::INFINITY), Some(f64::INFINITY)));
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
