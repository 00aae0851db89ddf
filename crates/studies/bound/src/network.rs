//! The fabric as bounds see it: the best rate that each link ever has during the traffic, and wire times.

use anabranch_backend::Setup;
use anabranch_topology::{FaultAction, LinkId, NodeId, Topology};
use anabranch_units::{Rate, Serialiser, Time};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// The fabric with the best rates of its links. Times are picoseconds as `f64`.
pub(crate) struct Network<'s> {
    pub(crate) topology: &'s Topology,
    /// Best rate of each directed link for data; `None`: it is down throughout.
    data: Vec<Option<Rate>>,
    /// Best rate of each directed link for control packets, which faults of data alone spare.
    control: Vec<Rate>,
    /// Wire times are truncated to whole nanoseconds.
    rounds: bool,
    /// Latencies between switches by the bytes of a packet, from each switch requested so far.
    latencies: BTreeMap<(u64, bool, u32), Vec<f64>>,
}

impl<'s> Network<'s> {
    /// Traffic begins at `from`: the state of a link before that does not count.
    pub(crate) fn new(setup: &'s Setup, from: Time) -> Self {
        let topology = &setup.topology;
        let mut data = Vec::with_capacity(topology.links.len());
        let mut control = Vec::with_capacity(topology.links.len());
        let mut changes: Vec<_> = setup.faults.iter().enumerate().collect();
        changes.sort_by_key(|(number, fault)| (fault.at, *number));
        let mut per_link: Vec<Vec<(Time, FaultAction)>> = vec![vec![]; topology.links.len()];
        for (_, fault) in changes {
            fault.links.iter().for_each(|link| per_link[link.0 as usize].push((fault.at, fault.action)));
        }
        for (link, changes) in topology.links.iter().zip(&per_link) {
            let (mut rate, mut is_down) = (link.rate, false);
            let (mut best, mut fastest): (Option<Rate>, Rate) = (None, link.rate);
            for (at, action) in changes {
                if *at > from {
                    best = best.max((!is_down).then_some(rate));
                }
                match action {
                    FaultAction::Down => is_down = true,
                    FaultAction::Up => is_down = false,
                    FaultAction::Degrade(slower) => rate = *slower,
                    _ => {}
                }
                fastest = fastest.max(rate);
            }
            best = best.max((!is_down).then_some(rate));
            data.push(best);
            control.push(fastest);
        }
        Network { topology, data, control, rounds: setup.fabric.recorded, latencies: Default::default() }
    }

    /// Returns the best rate of a link in bytes per picosecond; 0 if it is down throughout.
    pub(crate) fn rate(&self, link: LinkId) -> f64 {
        self.data[link.0 as usize].map_or(0.0, |rate| rate.0 as f64 / 8e12)
    }

    /// Returns the links that are down throughout and separate two hosts, of which one of `src` and `dst` has no path to the
    /// other: those out of what `src` reaches, or into what reaches `dst`, whichever are fewer.
    pub(crate) fn cut(&self, src: u32, dst: u32) -> Vec<LinkId> {
        let topology = self.topology;
        let is_down = |link: &LinkId| self.rate(*link) == 0.0;
        let ends = [self.ups(src), self.downs(dst)].into_iter().filter(|links| links.iter().all(is_down));
        let ends: Vec<LinkId> = ends.flatten().collect();
        if !ends.is_empty() {
            return ends;
        }
        let border = |from: u32, backwards: bool| -> Vec<LinkId> {
            let turned = |link: LinkId| if backwards { link.reverse() } else { link };
            let cost = |link: LinkId| if is_down(&turned(link)) { f64::INFINITY } else { 0.0 };
            let costs: Vec<f64> = topology.link_ids().map(cost).collect();
            let found = search(topology, topology.edge_switch(from), &costs).0;
            let has = |node: NodeId| node.0 >= topology.hosts && found[(node.0 - topology.hosts) as usize].is_finite();
            let crosses = |link: &LinkId| {
                let of = topology.link(*link);
                of.to.0 >= topology.hosts && has(of.from) && !has(of.to)
            };
            topology.link_ids().filter(crosses).map(turned).collect()
        };
        let (out, into) = (border(src, false), border(dst, true));
        if into.len() < out.len() { into } else { out }
    }

    /// Returns the links from a host, one per plane.
    pub(crate) fn ups(&self, host: u32) -> Vec<LinkId> {
        self.topology.out_links(NodeId(host)).to_vec()
    }

    /// Returns the links to a host, one per plane.
    pub(crate) fn downs(&self, host: u32) -> Vec<LinkId> {
        self.ups(host).into_iter().map(LinkId::reverse).collect()
    }

