//! Why a run gave no results.

use thiserror::Error;

/// Why a run could not start or had to stop.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The setup is impossible: the user's mistake (exit code 2).
    #[error("{0}")]
    Setup(String),
    /// An invariant failed: our mistake (exit code 3).
    #[error("invariant failed: {0}")]
    Invariant(String),
    /// Flows are open and no event is pending, without a circle of pauses (exit code 3): which, where, since when.
    #[error("the simulation stalled: {0}")]
    Stalled(String),
    /// The user stopped it before the first event (exit code 130).
    #[error("interrupted")]
    Interrupted,
}
