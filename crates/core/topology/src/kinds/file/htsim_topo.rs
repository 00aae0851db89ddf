//! htsim's description of a fat tree (specification 14.2). The links below tier i have that tier's speed and latency; each
//! leaf has `Radix_Up / Bundle` neighbours above.

use super::text::{at_line, lines};
use crate::{
    TopologyError,
    build::MAX_HOSTS,
    graph::Graph,
    kinds::pods::{Cabling, Tree},
};
use anabranch_settings::nearest;
use anabranch_units::{Rate, Time};

const HEAD: [&str; 3] = ["nodes", "tiers", "podsize"];
const TIER: [&str; 7] = [
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "oversubscribed",
    "bundle",
];

/// Keys of htsim's files that belong to another part of a scenario.
const ELSEWHERE: [&str; 2] = ["queue_up", "queue_down"];

#[derive(Clone, Default)]
struct Tier {
    values: [Option<u64>; TIER.len()],
}

impl Tier {
    fn get(&self, number: usize, key: &str, default: Option<u64>) -> Result<u64, TopologyError> {
        let index = TIER.iter().position(|k| *k == key).expect("a key of a tier");
        self.values[index].or(default).ok_or_else(|| TopologyError::new(format!("tier {number} has no `{key}`")))
    }
}

pub(crate) fn parse(text: &str) -> Result<Graph, TopologyError> {
    let mut head = [None; HEAD.len()];
    let mut tiers: Vec<Tier> = Vec::new();
    for (line, text) in lines(text) {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [key, value] = fields[..] else {
            return Err(at_line(line, format!("{} values; a key and its value are needed", fields.len())));
        };
        let lower = key.to_lowercase();
        if ELSEWHERE.contains(&lower.as_str()) {
            let message = format!("`{key}` does not describe the graph; remove it and set the queues in [fabric]");
            return Err(at_line(line, message));
        }
        let value = decimal(line, key, value)?;
        if lower == "tier" {
            if value != tiers.len() as u64 || value > 2 {
                return Err(at_line(line, format!("`Tier {value}`; tiers come in order, 0, 1 and at most 2")));
            }
            tiers.push(Tier::default());
        } else if let Some(index) = HEAD.iter().position(|k| *k == lower) {
            head[index] = Some(value);
        } else if let (Some(index), Some(tier)) = (TIER.iter().position(|k| *k == lower), tiers.last_mut()) {
            tier.values[index] = Some(value);
        } else {
            let all = HEAD.iter().chain(&TIER).copied().chain(["tier"]);
            let hint = nearest(&lower, all).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
            let place = if tiers.is_empty() { "before the first `Tier`" } else { "in a tier" };
            return Err(at_line(line, format!("`{key}` is not a key {place}{hint}")));
        }
    }
    let nodes = head[0].ok_or_else(|| TopologyError::new("`Nodes` is missing"))?;
    let count = head[1].unwrap_or(tiers.len() as u64);
    if count != tiers.len() as u64 || !(2..=3).contains(&count) {
        let message = format!("`Tiers` says {count} and {} are described; 2 or 3 are needed", tiers.len());
        return Err(TopologyError::new(message));
    }
    if nodes == 0 || nodes > MAX_HOSTS {
        return Err(TopologyError::new(format!("`Nodes` is {nodes}; 1 to {MAX_HOSTS} are allowed")));
    }
    if let Some(bundle) = tiers[0].values[6].filter(|bundle| *bundle != 1) {
        return Err(TopologyError::new(format!("tier 0: bundle is {bundle}; a host has one link")));
    }
    for (number, tier) in tiers[..tiers.len() - 1].iter().enumerate() {
        check_oversubscription(number, tier)?;
    }
    assemble(nodes, head[2], &tiers)
}

/// Reads a whole number; htsim writes some with a fraction of zero.
fn decimal(line: usize, key: &str, text: &str) -> Result<u64, TopologyError> {
    let whole =
        text.split_once('.').filter(|(_, rest)| rest.bytes().all(|b| b == b'0')).map_or(text, |(whole, _)| whole);
    whole.parse().map_err(|_| at_line(line, format!("`{key}` is `{text}`; a whole number is needed")))
}

/// Checks `Oversubscribed`, which repeats the ratio of ports down to ports up, rounded down.
fn check_oversubscription(number: usize, tier: &Tier) -> Result<(), TopologyError> {
    let [down, up] = [tier.get(number, "radix_down", None)?, tier.get(number, "radix_up", None)?];
    match tier.values[5] {
        Some(said) if down.checked_div(up) != Some(said) => Err(TopologyError::new(format!(
            "tier {number}: oversubscribed is {said}, but there are {down} ports down and {up} up"
        ))),
        _ => Ok(()),
    }
}

