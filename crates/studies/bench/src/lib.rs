//! Measurements of `anabranch bench`: the simulator beside a stripped loop, packets beside plain sockets, messages over
//! the NCCL plugin.

pub mod messages;
pub mod simulator;
pub mod stripped;
pub mod wire;

/// Optimisation level of this crate, "3" in the profile `dist`.
pub const OPT_LEVEL: &str = env!("ANABRANCH_OPT_LEVEL");
