use crate::{WorkloadError, traffic::Traffic, view::Context};

pub(crate) trait WorkloadKind {
    /// As far as possible without hosts and files.
    fn check(&self) -> Result<(), WorkloadError>;
    /// `check` has passed.
    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError>;
}
