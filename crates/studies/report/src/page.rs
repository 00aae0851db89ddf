//! `report.html`: a self-contained page that opens offline and follows the reader's light or dark theme.

mod actions;
mod banner;
mod delays;
mod fabric;
mod jobs;
pub(crate) mod parts;
mod queues;
pub(crate) mod setup;
mod tables;

use crate::{Comparison, Dataset, Drawn, FigureFiles, colours, headline};
use anabranch_outcome::Balance;
use anabranch_results::{
    ConservationSummary, ReportError, Summary, bytes, seconds, significant_digits, significant_digits_trimmed,
    thousands,
};
use minijinja::{Value, context};

const TEMPLATE: &str = include_str!("page/report.html.jinja");
/// `comparison` exists if there are several runs; `files` are those of the figures, in their order.
pub(crate) fn render(
    data: &Dataset,
    comparison: Option<&Comparison>,
    drawn: &Drawn,
    files: &[FigureFiles],
    with_all: bool,
) -> Result<String, ReportError> {
    let first = data.summaries.first();
    let headlines = match (comparison, first) {
        (Some(comparison), _) => headline::headlines(comparison, with_all),
        (None, Some(run)) => headline::of_run(run),
        (None, None) => vec![],
    };
    let headlines: Vec<Value> =
        headlines.iter().map(|h| context! { workload => &h.workload, sentences => &h.sentences }).collect();
    let figures: Vec<Value> = drawn.figures.iter().zip(files).map(|(f, files)| parts::figure(f, files)).collect();
    let m = &data.manifest;
    let seeds_of =
        |scheme: &str| data.summaries.iter().filter(|run| run.scheme == scheme).map(|run| run.seed).collect::<Vec<_>>();
    let single = if comparison.is_none() { first } else { None };
    let page = context! {
        title => &m.name,
        backend => &m.backend,
        simulated => first.is_none_or(Summary::is_simulated),
        comparison => comparison.is_some(),
        schemes => data.schemes.iter().zip(colours(&data.names())).map(|(s, colour)| context! { name => &s.name, colour => colour, seeds => seeds_of(&s.name).len() }).collect::<Vec<_>>(),
        baseline => comparison.map(|c| &c.baseline),
        seeds => ranges(&data.seeds()),
        uneven => comparison.is_some_and(|c| !c.missing().is_empty()),
        headlines => headlines,
        limit => data.schemes.first().and_then(|scheme| scheme.runs.first()).filter(|run| !run.links.is_empty()).map(|run| fabric::Fabric::of(&run.links).limit(data, comparison)),
        missing => banner::missing(data, comparison),
        warnings => [banner::versions(data), warnings(&data.summaries)].concat(),
        setup => setup::facts(data).into_iter().map(|(name, value)| context! { name => name, value => value }).collect::<Vec<_>>(),
        tiles => single.map(tiles).unwrap_or_default(),
        tables => comparison.map(|c| tables::per_workload(c, with_all)).unwrap_or_default(),
        network => comparison.and_then(tables::network),
        actions => actions::table(data),
        test => comparison.map(tables::legend),
        figures => figures,
        skipped => banner::skipped(drawn),
        window => setup::window(data),
        load_title => data.load.title(),
        queue_time => data.queue_words(),
        delays => delays::blocks(data),
        delay_legend => delays::legend(),
        jobs => jobs::blocks(data),
        ports => queues::blocks(data),
        workloads => single.map(workloads).unwrap_or_default(),
        balances => single.map(balances).unwrap_or_default(),
        runs => data.summaries.iter().map(run).collect::<Vec<_>>(),
        facts => facts(data, first),
        scenario => &m.scenario,
    };
    parts::render(TEMPLATE, page)
}

/// Formats seeds as `1-10, 12`.
pub(crate) fn ranges(seeds: &[u64]) -> String {
    let parts = seeds.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}\u{2013}{last}"),
        _ => run[0].to_string(),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// A warning that several runs share appears once.
fn warnings(runs: &[Summary]) -> Vec<String> {
    let mut shared: Vec<(String, Vec<String>)> = vec![];
    for run in runs {
        let name = format!("{}, seed {}", run.scheme, run.seed);
        let ideals = run.ideal_note.iter().map(|sentence| format!("{sentence}."));
        for warning in run.warnings().into_iter().chain(ideals) {
            match shared.iter_mut().find(|(other, _)| *other == warning) {
                Some((_, names)) => names.push(name.clone()),
                None => shared.push((warning, vec![name.clone()])),
            }
        }
    }
    let line = |(warning, names): (String, Vec<String>)| match (names.as_slice(), runs.len()) {
        (_, 1) => warning,
        (names, all) if names.len() == all => format!("All runs: {warning}"),
        ([one], _) => format!("{one}: {warning}"),
        ([first, rest @ ..], _) => format!("{first} and {} other runs: {warning}", rest.len()),
        ([], _) => warning,
    };
    let mut warnings: Vec<String> = shared.into_iter().map(line).collect();
    const MAX_LISTED: usize = 12;
    if warnings.len() > MAX_LISTED {
        let more = warnings.len() - MAX_LISTED;
        warnings.truncate(MAX_LISTED);
        warnings.push(format!("{more} more warnings of this kind; each run's `summary.json` lists them."));
    }
    warnings
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".to_string(), |value| significant_digits(value, 3))
}

