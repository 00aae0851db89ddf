//! Tests of `anabranch-scenario`: one program, with a module for each subject.

mod citations;
mod dead_ends;
mod explained;
mod foreign;
mod mistakes;
mod schema;
mod servers;
mod workloads;
