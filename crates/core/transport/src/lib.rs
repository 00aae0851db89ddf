//! Senders and receivers of RDMA-like transports as pure state machines: they are given `(now, event)` and
//! return what to send. They read no clock and allocate nothing per packet in steady state.
//!
//! [`uet`] is the Ultra-Ethernet-like transport: window-based, selective acknowledgement and retransmission,
//! packet trimming with NACKs; [`cc`] holds its congestion controls. [`roce`] is RoCEv2. [`Transport`], [`Sender`] and
//! [`Receiver`] are what both look like from outside.

pub mod cc;
mod control;
mod network;
mod packet;
mod psn_set;
pub mod roce;
mod transport;
pub mod uet;

pub use network::{Moved, Network};
pub use packet::{Acked, Answer, DataArrival, Segment};
pub use transport::{Receiver, Sender, TRANSPORTS, Transport, TransportAbout, TransportParameters};
