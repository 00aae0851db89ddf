use crate::{WorkloadError, traffic::Traffic, view::Context};

pub(crate) trait WorkloadKind {
    /// As far as possible without hosts and files.
    fn check(&self) -> Result<(), WorkloadError>;
    /// Returns `true` if the work is done when its last flow is, even where no flow waits for another.
    fn is_job(&self) -> bool {
        false
    }
    /// `check` has passed.
    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError>;
}
