//! Runs collectives over a network plugin of NCCL without NCCL and without a GPU (docs/reference/nccl.md). It loads the
//! shared object as NCCL does ([`plugin`]), sends the messages of rings and trees ([`plan`]), each rank in a process of
//! its own ([`rank`]), and checks every element of the result ([`run`]).

pub mod plugin;
pub mod rank;
pub mod run;

pub use anabranch_workload::plan;
