//! Scenario files, and the catalogue of what a scenario can name.

pub mod backend;
pub mod document;
pub mod error;
pub mod explain;
mod foreign;
pub mod init;
pub mod library;
pub mod machine;
pub mod scenario;
pub mod schema;
pub mod section;
pub mod synonyms;
pub mod tree;

pub use backend::{BackendEntry, SIMULATOR};
pub(crate) use error::Mistakes;
pub use error::ScenarioError;
pub use explain::{CatalogueKind, Explanation};
pub use library::load;
pub use machine::{COMMIT, Memory, VERSION, cpu_seconds, peak_rss_bytes, quoted, reset_peak_rss, resident};
pub use scenario::{CompareParameters, MAX_SEEDS, MeasureParameters, PROFILES, RunParameters, Scenario};
pub(crate) use section::kinds;
pub use section::{Section, did_you_mean, list};
pub use tree::{Node, Place, Tree};
