//! Tests of `anabranch-sim`: one program, with a module for each subject.

#[path = "../common/mod.rs"]
mod common;

mod closed_forms;
mod combinatorics;
mod controls;
mod delays;
mod deployed;
mod determinism;
mod fastest;
mod faults;
mod goal;
mod guided;
mod ideal;
mod jobs;
mod metamorphic;
mod mrc;
mod pairs;
mod parity;
mod peers;
mod planes;
mod queueing_theory;
mod roce;
mod series;
mod servers;
mod signals;
mod skip;
mod unlisted;
mod watch;
mod ways;
mod window;
