//! Tests of `anabranch-testbed`: one program, with a module for each subject.

#![cfg(target_os = "linux")]

mod common;

mod harm;
mod namespaces;
mod program;
