//! Carries the packets of an [`anabranch_endpoint::Endpoint`]: a [`Datapath`] of [`memory`] or [`udp`] sends datagrams over
//! paths that a label selects, a [`Driver`] connects it to the endpoint, [`transfer`] sends bytes and compares checksums.
//! [`verbs`] has queue pairs. On Linux `paths` traces which labels share a path. [`WireParameters`] is the section `[wire]` of a scenario.

mod datapath;
mod driver;
mod key;
mod lateness;
pub mod memory;
mod parameters;
pub mod parity;
#[cfg(target_os = "linux")]
pub mod paths;
mod region;
mod resolve;
mod stev;
pub mod transfer;
pub mod udp;
pub mod verbs;

pub use datapath::{Abilities, Datapath, Inbound, Kind, Label, Outbound, PeerId, Source, To, WireError};
pub use driver::Driver;
pub use key::{KeyError, read_key};
pub use lateness::Lateness;
pub use parameters::{
    Authenticate, DatapathKind, FindLabels, MAX_LABELS, OVERHEAD, OnTimeoutHere, WireParameters, secret,
};
pub use region::Region;
pub use resolve::{resolve, resolve_local};
pub use stev::{Carried, Stev, StructuredValues};
