//! Tests of `anabranch` with real packets and the wall clock. A program apart from `cli`, whose tests would take the processors;
//! those that measure take turns.

#![cfg(target_os = "linux")]

#[path = "../../../network/testbed/tests/testbed/common/apart.rs"]
mod apart;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../simulator/sim/tests/sim/fastest.rs"]
mod fastest;

mod attacks;
mod collective_testbed;
mod harm;
mod interfaces;
mod machine_bound;
mod path_rates;
mod real_paths;
mod testbed;
mod testbed_faults;
mod testbed_traffic;
