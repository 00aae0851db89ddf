//! Adversarial pairs: flows whose default paths share one link (specification 12.3; Besta & Hoefler 2014).

use crate::{Guide, LinkId, NodeId, Topology};
use anabranch_random::{Stream, name_key};
use std::collections::BTreeSet;

impl Topology {
    /// Pairs (source, destination) of hosts that load single links when all traffic takes default paths; empty where the
    /// topology has no guided paths.
    ///
    /// For each cable between switches in random order and each of its directions u to v: unused hosts of v receive from
    /// unused hosts of different neighbours of u, in random order, whose default path to v leads through u. A host is
    /// used once, as a source or as a destination, and a pair of switches once. With p hosts per switch at most p flows
    /// are laid over a direction of a cable.
    pub fn adversarial_pairs(&self, seed: u64) -> Vec<(u32, u32)> {
        let Some(guide) = self.guide() else { return Vec::new() };
        let mut stream = Stream::keyed(seed, name_key("topology"), "adversarial-pairs");
        let mut cables: Vec<LinkId> = self.link_ids().step_by(2).filter(|l| self.is_between_switches(*l)).collect();
        stream.shuffle(&mut cables);
        let mut free = self.hosts_by_switch();
        let mut used = BTreeSet::new();
        let mut pairs = Vec::new();
        for link in cables.into_iter().flat_map(|cable| [cable, cable.reverse()]) {
            let (u, v) = (self.link(link).from, self.link(link).to);
            let mut neighbours = self.neighbours_behind(&guide, link);
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

    fn is_between_switches(&self, link: LinkId) -> bool {
        self.link(link).from.0.min(self.link(link).to.0) >= self.hosts
    }

    /// Hosts of every switch, the smallest number last.
    fn hosts_by_switch(&self) -> Vec<Vec<u32>> {
        let mut hosts = vec![Vec::new(); self.switches() as usize];
        for host in (0..self.hosts).rev() {
            hosts[(self.edge_switch(host).0 - self.hosts) as usize].push(host);
        }
        hosts
    }

    /// Neighbours of the first end of a link whose default path to the second leads through the first, over this link.
    fn neighbours_behind(&self, guide: &Guide, link: LinkId) -> Vec<NodeId> {
        let (u, v) = (self.link(link).from, self.link(link).to);
        let leads = |from: NodeId, to: NodeId| guide.minimal(from, v).is_some_and(|l| self.link(l).to == to);
        let neighbours = self.out_links(u).iter().map(|l| self.link(*l).to);
        neighbours.filter(|n| n.0 >= self.hosts && *n != v && leads(*n, u) && leads(u, v)).collect()
    }
}
