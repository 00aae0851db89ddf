use crate::header::Protection;
use anabranch_units::Time;
use bytes::Bytes;
use std::net::SocketAddr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The base round trip of a peer has been measured; its streams open.
    Open {
        peer: u32,
        /// Shortest round trip of a full packet.
        base_rtt: Time,
        /// Noise floor: an excess over `base_rtt` up to this counts as noise.
        noise: Time,
    },
    /// Labels of a peer over which no reply comes, as its streams open and whenever that changes: a firewall or a NAT may drop
    /// their packets. They carry nothing but probes until one is echoed.
    Silent {
        peer: u32,
        /// The labels; empty: none any more.
        labels: Vec<u32>,
    },
    /// Full packets to a peer no longer pass, and are sent in fragments from now on.
    Fragmented {
        peer: u32,
        /// Sizes that pass and that do not.
        sizes: Sizes,
    },
    /// Packets to a peer pass only if they are not ECN-capable: they are not from now on.
    EcnDropped { peer: u32 },
    /// A message is complete; those of a stream are delivered in order.
    Received {
        peer: u32,
        /// Number of the peer's stream.
        stream: u32,
        /// Number of the message in that stream, from 0.
        message: u64,
        /// Content; of a placed message the head.
        bytes: Vec<u8>,
        /// Placement of the rest, if the message was placed.
        placed: Option<Placed>,
        /// Arrival time of its first packet.
        began: Time,
    },
    /// A message is fully acknowledged.
    Sent {
        peer: u32,
        stream: u32,
        /// Number of the message in that stream, from 0.
        message: u64,
        delivered: Delivered,
    },
    /// A HELLO was refused, and its sender was notified. Reported at most once per second.
    Refused {
        /// Number that the datapath has for its sender, if any.
        peer: Option<u32>,
        /// Source address, if the datapath has passed it.
        from: Option<SocketAddr>,
        reason: CloseReason,
    },
    /// A peer is lost, with all messages under way to it or from it.
    Lost { peer: u32, reason: CloseReason },
}

/// Part of a message that is in its owner's memory already ([`crate::Placement`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub steering: u64,
    pub bytes: u64,
}

/// Delivery statistics of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Time at which it was appended to its stream.
    pub queued: Time,
    /// Time at which its first packet left.
    pub first_sent: Time,
    /// Packets sent, retransmissions included.
    pub packets: u64,
    pub retransmitted: u64,
    /// Packets that timed out.
    pub timeouts: u64,
    /// Packets that took another path than the one before them.
    pub path_switches: u64,
    /// Packets per label, indexed by label.
    pub per_label: Vec<u64>,
}

/// Reason for the loss of a peer or the refusal of a HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// It owed a reply for longer than the timeout.
    TimedOut,
    /// It sent nothing for longer than the idle timeout, though it owed no reply.
    Idle,
    /// It sent a BYE: it has left, or has no such connection.
    Closed,
    Restarted,
    /// It was evicted: other peers needed its place, or the memory of its incomplete messages.
    Evicted,
    /// It uses another version of the format.
    Version {
        /// Version of its datagrams.
        theirs: u8,
        /// Local version.
        ours: u8,
    },
    /// It has another key, or only one of the two endpoints has a key.
    Key {
        theirs: Protection,
        ours: Protection,
    },
    /// Its packets have another size.
    Mtu {
        /// Payload bytes of the peer's full packets.
        theirs: u32,
        /// Payload bytes of local full packets.
        ours: u32,
    },
    /// It has another number of planes.
    Planes {
        /// Planes of the peer.
        theirs: u8,
        /// Local planes.
        ours: u8,
    },
    /// It acknowledged no data for longer than the timeout, though other datagrams of it arrived.
    Stalled(Sizes),
    /// It has lost this endpoint, which acknowledged none of its data.
    Unreceived(Sizes),
}

/// Bytes of datagrams to a peer, as probes have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Largest one with a reply; 0: none had one.
    pub passes: u32,
    /// One that had none, although smaller ones did; 0: there is none.
    pub fails: u32,
}

/// Where the datapath writes a message: RDMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Address at the peer.
    pub to: u64,
    /// Key of the peer's memory.
    pub key: u32,
    /// Immediate data, by which the peer's owner counts packets that have arrived ([`crate::Placement::written`]).
    pub notice: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// Traffic class of its packets, of which the upper six bits count (DSCP).
    pub class: u8,
    /// Placement at the receiver, in values on which both owners agree ([`crate::Placement`]); 0: none.
    pub steering: u64,
    /// Leading bytes, at most one packet, that are stored apart from the others.
    pub head: Bytes,
    /// The datapath writes the message to the peer's memory, and the peer's endpoint sees nothing of it.
    pub write: Option<Write>,
}

/// Reason why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The peer does not exist, or is gone.
    NoPeer,
    /// The message is larger than the peer accepts; the maximum, in bytes.
    TooLarge(u64),
    /// Too many bytes wait already: try again after [`Event::Sent`].
    Full,
}
