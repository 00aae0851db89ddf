//! Tests of `anabranch-bound`: one program, with a module for each subject.

mod common;

mod closed_forms;
mod never_beaten;
