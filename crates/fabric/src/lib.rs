//! Ports, queues, marking, trimming, scheduling, switches and NICs on the engine.
//!
//! A [`Plan`] holds what all partitions may read; a [`Partition`] handles the events of some switches and their
//! hosts; [`harvest`] checks the invariants and puts the results together.

mod buffer;
mod classes;
mod fetch;
mod guided;
mod harvest;
mod histogram;
mod host;
mod order;
mod outcome;
mod packet;
mod parameters;
mod partition;
mod pause;
mod plan;
mod port;
mod prefetch;
mod probe;
mod reorder;
mod sender;
mod switch;
mod transport;
mod trigger;
mod wires;

pub use buffer::lossless_problem;
pub use harvest::{FlowOutcome, Harvest, harvest};
pub use parameters::{FabricParameters, FctKind, MarkAt, Quirks, Scheduling, Trim};
pub use partition::{Failure, Partition};
pub use pause::deadlock;
pub use plan::{Balancer, Measure, Message, Plan, PlanInput};
pub use transport::TransportParameters;
