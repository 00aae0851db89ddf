use super::fabric::{Fabric, rate};
use crate::{Dataset, LinkPoint, dataset::Load};
use anabranch_results::{Summary, capital, seconds_trimmed};
use anabranch_units::Time;
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Returns what a scenario states of a sweep's runs, with the word "swept" where its `keys` vary.
pub(crate) fn of_sweep(scenario: &str, keys: &[&str]) -> Vec<(String, String)> {
    let mut root = Value::Table(scenario.parse().unwrap_or_default());
    for key in keys {
        let mut place = Some(&mut root);
        for step in key.split('.') {
            place = place.and_then(|value| match step.parse::<usize>() {
                Ok(number) => value.get_mut(number),
                Err(_) => value.get_mut(step),
            });
        }
        if let Some(value) = place {
            *value = Value::String("(swept)".to_string());
        }
    }
    let Value::Table(scenario) = root else { return vec![] };
    let topology = scenario.get("topology").and_then(Value::as_table);
    let mut network = topology.map(kind).into_iter().collect::<Vec<_>>();
    for (key, words) in [("link_rate", "links of"), ("link_delay", "link delay")] {
        network.extend(topology.and_then(|table| text(table, key)).map(|value| format!("{words} {value}")));
    }
    let facts = [vec![("Network", network.join("; "))], conditions(&scenario), vec![("Limits", limits(&scenario))]];
    let facts = facts.into_iter().flatten().filter(|(_, value)| !value.is_empty());
    facts.map(|(name, value)| (name.to_string(), value)).collect()
}

/// Fabric, transport, workloads and faults of a scenario.
fn conditions(scenario: &Table) -> Vec<(&'static str, String)> {
    let section = |name: &str| scenario.get(name).and_then(Value::as_table);
    let kinds = [
        section("fabric").and_then(|s| text(s, "profile")).map(|profile| format!("fabric {profile}")),
        section("transport").map(|s| {
            let control = text(s, "congestion_control").map_or(String::new(), |cc| format!(" with {cc}"));
            format!("transport {}{control}", text(s, "kind").unwrap_or_default())
        }),
    ];
    let list =
        |name: &str| scenario.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table);
    let workloads: Vec<String> = list("workload").map(workload).collect();
    let faults: Vec<String> = list("fault").map(fault).collect();
    let faults = match () {
        () if scenario.is_empty() => String::new(),
        () if faults.is_empty() => "none".to_string(),
        () => faults.join("\n"),
    };
    vec![
        ("Fabric, transport", kinds.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        (if workloads.len() == 1 { "Workload" } else { "Workloads" }, workloads.join("\n")),
        ("Faults", faults),
    ]
}

