//! Packets: one cache line each, in an arena, named by 32-bit ids.

use anabranch_lb::{PacketView, SwitchHeader};

use crate::plan::Plan;

/// No packet, no queue, no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Not in use.
    #[default]
    Free,
    /// Payload.
    Data,
    /// What trimming left of a data packet.
    Header,
    /// Acknowledgement.
    Ack,
    /// Negative acknowledgement.
    Nack,
    /// A host scheme's question for the round trip of a path; waits with the data.
    Probe,
    /// The answer to it.
    ProbeReply,
    /// From the last switch of a flow to its first: a word of the switch scheme.
    SwitchControl,
    /// PFC, over one link: `tag` is the link to be paused, `psn` is 1 to pause and 0 to resume.
    Pause,
}

/// The packet was ECN-marked on its way; of an answer: the packet that it answers was.
pub(crate) const MARKED: u8 = 1;
/// The packet was sent before.
pub(crate) const RETRANSMISSION: u8 = 2;

/// Of an answer: a congestion notification. It also comes where the packet was not marked but out of order.
pub(crate) const NOTIFICATION: u8 = 8;

/// The sender cannot go on before it hears of this packet.
pub(crate) const ACK_REQUEST: u8 = 4;

/// A packet on its way.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Packet {
    /// When it joined the queue it waits in.
    pub(crate) queued_at: u64,
    /// Packet sequence number; of an ACK or NACK the one that triggered it.
    pub(crate) psn: u64,
    /// Data: what switch schemes write. ACK, NACK: see [`Packet::cumulative`] and the methods after it.
    pub(crate) head: SwitchHeader,
    /// Flow number.
    pub(crate) flow: u32,
    /// Path tag.
    pub(crate) tag: u32,
    /// The host it is sent from.
    pub(crate) src: u32,
    /// The host it goes to.
    pub(crate) dst: u32,
    /// In a queue: the packet behind it. On a link: the node at its end.
    pub(crate) next: u32,
    /// Bytes on the wire.
    pub(crate) size: u16,
    /// Payload bytes of the data packet this is or was.
    pub(crate) payload: u16,
    pub(crate) kind: Kind,
    /// Data class.
    pub(crate) class: u8,
    pub(crate) flags: u8,
    /// Load balancer of its flow.
    pub(crate) balancer: u8,
}

const _: () = assert!(size_of::<Packet>() == 64);

impl Packet {
    /// As a switch scheme sees it.
    #[inline]
    pub(crate) fn view(&self, plan: &Plan) -> PacketView {
        PacketView {
            src: self.src,
            dst: self.dst,
            src_leaf: plan.edge[self.src as usize],
            dst_leaf: plan.edge[self.dst as usize],
            flow: plan.flow_keys[self.flow as usize],
            tag: self.tag,
            bytes: u32::from(self.size),
            control: matches!(self.kind, Kind::Ack | Kind::Nack | Kind::ProbeReply | Kind::SwitchControl),
            marked: self.flags & MARKED != 0,
        }
    }

    /// Of an ACK or NACK: every PSN below has been received.
    #[inline]
    pub(crate) fn cumulative(&self) -> u64 {
        self.head.wide(0)
    }

    /// Of an ACK: the selective bitmap and its first PSN, less [`Packet::cumulative`].
    #[inline]
    pub(crate) fn bitmap(&self) -> (u64, u32) {
        (self.head.wide(1), self.head.0[4])
    }

    /// The head of an ACK or NACK.
    #[inline]
    pub(crate) fn answer(cumulative: u64, bitmap: u64, bitmap_offset: u32) -> SwitchHeader {
        let mut head = SwitchHeader::default();
        head.set_wide(0, cumulative);
        head.set_wide(1, bitmap);
        head.0[4] = bitmap_offset;
        head
    }

    /// Whether it waits in the control class.
    #[inline]
    pub(crate) fn is_control(&self) -> bool {
        !matches!(self.kind, Kind::Data | Kind::Probe)
    }
}

/// All packets of a partition.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Arena {
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(id) = self.free.pop() {
            self.packets[id as usize] = packet;
            return id;
        }
        self.packets.push(packet);
        self.packets.len() as u32 - 1
    }

    /// Asks the processor to fetch a packet that will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        if let Some(packet) = self.packets.get(id as usize) {
            crate::prefetch::prefetch(packet);
        }
    }

    pub(crate) fn remove(&mut self, id: u32) {
        self.packets[id as usize].kind = Kind::Free;
        self.free.push(id);
    }

    pub(crate) fn swap(&mut self, a: u32, b: u32) {
        self.packets.swap(a as usize, b as usize);
    }

    /// Every packet in use.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().filter(|p| p.kind != Kind::Free)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Packet>() + self.free.capacity() * 4
    }
}

impl std::ops::Index<u32> for Arena {
    type Output = Packet;
    #[inline]
    fn index(&self, id: u32) -> &Packet {
        &self.packets[id as usize]
    }
}
impl std::ops::IndexMut<u32> for Arena {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Packet {
        &mut self.packets[id as usize]
    }
}
