//! Puts a setup together, runs it, measures it.

mod fingerprint;
mod ideal;
mod run;
mod setup;
mod window;

pub use anabranch_fabric::{Measure, Split, Timing};
pub use anabranch_outcome as outcome;
pub use run::{How, check, results, run, run_with};
pub use setup::{LoadBalancer, RunLimits, Setup};

use anabranch_units::Time;
use thiserror::Error;

/// Where a run stands; given to the progress callback when all is built and then a few times per second of wall time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Packets that left a port so far.
    pub packet_hops: u64,
    /// Flows done.
    pub flows_finished: u64,
    /// Flows in all.
    pub flows_total: u64,
}

/// Why a run could not be done or had to stop.
#[derive(Debug, Error)]
pub enum SimError {
    /// The setup asks for something that cannot be (the user's mistake; exit code 2).
    #[error("{0}")]
    Setup(String),
    /// An invariant failed (our mistake; exit code 3).
    #[error("invariant failed: {0}")]
    Invariant(String),
    /// Flows are open and no event is pending (exit code 3): which, where, since when.
    #[error("the simulation stalled: {0}")]
    Stalled(String),
    /// The user asked for a stop before the first event (exit code 130).
    #[error("interrupted")]
    Interrupted,
}
