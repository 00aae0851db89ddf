//! Runs and verifies collectives over a network plugin of NCCL without NCCL and without a GPU (docs/reference/nccl.md).

pub mod group;
#[doc(hidden)]
pub mod plugin;
pub mod rank;
pub mod run;
pub mod suite;

pub use anabranch_workload::plan;
