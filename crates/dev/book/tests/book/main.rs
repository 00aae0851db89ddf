//! Tests of `anabranch-book`: one program, with a module for each subject.

mod named_tests;
mod pages;
