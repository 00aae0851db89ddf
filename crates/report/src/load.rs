//! Whether the flows offer more than the network can carry: then queues grow for as long as flows arrive, and every number
//! depends on how long that is.

use crate::{
    meta::{LinkFault, RunMeta},
    summary::is_nic,
};
use anabranch_outcome::{FlowRow, LinkRow, RunResult};
use anabranch_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Payload offered against what some links can carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedLoad {
    /// Which links, for people.
    pub links: String,
    /// Offered payload over their capacity, while flows start.
    pub load: f64,
}

/// Fewer flows than these, or a time of arrivals shorter than so many mean ideal completion times, is a burst: there is no
/// load to speak of.
const FEWEST_FLOWS: usize = 100;
const SPAN: f64 = 5.0;

/// Links that are offered more than they can carry. Lower bounds: a flow between two parts of the network that only links
/// of one class join crosses that class at least once.
pub(crate) fn above_capacity(result: &RunResult, meta: &RunMeta) -> Vec<OfferedLoad> {
    let started: Vec<(&FlowRow, Time)> = result.flows.iter().filter_map(|flow| Some((flow, flow.start?))).collect();
    let (Some(first), Some(last)) = (started.iter().map(|f| f.1).min(), started.iter().map(|f| f.1).max()) else {
        return vec![];
    };
    let span = last.saturating_sub(first).as_seconds();
    let ideal = started.iter().map(|(flow, _)| flow.ideal_rx.as_seconds()).sum::<f64>() / started.len() as f64;
    // What waits for other flows is held back by the network: it offers only what went through.
    if meta.flows_wait || started.len() < FEWEST_FLOWS || span < SPAN * ideal {
        return vec![];
    }
    let down = |link: &LinkRow| {
        let own = |fault: &&LinkFault| fault.from == link.from && fault.to == link.to && fault.at <= first;
        meta.faults.iter().filter(own).any(|fault| fault.what == LinkFault::DOWN)
    };
    let links: Vec<&LinkRow> = result.links.iter().filter(|link| !down(link)).collect();
    let of = |bits: f64, capacity: f64| bits / (capacity * span);
    let mut found = vec![];
    for (what, receives) in [("hosts that send", false), ("hosts that receive", true)] {
        let host = |link: &LinkRow| if receives { link.to.clone() } else { link.from.clone() };
        let mut payload: BTreeMap<String, f64> = BTreeMap::new();
        for (flow, _) in &started {
            let name = format!("host{}", if receives { flow.dst } else { flow.src });
            *payload.entry(name).or_default() += flow.size_bytes as f64 * 8.0;
        }
        let own = links.iter().filter(|link| link.tier == "host" && is_nic(link) != receives);
        let capacity: f64 = own.filter(|link| payload.contains_key(&host(link))).map(|l| l.rate_bps as f64).sum();
        if capacity > 0.0 {
            found.push(OfferedLoad {
                links: format!("the links of the {what}"),
                load: of(payload.values().sum(), capacity),
            });
        }
    }
    let mut classes: Vec<&str> = links.iter().map(|link| link.tier.as_str()).filter(|tier| *tier != "host").collect();
    classes.sort_unstable();
    classes.dedup();
    for class in classes {
        let parts = Parts::of(links.iter().filter(|link| link.tier != class).map(|link| (&*link.from, &*link.to)));
        let part = |name: &str| parts.of_node(name);
        let crossing = started.iter().filter(|(flow, _)| {
            let ends = (part(&format!("host{}", flow.src)), part(&format!("host{}", flow.dst)));
            matches!(ends, (Some(a), Some(b)) if a != b)
        });
        let bits: f64 = crossing.map(|(flow, _)| flow.size_bytes as f64 * 8.0).sum();
        let with_hosts: Vec<usize> =
            links.iter().filter(|link| is_nic(link)).filter_map(|link| part(&link.from)).collect();
        let with_hosts: std::collections::BTreeSet<usize> = with_hosts.into_iter().collect();
        let leaves = |link: &&&LinkRow| link.tier == class && part(&link.from).is_some_and(|p| with_hosts.contains(&p));
        let capacity: f64 = links.iter().filter(leaves).map(|link| link.rate_bps as f64).sum();
        if bits > 0.0 && capacity > 0.0 {
            found.push(OfferedLoad { links: format!("the {class} links"), load: of(bits, capacity) });
        }
    }
    found.retain(|offered| offered.load > 1.0);
    found
}

/// Nodes that are joined, by name.
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
