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
pub use batch::{Batch, Runs};
pub use compare::{ComparePlan, Compared, ComputeLimits, Permission, check, draw};
pub(crate) use entries::Entries;
pub use entries::Request;
pub use error::RunError;
pub use hold::Hold;
pub(crate) use lock::Lock;
pub use lock::release_locks;
pub use pcap::{Captured, Captures};
pub use place::{Place, begin_backends};
pub use rerun::Recorded;
pub(crate) use results::Ran;
pub use schedule::Observer;
pub(crate) use schedule::{Step, Work, work_off};
pub use single::Single;
pub use store::{Again, Store, run_key};
pub(crate) use store::{Written, is_due, replaceable, with_what_is_done};
pub use sweep::Options;
pub use sweep::Sweep;

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
