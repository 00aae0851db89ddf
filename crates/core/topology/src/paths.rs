//! Distances, path counts, and what a packet takes over the empty network.

use crate::{
    LinkId, NodeId, Routes, Topology,
    routes::distances,
    switch_graph::{Search, SwitchGraph},
};
use anabranch_units::{Rate, Serialiser, Time};
use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

/// Bytes on the wire of the packet for which a path is called the fastest: 4 KiB with headers (specification 9.4).
const FULL_PACKET: u64 = 4160;

impl Topology {
    /// Hops between two switches on the intact network; `u32::MAX` where there is no way.
    pub fn switch_distance(&self, from: NodeId, to: NodeId) -> u32 {
        if from == to {
            return 0;
        }
        if !self.uplinks.is_empty() {
            return self.tree_distance(from, to);
        }
        let mut distance = vec![u32::MAX; self.switches() as usize];
        distances(self, to.0 - self.hosts, &|_| true, &mut distance, &mut Vec::new());
        distance[(from.0 - self.hosts) as usize]
    }

    /// In a tree of tiers: up to the first level from which `to` is reached downwards.
    fn tree_distance(&self, from: NodeId, to: NodeId) -> u32 {
        let mut level = vec![from];
        let mut seen = vec![false; self.nodes.len()];
        seen[from.0 as usize] = true;
        let mut hops = 0;
        while !level.is_empty() {
            hops += 1;
            let mut next = Vec::new();
            for node in level {
                for link in self.out_links(node) {
                    let other = self.link(*link).to;
                    if other == to {
                        return hops;
                    }
                    if other.0 >= self.hosts && !std::mem::replace(&mut seen[other.0 as usize], true) {
                        next.push(other);
                    }
                }
            }
            level = next;
        }
        u32::MAX
    }

    /// The path a packet takes on an empty network, host links included: the first of the shortest paths between two hosts. Where links
    /// are of unequal length by design (topologies with guided paths) it is the fastest, which may have more hops than
    /// the shortest, so that no path that a source can choose beats it.
    pub fn base_path(&self, src: u32, dst: u32) -> Vec<LinkId> {
        let mut path = Vec::new();
        let ports = self.base_ports(self.edge_switch(dst), &self.base_costs());
        self.follow(self.along(&ports), src, dst, &mut path);
        path
    }

    /// The link of a switch on the path that `ports`, per switch, leads along.
    fn along<'a>(&'a self, ports: &'a [u16]) -> impl Fn(NodeId, NodeId) -> LinkId + 'a {
        |at, _| self.out_links(at)[usize::from(ports[(at.0 - self.hosts) as usize])]
    }

    /// Appends the path on which `next` gives the link at a switch towards another one.
    fn follow(&self, next: impl Fn(NodeId, NodeId) -> LinkId, src: u32, dst: u32, path: &mut Vec<LinkId>) {
        let (mut at, to) = (self.edge_switch(src), self.edge_switch(dst));
        path.push(self.host_uplink(src));
        while at != to {
            let link = next(at, to);
            path.push(link);
            at = self.link(link).to;
        }
        path.push(self.host_uplink(dst).reverse());
    }

    /// The cost of each link on a base path: its time where paths are guided, else one hop.
    fn base_costs(&self) -> Box<[u64]> {
        let time = |link| self.one_way(&[link], FULL_PACKET).ps();
        self.link_ids().map(|link| if self.guidance.is_some() { time(link) } else { 1 }).collect()
    }

    /// Per switch the place in [`Topology::out_links`] of its link on the base path to a switch; the first that qualifies.
    fn base_ports(&self, to: NodeId, costs: &[u64]) -> Box<[u16]> {
        let distance = if self.guidance.is_some() {
            self.least_costs(to, costs)
        } else {
            let mut hops = vec![u32::MAX; self.switches() as usize];
            distances(self, to.0 - self.hosts, &|_| true, &mut hops, &mut Vec::new());
            hops.into_iter().map(u64::from).collect()
        };
        let port = |switch: u32| {
            let on_the_way = |link: &LinkId| {
                let next = self.link(*link).to.0.checked_sub(self.hosts);
                next.is_some_and(|next| distance[next as usize] + costs[link.0 as usize] == distance[switch as usize])
            };
            let found = self.out_links(NodeId(self.hosts + switch)).iter().position(on_the_way);
            found.map_or(u16::MAX, |port| port as u16)
        };
        (0..self.switches()).map(port).collect()
    }

