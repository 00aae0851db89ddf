use super::Guide;
use crate::{
    LinkId,
    graph::Graph,
    guidance::{Guidance, PathType},
};
use anabranch_units::Time;
use std::collections::BTreeMap;

/// Maximum number of paths examined one by one; beyond it, evenly spaced switches represent all.
const MAX_PATHS: u64 = 8_000_000;

/// Returns the bytes of an endpoint's table: 3 per path to every other switch (specification 9.3).
pub fn guided_table_bytes(switches: u64, paths_per_pair: u64) -> u64 {
    switches.saturating_sub(1) * paths_per_pair * 3
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeTotal {
    pub(crate) kind: PathType,
    pub(crate) paths: u64,
    pub(crate) latency: Time,
}

pub(crate) struct Totals {
    pub(crate) sources: u32,
    pub(crate) fewest: u64,
    pub(crate) most: u64,
    pub(crate) types: Vec<TypeTotal>,
}

/// Returns the times of the slowest link from a host and the slowest to a host, added.
fn ends(graph: &Graph, bytes: u64) -> Time {
    let slowest = |links: &mut dyn Iterator<Item = LinkId>| links.map(|l| graph.one_way(&[l], bytes)).max();
    let up = (0..graph.hosts).map(|host| graph.host_uplink(host));
    [slowest(&mut up.clone()), slowest(&mut up.map(LinkId::reverse))].into_iter().flatten().sum()
}

impl Guide {
    /// Returns an upper bound.
    fn paths_of_a_source(&self) -> u64 {
        let ports = (0..self.switches()).map(|s| self.ports(s).len() as u64).max().unwrap_or(0);
        let per_pair = match self.guidance {
            Guidance::Dragonfly => u64::from(self.groups.max(2) - 1).max(ports),
            Guidance::SlimFly | Guidance::Graph => ports * ports,
        };
        (u64::from(self.switches()) * per_pair).max(1)
    }

    fn sources(&self) -> impl Iterator<Item = u32> + use<> {
        let switches = u64::from(self.switches());
        let count = (MAX_PATHS / self.paths_of_a_source()).clamp(1, switches);
        (0..count).map(move |i| ((2 * i + 1) * switches / (2 * count)) as u32)
    }

    /// Returns the step between the destinations examined from a source: 1, unless one source has too many paths.
    fn stride(&self) -> usize {
        (self.paths_of_a_source() / MAX_PATHS).max(1) as usize
    }

    /// Skips `from`; the next numbers come first, since the longest paths of a Slim Fly lead to its own half.
    fn others(&self, from: u32, stride: usize) -> impl Iterator<Item = u32> + use<> {
        let switches = self.switches();
        (1..switches).step_by(stride).map(move |i| (from + i) % switches)
    }

    pub(crate) fn totals(&self, graph: &Graph, packet: u64) -> Totals {
        let (mut sources, mut fewest, mut most) = (0, u64::MAX, 0);
        let mut types: BTreeMap<PathType, (u64, Time)> = BTreeMap::new();
        let latency = |port: &u32| {
            let link = graph.link(self.link[*port as usize]);
            link.delay + link.rate.wire_time(packet)
        };
        let latencies: Vec<Time> = (0..self.link.len() as u32).map(|port| latency(&port)).collect();
        let stride = self.stride();
        for from in self.sources() {
            sources += 1;
            for to in self.others(from, stride) {
                let mut count = 0;
                self.visit(from, to, &mut |_, ports| {
                    count += 1;
                    let latency = ports.iter().map(|port| latencies[*port as usize]).sum();
                    let entry = types.entry(self.kind(ports)).or_insert((0, latency));
                    *entry = (entry.0 + 1, entry.1.min(latency));
                });
                (fewest, most) = (fewest.min(count), most.max(count));
            }
        }
        let total = |kind: &PathType| types.get(kind).map(|t| TypeTotal { kind: *kind, paths: t.0, latency: t.1 });
        let types = self.guidance.types().iter().filter_map(total).collect();
        Totals { sources, fewest: fewest.min(most), most, types }
    }

    /// Returns the round trip of a packet of `packet` bytes over the longest guided path and of its ACK of `ack` bytes over
    /// the longest default path, host links (the slowest) and switch latencies included (specification 9.5).
    ///
    /// In fabrics of many million paths whose links of one class differ, evenly spaced switches represent all.
    pub fn base_rtt(&self, graph: &Graph, packet: u64, ack: u64) -> Time {
        let data = self.longest(graph, packet, self.sources(), true);
        let back = self.longest(graph, ack, 0..self.switches(), false);
        ends(graph, packet) + data + ends(graph, ack) + back
    }

    /// Returns [`Guide::base_rtt`] with both directions over the longest default path.
    pub(crate) fn default_rtt(&self, graph: &Graph, packet: u64, ack: u64) -> Time {
        let one_way = |bytes: u64| ends(graph, bytes) + self.longest(graph, bytes, 0..self.switches(), false);
        one_way(packet) + one_way(ack)
    }

    fn longest(&self, graph: &Graph, bytes: u64, sources: impl Iterator<Item = u32>, guided: bool) -> Time {
        let times: Vec<Time> = self.link.iter().map(|link| graph.one_way(&[*link], bytes)).collect();
        let slowest = |local: bool| {
            times.iter().zip(&self.local).filter(|t| *t.1 == local).map(|t| *t.0).max().unwrap_or(Time::ZERO)
        };
        let (local, global) = (slowest(true), slowest(false));
        // No path can take longer: the search ends with the first that takes this time.
        let bound = match (self.guidance, guided) {
            (Guidance::Dragonfly, true) => local * 3 + global * 2,
            (Guidance::Dragonfly, false) => local * 2 + global,
            (Guidance::SlimFly, true) => local.max(global) * 4,
            (Guidance::SlimFly, false) => local.max(global) * 2,
            (Guidance::Graph, true) => local * 5,
            (Guidance::Graph, false) => local * 3,
        };
        let stride = if guided { self.stride() } else { 1 };
        let mut longest = Time::ZERO;
        for from in sources {
            for to in self.others(from, stride) {
                let mut see = |ports: &[u32]| {
                    longest = longest.max(ports.iter().map(|port| times[*port as usize]).sum());
                };
                match guided {
                    true => self.visit(from, to, &mut |_, ports| see(ports)),
                    false => self.default_path(from, to, &mut see),
                }
                if longest == bound {
                    return bound;
                }
            }
        }
        longest
    }
}
