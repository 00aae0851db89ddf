//! Measurements of `anabranch bench`: the simulator beside a stripped loop.

pub mod simulator;
pub mod stripped;
