//! Carries the packets of an [`anabranch_endpoint::Endpoint`]. A [`Datapath`] sends and receives datagrams over paths that a
//! label selects; a [`Driver`] connects it to the endpoint.
//!
//! - [`memory`]: a virtual clock and links with rate, delay, queue, marking, trimming and seeded faults, for tests of everything
//!   above;
//! - [`udp`]: sockets, one per label.
//!
//! [`WireParameters`] is the section `[wire]` of a scenario.
//!
//! [`chunks`] are whole pieces of a message that hardware delivers and acknowledges by itself: queue pairs of RDMA NICs
//! ([`verbs`]).
//!
//! [`transfer`] sends bytes from one endpoint to another and compares checksums.

pub mod chunks;
mod datapath;
mod driver;
mod key;
mod lateness;
pub mod memory;
mod parameters;
pub mod transfer;
pub mod udp;
pub mod verbs;

pub use datapath::{Abilities, Datapath, Inbound, Label, Outbound, PeerId, Stamps, To, WireError};
pub use driver::Driver;
pub use key::{KeyError, read_key};
pub use lateness::Lateness;
pub use parameters::{
    Authenticate, DatapathKind, FindLabels, MAX_LABELS, OVERHEAD, OnTimeoutHere, WireParameters, secret,
};
