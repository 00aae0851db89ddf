//! Tests of `anabranch-transport`: one program, with a module for each subject.

mod uet_channel;
mod uet_model;
