//! What every kind of workload does.

use crate::{WorkloadError, traffic::Traffic, view::Context};

/// A kind of workload with its parameters.
pub(crate) trait Kind {
    /// Whether every parameter is within its limits, as far as hosts and files are not needed to tell.
    fn check(&self) -> Result<(), WorkloadError>;
    /// Makes the flows; `check` has passed.
    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError>;
}
