//! Switch schemes, one per file.

pub(crate) mod ar;
pub(crate) mod coarse_guided;
pub(crate) mod conga;
pub(crate) mod conweave;
mod course;
pub(crate) mod drill;
pub(crate) mod ecmp;
pub(crate) mod ev_index;
mod leaf;
pub(crate) mod letflow;
pub(crate) mod minimal;
pub(crate) mod random;
pub(crate) mod round_robin;
pub(crate) mod source_guided;
pub(crate) mod ugal;
pub(crate) mod valiant;

/// For checks and tests.
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) mod testing {
    use crate::{
        Candidates, GuidedPath, GuidedPaths, GuidedSwitch, GuidedTopology, LocalQueues, PacketView, SwitchHeader,
        SwitchInfo, SwitchScheme, Tag, registry::TagKind,
    };
    use anabranch_units::{Rate, Time};

    pub(crate) struct Queues {
        pub(crate) bytes: Vec<u64>,
        pub(crate) reads: Vec<u32>,
    }
    impl Queues {
        pub(crate) fn new(bytes: &[u64]) -> Self {
            Queues { bytes: bytes.to_vec(), reads: vec![0; bytes.len()] }
        }
    }
    impl LocalQueues for Queues {
        fn bytes(&mut self, index: u32) -> u64 {
            self.reads[index as usize] += 1;
            self.bytes[index as usize]
        }
        fn rate(&mut self, _: u32) -> Rate {
            Rate(100_000_000_000)
        }
    }

    pub(crate) const LEAF: SwitchInfo = SwitchInfo {
        key: 5,
        tier: 0,
        groups: 2,
        widest: 8,
        part_shift: 0,
        part_size: 8,
        number: 0,
        switches: 16,
        ports: 24,
        uplinks: Vec::new(),
        murmur3: None,
        udp_ports: false,
        hop_delay: Time::from_us(1),
        queue_limit: 400_000,
        lossless: false,
        tags: TagKind::Entropy,
    };
    pub(crate) const POSITIONS: [u16; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

    pub(crate) fn data(flow: u64, tag: Tag) -> PacketView {
        PacketView { src: 1, dst: 2, src_leaf: 0, dst_leaf: 1, flow, tag, bytes: 4160, control: false, marked: false }
    }
    pub(crate) fn ack(flow: u64, tag: Tag) -> PacketView {
        PacketView { control: true, bytes: 64, ..data(flow, tag) }
    }
    /// Candidates at these positions of 8, in set `group`.
    pub(crate) fn among(position: &[u16], group: u32) -> Candidates<'_> {
        Candidates { count: position.len() as u32, group, position, port: position, uplinks: 8 }
    }
    pub(crate) fn choose(s: &mut impl SwitchScheme, packet: &PacketView, position: &[u16], queues: &mut Queues) -> u32 {
        let mut header = SwitchHeader::default();
        let index = s.forward(Time::ZERO, packet, &mut header, &among(position, 0), queues);
        assert!((index as usize) < position.len());
        let by_labels = s.by_labels(packet.tag, || *packet, position.len() as u32, 8);
        assert!(by_labels.is_none_or(|found| found == index));
        index
    }

    /// A switch of a Dragonfly whose groups have `size` switches, each with `globals` global links, or of the Petersen graph,
    /// the smallest of diameter 2. The first ports of a Dragonfly lead to the others of the group, and the k-th global link
    /// of a group to the group k + 1 further on.
    pub(crate) struct Little {
        pub(crate) topology: GuidedTopology,
        pub(crate) size: u32,
        pub(crate) globals: u32,
        pub(crate) here: u32,
        pub(crate) to: u32,
        pub(crate) queues: Vec<u64>,
        /// At `3 * switch + port`.
        pub(crate) snapshots: Vec<u64>,
        pub(crate) paths: GuidedPaths,
    }
    impl Little {
        /// Of the Dragonfly (1, 2, 1): groups {0, 1}, {2, 3}, {4, 5} and the global links 0-3, 1-4 and 2-5.
        pub(crate) fn dragonfly(here: u32, to: u32) -> Self {
            Little::of((2, 1), here, to)
        }
        pub(crate) fn of((size, globals): (u32, u32), here: u32, to: u32) -> Self {
            let path = |ev, ns| GuidedPath {
                ev,
                kind: 0,
                minimal: ns < 1000,
                latency: Time::from_ns(ns),
                propagation: Time::from_ns(ns - 200),
                hops: 2,
            };
            let paths = GuidedPaths::new([path(0x0001, 691), path(0x0100, 1382)]);
            let (topology, queues, snapshots) = (GuidedTopology::Dragonfly, vec![0; 2], vec![0]);
            Little { topology, size, globals, here, to, queues, snapshots, paths }
        }
        pub(crate) fn petersen() -> Self {
            Little { topology: GuidedTopology::SlimFly, ..Little::of((5, 1), 0, 0) }
        }
        pub(crate) fn switches(&self) -> u32 {
            let groups = if self.topology == GuidedTopology::SlimFly { 2 } else { self.size * self.globals + 1 };
            groups * self.size
        }
        fn port(&self, switch: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
            (0..self.ports(switch)).find(|port| fits(self.peer(switch, *port)))
        }
    }
    impl GuidedSwitch for Little {
        fn topology(&self) -> GuidedTopology {
            self.topology
        }
        fn here(&self) -> u32 {
            self.here
        }
        fn destination(&self) -> u32 {
            self.to
        }
        fn ports(&self, _: u32) -> u32 {
            if self.topology == GuidedTopology::SlimFly { 3 } else { self.size - 1 + self.globals }
        }
        fn peer(&self, switch: u32, port: u32) -> u32 {
            let (group, own, of_group) = (self.group(switch), switch % self.size, self.size * self.globals);
            if self.topology == GuidedTopology::SlimFly {
                let step = 1 + group;
                return [group * 5 + (own + step) % 5, group * 5 + (own + 5 - step) % 5, (1 - group) * 5 + own]
                    [port as usize];
            }
            if port < self.size - 1 {
                return group * self.size + port + u32::from(port >= own);
            }
            let k = own * self.globals + port - (self.size - 1);
            (group + k + 1) % (of_group + 1) * self.size + (of_group - 1 - k) / self.globals
        }
        fn is_local(&self, switch: u32, port: u32) -> bool {
            self.group(switch) == self.group(self.peer(switch, port))
        }
        fn group(&self, switch: u32) -> u32 {
            switch / self.size
        }
        /// Dragonfly: directly, or to the switch of the group that has the global link, and over it. Petersen: directly, or
        /// over the one common neighbour.
        fn minimal(&self, switch: u32) -> u32 {
            let direct = |from: u32| self.port(from, |peer| peer == self.to);
            let into = |from: u32| self.port(from, |peer| self.group(peer) == self.group(self.to));
            let over = match self.topology {
                GuidedTopology::SlimFly => self.port(switch, |peer| direct(peer).is_some()),
                GuidedTopology::Dragonfly => into(switch).or_else(|| {
                    self.port(switch, |peer| self.group(peer) == self.group(switch) && into(peer).is_some())
                }),
            };
            direct(switch).or(over).expect("a way")
        }
        fn named(&self, hop: u8, over_local: bool, ev: u16) -> u32 {
            let away = self.group(self.here) != self.group(self.to);
            let nth = |part: u16, allowed: &dyn Fn(bool) -> bool| {
                let of: Vec<u32> =
                    (0..self.ports(self.here)).filter(|p| allowed(self.is_local(self.here, *p))).collect();
                (!of.is_empty()).then(|| of[usize::from(part) % of.len()])
            };
            let named = match (self.topology, hop) {
                (GuidedTopology::SlimFly, 0) => nth(ev >> 8, &|_| true),
                (GuidedTopology::SlimFly, 1) => nth(ev & 0xff, &|_| true),
                (GuidedTopology::Dragonfly, 0) => nth(ev >> 8, &|local| local || away),
                (GuidedTopology::Dragonfly, 1) if over_local && away => nth(ev & 0xff, &|local| !local),
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
            self.snapshots[(3 * switch + port) as usize % self.snapshots.len()]
        }
        fn paths(&mut self) -> &GuidedPaths {
            &self.paths
        }
    }
}
