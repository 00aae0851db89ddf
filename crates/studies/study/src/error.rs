//! Errors of runs.

use anabranch_results::ReportError;
use anabranch_scenario::ScenarioError;

/// Reason for missing results.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The user's input is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// An invariant failed or the simulation ended early; contains the command that reproduces it.
    #[error("{0}")]
    Broken(String),
    /// The results could not be written or drawn.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The user stopped the run before the first event: there is nothing to keep.
    #[error("interrupted")]
    Interrupted,
}
