//! Ports, queues, marking, trimming, scheduling, switches and NICs on the engine.
//!
//! [`run`] is the way in: it prepares a plan that all threads may read, lets a partition per thread handle its events,
//! checks the invariants and puts the results together.

mod error;
mod event;
mod host;
mod ids;
mod looks;
mod measure;
mod message;
mod packet;
mod partition;
mod plan;
mod port;
mod prefetch;
mod results;
mod run;
mod switch;
mod trigger;

pub use anabranch_transport::TransportParameters;
pub use error::FabricError;
pub use plan::{
    Balancer, BaseRtt, BufferRules, FabricParameters, FctKind, FlowKeys, IdealFct, MarkAt, MarkedBytes, Measure,
    Scheduling, Setup, Simultaneous, Split, SwitchHash, Timing, Trim, WireTimes,
};
pub use port::lossless_problem;
pub use results::{FlowOutcome, Output};
pub use run::{Progress, check, run};
