//! Packets, one cache line each, and queues of them.

use crate::{arena::Packets, ids::PacketId};
use anabranch_lb::{LinkSignal, SwitchHeader};
use anabranch_transport::Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Kind {
    #[default]
    Free,
    Data,
    /// Remainder of a trimmed data packet.
    Header,
    Ack,
    Nack,
    /// Request of a host scheme to measure the round-trip time of a path; waits with the data.
    Probe,
    ProbeReply,
    /// From the last switch of a flow to its first, between their schemes.
    SwitchControl,
    /// Credit of a receiver: the first words of the header are all bytes granted to the flow so far.
    Grant,
    /// PFC, over one link: `tag` is the link to be paused, `psn` is 1 to pause and 0 to resume.
    Pause,
}

/// ECN-marked on its way; in a reply: see [`Reply::ecn`].
pub(crate) const MARKED: u8 = 1;
pub(crate) const RETRANSMISSION: u8 = 2;
/// In a reply: see [`Reply::cnp`].
pub(crate) const NOTIFICATION: u8 = 8;
/// The sender cannot go on before this packet is acknowledged.
pub(crate) const ACK_REQUEST: u8 = 4;
/// Trimmed at its last hop, or acknowledges such a packet.
pub(crate) const LAST_HOP: u8 = 16;

/// In [`Packet::held_by`]: a reply of a complete flow. No order of arrivals has this value.
const COMPLETE: u32 = u32::MAX;

/// In a reply: its `payload` is the signal of the packet's path. In data the bit has another meaning.
pub(crate) const SIGNALLED: u8 = ACK_REQUEST;

/// Shift of the role of the next switch in the flags of an acknowledgement that guided schemes route.
const ROLE_SHIFT: u32 = 5;

const _: () =
    assert!((MARKED | NOTIFICATION | LAST_HOP | SIGNALLED) >> ROLE_SHIFT == 0, "flags of a reply, then its role");

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// Data: time at which it joined its present queue, in picoseconds. Replies: see [`Packet::set_reply_waits`].
    pub(crate) queued_at: u64,
    /// Packet sequence number; in a reply, that of the packet it acknowledges.
    pub(crate) psn: u32,
    /// Where delays are attributed: order of the arrivals over the link whose queue held it, or the data packet that it is a
    /// reply to, longest; or [`COMPLETE`].
    pub(crate) held_by: u32,
    /// Data: header of the switch schemes; where none of them needs all of it, its first words are the waits of the packet.
    /// Replies: see [`Packet::answer`]. Probes: time of sending.
    pub(crate) head: SwitchHeader,
    pub(crate) flow: u32,
    pub(crate) tag: u32,
    pub(crate) src: u32,
    pub(crate) dst: u32,
    /// In a queue: the packet behind it. On a link: the node that it leads to.
    pub(crate) next: u32,
    /// Bytes on the wire.
    pub(crate) size: u16,
    /// Payload bytes of the data packet this is or was. Acknowledgements: fresh entropy, a signal, or the value that guides them.
    pub(crate) payload: u16,
    pub(crate) kind: Kind,
    pub(crate) class: u8,
    pub(crate) flags: u8,
    pub(crate) balancer: u8,
}

const _: () = assert!(size_of::<Packet>() == 64);

impl Packet {
    #[inline]
    pub(crate) fn answer(&self) -> Reply {
        Reply {
            psn: u64::from(self.psn),
            tag: self.tag,
            cumulative: self.head.wide(0),
            bitmap: self.head.wide(1),
            offset: self.head.0[4],
            ecn: self.flags & MARKED != 0,
            cnp: self.flags & NOTIFICATION != 0,
            nack: self.kind == Kind::Nack,
            last_hop: self.flags & LAST_HOP != 0,
        }
    }

    #[inline]
    pub(crate) fn set_ack(&mut self, answer: &Reply) {
        (self.psn, self.tag) = (answer.psn as u32, answer.tag);
        self.head.set_wide(0, answer.cumulative);
        self.head.set_wide(1, answer.bitmap);
        self.head.0[4] = answer.offset;
        self.flags = if answer.ecn { MARKED } else { 0 } | if answer.cnp { NOTIFICATION } else { 0 };
        self.kind = if answer.nack { Kind::Nack } else { Kind::Ack };
    }

    /// Returns the signal of a data packet whose balancer's packets carry one.
    pub(crate) fn signal(&self) -> LinkSignal {
        LinkSignal(self.head.0[4] as u16)
    }

    /// Returns the bits that make the hashed tag of a reply differ from the tag it carries, in the otherwise unused
    /// `payload`; 0 unless the transport requests it.
    #[inline]
    pub(crate) fn fresh_entropy(&self) -> u16 {
        if matches!(self.kind, Kind::Ack | Kind::Nack) { self.payload } else { 0 }
    }

    /// Returns the header that guided schemes read: of an acknowledgement, which has no space for one, from its flags and
    /// its payload.
    #[inline]
    pub(crate) fn guided_header(&self) -> SwitchHeader {
        match self.kind {
            Kind::Ack | Kind::Nack | Kind::Grant if self.flags >> ROLE_SHIFT == 0 => SwitchHeader::default(),
            Kind::Ack | Kind::Nack | Kind::Grant => SwitchHeader::of_course((self.flags >> ROLE_SHIFT, self.payload)),
            _ => self.head,
        }
    }

    /// Stores the header that a guided scheme wrote.
    #[inline]
    pub(crate) fn set_guided_header(&mut self, header: &SwitchHeader) {
        match self.kind {
            Kind::Ack | Kind::Nack | Kind::Grant => {
                let (role, ev) = header.course();
                (self.flags, self.payload) = (self.flags & ((1 << ROLE_SHIFT) - 1) | role << ROLE_SHIFT, ev);
            }
            _ => self.head = *header,
        }
    }

