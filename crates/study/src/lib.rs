//! Scenario files, comparisons, and what there is to choose from.
//!
//! A scenario file becomes a [`tree::Tree`] whose values know their place, then a checked
//! [`scenario::Scenario`] with every default, then the setup of a run. [`compare`] runs many of them side by side.

pub mod bench;
pub mod compare;
mod document;
mod error;
pub mod explain;
pub mod hold;
pub mod library;
pub mod machine;
pub mod results;
pub mod scenario;
mod section;
pub mod stripped;
pub mod tree;

pub use anabranch_sim::Progress;
pub use compare::Observer;
pub use error::ScenarioError;
