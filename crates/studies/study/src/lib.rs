//! Runs of scenarios: single ([`results`]), compared ([`compare`]), swept ([`sweep`]), repeated ([`rerun`]).

pub mod batch;
pub mod compare;
pub mod entries;
pub mod error;
pub mod explain;
pub mod hold;
pub mod limits;
mod lock;
pub mod pcap;
pub mod place;
pub mod rerun;
pub mod results;
pub mod runs;
pub mod schedule;
pub mod single;
pub mod store;
pub mod sweep;

pub use anabranch_backend::Progress;
pub use lock::release_locks;
pub use schedule::Observer;
pub use store::run_key;

use anabranch_results::ReportError;
use anabranch_scenario::ScenarioError;

/// Turns a fault in a result or its directory into a message with its remedy.
pub fn input_error(error: ReportError) -> ScenarioError {
    match error {
        ReportError::Content { path, found, remedy } => {
            ScenarioError::new(format!("{}: {found}", path.display())).help(remedy)
        }
        other => ScenarioError::new(other.to_string()),
    }
}
