//! Bounds: flow times that no load balancer can beat.
//!
//! [`bounds`] computes them from the setup of a run alone, without a simulation. docs/explanation/bounds.md states the
//! assumptions, with an example by hand. [`reference_setup`] removes almost all contention inside the fabric: a reference,
//! which proves nothing.

mod beaten;
mod cuts;
mod earliest;
mod flows;
mod limit;
mod machine;
mod max_flow;
mod network;
mod reference;

pub use beaten::beaten;
pub(crate) use flows::Demand;
pub use limit::{Bounds, Limit, MaxFlowCost, Unreachable, UnreachablePair, bounds};
pub(crate) use machine::Machine;
pub(crate) use network::{Network, distances};
pub use reference::{REFERENCE_FACTOR, reference_setup};
