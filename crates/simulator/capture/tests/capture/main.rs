//! Tests of `anabranch-capture`: one program, with a module for each subject.

mod frames;
