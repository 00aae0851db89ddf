//! Tests of `anabranch-fuzz`: one program, with a module for each subject.

mod corpus;
