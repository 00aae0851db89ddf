//! Tests of `anabranch-testkit`: one program, with a module for each subject.

mod circles;
mod dependencies;
