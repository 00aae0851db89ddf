use thiserror::Error;

/// A request that a backend does not support, with its scenario key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {reason}")]
pub struct Refusal {
    /// The dotted key, for example `fabric.pfc`; of a workload or a fault with its number from 0: `workload[2].kind`.
    pub key: String,
    /// Value found, and reason of the refusal.
    pub reason: String,
    /// Supported alternative.
    pub remedy: String,
}

/// Reason for which a run could not start or had to stop.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The setup is impossible: invalid input (exit code 2).
    #[error("{0}")]
    Setup(String),
    /// This backend does not support the value of a scenario key (exit code 2).
    #[error("{0}")]
    Refused(Refusal),
    /// An invariant failed: a bug (exit code 3).
    #[error("invariant failed: {0}")]
    Invariant(String),
    /// Flows are open and no event is pending, without a circle of pauses or a lost packet that nothing retransmits (exit code
    /// 3); the text names flows, place and time.
    #[error("the simulation ended early: {0}")]
    EndedEarly(String),
    /// The carrier of real packets failed (exit code 3); the text names cause and place.
    #[error("the run could not go on: {0}")]
    Failed(String),
    /// The user stopped it before the first event (exit code 130).
    #[error("interrupted")]
    Interrupted,
}