fn limits(scenario: &Table) -> String {
    let run = scenario.get("run").and_then(Value::as_table);
    let limits = [
        run.and_then(|run| text(run, "until")).map(|until| match until.as_str() {
            "all-flows-done" => "until all flows are done".to_string(),
            time => format!("until {time}"),
        }),
        run.and_then(|run| text(run, "time_limit")).map(|limit| format!("time limit {limit}")),
        run.and_then(|run| text(run, "warmup")).map(|warmup| format!("warm-up {warmup}")),
    ];
    limits.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Formats the kind of a topology with its numbers.
fn kind(table: &Table) -> String {
    let keys = [
        "tiers",
        "radix",
        "leaves",
        "spines",
        "hosts_per_leaf",
        "servers",
        "rails",
        "servers_per_pod",
        "p",
        "a",
        "h",
        "q",
        "path",
    ];
    let values = keys
        .iter()
        .filter_map(|key| Some(format!("{} {}", key.replace('_', " "), text(table, key)?)))
        .collect::<Vec<_>>();
    format!("{} ({})", text(table, "kind").unwrap_or_default(), values.join(", ")).replace(" ()", "")
}

pub(super) fn facts(data: &Dataset) -> Vec<(String, String)> {
    let scenario: Table = data.manifest.scenario.parse().unwrap_or_default();
    let section = |name: &str| scenario.get(name).and_then(Value::as_table);
    let mut facts: Vec<(String, String)> = vec![];
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push((name.to_string(), value));
        }
    };
    add("Network", network(data, section("topology")));
    add("Backend", backend(data));
    for (name, value) in conditions(&scenario) {
        add(name, value);
    }
    // Rows of another version may not contain the links that a fault affected.
    let planned = scenario.get("fault").and_then(Value::as_array).is_some_and(|faults| !faults.is_empty());
    let unknown = planned && data.lacks("links", "fault");
    if unknown {
        add("Failed links", "not recorded in the tables".to_string());
    } else {
        add("Failed links", faulty_links(data, LinkPoint::failed));
        let is_slow = |link: &LinkPoint| link.has_fault() && !link.failed();
        let always = data.schemes[0].runs[0]
            .links
            .iter()
            .filter(|link| is_slow(link))
            .all(|link| link.fault.ends_with("bps at 0us"));
        add(if always { "Slow cables" } else { "Degraded links" }, faulty_links(data, is_slow));
    }
    let end = data.summaries.iter().map(|run| run.simulated_s).fold(0.0, f64::max);
    let is_late = |table: &&Table| {
        let at = text(table, "at").and_then(|at| at.parse::<Time>().ok());
        at.is_some_and(|at| at.ps() as f64 / 1e12 > end)
    };
    let faults = scenario.get("fault").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table);
    let late: Vec<String> = faults.filter(is_late).map(fault).collect();
    if !late.is_empty() {
        add("Faults after the end", format!("{}\nThe runs ended earlier: these had no effect.", late.join("\n")));
    }
    add("Limits", limits(&scenario));
    add("Command", data.manifest.command.clone());
    facts
}

