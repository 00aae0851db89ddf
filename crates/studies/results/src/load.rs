//! Detection of an offered load above the network's capacity: queues grow while flows arrive, and every number depends
//! on that time.

use crate::{LinkFault, RunMeta};
use anabranch_outcome::{FlowRow, LinkRow, RunResult};
use anabranch_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Offered payload relative to the capacity of some links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedLoad {
    pub links: String,
    /// Offered payload over the capacity of the links, while flows start.
    pub load: f64,
}

/// Traffic with fewer flows than this, or with an arrival time shorter than `SPAN` mean ideal completion times, is a burst, for
/// which no load is defined.
const FEWEST_FLOWS: usize = 100;
const SPAN: f64 = 5.0;

pub(crate) fn is_nic(link: &LinkRow) -> bool {
    link.tier == "host" && link.direction == "up"
}

/// Links whose offered load is above their capacity. The loads are lower bounds: a flow between two parts of the
/// network that only links of one class join crosses that class at least once.
pub fn above_capacity(result: &RunResult, meta: &RunMeta) -> Vec<OfferedLoad> {
    let in_packets = result.flows.iter().filter(|flow| !flow.is_scale_up);
    let started: Vec<(&FlowRow, Time)> = in_packets.filter_map(|flow| Some((flow, flow.start?))).collect();
    let (Some(first), Some(last)) = (started.iter().map(|f| f.1).min(), started.iter().map(|f| f.1).max()) else {
        return vec![];
    };
    let span = last.saturating_sub(first).as_seconds();
    let ideal = started.iter().map(|(flow, _)| flow.ideal_rx.as_seconds()).sum::<f64>() / started.len() as f64;
    // If flows wait for others, the network limits the offered load to the throughput.
    if meta.flows_wait || started.len() < FEWEST_FLOWS || span < SPAN * ideal {
        return vec![];
    }
    let down = |link: &LinkRow| {
        let own = |fault: &&LinkFault| fault.is_of(link) && fault.at <= first;
        meta.faults.iter().filter(own).any(|fault| fault.what == LinkFault::DOWN)
    };
    let links: Vec<&LinkRow> = result.links.iter().filter(|link| !down(link)).collect();
    let of = |bits: f64, capacity: f64| bits / (capacity * span);
    let hosts = started.iter().map(|(flow, _)| flow.src.max(flow.dst) as usize + 1).max().unwrap_or(0);
    let names: Vec<String> = (0..hosts).map(|host| format!("host{host}")).collect();
    let numbers: BTreeMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let mut found = vec![];
    for (what, receives) in [("hosts that send", false), ("hosts that receive", true)] {
        let mut payload = vec![0.0; hosts];
        for (flow, _) in &started {
            payload[if receives { flow.dst } else { flow.src } as usize] += flow.size_bytes as f64 * 8.0;
        }
        let own = links.iter().filter(|link| link.tier == "host" && is_nic(link) != receives);
        let busy = |link: &&&LinkRow| {
            let host = if receives { &link.to } else { &link.from };
            numbers.get(host.as_str()).is_some_and(|host| payload[*host] > 0.0)
        };
        let capacity: f64 = own.filter(busy).map(|link| link.rate_bps as f64).sum();
        if capacity > 0.0 {
            let load = of(payload.iter().sum(), capacity);
            found.push(OfferedLoad { links: format!("the links of the {what}"), load });
        }
    }
    let mut classes: Vec<&str> = links.iter().map(|link| link.tier.as_str()).filter(|tier| *tier != "host").collect();
    classes.sort_unstable();
    classes.dedup();
    for class in classes {
        let parts = Parts::of(links.iter().filter(|link| link.tier != class).map(|link| (&*link.from, &*link.to)));
        let part_of: Vec<Option<usize>> = names.iter().map(|name| parts.of_node(name)).collect();
        let crossing = started.iter().filter(|(flow, _)| {
            let ends = (part_of[flow.src as usize], part_of[flow.dst as usize]);
            matches!(ends, (Some(a), Some(b)) if a != b)
        });
        let bits: f64 = crossing.map(|(flow, _)| flow.size_bytes as f64 * 8.0).sum();
        let with_hosts: BTreeSet<usize> =
            links.iter().filter(|link| is_nic(link)).filter_map(|link| parts.of_node(&link.from)).collect();
        let leaves =
            |link: &&&LinkRow| link.tier == class && parts.of_node(&link.from).is_some_and(|p| with_hosts.contains(&p));
        let capacity: f64 = links.iter().filter(leaves).map(|link| link.rate_bps as f64).sum();
        if bits > 0.0 && capacity > 0.0 {
            found.push(OfferedLoad { links: format!("the {class} links"), load: of(bits, capacity) });
        }
    }
    found.retain(|offered| offered.load > 1.0);
    found
}

/// Connected components of the nodes, by name.
struct Parts<'n> {
    numbers: BTreeMap<&'n str, usize>,
    parents: Vec<usize>,
}

impl<'n> Parts<'n> {
    fn of(links: impl Iterator<Item = (&'n str, &'n str)>) -> Self {
        let mut parts = Parts { numbers: BTreeMap::new(), parents: vec![] };
        for (from, to) in links {
            let (a, b) = (parts.number(from), parts.number(to));
            let (a, b) = (parts.root(a), parts.root(b));
            parts.parents[a.max(b)] = a.min(b);
        }
        parts
    }
    fn number(&mut self, name: &'n str) -> usize {
        let next = self.parents.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        number
    }
    fn root(&self, mut node: usize) -> usize {
        while self.parents[node] != node {
            node = self.parents[node];
        }
        node
    }
    fn of_node(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).map(|node| self.root(*node))
    }
}
