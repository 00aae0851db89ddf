//! Why a run gave no results.

use thiserror::Error;

/// What a backend cannot do, with the key of the scenario that asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {reason}")]
pub struct Refusal {
    /// The dotted key, for example `fabric.pfc`; of a workload or a fault with its number from 0: `workload[2].kind`.
    pub key: String,
    /// What was found, and why it cannot be done.
    pub reason: String,
    /// What would do instead.
    pub remedy: String,
}

/// Why a run could not start or had to stop.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The setup is impossible: the user's mistake (exit code 2).
    #[error("{0}")]
    Setup(String),
    /// This backend cannot do what a key of the scenario asks for (exit code 2).
    #[error("{0}")]
    Refused(Refusal),
    /// An invariant failed: our mistake (exit code 3).
    #[error("invariant failed: {0}")]
    Invariant(String),
    /// Flows are open and no event is pending, without a circle of pauses (exit code 3): which, where, since when.
    #[error("the simulation stalled: {0}")]
    Stalled(String),
    /// What carries real packets could not go on (exit code 3): what, and where.
    #[error("the run could not go on: {0}")]
    Failed(String),
    /// The user stopped it before the first event (exit code 130).
    #[error("interrupted")]
    Interrupted,
}
