//! What an endpoint tells its owner, and what it is told of messages.

use crate::header::Protection;
use anabranch_units::Time;
use bytes::Bytes;
use std::net::SocketAddr;

/// What has happened to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The base round trip of a peer is known; its streams open.
    Open {
        /// Which peer.
        peer: u32,
        /// Shortest round trip of a full packet.
        base_rtt: Time,
        /// What lies this much above it counts as nothing.
        noise: Time,
    },
    /// A message has come whole; those of a stream come in order.
    Received {
        /// From which peer.
        peer: u32,
        /// Over which of its streams.
        stream: u32,
        /// Its number in that stream, from 0.
        message: u32,
        /// What it says; of one that was placed, how it begins.
        bytes: Vec<u8>,
        /// Where the rest of it lies, if not here.
        placed: Option<Placed>,
        /// When its first packet arrived.
        began: Time,
    },
    /// A message has been acknowledged whole.
    Sent {
        /// To which peer.
        peer: u32,
        /// Over which stream.
        stream: u32,
        /// Its number in that stream, from 0.
        message: u32,
        /// How it went.
        delivered: Delivered,
    },
    /// A HELLO was refused, and its sender told why; told here once a second at most.
    Refused {
        /// The number that the datapath has for its sender, and its address, as far as it has them.
        peer: Option<u32>,
        /// See `peer`.
        from: Option<SocketAddr>,
        /// Why.
        why: Why,
    },
    /// A peer is gone, and with it whatever was on its way to it or from it.
    Lost {
        /// Which peer.
        peer: u32,
        /// Why.
        why: Why,
    },
}

/// What of a message lies with its owner already ([`crate::Place`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where it was to be put.
    pub steering: u64,
    /// Its bytes that were put there.
    pub bytes: u64,
}

/// How a message went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// When it was appended to its stream.
    pub queued: Time,
    /// When its first packet left.
    pub first_sent: Time,
    /// Packets, those that were sent again included.
    pub packets: u64,
    /// Of them those that were sent again.
    pub retransmitted: u64,
    /// Packets that timed out.
    pub timeouts: u64,
    /// Packets that went another way than the one before them.
    pub path_switches: u64,
    /// Packets per label, by number of the label.
    pub per_label: Vec<u64>,
}

/// Why a peer is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It owed an answer for too long.
    Silent,
    /// It said nothing for too long, though it owed nothing.
    Idle,
    /// It said so, or knows nothing of us.
    Left,
    /// It has started anew.
    Restarted,
    /// Others needed its place, or the memory that its incomplete messages held.
    Evicted,
    /// It speaks another version of the format.
    Version {
        /// That of its datagrams.
        theirs: u8,
        /// Of ours.
        ours: u8,
    },
    /// It has another key, or one of both ends has none.
    Key {
        /// What it authenticates.
        theirs: Protection,
        /// And we.
        ours: Protection,
    },
    /// Its packets are of another size.
    Mtu {
        /// Payload bytes of its full packets.
        theirs: u16,
        /// Of ours.
        ours: u16,
    },
    /// Its full HELLOs were not answered, and a short one was: the path drops large packets.
    LargePackets {
        /// Bytes of a full datagram.
        full: u32,
        /// Bytes of the datagram that was answered.
        short: u32,
    },
}

/// What a message is besides its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// The traffic class of its packets, of which the upper six bits count (DSCP).
    pub class: u8,
    /// Where the receiver is to put it, in words on which its owner and the message's agree ([`crate::Place`]); 0: it does not say.
    pub steering: u64,
    /// How it begins: bytes, of a packet at most, that do not lie where the others do.
    pub head: Bytes,
}

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no such peer, or it is gone.
    NoPeer,
    /// The peer takes no message of this size; the largest that it takes, in bytes.
    TooLarge(u64),
    /// Too much waits already: try again when something has been sent.
    Full,
}