    /// The least cost from every switch to switch `to` over links between switches.
    fn least_costs(&self, to: NodeId, costs: &[u64]) -> Vec<u64> {
        let mut least = vec![u64::MAX; self.switches() as usize];
        let mut queue = BinaryHeap::from([Reverse((0, to.0 - self.hosts))]);
        least[(to.0 - self.hosts) as usize] = 0;
        while let Some(Reverse((so_far, switch))) = queue.pop() {
            if so_far > least[switch as usize] {
                continue;
            }
            for link in self.out_links(NodeId(self.hosts + switch)) {
                let Some(other) = self.link(*link).to.0.checked_sub(self.hosts) else { continue };
                // The search runs backwards.
                let total = so_far + costs[link.reverse().0 as usize];
                if total < least[other as usize] {
                    least[other as usize] = total;
                    queue.push(Reverse((total, other)));
                }
            }
        }
        least
    }

    /// Store and forward over an empty path: wire times, delays and switch latencies.
    pub fn one_way(&self, path: &[LinkId], wire_bytes: u64) -> Time {
        let crossing = |link: &LinkId| {
            let link = self.link(*link);
            let latency = if link.to.0 >= self.hosts { self.switch_latency } else { Time::ZERO };
            link.rate.wire_time(wire_bytes) + link.delay + latency
        };
        path.iter().map(crossing).sum()
    }

    /// Round trip of a packet of `data` bytes and its acknowledgement of `ack` bytes, the latter on the way back.
    pub fn base_rtt(&self, src: u32, dst: u32, data: u64, ack: u64) -> Time {
        self.rtt(&self.base_path(src, dst), data, ack)
    }

    /// Round trip over `path` and back over its cables.
    pub fn rtt(&self, path: &[LinkId], data: u64, ack: u64) -> Time {
        let back: Vec<LinkId> = path.iter().rev().map(|l| l.reverse()).collect();
        self.one_way(path, data) + self.one_way(&back, ack)
    }

    /// The largest base round trip between two hosts. Where there are guided paths: over default paths, which are as
    /// long where links of a class are alike, with the slowest host links.
    pub fn max_base_rtt(&self, data: u64, ack: u64) -> Time {
        if let Some(guide) = self.guide() {
            return guide.default_rtt(self, data, ack);
        }
        // The round trip is a sum over links: per switch the slowest hosts as source and as destination stand for all.
        let out = |up: LinkId| self.one_way(&[up], data) + self.one_way(&[up.reverse()], ack);
        let mut sources: Vec<Slowest> = vec![Slowest::default(); self.switches() as usize];
        let mut destinations = sources.clone();
        for host in 0..self.hosts {
            let up = self.host_uplink(host);
            let edge = (self.edge_switch(host).0 - self.hosts) as usize;
            sources[edge].add(host, out(up));
            destinations[edge].add(host, out(up.reverse()));
        }
        let edges: Vec<u32> = self.edge_switches().iter().map(|edge| edge.0 - self.hosts).collect();
        let routes = self.routes();
        let rounds: Vec<Time> = self.link_ids().map(out).collect();
        // Per switch the round trip between it and the goal, once it is known.
        let mut between = vec![None; self.switches() as usize];
        let mut walked = Vec::new();
        let mut largest = Time::ZERO;
        for &to in &edges {
            between.fill(None);
            between[to as usize] = Some(Time::ZERO);
            for &from in &edges {
                let mut at = from;
                let mut time = loop {
                    if let Some(known) = between[at as usize] {
                        break known;
                    }
                    let link = routes.first(at, to);
                    walked.push((at, link));
                    at = self.link(link).to.0 - self.hosts;
                };
                while let Some((switch, link)) = walked.pop() {
                    time += rounds[link.0 as usize];
                    between[switch as usize] = Some(time);
                }
                let ends = sources[from as usize].with(&destinations[to as usize]);
                largest = ends.map_or(largest, |ends| largest.max(ends + time));
            }
        }
        largest
    }

    /// Rate of the fastest NIC.
    pub fn nic_rate(&self) -> Rate {
        (0..self.hosts).map(|host| self.link(self.host_uplink(host)).rate).max().unwrap_or_default()
    }

