//! Interface of a kind of workload.

use crate::{WorkloadError, traffic::Traffic, view::Context};

/// A kind of workload with its parameters.
pub(crate) trait WorkloadKind {
    /// Checks that every parameter is within its limits, as far as possible without hosts and files.
    fn check(&self) -> Result<(), WorkloadError>;
    /// Generates the flows; `check` has passed.
    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError>;
}
