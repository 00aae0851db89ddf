//! A leaf-spine of Linux network namespaces on one machine: the kernel's own ECMP, rates per link, queues that mark and
//! trim, counters, faults. Docs: docs/reference/testbed.md.
//!
//! [`TestbedPlan`] describes the network, [`Fabric`] is the network in the process's own namespaces ([`space`]), [`standing`]
//! are named testbeds, and [`Testbed`] runs scenarios.

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
mod paths;
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
mod unlike;

pub use backend::Testbed;
pub use counters::PortCount;
pub use drops::dropped;
pub use error::TestbedError;
pub use fabric::{Fabric, Missing};
pub use harm::{Harm, forward};
pub use jobs::Launch;
pub use plan::{Cable, End, MAX_HOSTS, MAX_RATE, MAX_SWITCHES, MIN_RATE, Marking, Node, Queue, Role, TestbedPlan};
pub use programs::{command, find};
