use crate::{ALL, Comparison, ComparisonRow, INTERVAL, LETTERS, Metric, colours, undecided, wording};
use anabranch_results::{bytes, capital, letters, percent_change, significant_digits, significant_digits_trimmed};
use anabranch_statistics::{Method, about_seeds};
use minijinja::{Value, context};

/// Metrics of flows that fit side by side.
const FLOWS: &[&str] = &[
    "slowdown_p50",
    "slowdown_p99",
    "slowdown_max",
    "fct_mean",
    "fct_p99",
    "fct_ratio_max",
    "nic_wait_mean",
    "nic_wait_max",
];

const NETWORK: &[&str] =
    &["trimmed", "dropped", "retransmitted", "timeouts", "out_of_order_share", "packets_per_ack", "max_queue"];

/// Returns tables with a row per scheme, a cell per metric, the metric of the ranking first.
pub(super) fn per_workload(comparison: &Comparison, with_all: bool) -> Vec<Value> {
    let shown = comparison.shown(with_all);
    let several = shown.len() > 1;
    let table_of = |workload: &str| {
        let main = comparison.main_metric_of(workload);
        let names = std::iter::once(main).chain(FLOWS.iter().copied().filter(|name| *name != main));
        let pooled = several && workload == ALL;
        let measured = pooled || !several || comparison.measured.iter().any(|name| name == workload);
        context! {
            workload => several.then(|| comparison.label(workload)),
            pooled => pooled,
            measured => measured,
            ..table(comparison, workload, names.collect(), Some(main))
        }
    };
    shown.into_iter().map(table_of).collect()
}

/// `None` if all metrics are zero.
pub(super) fn network(comparison: &Comparison) -> Option<Value> {
    let tells = |name: &&&str| {
        comparison
            .schemes
            .iter()
            .any(|s| comparison.row(ALL, s, name).and_then(|row| row.mean).is_some_and(|m| m != 0.0))
    };
    NETWORK.iter().find(tells).map(|_| table(comparison, ALL, NETWORK.to_vec(), None))
}

fn table(comparison: &Comparison, workload: &str, names: Vec<&str>, main: Option<&str>) -> Value {
    let tells = |m: &&Metric| {
        let mean = |s: &String| comparison.row(workload, s, m.name).and_then(|row| row.mean);
        comparison.schemes.iter().filter_map(mean).any(|mean| mean != 0.0)
    };
    let metrics: Vec<&Metric> = names.into_iter().filter_map(Metric::named).filter(tells).collect();
    let group = |scheme: &String| {
        main.and_then(|main| comparison.row(workload, scheme, main)).map_or(String::new(), |row| letters(&row.group))
    };
    let grouped = comparison.schemes.iter().any(|scheme| !group(scheme).is_empty());
    let over = if main.is_some() { comparison.over_limits(workload) } else { vec![] };
    let rows: Vec<Value> = comparison
        .schemes
        .iter()
        .enumerate()
        .map(|(i, scheme)| {
            let mut cells: Vec<Value> = metrics
                .iter()
                .map(|m| {
                    // If all schemes tie, none is marked.
                    let lead = !ties_throughout(comparison, workload, m.name);
                    comparison.row(workload, scheme, m.name).map_or(Value::UNDEFINED, |row| cell(row, lead))
                })
                .collect();
            cells.extend(over.iter().map(|(_, values)| match values[i] {
                Some(value) => context! { text => significant_digits(value, 4), value => value },
                None => context! { text => "n/a", value => "" },
            }));
            let seeds = comparison.coverage.iter().find(|c| c.scheme == *scheme).map_or(0, |c| c.seeds.len());
            context! {
                scheme => scheme,
                series => i,
                colour => colours(&comparison.schemes)[i],
                baseline => *scheme == comparison.baseline,
                group => group(scheme),
                seeds => seeds,
                cells => cells,
            }
        })
        .collect();
    let mut heads: Vec<Value> = metrics
        .iter()
        .map(|m| context! { title => m.title, unit => if m.unit == "us" { "µs" } else { m.unit }, main => Some(m.name) == main })
        .collect();
    heads.extend(over.iter().map(|(title, _)| context! { title => title, unit => "", main => false }));
    context! { heads => heads, rows => rows, grouped => grouped }
}

