//! Scenario files, and the catalogue of what a scenario can name.
//!
//! A scenario file becomes a [`tree::Tree`] whose values carry their places in the text, then a checked [`Scenario`] with every
//! default, then the setup of a run.

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
pub mod tree;

pub use error::ScenarioError;
pub use scenario::Scenario;
