//! What delayed the slowest flows: a sentence and a bar per scheme.

use crate::{
    Dataset, RunRows, SchemeRuns, colours,
    dataset::{PART_COLUMNS, PARTS, TailFlow},
};
use anabranch_results::{bytes, capital, seconds, significant_digits, thousands};
use minijinja::{Value, context};
use std::collections::{BTreeMap, BTreeSet};

/// Name of a part on its bar, and what the flows did meanwhile, by [`PART_COLUMNS`].
const WORDS: [(&str, &str); PARTS] = [
    ("queues", "waiting in queues"),
    ("pauses", "paused by PFC"),
    ("timeouts", "waiting for retransmission timeouts"),
    ("loss notices", "waiting for notices of trimmed or lost packets"),
    ("sender", "held back by window, rate or load balancer"),
    ("own packets", "sending own packets"),
    ("flight", "in flight behind the last packet"),
    ("first packet", "waiting to send the first packet"),
    ("last ACK", "waiting for the last acknowledgement"),
];
/// Parts and links named in a sentence, and the smallest share named.
const NAMED: usize = 3;
const SMALLEST: f64 = 0.05;

/// Returns a block per measured workload with a row per scheme; none where delays were not measured.
pub(super) fn blocks(data: &Dataset) -> Vec<Value> {
    let workloads = data.measured_workloads();
    let single = workloads.len() < 2;
    let colours = colours(&data.names());
    let block = |(number, name): (u16, String)| {
        let compared = data.schemes.len() > 1 || data.summaries.len() > 1;
        let row = |(scheme, colour): (&SchemeRuns, &usize)| {
            let unfinished = scheme.runs.iter().map(|run| run.unfinished(Some(&name))).sum();
            row(*colour, scheme, number, unfinished, compared)
        };
        let rows: Vec<Value> = data.schemes.iter().zip(&colours).filter_map(row).collect();
        (!rows.is_empty()).then(|| context! { workload => (!single).then_some(name), rows => rows })
    };
    workloads.into_iter().filter_map(block).collect()
}

fn row(colour: usize, scheme: &SchemeRuns, workload: u16, unfinished: usize, compared: bool) -> Option<Value> {
    let of = |run: &RunRows| run.tail.iter().filter(|flow| flow.workload == workload).cloned().collect::<Vec<_>>();
    let runs: Vec<(u64, Vec<TailFlow>)> = scheme.runs.iter().map(|run| (run.summary.seed, of(run))).collect();
    let tail: Vec<&TailFlow> = runs.iter().flat_map(|run| &run.1).collect();
    let mut slowest: Vec<(u64, &TailFlow)> = runs.iter().filter_map(|run| Some((run.0, run.1.first()?))).collect();
    slowest.sort_by(|a, b| b.1.slowdown.total_cmp(&a.1.slowdown).then(a.0.cmp(&b.0)));
    let (seed, flow) = *slowest.first()?;
    let sums: [u64; PARTS] = std::array::from_fn(|part| tail.iter().map(|flow| flow.parts[part]).sum());
    let all = sums.iter().sum::<u64>().max(1) as f64;
    let share = |time: u64| time as f64 / all;
    let segments: Vec<Value> = (0..PARTS)
        .filter(|part| sums[*part] > 0)
        .map(|part| {
            let percent = share(sums[part]) * 100.0;
            context! { part => part, width => percent, wide => percent >= 11.0, name => WORDS[part].0,
            percent => significant_digits(percent, 2), column => PART_COLUMNS[part] }
        })
        .collect();
    let delayed = if share(sums[0]) < SMALLEST { String::new() } else { links(&tail, sums[0], scheme) };
    let size = format!("{} from host{} to host{}", bytes(flow.size_bytes as f64), flow.src, flow.dst);
    Some(context! {
        scheme => &scheme.name,
        colour => colour,
        segments => segments,
        sentences => [open(unfinished), sentence(&tail, &sums), delayed, predecessors(&tail)],
        slowest => format!("Slowest: flow {} of seed {seed}, {size}, {} times the ideal, {}",
            flow.flow_id, significant_digits(flow.slowdown, 3), most(flow)),
        trace => match compared {
            true => format!("anabranch view DIR --schemes {} --seed {seed} --record", scheme.name),
            false => "anabranch view DIR --record".to_string(),
        },
        anchor => format!("#scheme={}&seed={seed}&flow={}", scheme.name.replace('+', "%2B"), flow.flow_id),
    })
}

