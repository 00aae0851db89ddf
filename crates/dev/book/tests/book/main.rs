//! Tests of `anabranch-book`: one program, with a module for each subject.

mod pages;
