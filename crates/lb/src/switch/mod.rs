//! Switch schemes, one per file.

pub mod ar;
pub mod conga;
pub mod conweave;
pub mod drill;
pub mod ecmp;
pub mod ev_index;
mod leaf;
pub mod letflow;
pub mod random;
pub mod round_robin;

/// What the tests of the schemes share.
#[cfg(test)]
pub(crate) mod testing {
    use crate::{Candidates, LocalQueues, PacketView, SwitchHeader, SwitchInfo, SwitchScheme, Tag};
    use anabranch_units::{Rate, Time};

    /// Queues with given lengths that count how often each was read.
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

    /// A leaf with 8 uplinks and two sets of next hops.
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
        reference: None,
        hop_delay: Time::from_us(1),
        lossless: false,
    };
    pub(crate) const POSITIONS: [u16; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

    /// A data packet.
    pub(crate) fn data(flow: u64, tag: Tag) -> PacketView {
        PacketView { src: 1, dst: 2, src_leaf: 0, dst_leaf: 1, flow, tag, bytes: 4160, control: false, marked: false }
    }
    /// An ACK.
    pub(crate) fn ack(flow: u64, tag: Tag) -> PacketView {
        PacketView { control: true, bytes: 64, ..data(flow, tag) }
    }
    /// Candidates at these positions of 8, in set `group`.
    pub(crate) fn among(position: &[u16], group: u32) -> Candidates<'_> {
        Candidates { count: position.len() as u32, group, position, port: position, uplinks: 8 }
    }
    /// What the scheme chooses at time 0.
    pub(crate) fn choose(s: &mut impl SwitchScheme, packet: &PacketView, position: &[u16], queues: &mut Queues) -> u32 {
        let mut header = SwitchHeader::default();
        let index = s.forward(Time::ZERO, packet, &mut header, &among(position, 0), queues);
        assert!((index as usize) < position.len());
        index
    }
}
