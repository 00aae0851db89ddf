//! NIC arbitration, transport and load-balancing scheme of a host as pure state machines: which flow sends next, over which path,
//! the meaning of an ACK, the deadline of a timer. The simulator and real networks drive the same code.
//!
//! This crate reads no clock, opens no socket and does not depend on the simulator; times are arguments.
//!
//! Both use
//! - [`Flow`]: an open flow at its sender: transport, path memory, timer;
//! - [`Nic`]: arbitration among the flows that may send, and those that wait for pacing or for their scheme;
//! - [`Balancer`]: a host's scheme and the slots of its flows with it.
//!
//! Real networks also use [`Endpoint`]: peers, streams of messages and the datagrams of docs/reference/wire.md ([`header`]),
//! driven by arrivals and deadlines.

mod auth;
mod balancer;
mod endpoint;
mod entropy;
mod event;
mod flow;
pub mod header;
mod nic;
mod pacer;
mod peer;
mod settings;
mod stream;
mod watched;

pub use auth::Key;
pub use balancer::Balancer;
pub use bytes::Bytes;
pub use endpoint::{Arrival, Counters, Endpoint, NextSend, NoPlacement, Placement, To, Transmit};
pub use entropy::{Entropy, Secret};
pub use event::{CloseReason, Delivered, Event, Placed, SendError, SendOptions};
pub use flow::Flow;
pub use nic::{Departure, Egress, Nic, Transports};
pub use settings::Settings;
pub use watched::PathCounts;
