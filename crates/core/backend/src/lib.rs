//! Interface between scenarios and backends: a [`Backend`] carries the packets of a [`Setup`] and declares what it measures.

mod backend;
mod error;
mod fingerprint;
mod ideal;
mod jobs;
mod marking;
mod parameters;
mod rows;
mod setup;
mod steering;
mod unlisted;
mod window;

pub use backend::{Backend, RunOptions, run};
pub use error::{Refusal, RunError};
pub use ideal::{below_ideal, ideal_note};
pub use jobs::job_rows;
pub use marking::{
    MarkedQueue, Marking, MarkingCapabilities, MarkingParameters, MarkingRule, MarkingStates, Pi, PiParameters,
    PiState, PortSizes, Red, RedParameters,
};
pub use parameters::{
    CsigSignal, FabricParameters, FctKind, FlowKeys, IdealFct, MarkAt, PortSelector, ReplyPaths, Scheduling,
    SlowedLimits, TRIMMED_SIZE, Trim,
};
pub use rows::{FlowOutcome, flow_rows};
pub use setup::{LoadBalancer, Measure, RunLimits, Setup};
pub use steering::{Answer, Connection, Steering, Turn};
pub use unlisted::UnlistedJob;
pub use window::arrivals;

pub use anabranch_outcome::{Clock, Measures, RunResult, RunRows};

use anabranch_units::Time;

/// Progress of a run, passed to its callback after preparation and then a few times per second of wall time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Time of the run: simulated, or on the clock of a real one.
    pub now: Time,
    /// Packets that left a port so far; `None`: not counted.
    pub packet_hops: Option<u64>,
    pub flows_finished: u64,
    pub flows_total: u64,
    /// Time of the last new byte at a receiver, start, trigger or computation; `None`: unknown.
    pub last_progress: Option<Time>,
}