/// Flows that are slower than all that are shown.
fn open(unfinished: usize) -> String {
    let flows = thousands(&unfinished.to_string());
    match unfinished {
        0 => String::new(),
        1 => "1 flow did not finish and is not among these.".to_string(),
        _ => format!("{flows} flows did not finish and are not among these."),
    }
}

/// The largest parts, as far as they matter.
fn sentence(tail: &[&TailFlow], sums: &[u64; PARTS]) -> String {
    let all = sums.iter().sum::<u64>().max(1) as f64;
    let mut parts: Vec<usize> = (0..PARTS).filter(|part| sums[*part] as f64 / all >= SMALLEST).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(sums[*part]));
    let share =
        |part: &usize| format!("{} % {}", significant_digits(sums[*part] as f64 / all * 100.0, 2), WORDS[*part].1);
    let named: Vec<String> = parts.iter().take(NAMED).map(share).collect();
    let flows = match tail.len() {
        1 => "1 flow spent".to_string(),
        many => format!("{} flows spent", thousands(&many.to_string())),
    };
    format!("{flows} {}.", named.join(", "))
}

/// The links that held the flows longest, with their shares of the time in queues; where each held little, since the flows were
/// sprayed, the groups of ports on their paths at which the run's packets waited.
fn links(tail: &[&TailFlow], queues: u64, scheme: &SchemeRuns) -> String {
    let mut links: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for (link, time) in tail.iter().filter_map(|flow| flow.link.as_ref()) {
        let held = links.entry(link).or_default();
        *held = (held.0 + time, held.1 + 1);
    }
    let mut links: Vec<_> = links.into_iter().collect();
    links.sort_by_key(|(name, (time, _))| (std::cmp::Reverse(*time), *name));
    let share = |time: u64| time as f64 / queues.max(1) as f64;
    if links.first().is_some_and(|(_, (time, _))| share(*time) < SMALLEST) {
        let groups = groups(tail, queues, scheme);
        if !groups.is_empty() {
            return groups;
        }
    }
    let others = links.len().saturating_sub(NAMED);
    let named: Vec<String> = links
        .iter()
        .take(NAMED)
        .map(|(name, (time, flows))| {
            let s = if *flows == 1 { "" } else { "s" };
            format!("{name} ({} %, {flows} flow{s})", significant_digits(share(*time) * 100.0, 2))
        })
        .collect();
    match (named.is_empty(), others) {
        (true, _) => String::new(),
        (_, 0) => format!("Time in queues by link: {}.", named.join(", ")),
        (_, 1) => format!("Time in queues by link: {}, and one more.", named.join(", ")),
        _ => format!("Time in queues by link: {}, and {others} others.", named.join(", ")),
    }
}