    /// Stores the waits of the data packet that it is a reply to.
    #[inline]
    pub(crate) fn set_reply_waits(&mut self, waited: u64, held_by: u32) {
        (self.queued_at, self.held_by) = (waited, held_by);
    }

    /// Marks what becomes the reply of a flow that was complete at `time`.
    pub(crate) fn complete(&mut self, time: u64) {
        self.set_reply_waits(time, COMPLETE);
    }

    /// Returns the time at which the flow was complete, in a reply that has it.
    pub(crate) fn completed_at(&self) -> Option<u64> {
        (self.held_by == COMPLETE).then_some(self.queued_at)
    }

    /// Creates a packet from the destination back to the source.
    #[inline]
    pub(crate) fn reply(&self, kind: Kind, size: u16) -> Packet {
        Packet {
            psn: self.psn,
            flow: self.flow,
            tag: self.tag,
            src: self.dst,
            dst: self.src,
            size,
            kind,
            class: self.class,
            balancer: self.balancer,
            ..Packet::default()
        }
    }

    #[inline]
    pub(crate) fn is_control(&self) -> bool {
        !matches!(self.kind, Kind::Data | Kind::Probe)
    }
}

/// Packets linked by [`Packet::next`], first in first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    head: PacketId,
    tail: PacketId,
}

impl Fifo {
    pub(crate) const EMPTY: Fifo = Fifo { head: PacketId::NONE, tail: PacketId::NONE };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == PacketId::NONE
    }

    #[inline]
    pub(crate) fn first(&self) -> PacketId {
        self.head
    }

    #[inline]
    pub(crate) fn last(&self) -> PacketId {
        self.tail
    }

    /// Appends a packet; its `next` is [`PacketId::NONE`].
    #[inline]
    pub(crate) fn push(&mut self, packets: &mut Packets, id: PacketId) {
        debug_assert_eq!(packets[id].next, PacketId::NONE.0);
        let tail = std::mem::replace(&mut self.tail, id);
        if tail.is_some() {
            packets[tail].next = id.0;
        } else {
            self.head = id;
        }
    }

    /// Inserts a packet behind those `ahead` of it at the head.
    pub(crate) fn push_behind(&mut self, packets: &mut Packets, id: PacketId, ahead: impl Fn(&Packet) -> bool) {
        let (mut before, mut after) = (PacketId::NONE, self.head);
        while after.is_some() && ahead(&packets[after]) {
            (before, after) = (after, PacketId(packets[after].next));
        }
        packets[id].next = after.0;
        if before.is_some() {
            packets[before].next = id.0;
        } else {
            self.head = id;
        }
        if !after.is_some() {
            self.tail = id;
        }
    }

    /// Takes the first packet; there must be one.
    #[inline]
    pub(crate) fn pop(&mut self, packets: &Packets) -> PacketId {
        let id = self.head;
        self.head = PacketId(packets[id].next);
        if self.is_empty() {
            self.tail = PacketId::NONE;
        }
        id
    }

    pub(crate) fn iter<'a>(&self, packets: &'a Packets) -> impl Iterator<Item = PacketId> + use<'a> {
        let known = |id: PacketId| id.is_some().then_some(id);
        std::iter::successors(known(self.head), move |id| known(PacketId(packets[*id].next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Arena, Attribution};

    #[test]
    fn first_in_first_out() {
        let (mut packets, mut queue) = (Packets::new(Arena::new(Attribution::default(), None).unwrap()), Fifo::EMPTY);
        let ids: Vec<_> =
            (0..5).map(|psn| packets.insert(Packet { psn, next: PacketId::NONE.0, ..Packet::default() })).collect();
        for &id in &ids {
            queue.push(&mut packets, id);
        }
        assert_eq!(queue.iter(&packets).collect::<Vec<_>>(), ids);
        assert_eq!((queue.first(), queue.last()), (ids[0], ids[4]));
        for &id in &ids {
            assert_eq!(queue.pop(&packets), id);
        }
        assert!(queue.is_empty() && !queue.last().is_some());
    }

    #[test]
    fn pause_frames_go_first_and_keep_their_order() {
        let (mut packets, mut queue) = (Packets::new(Arena::new(Attribution::default(), None).unwrap()), Fifo::EMPTY);
        for (psn, kind) in [(3, Kind::Ack), (4, Kind::Ack), (1, Kind::Pause), (2, Kind::Pause)] {
            let id = packets.insert(Packet { psn, kind, next: PacketId::NONE.0, ..Packet::default() });
            match kind {
                Kind::Pause => queue.push_behind(&mut packets, id, |packet| packet.kind == Kind::Pause),
                _ => queue.push(&mut packets, id),
            }
        }
        assert_eq!(queue.iter(&packets).map(|id| packets[id].psn).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let mut alone = Fifo::EMPTY;
        let id = packets.insert(Packet { kind: Kind::Pause, next: PacketId::NONE.0, ..Packet::default() });
        alone.push_behind(&mut packets, id, |packet| packet.kind == Kind::Pause);
        assert_eq!((alone.first(), alone.last()), (id, id));
    }

    #[test]
    fn ack_is_encoded_in_a_packet() {
        let answer =
            Reply { psn: 7, tag: 3, cumulative: 1 << 40, bitmap: u64::MAX, offset: 9, nack: true, ..Reply::default() };
        for (ecn, cnp) in [(false, false), (true, false), (false, true), (true, true)] {
            let (mut packet, answer) = (Packet::default(), Reply { ecn, cnp, ..answer });
            packet.set_ack(&answer);
            assert_eq!(packet.answer(), answer);
        }
    }
}
