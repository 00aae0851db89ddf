//! Why a run could not be done or had to stop.

use thiserror::Error;

/// Why a run could not be done or had to stop.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FabricError {
    /// The setup asks for something that cannot be: the user's mistake.
    #[error("{0}")]
    Setup(String),
    /// An invariant of ours does not hold.
    #[error("{0}")]
    Invariant(String),
    /// Flows are open and no event is pending: which, where, since when.
    #[error("{0}")]
    Stalled(String),
    /// The observer asked for a stop before the first event.
    #[error("interrupted")]
    Interrupted,
}
