//! Senders and receivers of RDMA-like transports as pure state machines: they are given `(now, event)` and
//! return what to send. They read no clock and allocate nothing per packet in steady state.
//!
//! [`uet`] is the Ultra-Ethernet-like transport: window-based, selective acknowledgement and retransmission,
//! packet trimming with NACKs; [`cc`] holds its congestion controls. [`roce`] is RoCEv2. [`Transport`], [`Sender`] and
//! [`Receiver`] are what both look like from outside.

pub mod cc;
mod control;
mod psn_set;
pub mod roce;
mod transport;
pub mod uet;

pub use transport::{
    Answer, Heard, Moved, Receiver, Sender, TRANSPORTS, Transport, TransportAbout, TransportParameters,
};

/// What the receiver tells the sender with an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Every PSN below this one has been received.
    pub cumulative: u64,
    /// First PSN of `bitmap`.
    pub bitmap_base: u64,
    /// Bit i: PSN `bitmap_base + i` has been received.
    pub bitmap: u64,
    /// PSN of the packet that triggered this ACK.
    pub psn: u64,
    /// Path tag of that packet.
    pub tag: u32,
    /// Whether that packet was ECN-marked (or any packet since the last ACK, by choice of the receiver).
    pub ecn: bool,
}

/// What the receiver tells the sender when a packet came without its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nack {
    /// Every PSN below this one has been received.
    pub cumulative: u64,
    /// PSN of the trimmed packet.
    pub psn: u64,
    /// Path tag of the trimmed packet.
    pub tag: u32,
}
