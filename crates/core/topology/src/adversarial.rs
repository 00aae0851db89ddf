//! Adversarial pairs: flows whose default paths share one link (specification 12.3; Besta & Hoefler 2014).

use crate::{Guide, LinkId, NodeId, graph::Graph};
use anabranch_random::{Stream, name_key};
use std::collections::BTreeSet;

pub(crate) fn adversarial_pairs(graph: &Graph, guide: &Guide, seed: u64) -> Vec<(u32, u32)> {
    let mut stream = Stream::keyed(seed, name_key("topology"), "adversarial-pairs");
    let mut cables: Vec<LinkId> = graph.link_ids().step_by(2).filter(|l| is_between_switches(graph, *l)).collect();
    stream.shuffle(&mut cables);
    let mut free = hosts_by_switch(graph);
    let mut used = BTreeSet::new();
    let mut pairs = Vec::new();
    for link in cables.into_iter().flat_map(|cable| [cable, cable.reverse()]) {
        let (u, v) = (graph.link(link).from, graph.link(link).to);
        let mut neighbours = neighbours_behind(graph, guide, link);
        stream.shuffle(&mut neighbours);
        for source in neighbours {
            let [from, to] = [source, v].map(|node| (node.0 - graph.hosts) as usize);
            debug_assert!(source != u && source != v);
            if free[from].is_empty() || free[to].is_empty() || !used.insert((source, v)) {
                continue;
            }
            pairs.extend(free[from].pop().zip(free[to].pop()));
        }
    }
    pairs
}

fn is_between_switches(graph: &Graph, link: LinkId) -> bool {
    graph.link(link).from.0.min(graph.link(link).to.0) >= graph.hosts
}

/// Returns the hosts of every switch, the smallest number last.
fn hosts_by_switch(graph: &Graph) -> Vec<Vec<u32>> {
    let mut hosts = vec![Vec::new(); graph.switches() as usize];
    for host in (0..graph.hosts).rev() {
        hosts[(graph.edge_switch(host).0 - graph.hosts) as usize].push(host);
    }
    hosts
}

/// Returns the neighbours of a link's source whose default path to the link's destination leads over it.
fn neighbours_behind(graph: &Graph, guide: &Guide, link: LinkId) -> Vec<NodeId> {
    let (u, v) = (graph.link(link).from, graph.link(link).to);
    let leads = |from: NodeId, to: NodeId| guide.minimal(from, v).is_some_and(|l| graph.link(l).to == to);
    let neighbours = graph.out_links(u).iter().map(|l| graph.link(*l).to);
    neighbours.filter(|n| n.0 >= graph.hosts && *n != v && leads(*n, u) && leads(u, v)).collect()
}
