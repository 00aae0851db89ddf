//! Carries the packets of an [`anabranch_endpoint::Endpoint`]. A [`Datapath`] takes and gives datagrams over paths that a
//! label picks; a [`Driver`] stands between it and the endpoint.
//!
//! - [`memory`]: a virtual clock and links with rate, delay, queue, marking, trimming and faults by a seed, the test bench of
//!   everything above.

mod datapath;
mod driver;
pub mod memory;

pub use datapath::{Abilities, Datapath, Inbound, Label, Outbound, PeerId, Stamps, WireError};
pub use driver::Driver;