/// Ports by switch and direction with their shares of the waiting of all packets, those on the paths of the flows, and their faults.
fn groups(tail: &[&TailFlow], queues: u64, scheme: &SchemeRuns) -> String {
    let receivers: BTreeSet<String> = tail.iter().map(|flow| format!("host{}", flow.dst)).collect();
    let mut groups: BTreeMap<String, (f64, BTreeSet<String>)> = BTreeMap::new();
    let mut all = 0.0;
    for run in &scheme.runs {
        let hosts: BTreeSet<String> =
            tail.iter().flat_map(|flow| [flow.src, flow.dst]).map(|host| format!("host{host}")).collect();
        // Switches with the hosts of the flows.
        let ends: BTreeSet<&str> = run
            .links
            .iter()
            .filter(|link| link.is_nic && hosts.contains(&link.from))
            .map(|link| link.to.as_str())
            .collect();
        for link in run.links.iter().filter(|link| !link.is_nic) {
            let Some(waited) = link.queue_mean_packets.map(|mean| mean * run.common_s) else { continue };
            all += waited;
            let name = match &*link.group {
                "switch to host" if receivers.contains(&link.to) => match receivers.len() {
                    1 => format!("the link to {}", link.to),
                    many => format!("the links to their {many} receivers"),
                },
                group if group.ends_with(", up") && ends.contains(link.from.as_str()) => {
                    format!("the uplinks of {}", link.from)
                }
                group if group.ends_with(", down") && ends.contains(link.to.as_str()) => {
                    format!("the links down to {}", link.to)
                }
                group if !group.contains("host") && !group.contains("tier 0") => format!("{group} links"),
                _ => continue,
            };
            let (sum, faults) = groups.entry(name).or_default();
            *sum += waited;
            if link.has_fault() {
                faults.insert(format!(
                    "{}\u{2013}{}, {}",
                    link.from,
                    link.to_port(),
                    link.fault.trim_end_matches(" at 0us")
                ));
            }
        }
    }
    let mut groups: Vec<_> = groups.into_iter().filter(|(_, (sum, _))| *sum > 0.0).collect();
    groups.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let named: Vec<String> = groups
        .iter()
        .take(NAMED)
        .map(|(name, (sum, faults))| {
            let faults = faults.iter().next().map_or(String::new(), |fault| format!("; with {fault}"));
            format!("{name} ({} %{faults})", significant_digits(sum / all * 100.0, 2))
        })
        .collect();
    // Packets that wait for others of their host are in no port of a switch.
    let at_sender = |flow: &&&TailFlow| {
        flow.link.as_ref().is_some_and(|(link, _)| link.starts_with(&format!("host{}->", flow.src)))
    };
    let held: u64 = tail.iter().filter(at_sender).filter_map(|flow| flow.link.as_ref()).map(|(_, time)| time).sum();
    let held = held as f64 / queues.max(1) as f64;
    let senders = match significant_digits(held * 100.0, 2) {
        _ if held < SMALLEST => String::new(),
        all if all == "100" => " Other flows of their own hosts held them for all of it.".to_string(),
        share => format!(" Other flows of their own hosts held them for {share} % of it or more."),
    };
    match named.is_empty() && senders.is_empty() {
        true => String::new(),
        false => format!(
            "No link held them for {:.0} % of that time: they were spread.{senders}{}",
            SMALLEST * 100.0,
            match named.is_empty() {
                true => String::new(),
                false =>
                    format!(" Of the waiting of all packets of the run at ports on their paths: {}.", named.join(", ")),
            }
        ),
    }
}

fn predecessors(tail: &[&TailFlow]) -> String {
    let waited = tail.iter().map(|flow| flow.predecessor).sum::<u64>();
    let mean = waited as f64 / tail.len().max(1) as f64;
    if waited == 0 {
        return String::new();
    }
    format!("Before that they waited {} for predecessors (mean).", seconds(mean / 1e12))
}

/// The largest part of one flow.
fn most(flow: &TailFlow) -> String {
    let all = flow.parts.iter().sum::<u64>().max(1) as f64;
    let part = (0..PARTS).max_by_key(|part| (flow.parts[*part], std::cmp::Reverse(*part))).unwrap_or(0);
    let at = match &flow.link {
        Some((link, _)) if part == 0 => format!(", longest at {link}"),
        _ => String::new(),
    };
    format!("{} % of it {}{at}.", significant_digits(flow.parts[part] as f64 / all * 100.0, 2), WORDS[part].1)
}

/// Names of all parts with their columns, for the legend.
pub(super) fn legend() -> Vec<Value> {
    let entry = |part: usize| context! { part => part, name => capital(WORDS[part].0), column => PART_COLUMNS[part] };
    (0..PARTS).map(entry).collect()
}
