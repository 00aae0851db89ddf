//! Switch schemes, one per file.

pub mod ar;
pub mod coarse_guided;
pub mod conga;
pub mod conweave;
mod course;
pub mod drill;
pub mod ecmp;
pub mod ev_index;
mod leaf;
pub mod letflow;
pub mod minimal;
pub mod random;
pub mod round_robin;
pub mod source_guided;
pub mod ugal;
pub mod valiant;

#[cfg(test)]
pub(crate) mod testing {
    use crate::{
        Candidates, GuidedPath, GuidedPaths, GuidedSwitch, GuidedTopology, LocalQueues, PacketView, SwitchHeader,
        SwitchInfo, SwitchScheme, Tag, registry::TagKind,
    };
    use anabranch_units::{Rate, Time};
    use std::collections::BTreeMap;

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

    /// A switch of a Dragonfly whose groups have `size` switches, each with `globals` global links: its first ports lead to
    /// the others of its group, and the k-th global link of a group to the group k + 1 further on.
    pub(crate) struct Little {
        size: u32,
        globals: u32,
        pub(crate) here: u32,
        pub(crate) to: u32,
        pub(crate) queues: Vec<u64>,
        pub(crate) snapshots: BTreeMap<(u32, u32), u64>,
        paths: GuidedPaths,
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
            Little { size, globals, here, to, queues: vec![0; 2], snapshots: BTreeMap::new(), paths }
        }
    }
    impl GuidedSwitch for Little {
        fn topology(&self) -> GuidedTopology {
            GuidedTopology::Dragonfly
        }
        fn here(&self) -> u32 {
            self.here
        }
        fn destination(&self) -> u32 {
            self.to
        }
        fn ports(&self, _: u32) -> u32 {
            self.size - 1 + self.globals
        }
        fn peer(&self, switch: u32, port: u32) -> u32 {
            let (group, own, of_group) = (self.group(switch), switch % self.size, self.size * self.globals);
            if self.is_local(switch, port) {
                return group * self.size + port + u32::from(port >= own);
            }
            let k = own * self.globals + port - (self.size - 1);
            (group + k + 1) % (of_group + 1) * self.size + (of_group - 1 - k) / self.globals
        }
        fn is_local(&self, _: u32, port: u32) -> bool {
            port < self.size - 1
        }
        fn group(&self, switch: u32) -> u32 {
            switch / self.size
        }
        fn minimal(&self, switch: u32) -> u32 {
            let leads = |port: &u32| {
                !self.is_local(switch, *port) && self.group(self.peer(switch, *port)) == self.group(self.to)
            };
            (0..self.ports(switch)).find(leads).unwrap_or(0)
        }
        fn named(&self, hop: u8, over_local: bool, ev: u16) -> u32 {
            let away = self.group(self.here) != self.group(self.to);
            match hop {
                0 if away => u32::from(ev >> 8) % 2,
                1 if away && over_local => 1,
                _ => self.minimal(self.here),
            }
        }
        fn path_type(&self, local: u8, global: u8) -> Option<u8> {
            Some(local << 4 | global)
        }
        fn queue(&mut self, port: u32) -> u64 {
            self.queues[port as usize]
        }
        fn snapshot(&self, switch: u32, port: u32) -> u64 {
            self.snapshots.get(&(switch, port)).copied().unwrap_or(0)
        }
        fn paths(&mut self) -> &GuidedPaths {
            &self.paths
        }
    }
}
