//! Scenario files, comparisons, and what there is to choose from.
//!
//! A scenario file becomes a [`tree::Tree`] whose values know their place, then a checked
//! [`scenario::Scenario`] with every default, then the setup of a run. [`compare`] runs many of them side by side.

pub mod backend;
mod batch;
pub mod bench;
pub mod claims;
pub mod compare;
mod document;
mod entries;
mod error;
pub mod explain;
mod foreign;
pub mod hold;
pub mod init;
pub mod library;
mod lock;
pub mod machine;
pub mod memory;
pub mod pcap;
pub mod rerun;
pub mod results;
pub mod runs;
pub mod scenario;
mod schedule;
pub mod schema;
mod section;
pub mod soak;
mod store;
pub mod stripped;
pub mod sweep;
pub mod tree;

pub use anabranch_backend::Progress;
pub use error::ScenarioError;
pub use lock::release_locks;
pub use schedule::Observer;
