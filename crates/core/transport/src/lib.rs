//! Senders and receivers of RDMA-like transports as pure state machines: they are given `(now, event)` and
//! return what to send. They read no clock and allocate nothing per packet in steady state.
//!
//! [`uet`] is the Ultra-Ethernet-like transport: window-based, selective acknowledgement and retransmission,
//! packet trimming with NACKs; [`uet::cc`] holds its congestion controls. [`roce`] is RoCEv2. [`Transport`], [`Sender`] and
//! [`Receiver`] are what all look like from outside, [`Protocol`] is what each implements.

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
