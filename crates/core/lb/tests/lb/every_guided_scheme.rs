//! Invariants of every guided switch scheme, on small Dragonflies and the Petersen graph, the smallest of diameter 2.

use crate::common;
use anabranch_lb::{
    GuidedPath, GuidedPaths, GuidedSwitch, GuidedTopology, SwitchHeader, SwitchInfo, SwitchScheme,
    registry::{PacketScope, SwitchParameters},
};
use anabranch_units::Time;
use proptest::prelude::*;

/// A graph of switches in groups; the ports of a switch lead to its neighbours in ascending order.
#[derive(Debug)]
struct Net {
    shape: GuidedTopology,
    group: Vec<u32>,
    neighbours: Vec<Vec<u32>>,
}

impl Net {
    fn new(shape: GuidedTopology, switches: u32, group_size: u32, edges: &[(u32, u32)]) -> Self {
        let mut neighbours = vec![Vec::new(); switches as usize];
        for &(a, b) in edges {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        neighbours.iter_mut().for_each(|of| of.sort_unstable());
        Net { shape, group: (0..switches).map(|switch| switch / group_size).collect(), neighbours }
    }

    /// `a + 1` groups of `a` switches with a global link each: port i of group g leads to group g + i + 1.
    fn dragonfly(a: u32) -> Self {
        let groups = a + 1;
        let mut edges = Vec::new();
        for group in 0..groups {
            edges.extend((0..a).flat_map(|i| (i + 1..a).map(move |j| (group * a + i, group * a + j))));
            for i in 0..a {
                let other = (group + i + 1) % groups;
                if group < other {
                    edges.push((group * a + i, other * a + (a - 1 - i)));
                }
            }
        }
        Net::new(GuidedTopology::Dragonfly, groups * a, a, &edges)
    }

    fn petersen() -> Self {
        let edges: Vec<_> = (0..5).flat_map(|i| [(i, (i + 1) % 5), (5 + i, 5 + (i + 2) % 5), (i, 5 + i)]).collect();
        Net::new(GuidedTopology::SlimFly, 10, 5, &edges)
    }

    fn port_to(&self, from: u32, to: u32) -> Option<u32> {
        self.neighbours[from as usize].binary_search(&to).ok().map(|port| port as u32)
    }

    /// Dragonfly: directly, or to the switch of the group that has the global link, and over it. Petersen: directly, or
    /// over the one common neighbour.
    fn default_port(&self, from: u32, to: u32) -> u32 {
        let near = |switch: u32| self.port_to(switch, to).is_some();
        let into_group = |switch: u32| {
            let of = &self.neighbours[switch as usize];
            of.iter().position(|n| self.group[*n as usize] == self.group[to as usize]).map(|port| port as u32)
        };
        if let Some(port) = self.port_to(from, to) {
            return port;
        }
        let over = |fits: &dyn Fn(u32) -> bool| {
            self.neighbours[from as usize].iter().position(|neighbour| fits(*neighbour)).map(|port| port as u32)
        };
        let own = |n: u32| self.group[n as usize] == self.group[from as usize];
        match self.shape {
            GuidedTopology::SlimFly => over(&near).unwrap(),
            GuidedTopology::Dragonfly => {
                into_group(from).or_else(|| over(&|n| own(n) && into_group(n).is_some())).unwrap()
            }
        }
    }
}

struct At<'a> {
    net: &'a Net,
    here: u32,
    to: u32,
    queues: &'a [u64],
    paths: &'a GuidedPaths,
}