/// Returns an empty text if the packets were simulated.
fn backend(data: &Dataset) -> String {
    let Some(first) = data.summaries.first().filter(|run| !run.is_simulated()) else { return String::new() };
    let over = first.datapath.as_ref().map_or(String::new(), |datapath| format!(" over {datapath}"));
    let mut lines = vec![format!("{}{over}", data.manifest.backend)];
    match &data.summaries[..] {
        [one] if one.machine_load.is_some() => lines.push(one.machine_words()),
        several => {
            let bound = several.iter().filter(|run| run.is_machine_bound()).count();
            lines.push(format!("{bound} of {} runs machine-bound", several.len()));
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn text(table: &Table, key: &str) -> Option<String> {
    Some(match table.get(key)? {
        Value::Array(list) => list.iter().map(word).collect::<Vec<_>>().join(", "),
        value => word(value),
    })
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        _ => String::new(),
    }
}

/// The kind is from the scenario, the numbers from the rows of links.
fn network(data: &Dataset, topology: Option<&Table>) -> String {
    let links = &data.schemes[0].runs[0].links;
    let kind = topology.map(kind);
    let mut rates: Vec<(u64, &str)> = links.iter().map(|link| (link.rate_bps, &*link.tier)).collect();
    rates.sort_unstable();
    rates.dedup();
    let different: BTreeSet<u64> = rates.iter().map(|rate| rate.0).filter(|rate| *rate > 0).collect();
    let rates = match different.len() {
        0 => String::new(),
        1 => rates.first().map(|one| format!("links of {}", rate(one.0))).unwrap_or_default(),
        _ => rates.iter().map(|(bps, tier)| format!("{tier} {}", rate(*bps))).collect::<Vec<_>>().join(", "),
    };
    let delay = topology
        .and_then(|table| text(table, "link_delay"))
        .filter(|_| data.summaries.iter().all(Summary::is_simulated))
        .map(|delay| format!("link delay {delay}"));
    let numbers = (!links.is_empty()).then(|| Fabric::of(links).words());
    let parts = [kind, numbers, (!rates.is_empty()).then_some(rates), delay];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn workload(table: &Table) -> String {
    let name = text(table, "name").filter(|name| !name.is_empty());
    let kind = text(table, "kind").unwrap_or_default();
    let keys = [
        "sizes",
        "size",
        "load",
        "load_reference",
        "duration",
        "senders",
        "receivers",
        "algorithm",
        "ranks",
        "parallel",
        "rounds",
        "scope",
        "path",
        "format",
        "load_balancer",
        "class",
    ];
    let shown = keys.iter().filter_map(|key| {
        let value = text(table, key).filter(|value| !value.is_empty())?;
        Some(match *key {
            "load" => format!("load {value}"),
            "load_reference" => format!("of the {value}"),
            other => format!("{} {value}", other.replace('_', " ")),
        })
    });
    let parts: Vec<String> = std::iter::once(kind).chain(shown).collect();
    let unmeasured = table.get("measured").and_then(Value::as_bool) == Some(false);
    let parts = parts.join(", ").replace(", of the ", " of the ");
    let name = name.map_or(String::new(), |name| format!("{name}: "));
    format!("{name}{parts}{}", if unmeasured { " (not measured)" } else { "" })
}

fn fault(table: &Table) -> String {
    let keys = ["links", "switches", "fraction", "count", "rate", "factor", "loss", "detect_after"];
    let shown = keys.iter().filter_map(|key| {
        let value = text(table, key).filter(|value| !value.is_empty() && value != "0" && value != "0.0")?;
        Some(format!("{} {value}", key.replace('_', " ")))
    });
    let at =
        text(table, "at").filter(|at| at.parse() != Ok(Time::ZERO)).map_or(String::new(), |at| format!(" at {at}"));
    let kind = match text(table, "kind").unwrap_or_default() {
        // From the beginning it is no event.
        kind if kind == "link-degrade" && at.is_empty() => "slow cables".into(),
        kind => kind,
    };
    let first = format!("{kind}{at}");
    std::iter::once(first).chain(shown).collect::<Vec<_>>().join(", ")
}

/// Returns the links of the first seed that faults affected as `kind` selects, each cable once.
fn faulty_links(data: &Dataset, kind: impl Fn(&LinkPoint) -> bool) -> String {
    let run = &data.schemes[0].runs[0];
    let failed: Vec<String> = run
        .links
        .iter()
        .filter(|link| kind(link))
        .filter(|link| {
            let reverse = (&link.to, &link.from, link.parallel);
            let back = run.links.iter().any(|other| kind(other) && (&other.from, &other.to, other.parallel) == reverse);
            !back || link.from < link.to
        })
        .map(|link| format!("{}\u{2013}{} ({})", link.from, link.to_port(), link.fault.replace("bps at 0us", "bps")))
        .collect();
    const MAX_LISTED: usize = 8;
    match failed.len() {
        0 => String::new(),
        n if n > MAX_LISTED => {
            format!("seed {}: {} and {} more", run.summary.seed, failed[..MAX_LISTED].join(", "), n - MAX_LISTED)
        }
        _ => format!("seed {}: {}", run.summary.seed, failed.join(", ")),
    }
}

/// Returns the windows of utilisation and of queues.
pub(super) fn window(data: &Dataset) -> String {
    let mut sentence = match data.load {
        Load::EvenSplit => format!(
            "Runs differ in length, so a utilisation would not compare. Links are compared by their {}: 1 is even.",
            data.load_words()
        ),
        Load::Window | Load::Run => format!("{}.", capital(&data.load_words())),
    };
    if data.schemes.len() > 1 {
        let over = data.queue_words();
        sentence.push_str(&format!(" Means of queues are over {over}; after its end a scheme's queues are empty."));
    }
    if let Some((last, share)) = data.drain().filter(|(_, share)| *share > 0.1) {
        sentence.push_str(&format!(
            " The last flow starts at {}; the remaining {:.0} % of the run drain the network and lower the utilisation.",
            seconds_trimmed(last),
            share * 100.0
        ));
    }
    sentence
}