fn count(value: u64) -> String {
    thousands(&value.to_string())
}

fn maybe(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_string(), count)
}

fn tiles(run: &Summary) -> Vec<Value> {
    let c = &run.counters.totals;
    let share = |part: Option<u64>| match (part, c.data_packets) {
        (None, _) => "not measured".to_string(),
        (_, None | Some(0)) => String::new(),
        (Some(part), Some(all)) => {
            format!("{} % of data packets", significant_digits_trimmed(100.0 * part as f64 / all as f64, 2))
        }
    };
    let tile = |name: &str, value: String, note: String| context! { name => name, value => value, note => note };
    let kind = if run.all.fct_kind == anabranch_results::FctKind::Rx { "at the receiver" } else { "to the last ACK" };
    let flows = vec![
        tile("Slowdown, median", number(run.all.slowdown.p50), format!("mean {}", number(run.all.slowdown.mean))),
        tile("Slowdown, p99", number(run.all.slowdown.p99), format!("max {}", number(run.all.slowdown.max))),
        tile("FCT, mean", format!("{} µs", number(run.all.fct_us.mean)), kind.to_string()),
        tile(
            "FCT, max",
            format!("{} µs", number(run.all.fct_us.max)),
            format!("p99 {} µs", number(run.all.fct_us.p99)),
        ),
        tile(
            "Wait at the NIC, mean",
            format!("{} µs", number(run.all.nic_wait_us.mean)),
            format!("max {} µs, before the first packet", number(run.all.nic_wait_us.max)),
        ),
        tile("Max FCT over ideal", number(run.all.fct_ratio_max), "slowest flow, 1 is ideal".to_string()),
    ];
    let network = vec![
        tile("Marked (ECN)", maybe(c.ecn_marked), share(c.ecn_marked)),
        tile("Trimmed", maybe(c.trimmed), share(c.trimmed)),
        tile("Dropped", maybe(c.dropped), format!("{} retransmitted", maybe(c.retransmitted))),
        tile("Out of order", maybe(c.out_of_order), share(c.out_of_order)),
        tile(
            "Largest queue",
            run.queues.max_bytes.map_or_else(|| "-".to_string(), |max| bytes(max as f64)),
            "waiting data at a switch port".to_string(),
        ),
    ];
    // Several workloads have a table of their own.
    match run.workloads.values().filter(|workload| workload.measured).count() {
        0 | 1 => [flows, network].concat(),
        _ => network,
    }
}

fn workloads(run: &Summary) -> Vec<Value> {
    if run.workloads.len() < 2 {
        return vec![];
    }
    let row = |(name, w): (&String, &anabranch_results::summary::FlowSummary)| {
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

fn balances(run: &Summary) -> Vec<Value> {
    let Some(ConservationSummary { balance: c, .. }) = &run.conservation else { return vec![] };
    let lines = [
        ("data packets", &c.data_packets),
        ("bytes of data packets", &c.data_bytes),
        ("headers of trimmed packets", &c.headers),
        ("ACKs and NACKs", &c.acks),
        ("bytes of ACKs and NACKs", &c.ack_bytes),
    ];
    let row = |(name, b): (&str, &Balance)| {
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
        fingerprint => run.fingerprint.as_deref().unwrap_or("-"),
        holds => run.conservation.map(|conservation| conservation.holds),
    }
}

/// Version, machine and settings as pairs of name and value, none that differs between repetitions of a run.
fn facts(data: &Dataset, first: Option<&Summary>) -> Vec<Value> {
    let m = &data.manifest;
    let fact = |name: &str, value: String| context! { name => name, value => value };
    let kind = match first.map(|run| run.all.fct_kind) {
        Some(anabranch_results::FctKind::Ack) => "start to last acknowledgement at the sender (ack)",
        _ => "first packet sent to last packet received (rx)",
    };
    let warmup = first.map_or(0.0, |run| run.warmup_s);
    let readings = (!m.readings.is_empty()).then(|| fact("Readings set", m.readings.join(", ")));
    let facts = [
        fact("Version", format!("Anabranch {}, commit {}", m.version, m.commit)),
        fact("Scenario hash", m.scenario_hash.clone()),
        fact("Seeds", ranges(&data.seeds())),
        fact("Threads", m.threads.to_string()),
        fact("Machine", m.machine.clone()),
        fact("Completion time", kind.to_string()),
        fact("Warm-up", if warmup > 0.0 { seconds(warmup) } else { "none".to_string() }),
        fact("Quantiles", "linear between order statistics".to_string()),
    ];
    facts.into_iter().chain(readings).collect()
}
