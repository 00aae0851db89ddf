//! Adversarial pairs: flows whose default paths share one link (specification 12.3; Besta & Hoefler 2014).

use crate::{Guide, LinkId, NodeId, Topology, graph::Graph};
use anabranch_random::{Stream, name_key};
use std::collections::BTreeSet;

impl Topology {
    /// Returns pairs (source, destination) of hosts that load single links when all traffic takes default paths; empty if the
    /// topology has no guided paths.
    ///
    /// The cables between switches are taken in random order, each in both directions, u to v. Unused hosts of v receive from
    /// unused hosts of different neighbours of u, in random order, whose default path to v leads through u. A host and a pair
    /// of switches are used once. With p hosts per switch, at most p flows load a direction of a cable.
    pub fn adversarial_pairs(&self, seed: u64) -> Vec<(u32, u32)> {
        let Some(guide) = self.guide() else { return Vec::new() };
        let mut stream = Stream::keyed(seed, name_key("topology"), "adversarial-pairs");
        let mut cables: Vec<LinkId> = self.link_ids().step_by(2).filter(|l| is_between_switches(self, *l)).collect();
        stream.shuffle(&mut cables);
        let mut free = hosts_by_switch(self);
        let mut used = BTreeSet::new();
        let mut pairs = Vec::new();
        for link in cables.into_iter().flat_map(|cable| [cable, cable.reverse()]) {
            let (u, v) = (self.link(link).from, self.link(link).to);
            let mut neighbours = neighbours_behind(self, &guide, link);
            stream.shuffle(&mut neighbours);
            for source in neighbours {
                let [from, to] = [source, v].map(|node| (node.0 - self.hosts) as usize);
                debug_assert!(source != u && source != v);
                if free[from].is_empty() || free[to].is_empty() || !used.insert((source, v)) {
                    continue;
                }
                pairs.extend(free[from].pop().zip(free[to].pop()));
            }
        }
        pairs
    }
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
