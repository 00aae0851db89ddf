//! Tests of `anabranch-nccl`: one program, with a module for each subject.

mod common;
#[path = "../../../wire/tests/wire/fake/mod.rs"]
mod fake;

mod abi;
mod classes;
mod faults;
mod hostile;
mod large;
mod numbers;
mod two_queues;
mod watched;
