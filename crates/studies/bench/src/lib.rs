//! The measurements of `anabranch bench`: the simulator beside a stripped loop ([`simulator`]), packets on real networks beside plain
//! sockets ([`wire`]), messages over the NCCL plugin ([`messages`]).

pub mod messages;
pub mod simulator;
pub mod stripped;
pub mod wire;

/// Optimisation level of this crate, as Cargo names it: "3" in the profile `dist`.
pub const OPT_LEVEL: &str = env!("ANABRANCH_OPT_LEVEL");
