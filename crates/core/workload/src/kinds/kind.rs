use crate::{WorkloadError, flow::CollectiveInfo, traffic::Traffic, view::Context};

pub(crate) trait WorkloadKind {
    /// As far as possible without hosts and files.
    fn check(&self) -> Result<(), WorkloadError>;
    /// Returns `true` if the work is done when its last flow is, even where no flow waits for another.
    fn is_job(&self) -> bool {
        false
    }
    /// Returns the collective that `ranks` hosts of these run; `None` if the flows are not those of one.
    fn collective(&self, _hosts: u32) -> Option<CollectiveInfo> {
        None
    }
    /// `check` has passed.
    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError>;
}