fn divide(what: &str, a: u64, b: u64) -> Result<u64, TopologyError> {
    match a.checked_rem(b) {
        Some(0) if a > 0 => Ok(a / b),
        _ => Err(TopologyError::new(format!("{what}: {a} does not divide by {b}"))),
    }
}

fn assemble(nodes: u64, podsize: Option<u64>, tiers: &[Tier]) -> Result<Graph, TopologyError> {
    let rate = |t: usize| -> Result<Rate, TopologyError> {
        match tiers[t].get(t, "downlink_speed_gbps", None)? {
            gbps @ 1..=1_000_000 => Ok(Rate::gbps(gbps)),
            gbps => {
                Err(TopologyError::new(format!("tier {t}: downlink_speed_gbps is {gbps}; 1 to 1000000 are allowed")))
            }
        }
    };
    let short = |t: usize, key: &str, default| match tiers[t].get(t, key, default)? {
        ns @ 0..=1_000_000_000 => Ok(ns),
        ns => Err(TopologyError::new(format!("tier {t}: {key} is {ns}; at most 1000000000 is allowed"))),
    };
    let delay = |t: usize| short(t, "downlink_latency_ns", None).map(Time::from_ns);
    let latencies: Vec<u64> =
        (0..tiers.len()).map(|t| short(t, "switch_latency_ns", Some(0))).collect::<Result<_, _>>()?;
    if latencies.iter().any(|l| *l != latencies[0]) {
        return Err(TopologyError::new(format!("switch latencies {latencies:?} ns differ; one for all tiers is read")));
    }
    let hosts_per_leaf = tiers[0].get(0, "radix_down", None)?;
    let leaves = divide("Nodes by tier 0's radix_down", nodes, hosts_per_leaf)?;
    let bundle = |t: usize| tiers[t].get(t, "bundle", Some(1));
    let leaf_up = divide("tier 0's radix_up by tier 1's bundle", tiers[0].get(0, "radix_up", None)?, bundle(1)?)?;
    let down = tiers[1].get(1, "radix_down", None)?;
    let parts = [leaves, leaf_up, down, bundle(1)?];
    if parts.iter().any(|p| *p > 1 << 16) || leaves * leaf_up * bundle(1)? > 1 << 24 {
        return Err(TopologyError::new("more cables than 2^24"));
    }
    let parallel = bundle(1)?;
    let link = |t: usize| Ok::<_, TopologyError>((rate(t)?, delay(t)?));
    let cabling = Cabling {
        links: [link(0)?, link(1)?, link(tiers.len() - 1)?],
        latency: Time::from_ns(latencies[0]),
        planes: 1,
    };
    let tree = Tree {
        hosts: nodes,
        leaves,
        groups: 1,
        middle: "spine",
        spines: leaf_up,
        links_per_spine: parallel,
        cores: 0,
        links_per_core: 0,
        planes: 1,
    };
    if tiers.len() == 2 {
        if down != leaves * parallel {
            return Err(TopologyError::new(format!(
                "tier 1's radix_down is {down}; {leaves} leaves with {parallel} cables each need {}",
                leaves * parallel
            )));
        }
        return tree.build(&cabling);
    }
    let podsize = podsize.ok_or_else(|| TopologyError::new("three tiers need `Podsize`, hosts in a pod"))?;
    let pods = divide("Nodes by Podsize", nodes, podsize)?;
    let pod_leaves = divide("Podsize by tier 0's radix_down", podsize, hosts_per_leaf)?;
    if down != pod_leaves * parallel {
        let message =
            format!("tier 1's radix_down is {down}; a pod's {pod_leaves} leaves need {}", pod_leaves * parallel);
        return Err(TopologyError::new(message));
    }
    let core_bundle = bundle(2)?;
    let agg_up = divide("tier 1's radix_up by tier 2's bundle", tiers[1].get(1, "radix_up", None)?, core_bundle)?;
    if pods.max(agg_up).max(core_bundle) > 1 << 16 || (pods * leaf_up).saturating_mul(agg_up * core_bundle) > 1 << 24 {
        return Err(TopologyError::new("more cables than 2^24"));
    }
    let core_down = tiers[2].get(2, "radix_down", None)?;
    if core_down != pods * core_bundle {
        let message = format!("tier 2's radix_down is {core_down}; {pods} pods need {}", pods * core_bundle);
        return Err(TopologyError::new(message));
    }
    let cores = leaf_up * agg_up;
    Tree { groups: pods, middle: "agg", cores, links_per_core: core_bundle, ..tree }.build(&cabling)
}