impl GuidedSwitch for At<'_> {
    fn topology(&self) -> GuidedTopology {
        self.net.shape
    }
    fn here(&self) -> u32 {
        self.here
    }
    fn destination(&self) -> u32 {
        self.to
    }
    fn ports(&self, switch: u32) -> u32 {
        self.net.neighbours[switch as usize].len() as u32
    }
    fn peer(&self, switch: u32, port: u32) -> u32 {
        self.net.neighbours[switch as usize][port as usize]
    }
    fn is_local(&self, switch: u32, port: u32) -> bool {
        self.group(switch) == self.group(self.peer(switch, port))
    }
    fn group(&self, switch: u32) -> u32 {
        self.net.group[switch as usize]
    }
    fn minimal(&self, switch: u32) -> u32 {
        assert_ne!(switch, self.to, "there is no way from the destination to itself");
        self.net.default_port(switch, self.to)
    }
    fn named(&self, hop: u8, over_local: bool, ev: u16) -> u32 {
        let same_group = self.group(self.here) == self.group(self.to);
        let nth = |part: u16, allowed: &dyn Fn(bool) -> bool| {
            let of: Vec<u32> = (0..self.ports(self.here)).filter(|p| allowed(self.is_local(self.here, *p))).collect();
            (!of.is_empty()).then(|| of[usize::from(part) % of.len()])
        };
        let named = match (self.net.shape, hop) {
            (GuidedTopology::SlimFly, 0) => nth(ev >> 8, &|_| true),
            (GuidedTopology::SlimFly, 1) => nth(ev & 0xff, &|_| true),
            (GuidedTopology::Dragonfly, 0) => nth(ev >> 8, &|local| local || !same_group),
            (GuidedTopology::Dragonfly, 1) if over_local && !same_group => nth(ev & 0xff, &|local| !local),
            _ => None,
        };
        named.unwrap_or_else(|| self.minimal(self.here))
    }
    fn path_type(&self, local: u8, global: u8) -> Option<u8> {
        Some(local << 4 | global)
    }
    fn queue(&mut self, port: u32) -> u64 {
        assert!(port < self.ports(self.here), "a port that is not there");
        self.queues[(self.here + port) as usize % self.queues.len()]
    }
    fn snapshot(&self, switch: u32, port: u32) -> u64 {
        assert!(port < self.ports(switch), "a port that is not there");
        self.queues[(3 * switch + port) as usize % self.queues.len()]
    }
    fn paths(&mut self) -> &GuidedPaths {
        self.paths
    }
}

/// Maximum links of a route: five on a Dragonfly (two chosen, three default), four on a graph of diameter 2; a
/// progressive choice may come one link later, and a detour over a third group takes one more local link at each side.
const MAX_LINKS: usize = 8;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn packets_arrive(
        packets in prop::collection::vec((any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>()), 1..60),
        queues in prop::collection::vec(prop_oneof![Just(0u64), 0..100_000u64, Just(u64::MAX / 4)], 1..40),
        lists in prop::collection::vec((any::<u16>(), 0u8..9, any::<bool>(), 1u64..4), 0..12),
        shape in 0usize..4,
        seed: u64,
    ) {
        let net = [2, 3, 5].get(shape).map_or_else(Net::petersen, |a| Net::dragonfly(*a));
        let switches = net.group.len() as u32;
        let mut latency = 0;
        let paths = GuidedPaths::new(lists.iter().map(|&(ev, kind, minimal, more)| {
            latency += more;
            GuidedPath { ev, kind, minimal, latency: Time::from_ns(latency), propagation: Time::from_ns(latency), hops: 3 }
        }));
        let guided = SwitchParameters::names(|switch| switch.capabilities().packet_scope() == PacketScope::Guided);
        prop_assert!(guided.len() >= 5, "minimal, valiant, ugal, source-guided, coarse-guided");
        for name in guided {
            for parameters in common::variants::<SwitchParameters>(name) {
                let run = || {
                    let info = |number: u32| {
                        let ports = net.neighbours[number as usize].len() as u32;
                        let key = u64::from(number) + 3;
                        SwitchInfo { key, groups: 1, number, switches, ports, hop_delay: Time::from_ns(500), ..common::switch(&[]) }
                    };
                    let mut schemes: Vec<_> = (0..switches).map(|number| parameters.build(seed, &info(number))).collect();
                    let mut ways = Vec::new();
                    for (i, &(flow, tag, from, to)) in packets.iter().enumerate() {
                        let (from, to) = (from % switches, to % switches);
                        let packet = common::packet((from, to), (from, to), flow, tag);
                        let (mut header, mut here, mut way) = (SwitchHeader::default(), from, vec![from]);
                        while here != to {
                            let mut at = At { net: &net, here, to, queues: &queues, paths: &paths };
                            let scheme = &mut schemes[here as usize];
                            let port = scheme.guide(Time::from_us(i as u64), &packet, &mut header, &mut at);
                            assert!(port < at.ports(here), "{}: port {port} of {}", name, at.ports(here));
                            here = at.peer(here, port);
                            way.push(here);
                            assert!(way.len() - 1 <= MAX_LINKS, "{}: from {from} to {to} over {way:?}", name);
                        }
                        ways.push(way);
                    }
                    ways
                };
                prop_assert_eq!(run(), run(), "{}", name);
            }
        }
    }
}
