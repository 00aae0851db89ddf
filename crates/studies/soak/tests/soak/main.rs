//! Tests of `anabranch-soak`: one program, with a module for each subject.

mod soak;