    /// Returns the least time of a train, as [`Network::train`], over the links of a host together.
    pub(crate) fn train_over(&self, links: &[LinkId], packets: u64, full: u64, last: u64) -> f64 {
        match links {
            [link] => self.train(*link, packets, full, last),
            _ => (packets * full + last) as f64 / links.iter().map(|link| self.rate(*link)).sum::<f64>(),
        }
    }

    /// Returns `true` if wire times are exact, so that rates bound the bytes that pass.
    pub(crate) fn is_exact(&self) -> bool {
        !self.rounds
    }

    /// Returns the links between switches that carry data at some time.
    pub(crate) fn switch_links(&self) -> impl Iterator<Item = LinkId> + '_ {
        let hosts = self.topology.hosts;
        self.topology.link_ids().filter(move |link| {
            let of = self.topology.link(*link);
            of.from.0 >= hosts && of.to.0 >= hosts && self.data[link.0 as usize].is_some()
        })
    }

    /// Returns the time of `packets` full packets of `full` bytes and one of `last` on a link, at its best rate.
    pub(crate) fn train(&self, link: LinkId, packets: u64, full: u64, last: u64) -> f64 {
        let Some(rate) = self.data[link.0 as usize] else { return f64::INFINITY };
        match self.rounds {
            false => Serialiser::new(rate).serialise(packets * full + last).ps() as f64,
            true => {
                let of = |bytes| rate.wire_time_in_ns(bytes).ps() as f64;
                packets as f64 * of(full) + of(last)
            }
        }
    }

    /// Returns the time in which a packet of `bytes` crosses a link: wire time, delay, and latency of the switch behind.
    pub(crate) fn crossing(&self, link: LinkId, bytes: u64, is_control: bool) -> f64 {
        let wire = match is_control {
            false => self.train(link, 0, 0, bytes),
            true if self.is_exact() => Serialiser::new(self.control[link.0 as usize]).serialise(bytes).ps() as f64,
            true => self.control[link.0 as usize].wire_time_in_ns(bytes).ps() as f64,
        };
        wire + self.behind(link)
    }

    /// Returns the delay of a link and the latency of the switch behind it.
    pub(crate) fn behind(&self, link: LinkId) -> f64 {
        let of = self.topology.link(link);
        let latency = if of.to.0 >= self.topology.hosts { self.topology.switch_latency } else { Time::ZERO };
        (of.delay + latency).ps() as f64
    }

    /// Returns the least time of a packet of `bytes` from one switch to another, over any path.
    pub(crate) fn latency(&mut self, from: NodeId, to: NodeId, bytes: u64, is_control: bool) -> f64 {
        if from == to {
            return 0.0;
        }
        let key = (bytes, is_control, from.0);
        if !self.latencies.contains_key(&key) {
            let costs: Vec<f64> = self.topology.link_ids().map(|link| self.crossing(link, bytes, is_control)).collect();
            let found = distances(self.topology, from, &costs);
            self.latencies.insert(key, found);
        }
        self.latencies[&key][(to.0 - self.topology.hosts) as usize]
    }
}

/// Returns the least sum of `costs` (per directed link, none negative) from a switch to every other, over links between
/// switches; infinite where there is no path. Of several planes, the least of those between switches in the same places.
/// Index: number of the switch, from the first.
pub(crate) fn distances(topology: &Topology, from: NodeId, costs: &[f64]) -> Vec<f64> {
    let mut found = search(topology, from, costs).0;
    let places = topology.plane_switches() as usize;
    for switch in places..found.len() {
        found[switch % places] = found[switch % places].min(found[switch]);
    }
    for switch in places..found.len() {
        found[switch] = found[switch % places];
    }
    found
}

/// As [`distances`], but in each plane for itself, with the last link of a cheapest path to each switch.
pub(crate) fn search(topology: &Topology, from: NodeId, costs: &[f64]) -> (Vec<f64>, Vec<Option<LinkId>>) {
    let hosts = topology.hosts;
    let mut least = vec![f64::INFINITY; topology.switches() as usize];
    let mut last = vec![None; least.len()];
    let mut queue = BinaryHeap::new();
    let places = topology.plane_switches();
    for copy in ((from.0 - hosts) % places..topology.switches()).step_by(places as usize) {
        least[copy as usize] = 0.0;
        queue.push(Reverse((Cost(0.0), hosts + copy)));
    }
    while let Some(Reverse((Cost(so_far), node))) = queue.pop() {
        if so_far > least[(node - hosts) as usize] {
            continue;
        }
        for link in topology.out_links(NodeId(node)) {
            let Some(other) = topology.link(*link).to.0.checked_sub(hosts) else { continue };
            let total = so_far + costs[link.0 as usize];
            if total < least[other as usize] {
                least[other as usize] = total;
                last[other as usize] = Some(*link);
                queue.push(Reverse((Cost(total), other + hosts)));
            }
        }
    }
    (least, last)
}

/// A number in its total order.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Cost(pub(crate) f64);

impl Eq for Cost {}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
