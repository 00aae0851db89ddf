//! Runs collectives over a network plugin of NCCL's without NCCL and without a GPU (docs/reference/nccl.md): loads the shared object as
//! NCCL does ([`plugin`]), sends what rings and trees send ([`plan`]), each rank in a process of its own ([`rank`]), and looks at every
//! element of the result ([`run`]).

pub mod plugin;
pub mod rank;
pub mod run;

pub use anabranch_workload::plan;
