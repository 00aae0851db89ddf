//! What NIC, transport and scheme of a host say to each other, as pure state machines: who may send next, over which path,
//! what an answer means, when a timer is due. The simulator and real networks drive the same code.
//!
//! Nothing here reads a clock, opens anything or knows the simulator; times are arguments.
//!
//! - [`Flow`]: an open flow at its sender: transport, path memory, timer.
//! - [`Nic`]: whose turn it is: the flows that may send, and those that must wait for pacing or for their scheme.
//! - [`Balancer`]: a host's scheme and the slots of its flows with it.

mod balancer;
mod flow;
mod nic;

pub use balancer::Balancer;
pub use flow::Flow;
pub use nic::{Departure, Line, Nic};
