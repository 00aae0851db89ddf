//! A leaf-spine of Linux network namespaces on one machine: the kernel's own ECMP, rates per link, queues that mark and trim,
//! counters, faults. Docs: docs/reference/testbed.md.
//!
//! - [`Plan`]: network that is built for a scenario's topology, and the limits of topologies;
//! - [`Fabric`]: the network itself, built and taken down by the process inside it;
//! - [`paths`]: discovery of the switches on the path of a UDP flow, without privileges or a map;
//! - [`Testbed`]: backend that runs a scenario's flows on the network;
//! - [`space`]: private mount, network and process namespaces, which end with their holder;
//! - [`standing`]: named testbeds, which run until they are taken down.

#![cfg(target_os = "linux")]

mod backend;
mod batch;
mod bpf;
mod counters;
mod delay;
mod drops;
mod error;
mod fabric;
mod faults;
mod foreground;
mod harm;
mod host;
mod inherited;
mod jobs;
#[doc(hidden)]
pub mod link_program;
mod net;
pub mod paths;
mod plan;
#[doc(hidden)]
pub mod port_program;
mod processors;
mod programs;
mod run;
pub mod space;
pub mod standing;
mod tap;
mod triggers;

pub use backend::Testbed;
pub use counters::PortCount;
pub use drops::dropped;
pub use error::TestbedError;
pub use fabric::{Fabric, Missing};
pub use harm::{Harm, forward};
pub use jobs::Launch;
pub use plan::{Cable, End, MAX_HOSTS, MAX_RATE, MAX_SWITCHES, MIN_RATE, Marking, Node, Plan, Queue, Role};
pub use programs::{command, find};