/// Means that all differ by less than this share, 0.1 % as the page rounds it, are the same to a reader: none is marked as the lowest.
const SAME: f64 = 0.0015;

fn ties_throughout(comparison: &Comparison, workload: &str, metric: &str) -> bool {
    let rows: Vec<&ComparisonRow> =
        comparison.schemes.iter().filter_map(|scheme| comparison.row(workload, scheme, metric)).collect();
    let means = || rows.iter().filter_map(|row| row.mean);
    let (least, most) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
    rows.iter().all(|row| row.leads()) || (least > 0.0 && most / least < 1.0 + SAME)
}

pub(super) fn legend(comparison: &Comparison) -> String {
    let rows = wording::main_rows(comparison);
    if comparison.compared_seeds.len() == 1 {
        let mut parts = vec!["One seed: no confidence interval and no test.".to_string()];
        parts.extend(wording::censored_lines(comparison).into_iter().map(|line| format!("{line}.")));
        return parts.join(" ");
    }
    let mut parts = vec![format!("Mean over seeds, {INTERVAL}.")];
    match wording::has_letters(comparison) {
        true => parts.push(format!("{}; \u{2713} marks the lowest and all that tie with it.", capital(LETTERS))),
        false if rows.iter().filter(|row| row.ranks()).count() > 1 => {
            parts.push(format!("{}.", capital(&undecided(&rows))));
        }
        false => {}
    }
    if let Some(tests) = wording::tests_line(comparison) {
        parts.push(format!(
            "Below each mean the change against {}: coloured where it is significant, grey and n.s. where it is not.",
            comparison.baseline
        ));
        parts.push(format!("{}.", capital(&tests)));
    }
    parts.extend(wording::needed_line(comparison).map(|line| format!("{}.", capital(&line))));
    parts.extend(wording::sequential_line(comparison).map(|line| format!("{}.", capital(&line))));
    parts.extend(comparison.limit_lines().into_iter().map(|line| format!("{}.", capital(&line))));
    parts.extend(wording::censored_lines(comparison).into_iter().map(|line| format!("{line}.")));
    parts.join(" ")
}

fn cell(row: &ComparisonRow, lead: bool) -> Value {
    let Some(mean) = row.mean else { return context! { text => "n/a", value => "" } };
    let change = row.ratio_to_baseline.filter(|_| row.difference.is_some()).map(percent_change);
    let has_best = Metric::named(row.metric).is_some_and(Metric::has_best);
    let side = match (row.significant, row.difference) {
        (Some(true), _) if !has_best => "",
        (Some(true), Some(d)) if d < 0.0 => "better",
        (Some(true), Some(d)) if d > 0.0 => "worse",
        // A difference of zero at every seed is not marked as unsure.
        (Some(false), _) if row.p_value.is_some() => "unsure",
        _ => "",
    };
    let text = match row.unit {
        "bytes" => bytes(mean),
        "packets" => significant_digits_trimmed(mean, 4),
        _ => significant_digits(mean, if mean >= 1000.0 { 4 } else { 3 }),
    };
    let half = |half: f64| if row.unit == "bytes" { bytes(half) } else { significant_digits(half, 2) };
    let test = match row.test {
        Some(Method::Blocked) => "t-test blocked over seeds",
        Some(Method::Separated) => "one value at every seed, all values of the other beyond it",
        _ => "paired t-test",
    };
    let needs = match (row.significant, row.test) {
        (Some(false), Some(Method::Blocked | Method::Paired)) => format!("; needs {}", about_seeds(row.seeds_needed)),
        _ => String::new(),
    };
    let sure = match (row.p_holm, row.test) {
        (Some(p), _) if p < 0.001 => Some(format!("{test}, Holm's correction: p < 0.001")),
        (Some(p), _) => Some(format!("{test}, Holm's correction: p = {p:.3}{needs}")),
        (None, Some(Method::FewSeeds)) => Some("too few seeds for a test".to_string()),
        (None, Some(Method::Equal)) => Some("equal at every seed".to_string()),
        (None, Some(Method::Constant)) => {
            Some("the same difference at every seed: no variance to test against".to_string())
        }
        _ => None,
    };
    context! {
        text => text,
        value => mean,
        half => row.spread(half),
        change => change,
        side => side,
        best => row.leads() && lead,
        sure => sure,
        unfinished => !row.ranks(),
    }
}
