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

pub use error::ScenarioError;
pub use scenario::Scenario;
