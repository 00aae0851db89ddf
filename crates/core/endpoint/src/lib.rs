//! NIC arbitration, transport and load-balancing scheme of a host as pure state machines. The simulator and real networks drive
//! the same [`Flow`], [`Nic`] and [`Balancer`]; real networks also [`Endpoint`], with the datagrams of docs/reference/wire.md
//! ([`header`]). This crate reads no clock and opens no socket; times are arguments.

mod auth;
mod balancer;
mod endpoint;
mod entropy;
mod event;
mod flow;
mod fragments;
pub mod header;
mod nic;
mod pacer;
mod peer;
mod settings;
mod stream;
mod transmissions;
mod watched;

pub use auth::Key;
pub use balancer::Balancer;
pub use bytes::Bytes;
pub use endpoint::{Arrival, Counters, Endpoint, NextSend, NoPlacement, Placement, Source, To, Transmit};
pub use entropy::{Entropy, Secret};
pub use event::{CloseReason, Delivered, Event, Placed, SendError, SendOptions, Sizes, Write};
pub use flow::Flow;
pub use nic::{Departure, Egress, Nic, Transports};
pub use settings::{Checksum, Settings};
pub use watched::{PathCounts, SchemeState};
