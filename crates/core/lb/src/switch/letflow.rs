//! LetFlow (specification 4.1; NSDI 2017): flowlet lengths adapt to congestion.

use super::leaf::{FlowKey, FlowTable, Flowlet, MAX_LEAF_PATHS, PathNumbers};
use crate::{
    Candidates, LocalQueues, PacketView, SchemeCounters, State, SwitchHeader, SwitchInfo, SwitchScheme,
    hash::{self, Hasher},
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::Stream;
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

/// Header word with the path.
const PATH: usize = 4;

pub(crate) const ABOUT: About = About {
    name: "letflow",
    summary: "a random path for every flowlet, chosen at the sender's leaf",
    source: "specification 4.1; LetFlow, NSDI 2017",
    description: "The leaf stores per flow its path and last packet. After a pause longer than `flowlet_timeout` the \
        flow gets a new path, uniformly at random. Acknowledgements and traffic within the rack take plain hash ECMP.",
};

state! {
    /// Path of the flowlet, from the sender's leaf.
    path: "";
    /// Flowlets that this leaf has begun.
    flowlets: "flowlets";
}

parameters! {
    pub struct LetflowParameters {
        /// A pause longer than this ends a flowlet.
        flowlet_timeout: Time = Time::from_us(100), source "specification 4.1";
    }
}

impl SchemeCapabilities for LetflowParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.flowlet_timeout > Time::ZERO, "flowlet_timeout", self.flowlet_timeout, "a time above zero")
    }

    fn writes_header(&self) -> bool {
        true
    }

    fn max_leaf_paths(&self) -> Option<u64> {
        Some(MAX_LEAF_PATHS)
    }

    fn flowlet_timeout(&self) -> Option<Time> {
        Some(self.flowlet_timeout)
    }
}

#[derive(Debug)]
pub struct Letflow {
    timeout: Time,
    hasher: Hasher,
    stream: Stream,
    number: u32,
    udp_ports: bool,
    paths: PathNumbers,
    flowlets: FlowTable<Flowlet>,
    count: u64,
}

impl Letflow {
    pub fn new(parameters: LetflowParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let timeout = parameters.flowlet_timeout;
        Letflow {
            timeout,
            hasher: Hasher::of(seed, switch),
            stream: Stream::keyed(seed, switch.key, "letflow"),
            number: switch.number,
            udp_ports: switch.udp_ports,
            paths: PathNumbers::of(switch),
            flowlets: FlowTable::new(timeout.saturating_mul(20)),
            count: 0,
        }
    }
}

impl SwitchScheme for Letflow {
    fn forward<Q: LocalQueues>(
        &mut self,
        now: Time,
        packet: &PacketView,
        header: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        _: &mut Q,
    ) -> u32 {
        if packet.control || packet.src_leaf == packet.dst_leaf {
            return hash::ecmp(&self.hasher, packet, candidates.count);
        }
        if packet.src_leaf != self.number {
            return self.paths.candidate(header.0[PATH], candidates);
        }
        let key = FlowKey::of(packet, self.udp_ports);
        let path = match self.flowlets.get(key) {
            Some(flowlet) if now - flowlet.last <= self.timeout => {
                flowlet.last = now;
                flowlet.path
            }
            _ => {
                self.count += 1;
                let path = self.stream.below(u64::from(self.paths.count())) as u32;
                self.flowlets.insert(key, Flowlet { last: now, path }, now);
                path
            }
        };
        header.0[PATH] = path;
        self.paths.candidate(path, candidates)
    }

    fn counters(&self) -> SchemeCounters {
        SchemeCounters { flowlets: self.count, ..SchemeCounters::default() }
    }

    fn state(&self, _now: Time, packet: &PacketView, header: &SwitchHeader) -> State {
        if packet.control || packet.src_leaf != self.number || packet.src_leaf == packet.dst_leaf {
            return State::default();
        }
        Columns { path: header.0[PATH].into(), flowlets: self.count as f64 }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, ack, among, data};

    fn leaf() -> SwitchInfo {
        SwitchInfo { uplinks: vec![8], ..LEAF }
    }
    fn at(s: &mut Letflow, us: u64, packet: &PacketView) -> u32 {
        let mut header = SwitchHeader::default();
        let mut queues = Queues::new(&[0; 8]);
        s.forward(Time::from_us(us), packet, &mut header, &among(&POSITIONS, 0), &mut queues)
    }

    #[test]
    fn a_pause_of_the_timeout_keeps_the_path_and_a_longer_one_ends_the_flowlet() {
        let mut s = Letflow::new(LetflowParameters::default(), 1, &leaf());
        let first = at(&mut s, 0, &data(7, 0));
        for step in 1..50 {
            assert_eq!(at(&mut s, 100 * step, &data(7, 0)), first);
        }
        assert_eq!(s.counters().flowlets, 1);
        // Pauses of 101 us: each time one of 8 paths at random; 64 in a row the same has probability 8^-64.
        let mut now = 5000;
        let mut seen = [0u32; 8];
        for _ in 0..800 {
            now += 101;
            seen[at(&mut s, now, &data(7, 0)) as usize] += 1;
        }
        assert_eq!(s.counters().flowlets, 801);
        // Chi-square with 7 degrees of freedom exceeds 24.3 with probability 0.001.
        let chi: f64 = seen.iter().map(|&n| (f64::from(n) - 100.0).powi(2) / 100.0).sum();
        assert!(chi < 24.3, "{seen:?}");
    }

    #[test]
    fn acknowledgements_are_hashed_and_upper_switches_follow_the_leaf() {
        let mut s = Letflow::new(LetflowParameters::default(), 1, &leaf());
        let hashed = hash::ecmp(&Hasher::of(1, &leaf()), &ack(7, 0), 8);
        assert_eq!(at(&mut s, 0, &ack(7, 0)), hashed);
        assert_eq!(s.counters().flowlets, 0);
        // Three tiers with 4 uplinks at leaf and 4 above: path 13 is uplink 1 at the leaf and 3 above.
        let above = SwitchInfo { tier: 1, number: 9, uplinks: vec![4, 4], ..LEAF };
        let mut above = Letflow::new(LetflowParameters::default(), 1, &above);
        let mut header = SwitchHeader([0, 0, 0, 0, 13]);
        let up: [u16; 4] = [0, 1, 2, 3];
        let index = above.forward(Time::ZERO, &data(7, 0), &mut header, &among(&up, 0), &mut Queues::new(&[0; 4]));
        assert_eq!(index, 3);
        // Uplink 3 is dead: 3 modulo 3 live ones.
        let live: [u16; 3] = [0, 1, 2];
        let index = above.forward(Time::ZERO, &data(7, 0), &mut header, &among(&live, 0), &mut Queues::new(&[0; 3]));
        assert_eq!(index, 0);
    }

    #[test]
    fn the_reference_model_mixes_some_flows_up() {
        let info = SwitchInfo { udp_ports: true, ..leaf() };
        let ports = |source: u64, destination: u64| data(source | destination << 16, 0);
        let mut s = Letflow::new(LetflowParameters::default(), 1, &info);
        let path = at(&mut s, 0, &ports(10_005, 101));
        // 101 and 102 are both 103 with the bits of 3 set; another sender with the same source port shares the entry.
        assert_eq!(at(&mut s, 50, &PacketView { src: 3, ..ports(10_005, 102) }), path);
        assert_eq!(s.counters().flowlets, 1);
        at(&mut s, 50, &ports(10_006, 101));
        assert_eq!(s.counters().flowlets, 2);
    }
}
