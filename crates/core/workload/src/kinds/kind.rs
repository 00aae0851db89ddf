use crate::{WorkloadError, traffic::Traffic, view::Context};

pub(crate) trait WorkloadKind {
    /// As far as possible without hosts and files.
    fn check(&self) -> Result<(), WorkloadError>;
    /// Returns `true` if the work is done when its last flow is, even where no flow waits for another.
    fn is_job(&self) -> bool {
        false
    }
    /// Returns why the groups of a job differ, so that the run lists their flows in advance; `None`: they are alike.
    fn listed_because(&self) -> Option<&'static str> {
        None
    }
    /// `check` has passed.
    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError>;
}
