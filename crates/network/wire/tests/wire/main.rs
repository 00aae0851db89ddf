//! Tests of `anabranch-wire`: one program, with a module for each subject.

mod common;
mod fake;

mod allocations;
mod base_rtt;
mod black_holes;
mod chaos;
mod closed_forms;
mod damage;
mod dead_paths;
mod dissector;
mod lateness;
mod loopback;
mod middlebox;
mod parity;
mod path_groups;
mod peers;
mod planes;
mod probes;
mod slow_paths;
#[cfg(target_os = "linux")]
mod stev;
mod verbs;
mod verbs_calls;
