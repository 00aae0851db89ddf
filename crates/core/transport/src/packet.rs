//! Packets and replies, common to all transports.

use anabranch_units::Time;

/// The next packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number.
    pub psn: u64,
    /// Payload bytes.
    pub payload: u32,
    /// `true` if it was sent before.
    pub retransmission: bool,
}

/// A data packet as it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataArrival {
    /// Sequence number.
    pub psn: u64,
    /// Payload bytes.
    pub payload: u32,
    /// Path tag.
    pub tag: u32,
    /// ECN mark.
    pub ecn: bool,
    /// The sender is blocked until this packet is acknowledged, or has nothing left to send: acknowledge at once.
    pub ack_request: bool,
}

/// A receiver's reply to a packet: ACK, NACK or congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Sequence number of that packet; [`Reply::OF_TIMER`]: a delay has passed, and there is no round trip.
    pub psn: u64,
    /// Path tag of that packet.
    pub tag: u32,
    /// First PSN not yet received.
    pub cumulative: u64,
    /// Selective acknowledgements beyond `cumulative`. `uet`: bit i is set if PSN `cumulative + offset + i` has been received.
    pub bitmap: u64,
    /// Start of `bitmap`, in a format of the transport.
    pub offset: u32,
    /// ECN mark of that packet, or of any packet since the last reply, as the receiver is configured.
    pub ecn: bool,
    /// Congestion notification (`roce`): the packet was marked, or came out of order where that counts as congestion.
    pub cnp: bool,
    /// Negative acknowledgement: the packet was trimmed, or arrived out of order where that matters.
    pub nack: bool,
    /// The packet was trimmed at its last hop.
    pub last_hop: bool,
}

impl Reply {
    /// PSN of no packet: the largest of 63 bits. A flow has fewer packets, also where only 32 bits of a PSN are kept.
    pub const OF_TIMER: u64 = (1 << 63) - 1;
}

/// Effect of a reply on its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// The packet was trimmed on its path; this does not concern other packets.
    pub trimmed: bool,
    /// Round trip of the packet; `None` if it was retransmitted or completed earlier.
    pub rtt: Option<Time>,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// Packets declared lost because this one, sent later, has arrived; [`Sending::last_lost`](crate::Sending::last_lost) has their
    /// tags.
    pub lost: u32,
    /// The packet arrived, and the receiver had no memory for it.
    pub refused: bool,
    /// Packets beyond the cumulative PSN that have arrived, as [`Reply::bitmap`]; 0 where the transport does not report them.
    pub selective: u64,
    /// PSN of the first bit of `selective`.
    pub selective_from: u64,
    /// Everything is acknowledged.
    pub done: bool,
}
