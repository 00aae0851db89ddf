//! What each scheme did: its counters per scheme, and notes where it hardly acted or the fabric does not suit it.

use crate::{Dataset, colours, comparison::alike};
use anabranch_outcome::RunMetrics;
use anabranch_results::{Summary, list, significant_digits, significant_digits_trimmed, thousands};
use anabranch_statistics::mean;
use minijinja::{Value, context};
use toml::Table;

type Count = fn(&RunMetrics) -> Option<u64>;

const COUNTS: [(&str, Count); 10] = [
    ("path changes", |c| c.path_switches),
    ("reroutes by switches", |c| c.reroutes),
    ("flowlets", |c| c.flowlets),
    ("flowlets made by hosts", |c| c.created_flowlets),
    ("probes", |c| c.probes),
    ("ECN marks", |c| c.ecn_marked),
    ("trims", |c| c.trimmed),
    ("drops", |c| c.dropped),
    ("timeouts", |c| c.timeouts),
    ("out of order", |c| c.out_of_order),
];

/// Path changes per flow below which a scheme hardly acts.
const FEW_MOVES: f64 = 0.05;
/// Share of pairs of packets a round trip apart below which flows have no flowlets to move.
const FEW_GAPS: f64 = 1e-3;
/// Share of arrivals out of order from which go-back-N suffers.
const DISORDER: f64 = 0.01;

/// Returns headings, a row per scheme (mean over the seeds compared), and notes.
pub(super) fn table(data: &Dataset) -> Value {
    let means = |scheme: &crate::dataset::SchemeRuns, count: Count| {
        let values: Option<Vec<f64>> =
            scheme.runs.iter().map(|run| count(&run.summary.counters.totals).map(|n| n as f64)).collect();
        values.and_then(|values| mean(&values))
    };
    let tells = |&&(name, count): &&(&str, Count)| {
        name == "path changes" || data.schemes.iter().any(|s| means(s, count).is_some_and(|mean| mean > 0.0))
    };
    let shown: Vec<&(&str, Count)> = COUNTS.iter().filter(tells).collect();
    let colours = colours(&data.names());
    let rows = data.schemes.iter().enumerate().map(|(at, scheme)| {
        let flows = mean(&scheme.runs.iter().map(|run| run.summary.all.flows.total as f64).collect::<Vec<_>>());
        let cells: Vec<Value> = shown
            .iter()
            .map(|(_, count)| {
                let value = means(scheme, *count);
                let text = value.map_or_else(|| "-".to_string(), number);
                context! { text => text, value => value }
            })
            .collect();
        let per_flow = means(scheme, |c| c.path_switches).zip(flows).filter(|(_, flows)| *flows > 0.0);
        let per_flow = per_flow.map_or_else(|| "-".to_string(), |(n, flows)| significant_digits(n / flows, 3));
        context! { scheme => &scheme.name, colour => colours[at], cells => cells, per_flow => per_flow }
    });
    context! {
        heads => shown.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        rows => rows.collect::<Vec<_>>(),
        notes => notes(data),
    }
}

fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => thousands(&format!("{v:.0}")),
        v => significant_digits_trimmed(v, 3),
    }
}

fn notes(data: &Dataset) -> Vec<String> {
    let scenario: Table = data.manifest.scenario.parse().unwrap_or_default();
    let recovery = scenario.get("transport").and_then(|t| t.get("recovery")).and_then(toml::Value::as_str);
    let mut notes = vec![];
    for scheme in &data.schemes {
        let runs: Vec<&Summary> = scheme.runs.iter().map(|run| &run.summary).collect();
        notes.extend(few_moves(&scheme.name, &runs));
        notes.extend(few_gaps(&scheme.name, &runs));
        notes.extend(disorder(&scheme.name, &runs, recovery));
    }
    notes.extend(unjudged(data));
    notes
        .extend(alike(data.schemes.iter().map(|s| (s.name.as_str(), s.runs.iter().map(|run| &run.summary).collect()))));
    notes
}

/// Total of a count over runs; `None` if a run has not measured it.
fn sum(runs: &[&Summary], count: Count) -> Option<u64> {
    runs.iter().map(|run| count(&run.counters.totals)).sum()
}

fn few_moves(name: &str, runs: &[&Summary]) -> Option<String> {
    let moves = sum(runs, |c| c.path_switches)? + sum(runs, |c| c.reroutes).unwrap_or(0);
    let flows: u64 = runs.iter().map(|run| run.all.flows.total).sum();
    if moves == 0 || moves as f64 >= FEW_MOVES * flows as f64 {
        return None;
    }
    let unmarked = sum(runs, |c| c.ecn_marked) == Some(0) && sum(runs, |c| c.trimmed) == Some(0);
    let reason = if unmarked { " No packet was marked or trimmed, so congestion gave it no reason to." } else { "" };
    let [moves, flows] = [moves, flows].map(|n| thousands(&n.to_string()));
    Some(format!(
        "{name} hardly acted: {moves} path changes in {flows} flows. Its results are those of fixed paths.{reason}"
    ))
}

/// Names schemes whose hosts never changed a path: what their switches choose per packet is not counted, so nothing states
/// whether they acted.
fn unjudged(data: &Dataset) -> Option<String> {
    let is = |runs: &[&Summary]| {
        let known = [sum(runs, |c| c.reroutes), sum(runs, |c| c.flowlets)].map(|count| count.unwrap_or(0));
        sum(runs, |c| c.path_switches) == Some(0) && known == [0, 0]
    };
    let runs =
        |scheme: &crate::dataset::SchemeRuns| is(&scheme.runs.iter().map(|run| &run.summary).collect::<Vec<_>>());
    let names: Vec<&str> =
        data.schemes.iter().filter(|scheme| runs(scheme)).map(|scheme| scheme.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Whether {} acted cannot be judged by path changes: the hosts made none, and the choices of switches are not counted. \
             Out-of-order arrivals without losses are a sign of them.",
            list(names)
        )
    })
}

fn few_gaps(name: &str, runs: &[&Summary]) -> Option<String> {
    let (gaps, long) = (sum(runs, |c| c.gaps)?, sum(runs, |c| c.gaps_1_rtt)?);
    let made = sum(runs, |c| c.created_flowlets).unwrap_or(0);
    let is_flowlet_scheme = sum(runs, |c| c.flowlets)? > 0 && made == 0;
    (is_flowlet_scheme && gaps > 0 && (long as f64) < FEW_GAPS * gaps as f64).then(|| {
        let [gaps, long] = [gaps, long].map(|n| thousands(&n.to_string()));
        format!(
            "{name} moves flowlets, and there are hardly any: {long} of {gaps} pairs of consecutive packets left their NIC a \
             base round trip apart. Senders that keep their rate leave no gaps."
        )
    })
}

fn disorder(name: &str, runs: &[&Summary], recovery: Option<&str>) -> Option<String> {
    let shares: Option<Vec<f64>> = runs.iter().map(|run| run.out_of_order_share()).collect();
    let share = mean(&shares?)?;
    (recovery == Some("go-back-n") && share > DISORDER).then(|| {
        format!(
            "{name} and this fabric do not belong together: {} % of its arrivals are out of order, and \
             transport.recovery = \"go-back-n\" retransmits from the first missing packet. Use \"irn\", or transport.kind = \"uet\".",
            significant_digits(share * 100.0, 2)
        )
    })
}