    /// Bandwidth-delay product in bytes: NIC rate times the largest base round trip.
    pub fn bdp(&self, data: u64, ack: u64) -> u64 {
        self.nic_rate().bytes_in(self.max_base_rtt(data, ack))
    }

    /// Arrival of the last byte of a train on an otherwise empty path: `full` packets of `full_bytes`, then one of
    /// `last_bytes`, sent back to back from time 0; store and forward.
    ///
    /// On link h with wire time s_h and delay d_h (switch latency included) the k-th full packet leaves at
    /// F_h(k) = S_h + (k-1) * M_h, S_h being the sum of wire times and delays up to h and M_h the longest wire time
    /// so far: the slowest link paces the train. The last packet follows: it starts when it has arrived and the packet
    /// before it has left.
    ///
    /// Exact where the rates give whole picoseconds per byte. At other rates ports carry the remainder from packet to
    /// packet; the answer is then at most two picoseconds per link early, never late, so that no flow beats its ideal.
    pub fn train_arrival(&self, path: &[LinkId], full: u64, full_bytes: u64, last_bytes: u64) -> Time {
        let wire = |rate: Rate, bytes: u64| Serialiser::new(rate).serialise(bytes);
        let (mut first_left, mut last_here, mut delay) = (Time::ZERO, Time::ZERO, Time::ZERO);
        let mut slowest = Rate(u64::MAX);
        for link in path {
            let link = self.link(*link);
            slowest = slowest.min(link.rate);
            first_left += delay + wire(link.rate, full_bytes);
            let before_left = match full {
                0 => Time::ZERO,
                _ => first_left + wire(slowest, full_bytes * (full - 1)),
            };
            last_here = (last_here + delay).max(before_left) + wire(link.rate, last_bytes);
            let latency = if link.to.0 >= self.hosts { self.switch_latency } else { Time::ZERO };
            delay = link.delay + latency;
        }
        last_here + delay
    }

    /// Number of paths between two switches that `routes` offers, parallel cables counted one by one; `to` must have
    /// hosts. 0 where there is none; `u64::MAX` where they exceed 64 bits.
    pub fn shortest_paths(&self, routes: &Routes, from: NodeId, to: NodeId) -> u64 {
        let goal = to.0 - self.hosts;
        let mut ways = vec![0u64; self.switches() as usize];
        let mut level = vec![from.0 - self.hosts];
        ways[level[0] as usize] = 1;
        // Every hop leads nearer by one, so a level is complete before the next begins.
        while !level.is_empty() && level[0] != goal {
            let mut next = Vec::new();
            for switch in level {
                for link in routes.towards(switch, goal).links {
                    let other = (self.link(*link).to.0 - self.hosts) as usize;
                    if ways[other] == 0 {
                        next.push(other as u32);
                    }
                    ways[other] = ways[other].saturating_add(ways[switch as usize]);
                }
            }
            level = next;
        }
        ways[goal as usize]
    }

    /// The shortest paths between two hosts, at most `most` of them, in port order.
    pub fn paths(&self, routes: &Routes, src: u32, dst: u32, most: usize) -> Vec<Vec<LinkId>> {
        let (from, to) = (self.edge_switch(src), self.edge_switch(dst));
        let mut found = Vec::new();
        let mut stack = vec![(from, vec![self.host_uplink(src)])];
        while let Some((at, path)) = stack.pop() {
            if found.len() == most {
                break;
            }
            if at == to {
                found.push(path.into_iter().chain([self.host_uplink(dst).reverse()]).collect());
                continue;
            }
            for link in routes.towards(at.0 - self.hosts, to.0 - self.hosts).links.iter().rev() {
                stack.push((self.link(*link).to, path.iter().copied().chain([*link]).collect()));
            }
        }
        found
    }

    /// Which of the paths that multi-part entropy values name between two edge switches lead over a `dead` link
    /// (per directed link). Index: part 0 + U0 * part 1, over as many tiers as the path climbs; empty where there is
    /// no choice.
    pub fn dead_paths(&self, from: NodeId, to: NodeId, dead: &[bool]) -> Vec<bool> {
        let hops = self.switch_distance(from, to);
        if from == to || hops == u32::MAX || self.uplinks.is_empty() {
            return Vec::new();
        }
        let levels = (hops as usize / 2).min(self.uplinks.len());
        let total: u32 = self.uplinks[..levels].iter().product();
        (0..total).map(|path| self.is_dead(from, to, path, levels, dead)).collect()
    }

