//! Senders and receivers of RDMA-like transports as pure state machines: they take `(now, event)` and return decisions,
//! read no clock and allocate nothing per packet in steady state.
//!
//! [`uet`] is the Ultra-Ethernet-like transport, [`roce`] is RoCEv2. [`Transport`], [`Sender`] and [`Receiver`] are the
//! common interface, [`Protocol`] is what a transport implements.

#![warn(missing_docs)]

mod control;
mod credit;
mod dispatch;
mod kind;
mod kinds;
mod network;
mod packet;
mod psn_set;

pub use control::{ControlCapabilities, Controls, Section};
pub use credit::{CreditPacer, CreditSource};
pub use kind::{Constants, NicLimits, Protocol, RealNetwork, Receiving, Sending, TransportSettings};
pub use kinds::{Receiver, Sender, Transport, TransportParameters, roce, uet};
pub use network::{BaseRttShift, Network};
pub use packet::{AckOutcome, DataArrival, Reply, Segment};
