//! Packets as senders and receivers of every transport see them, and what an acknowledgement means.

use anabranch_units::Time;

/// A packet that would be sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its sequence number.
    pub psn: u64,
    /// Its payload bytes.
    pub payload: u32,
    /// Whether it was sent before.
    pub retransmission: bool,
}

/// A data packet as it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataArrival {
    /// Its sequence number.
    pub psn: u64,
    /// Its payload bytes.
    pub payload: u32,
    /// Its path tag.
    pub tag: u32,
    /// Whether it was ECN-marked.
    pub ecn: bool,
    /// The sender cannot go on before it receives the acknowledgement of this packet (or has nothing left): acknowledge at once.
    pub ack_request: bool,
}

/// What a receiver tells its sender, as a packet carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Sequence number of the packet that it answers.
    pub psn: u64,
    /// Path tag of that packet.
    pub tag: u32,
    /// Every PSN below this one has been received.
    pub cumulative: u64,
    /// The transport's own: which PSNs beyond it have been received, and where that begins.
    pub bitmap: u64,
    /// See `bitmap`.
    pub offset: u32,
    /// The packet that it answers was marked.
    pub ecn: bool,
    /// A congestion notification (`roce`): it was marked, or it came out of order and the NIC takes that for congestion.
    pub cnp: bool,
    /// Something is missing: the packet came without its payload, or out of order where that matters.
    pub nack: bool,
}

/// What an answer meant to its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// The packet came without its payload, which says nothing of the others: its path is to blame.
    pub trimmed: bool,
    /// Round trip of the packet; `None` where it was sent more than once or is long done.
    pub rtt: Option<Time>,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// Packets that count as lost since this one, of the same tag and later sent, has arrived.
    pub lost: u32,
    /// Everything is acknowledged.
    pub done: bool,
}
