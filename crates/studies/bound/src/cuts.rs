//! Links that flows share on any path: those of hosts, and all links out of and into a leaf or a group.

use crate::{Demand, Machine, Network, machine::Job};
use anabranch_topology::{LinkId, NodeId};
use std::collections::BTreeMap;

/// Machines of which each flow uses at most one.
pub(crate) struct Family {
    /// Name of each machine, with its jobs.
    pub(crate) machines: Vec<(String, Machine)>,
}

/// Returns the job of a flow on links between switches, where its bytes need the time `work`.
pub(crate) fn core_job(number: usize, demand: &Demand, work: f64) -> Job {
    Job {
        flow: number,
        start: demand.earliest,
        turn: demand.turn,
        head: demand.before_core,
        work,
        tail: demand.after_core,
        alone: demand.down,
        after: demand.after_down,
    }
}

/// Returns the families of the flows `numbers`.
pub(crate) fn families(network: &Network<'_>, demands: &[Demand], numbers: &[usize]) -> Vec<Family> {
    let topology = network.topology;
    let up = |number: usize| {
        let demand = &demands[number];
        let (alone, after) = (demand.up, demand.after_up);
        Some((demand.src, Job { head: 0.0, tail: after, alone, after, ..core_job(number, demand, alone) }))
    };
    let down = |number: usize| {
        let demand = &demands[number];
        let (head, tail) = (demand.before_down, demand.after_down);
        Some((demand.dst, Job { head, tail, ..core_job(number, demand, demand.down) }))
    };
    let name_of = |links: Vec<LinkId>, direction: &str, host: u32| match links[..] {
        [link] => topology.link_name(link),
        _ => format!("ports {direction} {}", topology.node(NodeId(host)).name),
    };
    let host_link = |host: u32| name_of(network.ups(host), "of", host);
    let host_down = |host: u32| name_of(network.downs(host), "to", host);
    let mut families = vec![family(numbers, &up, &host_link), family(numbers, &down, &host_down)];
    if !network.is_exact() {
        return families;
    }
    let name = |node: u32| topology.node(NodeId(node)).name.clone();
    let leaf = |host: u32| Some(topology.edge_switch(host).0);
    // A leaf is that in its place of every plane.
    let in_first_plane = |node: NodeId| Some(topology.hosts + (node.0 - topology.hosts) % topology.plane_switches());
    families.extend(cuts(network, demands, numbers, &leaf, &in_first_plane, &name));
    if !topology.groups.is_empty() {
        let group = |host: u32| topology.group_of_switch(topology.edge_switch(host));
        let name = |group: u32| format!("group {group}");
        families.extend(cuts(network, demands, numbers, &group, &|node| topology.group_of_switch(node), &name));
    }
    families
}

fn family(numbers: &[usize], place: &dyn Fn(usize) -> Option<(u32, Job)>, name: &dyn Fn(u32) -> String) -> Family {
    let mut jobs: BTreeMap<u32, Vec<Job>> = BTreeMap::new();
    for (at, job) in numbers.iter().filter_map(|number| place(*number)) {
        jobs.entry(at).or_default().push(job);
    }
    Family { machines: jobs.into_iter().map(|(at, jobs)| (name(at), Machine::new(jobs))).collect() }
}

/// Returns the families of the links out of and into each part of the fabric, whose flows from or to other parts share them.
fn cuts(
    network: &Network<'_>,
    demands: &[Demand],
    numbers: &[usize],
    of_host: &dyn Fn(u32) -> Option<u32>,
    of_switch: &dyn Fn(NodeId) -> Option<u32>,
    name: &dyn Fn(u32) -> String,
) -> [Family; 2] {
    let (mut out, mut into): (BTreeMap<u32, f64>, BTreeMap<u32, f64>) = Default::default();
    for link in network.switch_links() {
        let ends = network.topology.link(link);
        let (from, to) = (of_switch(ends.from), of_switch(ends.to));
        if from != to {
            from.into_iter().for_each(|part| *out.entry(part).or_default() += network.rate(link));
            to.into_iter().for_each(|part| *into.entry(part).or_default() += network.rate(link));
        }
    }
    let crossing = |end: fn(&Demand) -> u32, rates: &BTreeMap<u32, f64>, number: usize| {
        let demand = &demands[number];
        let (from, to) = (of_host(demand.src)?, of_host(demand.dst)?);
        let part = of_host(end(demand))?;
        let rate = rates.get(&part).copied().unwrap_or(0.0);
        (from != to).then(|| (part, core_job(number, demand, demand.bytes() / rate)))
    };
    [
        family(numbers, &|number| crossing(|demand| demand.src, &out, number), &|at| {
            format!("links out of {}", name(at))
        }),
        family(numbers, &|number| crossing(|demand| demand.dst, &into, number), &|at| {
            format!("links into {}", name(at))
        }),
    ]
}

/// Returns the links of a certificate with their lengths, longest first, at most `most`.
pub(crate) fn longest(network: &Network<'_>, lengths: &[f64], most: usize) -> Vec<(String, f64)> {
    let sum: f64 = network.switch_links().map(|link| network.rate(link) * lengths[link.0 as usize]).sum();
    let mut shares: Vec<(LinkId, f64)> =
        network.switch_links().map(|link| (link, network.rate(link) * lengths[link.0 as usize] / sum)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    shares.into_iter().take(most).map(|(link, share)| (network.topology.link_name(link), share)).collect()
}
