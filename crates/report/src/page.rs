//! `report.html`: one page that holds everything it shows, opens offline and follows the reader's light or dark theme.

use crate::{
    comparison::{Comparison, ComparisonRow, Metric},
    dataset::{Dataset, RunRows},
    error::ReportError,
    figures::{BOLD, Figure, REGULAR, SERIES},
    headline::{self, seconds},
    numbers::{bytes, percent_change, significant_digits, significant_digits_trimmed, thousands},
    summary::Summary,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use minijinja::{AutoEscape, Environment, Value, context};

const TEMPLATE: &str = include_str!("page/report.html.jinja");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/sort.js");

/// Metrics a page has room for side by side.
const COLUMNS: &[&str] = &[
    "slowdown_p50",
    "slowdown_p99",
    "slowdown_max",
    "fct_mean",
    "fct_p99",
    "fct_ratio_max",
    "completion",
    "trimmed",
    "dropped",
    "retransmitted",
    "out_of_order_share",
    "packets_per_ack",
    "max_queue",
];

/// Ports listed as the deepest per scheme.
const PORTS: usize = 10;

/// The page over `data`; `comparison` where it is of several runs.
pub(crate) fn render(
    data: &Dataset,
    comparison: Option<&Comparison>,
    figures: &[Figure],
) -> Result<String, ReportError> {
    let wrong = |error: minijinja::Error| ReportError::drawing("report.html", error);
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("report.html", TEMPLATE).map_err(wrong)?;
    let summaries: Vec<Summary> = data.summaries().cloned().collect();
    let first = summaries.first();
    let headline = match (comparison, first) {
        (Some(comparison), _) => comparison.headline(&summaries),
        (None, Some(run)) => headline::of_run(run),
        (None, None) => vec![],
    };
    let figures: Vec<Value> = figures
        .iter()
        .map(|f| context! { name => f.name, title => &f.title, caption => &f.caption, svg => Value::from_safe_string(f.svg.clone()) })
        .collect();
    let fonts = [(REGULAR, 400), (BOLD, 600)]
        .map(|(font, weight)| context! { weight => weight, data => BASE64_STANDARD.encode(font) });
    let m = &data.manifest;
    let page = context! {
        style => Value::from_safe_string(STYLE.to_string()),
        script => Value::from_safe_string(SCRIPT.to_string()),
        fonts => fonts,
        title => &m.name,
        comparison => comparison.is_some(),
        schemes => data.schemes.iter().map(|scheme| scheme.name.clone()).collect::<Vec<_>>(),
        baseline => comparison.map(|c| &c.baseline),
        seeds => ranges(&data.seeds()),
        headline => headline,
        warnings => warnings(&summaries),
        tiles => if comparison.is_none() { first.map(tiles).unwrap_or_default() } else { vec![] },
        tables => comparison.map(tables).unwrap_or_default(),
        figures => figures,
        ports => data.schemes.iter().enumerate().map(|(i, s)| ports(i, &s.name, &s.runs[0])).collect::<Vec<_>>(),
        workloads => if comparison.is_none() { first.map(workloads).unwrap_or_default() } else { vec![] },
        balances => if comparison.is_none() { first.map(balances).unwrap_or_default() } else { vec![] },
        runs => summaries.iter().map(run).collect::<Vec<_>>(),
        facts => facts(data, first),
        scenario => &m.scenario,
    };
    environment.get_template("report.html").and_then(|template| template.render(page)).map_err(wrong)
}

/// `1-10, 12`.
fn ranges(seeds: &[u64]) -> String {
    let parts = seeds.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}\u{2013}{last}"),
        _ => run[0].to_string(),
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn warnings(runs: &[Summary]) -> Vec<String> {
    let mut warnings = vec![];
    for run in runs {
        let of = if runs.len() > 1 { format!("{}, seed {}: ", run.scheme, run.seed) } else { String::new() };
        warnings.extend(run.warnings().into_iter().map(|warning| format!("{of}{warning}")));
    }
    const MOST: usize = 12;
    if warnings.len() > MOST {
        let more = warnings.len() - MOST;
        warnings.truncate(MOST);
        warnings.push(format!("{more} more of the kind; every run's `summary.json` says which."));
    }
    warnings
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".to_string(), |value| significant_digits(value, 3))
}

fn count(value: u64) -> String {
    thousands(&value.to_string())
}

/// The main numbers of a single run.
fn tiles(run: &Summary) -> Vec<Value> {
    let c = &run.counters;
    let share = |part: u64| match c.data_packets {
        0 => String::new(),
        all => format!("{} % of data packets", significant_digits_trimmed(100.0 * part as f64 / all as f64, 2)),
    };
    let tile = |name: &str, value: String, note: String| context! { name => name, value => value, note => note };
    let kind = if run.all.fct_kind == crate::FctKind::Rx { "at the receiver" } else { "to the last ACK" };
    vec![
        tile("Slowdown, median", number(run.all.slowdown.p50), format!("mean {}", number(run.all.slowdown.mean))),
        tile("Slowdown, p99", number(run.all.slowdown.p99), format!("max {}", number(run.all.slowdown.max))),
        tile("FCT, mean", format!("{} µs", number(run.all.fct_us.mean)), kind.to_string()),
        tile(
            "FCT, max",
            format!("{} µs", number(run.all.fct_us.max)),
            format!("p99 {} µs", number(run.all.fct_us.p99)),
        ),
        tile("Max FCT over ideal", number(run.all.fct_ratio_max), "slowest flow, 1 is ideal".to_string()),
        tile("Marked (ECN)", count(c.ecn_marked), share(c.ecn_marked)),
        tile("Trimmed", count(c.trimmed), share(c.trimmed)),
        tile("Dropped", count(c.dropped), format!("{} retransmitted", count(c.retransmitted))),
        tile("Out of order", count(c.out_of_order), share(c.out_of_order)),
        tile("Largest queue", bytes(run.queues.max_bytes as f64), "waiting data at a switch port".to_string()),
    ]
}

/// A table per workload: a row per scheme, a cell per metric.
fn tables(comparison: &Comparison) -> Vec<Value> {
    let table = |workload: &str| {
        let means = |m: &Metric| -> Vec<f64> {
            let mean = |s: &String| comparison.row(workload, s, m.name)?.mean;
            comparison.schemes.iter().filter_map(mean).collect()
        };
        // What is nought for every scheme tells nothing.
        let tells = |m: &&Metric| means(m).iter().any(|mean| *mean != 0.0);
        let metrics: Vec<&Metric> = COLUMNS.iter().filter_map(|name| Metric::named(name)).filter(tells).collect();
        let rows: Vec<Value> = comparison
            .schemes
            .iter()
            .enumerate()
            .map(|(i, scheme)| {
                let cells: Vec<Value> =
                    metrics.iter().map(|m| comparison.row(workload, scheme, m.name).map_or(Value::UNDEFINED, cell)).collect();
                context! { scheme => scheme, series => i % SERIES.len(), baseline => *scheme == comparison.baseline, cells => cells }
            })
            .collect();
        let heads: Vec<Value> = metrics
            .iter()
            .map(|m| context! { title => m.title, unit => if m.unit == "us" { "µs" } else { m.unit }, main => m.name == comparison.main_metric })
            .collect();
        context! { workload => workload, heads => heads, rows => rows }
    };
    comparison.workloads().into_iter().map(table).collect()
}

fn cell(row: &ComparisonRow) -> Value {
    let Some(mean) = row.mean else { return context! { text => "n/a", value => "" } };
    let compared = row.difference.is_some();
    let change = row.ratio_to_baseline.filter(|_| compared).map(percent_change);
    let side = match (row.significant, row.difference) {
        (Some(true), Some(d)) if d < 0.0 => "better",
        (Some(true), Some(d)) if d > 0.0 => "worse",
        (Some(false), _) => "unsure",
        _ => "",
    };
    let text = match row.unit {
        "bytes" => bytes(mean),
        "packets" => significant_digits_trimmed(mean, 4),
        _ => significant_digits(mean, if mean >= 1000.0 { 4 } else { 3 }),
    };
    let half = |half: f64| if row.unit == "bytes" { bytes(half) } else { significant_digits(half, 2) };
    context! {
        text => text,
        value => mean,
        half => row.ci95_half_width.map(half),
        change => change,
        side => side,
        best => row.best,
        p => row.p_value.map(|p| format!("p = {p:.3}")),
        unfinished => row.unfinished_flows > 0 && Metric::named(row.metric).is_some_and(Metric::is_of_flows),
    }
}

/// The ports of a run where most data waited.
fn ports(series: usize, scheme: &str, run: &RunRows) -> Value {
    let mut links: Vec<_> = run.links.iter().filter(|link| !link.is_nic()).collect();
    links.sort_by(|a, b| b.queue_max_bytes.total_cmp(&a.queue_max_bytes).then(b.utilisation.total_cmp(&a.utilisation)));
    let row = |link: &&crate::dataset::LinkPoint| {
        context! {
            from => &link.from,
            to => &link.to,
            group => link.group(),
            utilisation => format!("{} %", significant_digits(link.utilisation * 100.0, 3)),
            share => (link.utilisation * 100.0).clamp(0.0, 100.0),
            mean => bytes(link.queue_mean_bytes),
            p99 => bytes(link.queue_p99_bytes),
            max => bytes(link.queue_max_bytes),
            marks => count(link.ecn_marks),
            trims => count(link.trims),
            drops => count(link.drops),
        }
    };
    let rows: Vec<Value> = links.iter().take(PORTS).map(row).collect();
    context! { scheme => scheme, series => series % SERIES.len(), seed => run.summary.seed, rows => rows }
}

/// The statistics of each workload of a single run, where there are several.
fn workloads(run: &Summary) -> Vec<Value> {
    if run.workloads.len() < 2 {
        return vec![];
    }
    let row = |(name, w): (&String, &crate::summary::FlowSummary)| {
        context! {
            name => name,
            measured => w.measured,
            finished => count(w.flows.finished),
            total => count(w.flows.total),
            fct_mean => number(w.fct_us.mean),
            fct_p99 => number(w.fct_us.p99),
            p50 => number(w.slowdown.p50),
            p99 => number(w.slowdown.p99),
            max => number(w.slowdown.max),
            ratio => number(w.fct_ratio_max),
        }
    };
    run.workloads.iter().map(row).collect()
}

/// The conservation check of a single run.
fn balances(run: &Summary) -> Vec<Value> {
    let c = &run.conservation;
    let lines = [
        ("data packets", &c.data_packets),
        ("bytes of data packets", &c.data_bytes),
        ("headers of trimmed packets", &c.headers),
        ("ACKs and NACKs", &c.acks),
        ("bytes of ACKs and NACKs", &c.ack_bytes),
    ];
    let row = |(name, b): (&str, &crate::summary::BalanceSummary)| {
        context! {
            name => name,
            cells => [b.injected, b.delivered, b.dropped, b.trimmed, b.in_flight].map(count),
        }
    };
    lines.into_iter().map(row).collect()
}

fn run(run: &Summary) -> Value {
    context! {
        scheme => &run.scheme,
        seed => run.seed,
        finished => count(run.all.flows.finished),
        total => count(run.all.flows.total),
        measured => count(run.all.flows.measured),
        simulated => seconds(run.simulated_s),
        wall => seconds(run.wall_s),
        speed => format!("{} M", significant_digits(run.packet_hops_per_s / 1e6, 3)),
        memory => run.peak_rss_bytes.map_or_else(|| "n/a".to_string(), |b| bytes(b as f64)),
        fingerprint => &run.fingerprint,
        holds => run.conservation.holds,
    }
}

/// Where the results come from, as pairs of name and value.
fn facts(data: &Dataset, first: Option<&Summary>) -> Vec<Value> {
    let m = &data.manifest;
    let fact = |name: &str, value: String| context! { name => name, value => value };
    let kind = match first.map(|run| run.all.fct_kind) {
        Some(crate::FctKind::Ack) => "start to last acknowledgement at the sender (ack)",
        _ => "first packet sent to last packet received (rx)",
    };
    let warmup = first.map_or(0.0, |run| run.warmup_s);
    vec![
        fact("Version", format!("Anabranch {}, commit {}", m.version, m.commit)),
        fact("Scenario hash", m.scenario_hash.clone()),
        fact("Seeds", ranges(&data.seeds())),
        fact("Threads", m.threads.to_string()),
        fact("Machine", m.machine.clone()),
        fact("Wall time", seconds(m.wall_s)),
        fact("Completion time", kind.to_string()),
        fact("Warm-up", if warmup > 0.0 { seconds(warmup) } else { "none".to_string() }),
        fact("Quantiles", "linear between order statistics".to_string()),
    ]
}
