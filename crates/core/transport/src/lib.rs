//! Senders and receivers of RDMA-like transports as pure state machines: they take `(now, event)` and return decisions.
//! They read no clock and allocate nothing per packet in steady state.
//!
//! [`uet`] is the Ultra-Ethernet-like transport: window-based, selective acknowledgement and retransmission,
//! packet trimming with NACKs; [`uet::cc`] contains its congestion controls. [`roce`] is RoCEv2. [`Transport`], [`Sender`] and
//! [`Receiver`] are the common interface, [`Protocol`] is what a transport implements.

mod control;
mod dispatch;
mod kind;
mod kinds;
mod network;
mod packet;
mod psn_set;

pub use control::{Check, Controls, Section};
pub use kind::{Constants, Kind, Protocol, RealNetwork, Receiving, Sending};
pub use kinds::{Receiver, Sender, Transport, TransportParameters, roce, uet};
pub use network::{Moved, Network};
pub use packet::{Acked, Answer, DataArrival, Segment};
