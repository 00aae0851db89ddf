//! Tests of `anabranch-workload`: one program, with a module for each subject.

mod speed;
