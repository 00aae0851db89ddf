//! What NIC, transport and scheme of a host say to each other, as pure state machines: who may send next, over which path,
//! what an answer means, when a timer is due. The simulator and real networks drive the same code.
//!
//! Nothing here reads a clock, opens anything or knows the simulator; times are arguments.
//!
//! Both use
//! - [`Flow`]: an open flow at its sender: transport, path memory, timer;
//! - [`Nic`]: whose turn it is: the flows that may send, and those that must wait for pacing or for their scheme;
//! - [`Balancer`]: a host's scheme and the slots of its flows with it.
//!
//! Real networks besides use [`Endpoint`]: peers, streams of messages and the datagrams of docs/reference/wire.md ([`header`]),
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
pub use endpoint::{Arrival, Counters, Endpoint, NextSend, Nowhere, Place, To, Transmit};
pub use entropy::{Entropy, Secret};
pub use event::{Delivered, Event, Placed, SendError, SendOptions, Why};
pub use flow::Flow;
pub use nic::{Departure, Line, Nic, Transports};
pub use settings::Settings;
pub use watched::PathCounts;
