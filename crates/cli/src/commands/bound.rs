use super::request::{load, threads_or_cores};
use crate::{
    Failure, Format, MAX_THREADS, ProgressDisplay, ProgressMode, ScenarioArguments, print, print_json, table, width,
    wrapped,
};
use anabranch_report::{METRICS, Metric, below_bound};
use anabranch_results::Summary;
use anabranch_scenario::{SIMULATOR, ScenarioError};
use anabranch_study::{
    Observer,
    limits::{Bounds, bounds_of, reference, reference_words},
};
use serde_json::{Value, json};
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub(crate) struct Bound {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Number of seeds, counting up from the scenario's; values are means
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    /// Simulate the reference too: the same flows with links between switches 16 times as fast
    #[arg(long)]
    pub(crate) reference: bool,
    /// Number of threads of the reference [default: the machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    pub(crate) threads: Option<u16>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Progress output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}

/// Assumptions of the bounds, and effects that they omit.
const ASSUMPTIONS: &[&str] = &[
    "Proven for every load balancer and transport, if all measured flows finish: each byte, with headers, crosses the links of its hosts \
     and, between leaves, some path of switches once at least.",
    "Loose where it matters that packets queue, that windows and acknowledgements take time, or that paths cannot be split at will. \
     Links count with the best rate that they ever have during the traffic.",
];

/// Bounds of one seed, with the reference if it was requested.
struct OfSeed {
    seed: u64,
    bounds: Bounds,
    reference: Option<Summary>,
}

/// `anabranch bound`: what no load balancer can beat.
pub(crate) fn bound(arguments: &Bound) -> Result<(), Failure> {
    let scenario = load(&arguments.scenario)?;
    let Some(last) = scenario.seed.checked_add(arguments.seeds - 1) else {
        let message = format!("--seeds: {} seeds from {} on end beyond the largest", arguments.seeds, scenario.seed);
        return Err(ScenarioError::new(message).help("give a smaller seed, or fewer seeds").into());
    };
    let seeds: Vec<u64> = (scenario.seed..=last).collect();
    scenario.check(&scenario.setup(scenario.seed)?, &SIMULATOR)?;
    let watch = ProgressDisplay::new(arguments.progress, seeds.iter().map(|seed| format!("seed {seed}")).collect());
    let mut found: Vec<OfSeed> = vec![];
    let mut reference_seconds = 0.0;
    for (number, &seed) in seeds.iter().enumerate() {
        if watch.interrupted() {
            break;
        }
        watch.started(number);
        let scenario = scenario.with_seed(seed);
        let bounds = bounds_of(&scenario)?;
        let started = Instant::now();
        let reference = match arguments.reference {
            true => reference(&scenario, threads_or_cores(arguments.threads), &watch)?,
            false => None,
        };
        reference_seconds += started.elapsed().as_secs_f64();
        found.push(OfSeed { seed, bounds, reference });
        watch.finished(number);
    }
    watch.close();
    if found.len() < seeds.len() || (arguments.reference && found.iter().any(|of| of.reference.is_none())) {
        return Err(Failure::Interrupted);
    }
    match arguments.format {
        Format::Json => print_json(&as_json(&scenario.name, &found, reference_seconds)),
        Format::Table => print(&wrapped(&text(&scenario.name, &found, reference_seconds), width())),
    }
    Ok(())
}

/// A limit over the seeds: workload, metric, mean bound, its cause at the first seed, mean of the reference. A bound that
/// does not exist is infinite.
type Row = (String, &'static Metric, f64, String, Option<f64>);

fn rows(found: &[OfSeed]) -> Vec<Row> {
    let Some(first) = found.first() else { return vec![] };
    let row = |limit: &anabranch_study::limits::Limit| {
        let metric = METRICS.iter().find(|metric| metric.name == limit.metric)?;
        let mean = |values: Option<Vec<f64>>| values.map(|values| values.iter().sum::<f64>() / values.len() as f64);
        let bounds = found.iter().map(|of| Some(of.bounds.limit(&limit.workload, metric.name)?.value));
        let reference = found.iter().map(|of| {
            let summary = of.reference.as_ref().filter(|summary| summary.all.flows.unfinished == 0)?;
            metric.value(summary, &limit.workload)
        });
        // Without a path at any seed there is no mean, and its cause is that of this seed.
        let own = |of: &OfSeed| of.bounds.limit(&limit.workload, metric.name).cloned();
        let by =
            found.iter().filter_map(own).find(|limit| limit.value.is_infinite()).unwrap_or_else(|| limit.clone()).by;
        Some((limit.workload.clone(), metric, mean(bounds.collect())?, by, mean(reference.collect())))
    };
    first.bounds.limits.iter().filter_map(row).collect()
}

/// Returns the flows without a path of a seed, per workload.
fn unreachable(of: &OfSeed) -> Vec<Value> {
    let with_seed = |cut| {
        let mut value = json!(cut);
        value["seed"] = of.seed.into();
        value
    };
    of.bounds.unreachable.iter().map(with_seed).collect()
}

/// Returns the reasons why bounds of the first seed are loose, and why there are none: of the first seed with that.
fn reasons(found: &[OfSeed]) -> Vec<String> {
    let mut reasons = found.first().map(|of| of.bounds.loose.clone()).unwrap_or_default();
    match found.iter().position(|of| !of.bounds.unreachable.is_empty()) {
        None | Some(0) => {}
        Some(at) => {
            let of = &found[at];
            reasons.extend(of.bounds.unreachable.iter().map(|cut| format!("seed {}: {}", of.seed, cut.reason())));
        }
    }
    reasons
}

fn as_json(name: &str, found: &[OfSeed], reference_seconds: f64) -> Value {
    let limits: Vec<Value> = rows(found)
        .into_iter()
        .map(|(workload, metric, bound, by, reference)| {
            json!({ "workload": workload, "metric": metric.name, "unit": metric.unit, "bound": bound, "by": by,
                    "reference": reference })
        })
        .collect();
    json!({
        "scenario": name,
        "seeds": found.iter().map(|of| of.seed).collect::<Vec<_>>(),
        "limits": limits,
        "max_flow": found.first().map(|of| &of.bounds.max_flow),
        "unreachable": found.iter().flat_map(unreachable).collect::<Vec<_>>(),
        "loose": reasons(found),
        "assumptions": ASSUMPTIONS,
        "reference": reference_words(),
        "bound_seconds": found.iter().map(|of| of.bounds.seconds).sum::<f64>(),
        "reference_seconds": found.iter().any(|of| of.reference.is_some()).then_some(reference_seconds),
    })
}

fn text(name: &str, found: &[OfSeed], reference_seconds: f64) -> String {
    let several = found.iter().flat_map(|of| &of.bounds.limits).any(|limit| limit.workload != anabranch_report::ALL);
    let has_reference = found.iter().any(|of| of.reference.is_some());
    let number = |value: f64| anabranch_results::significant_digits(value, 5);
    let mut heads = vec!["metric", "unit", "bound", "limited by"];
    if has_reference {
        heads.insert(3, "reference");
    }
    if several {
        heads.insert(0, "workload");
    }
    let rows = rows(found);
    let is_below =
        |(.., bound, _, reference): &&Row| bound.is_finite() && reference.is_some_and(|value| value < *bound);
    let below: Vec<String> = rows
        .iter()
        .filter(is_below)
        .map(|(workload, metric, ..)| match several {
            true => format!("{} of {workload}", metric.name),
            false => metric.name.to_string(),
        })
        .collect();
    let cells: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(workload, metric, bound, by, reference)| {
            let mut row = vec![metric.name.to_string(), metric.unit.to_string(), number(bound), by];
            if has_reference {
                row.insert(3, reference.map_or("n/a".into(), number));
            }
            if several {
                row.insert(0, workload);
            }
            row
        })
        .collect();
    let mut text = format!("{name}\n\n{}\n", table(&heads, &cells));
    let mut line = |words: String| text += &(words + "\n");
    ASSUMPTIONS.iter().for_each(|words| line((*words).to_string()));
    if let Some(first) = found.first() {
        for flow in &first.bounds.max_flow {
            let of = if several { format!(" of {}", flow.workload) } else { String::new() };
            let gap = flow.gap.map_or("no routing found".to_string(), |gap| match gap {
                gap if gap < 1e-3 => "tight: a fractional routing needs no longer".to_string(),
                gap => format!("loose: a better certificate could add {:.1} % at most", 100.0 * gap / (1.0 - gap)),
            });
            let links: Vec<&str> = flow.links.iter().map(|(link, _)| link.as_str()).collect();
            line(format!(
                "max-flow{of}: links between switches need {} us for all bytes ({} pairs of leaves, {} paths, {} linear \
                 programs, {:.2} s); {gap}. First among the links: {}",
                number(flow.time_us),
                flow.pairs,
                flow.paths,
                flow.rounds,
                flow.seconds,
                links.join(", ")
            ));
        }
    }
    reasons(found).into_iter().for_each(|reason| line(format!("bound: {reason}")));
    if has_reference {
        line(format!("reference, which proves nothing: {}", reference_words()));
        if !below.is_empty() {
            line(below_bound(&below));
        }
    }
    let bound_seconds: f64 = found.iter().map(|of| of.bounds.seconds).sum();
    let cost = format!("cost: bounds {bound_seconds:.2} s");
    line(if has_reference { format!("{cost}, reference {reference_seconds:.2} s") } else { cost });
    match found.len() {
        1 => line(format!("seed {}", found[0].seed)),
        seeds => line(format!("means of {seeds} seeds; causes are those of seed {}", found[0].seed)),
    }
    text
}