    fn is_dead(&self, from: NodeId, to: NodeId, mut path: u32, levels: usize, dead: &[bool]) -> bool {
        let mut at = from;
        for uplinks in &self.uplinks[..levels] {
            let part = path % uplinks;
            path /= uplinks;
            let Some(link) = self.uplinks_of(at).nth(part as usize) else { return true };
            if dead[link.0 as usize] {
                return true;
            }
            at = self.link(link).to;
        }
        // Downwards every step needs at least one live cable, or the path is dead.
        for left in (0..levels).rev() {
            let downwards = |link: &&LinkId| {
                let next = self.link(**link).to;
                !self.is_up(**link)
                    && next.0 >= self.hosts
                    && (if left == 0 { next == to } else { self.is_above(next, to) })
            };
            let mut down = self.out_links(at).iter().filter(downwards).filter(|l| !dead[l.0 as usize]);
            let Some(link) = down.next() else { return true };
            at = self.link(*link).to;
        }
        false
    }

    /// Whether `upper` has a cable straight down to `lower`.
    fn is_above(&self, upper: NodeId, lower: NodeId) -> bool {
        self.out_links(upper).iter().any(|l| self.link(*l).to == lower)
    }
}

/// Distance of every switch from a goal, and the number of shortest paths to it (at most `u64::MAX`).
pub(crate) fn count_paths(graph: &SwitchGraph, goal: u32, search: &mut Search, ways: &mut Vec<u64>) {
    ways.clear();
    ways.resize(graph.switches(), 0);
    ways[goal as usize] = 1;
    // A switch comes after all that are nearer to the goal, so its own number is complete by then.
    graph.search(goal, search, |switch, way| {
        ways[way.from as usize] = ways[way.from as usize].saturating_add(ways[switch as usize]);
    });
}

/// The two slowest hosts of a switch with their times, slowest first.
#[derive(Clone, Default)]
struct Slowest([Option<(Time, u32)>; 2]);

impl Slowest {
    fn add(&mut self, host: u32, time: Time) {
        let [first, second] = &mut self.0;
        if first.is_none_or(|f| time > f.0) {
            *second = first.replace((time, host));
        } else if second.is_none_or(|s| time > s.0) {
            *second = Some((time, host));
        }
    }

    /// The largest sum of the times of two different hosts, one of `self` and one of `other`.
    fn with(&self, other: &Slowest) -> Option<Time> {
        let pairs = self.0.iter().flatten().flat_map(|a| other.0.iter().flatten().map(move |b| (a, b)));
        pairs.filter(|(a, b)| a.1 != b.1).map(|(a, b)| a.0 + b.0).max()
    }
}

/// Base paths between many pairs of hosts: along the forwarding tables of the intact graph. Where paths are guided, the
/// fastest path may not be a shortest one; there the tree towards an edge switch is computed once.
#[derive(Clone, Debug, Default)]
pub struct BasePaths {
    /// Where paths are not guided; taken when first needed.
    routes: Option<Arc<Routes>>,
    /// Per edge switch every switch's port on the path there, where paths are guided.
    ports: rustc_hash::FxHashMap<NodeId, Box<[u16]>>,
    /// Per link; filled when first needed.
    costs: Box<[u64]>,
    path: Vec<LinkId>,
}

impl BasePaths {
    /// Returns the path of [`Topology::base_path`].
    pub fn path(&mut self, topology: &Topology, src: u32, dst: u32) -> &[LinkId] {
        self.path.clear();
        if topology.guidance.is_none() {
            let routes = self.routes.get_or_insert_with(|| topology.routes());
            let first = |at: NodeId, to: NodeId| routes.first(at.0 - topology.hosts, to.0 - topology.hosts);
            topology.follow(first, src, dst, &mut self.path);
            return &self.path;
        }
        if self.costs.is_empty() {
            self.costs = topology.base_costs();
        }
        let to = topology.edge_switch(dst);
        let ports = self.ports.entry(to).or_insert_with(|| topology.base_ports(to, &self.costs));
        topology.follow(topology.along(ports), src, dst, &mut self.path);
        &self.path
    }
}
